//! What can be seen of a running broker from outside: counts and times, and whether it is healthy.

mod endpoint;
mod exposition;
mod histogram;
mod requests;
mod scrape;
mod seldom;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use endpoint::{bind, serve};
pub(crate) use requests::{Course, Requests};
pub(crate) use seldom::Seldom;

/// What the broker counts while it works. Everything else is looked up when somebody asks.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// By API.
    pub(crate) requests: Requests,
    /// Connections over sockets.
    pub(crate) connections: Connections,
    /// What of segments went over sockets.
    pub(crate) segment_bytes: Arc<SegmentBytes>,
}

impl Metrics {
    /// Tells of requests that take `slow_request_ms` or longer; 0 tells of none.
    pub(crate) fn new(slow_request_ms: u64) -> Self {
        Self {
            requests: Requests::new(slow_request_ms),
            connections: Connections::default(),
            segment_bytes: Arc::default(),
        }
    }
}

/// Counts connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    opened: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
}

impl Connections {
    /// One is open as long as what this returns lives.
    pub(crate) fn open(&self) -> OpenConnection<'_> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        OpenConnection { connections: self }
    }

    /// One was refused because too many are open.
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were opened, are open, and were refused.
    fn counted(&self) -> (u64, u64, u64) {
        // In this order it never seems as if more had been closed than opened.
        let closed = self.closed.load(Ordering::Acquire);
        let opened = self.opened.load(Ordering::Acquire);
        (opened, opened.saturating_sub(closed), self.refused.load(Ordering::Relaxed))
    }
}

/// Counts as open until it is dropped.
pub(crate) struct OpenConnection<'a> {
    connections: &'a Connections,
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.connections.closed.fetch_add(1, Ordering::AcqRel);
    }
}

/// Counts the bytes of segments that went over sockets.
#[derive(Debug, Default)]
pub(crate) struct SegmentBytes {
    sent: AtomicU64,
    read_through: AtomicU64,
}

impl SegmentBytes {
    /// The kernel took so many straight from a file.
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many are read before they are sent, since they were not in the page cache.
    pub(crate) fn read_through(&self, bytes: u32) {
        self.read_through.fetch_add(u64::from(bytes), Ordering::Relaxed);
    }

    /// How many were sent from files, and how many of these were read first.
    fn counted(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.read_through.load(Ordering::Relaxed))
    }
}

/// What went through one partition since the broker has led it.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    appended_records: AtomicU64,
    appended_bytes: AtomicU64,
    read_bytes: AtomicU64,
}

impl Traffic {
    pub(crate) fn appended(&self, records: u64, bytes: u64) {
        self.appended_records.fetch_add(records, Ordering::Relaxed);
        self.appended_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Appended records, appended bytes, read bytes.
    fn counted(&self) -> [u64; 3] {
        [&self.appended_records, &self.appended_bytes, &self.read_bytes]
            .map(|count| count.load(Ordering::Relaxed))
    }
}
