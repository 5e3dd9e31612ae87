//! Writes answers to a socket: bytes from memory, and stretches of segment files by `sendfile`.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use bytes::Buf;
use futures::future::try_join;
use thalweg_protocol::LogSlice;
use thalweg_protocol::frame::{Frame, FramePart};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::{page_cache, sendfile};
use crate::disk_threads::DiskThreads;
use crate::metrics::SegmentBytes;

/// The most stretches of memory handed to one system call.
const GATHERED_PARTS: usize = 64;

/// The most bytes of a file handed to one system call, so that one connection does not keep a worker busy.
const CHUNK: u32 = 1 << 20;

/// The most that is read from the disk at once, and ahead of what is sent: what is on its way to and from the disk keeps the
/// syncs of producers waiting.
pub(super) const READ: u32 = 256 << 10;

/// The answers of one connection on their way out.
pub(crate) struct Output {
    parts: VecDeque<FramePart>,
    bytes_in_memory: usize,
    /// Whether the stretch of a file that comes next is in the page cache, as far as that was looked at.
    is_next_warm: bool,
    cold_reads: DiskThreads,
    counted: Arc<SegmentBytes>,
}

impl Output {
    /// Files are read on `cold_reads` where that has to wait for the disk, and what is sent of them is counted.
    pub(crate) fn new(cold_reads: DiskThreads, counted: Arc<SegmentBytes>) -> Self {
        Self { parts: VecDeque::new(), bytes_in_memory: 0, is_next_warm: false, cold_reads, counted }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many bytes wait here that are not in a file.
    pub(crate) fn bytes_in_memory(&self) -> usize {
        self.bytes_in_memory
    }

    /// Queues an answer.
    pub(crate) fn push(&mut self, frame: Frame) {
        for part in frame.parts {
            match part {
                FramePart::Bytes(bytes) => {
                    self.bytes_in_memory += bytes.len();
                    self.parts.push_back(FramePart::Bytes(bytes));
                }
                FramePart::Slice(slice) => {
                    let mut left = Some(slice);
                    while let Some(slice) = left {
                        let (chunk, rest) = cut(slice, CHUNK);
                        self.parts.push_back(FramePart::Slice(chunk));
                        left = rest;
                    }
                }
            }
        }
    }

    /// Writes everything. When this fails, or is dropped, the connection can no longer be used.
    ///
    /// # Errors
    /// Those of the socket and of reading the files.
    pub(crate) async fn flush(&mut self, socket: &TcpStream) -> io::Result<()> {
        while !self.is_empty() {
            self.write_next(socket).await?;
        }
        Ok(())
    }

    /// Writes what comes next: at most [`CHUNK`] bytes of a file, or some of what is in memory. For the rest see
    /// [`flush`](Self::flush).
    pub(crate) async fn write_next(&mut self, socket: &TcpStream) -> io::Result<()> {
        match self.parts.pop_front() {
            None => Ok(()),
            Some(FramePart::Slice(slice)) => {
                let slice = match self.is_next_warm {
                    true => slice,
                    false => self.warm(slice).await?,
                };
                let ahead = self.parts.iter().position(|part| matches!(part, FramePart::Slice(_)));
                let cold = ahead.and_then(|at| self.cold_piece(at));
                let read = async { if let Some(cold) = cold { self.read_in(cold).await } else { Ok(()) } };
                try_join(sendfile::send(socket, &slice, &self.counted), read).await?;
                self.is_next_warm = ahead.is_some();
                Ok(())
            }
            Some(bytes @ FramePart::Bytes(_)) => {
                self.parts.push_front(bytes);
                self.write_memory(socket).await
            }
        }
    }

    /// As much of the slice as `sendfile` finds in the page cache then. The rest is queued again.
    async fn warm(&mut self, slice: LogSlice) -> io::Result<LogSlice> {
        self.parts.push_front(FramePart::Slice(slice));
        if let Some(cold) = self.cold_piece(0) {
            self.read_in(cold).await?;
        }
        match self.parts.pop_front() {
            Some(FramePart::Slice(slice)) => Ok(slice),
            _ => unreachable!("it was put there, or its first piece"),
        }
    }

    /// If not all of the slice at `at` is in the page cache, cuts it in two and returns the first piece, which is to be read.
    fn cold_piece(&mut self, at: usize) -> Option<LogSlice> {
        let Some(FramePart::Slice(slice)) = self.parts.get_mut(at) else { return None };
        if page_cache::holds(slice) {
            return None;
        }
        let (first, rest) = cut(slice.clone(), READ);
        *slice = first.clone();
        if let Some(rest) = rest {
            self.parts.insert(at + 1, FramePart::Slice(rest));
        }
        Some(first)
    }

    async fn read_in(&self, slice: LogSlice) -> io::Result<()> {
        self.counted.read_through(slice.len);
        self.cold_reads.run(move || page_cache::read_in(&slice)).await
    }

    /// Writes some of the bytes that stand before the next stretch of a file.
    async fn write_memory(&mut self, socket: &TcpStream) -> io::Result<()> {
        let in_memory = self.parts.iter().map_while(|part| match part {
            FramePart::Bytes(bytes) => Some(bytes),
            FramePart::Slice(_) => None,
        });
        let gathered: Vec<_> = in_memory.take(GATHERED_PARTS).map(|bytes| IoSlice::new(bytes)).collect();
        let has_more = gathered.len() < self.parts.len();
        let mut written =
            socket.async_io(Interest::WRITABLE, || write_vectored(socket, &gathered, has_more)).await?;
        self.bytes_in_memory = self.bytes_in_memory.saturating_sub(written);
        while let Some(FramePart::Bytes(bytes)) = self.parts.front_mut() {
            if written < bytes.len() {
                bytes.advance(written);
                break;
            }
            written -= bytes.len();
            self.parts.pop_front();
            if written == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// The first bytes of a slice, as many as `most`, and what is left.
fn cut(slice: LogSlice, most: u32) -> (LogSlice, Option<LogSlice>) {
    if slice.len <= most {
        return (slice, None);
    }
    let first = LogSlice { len: most, ..slice.clone() };
    let position = slice.position + u64::from(most);
    (first, Some(LogSlice { position, len: slice.len - most, ..slice }))
}

/// One `sendmsg`. `has_more` says that more follows at once, so that the kernel need not send a short packet.
fn write_vectored(socket: &TcpStream, parts: &[IoSlice<'_>], has_more: bool) -> io::Result<usize> {
    // SAFETY: an all-zero msghdr is a valid empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSlice has the layout of iovec; sendmsg does not write through it.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    let flags = libc::MSG_NOSIGNAL | if has_more { libc::MSG_MORE } else { 0 };
    loop {
        // SAFETY: the descriptor is open while `socket` is, and the parts outlive the call.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
