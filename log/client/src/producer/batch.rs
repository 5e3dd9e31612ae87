//! A batch while it fills, and once it is on its way.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::Shared;
use thalweg_protocol::record::{BatchBuilder, Header, RecordBatch, RecordError};
use thalweg_protocol::{Compression, Compressor, TopicPartition};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::delivery::{Delivery, Fate, Waiter};
use super::memory::Memory;
use super::refusals::{Marked, Refusals};

/// What a partition's first batch takes of the budget when it is opened, in bytes; doubled when that is used
/// up. A later batch takes what the one before it had.
const FIRST_RESERVATION: usize = 4 << 10;

/// A batch that fills. It is reused when it has been closed.
pub(super) struct Filling {
    builder: BatchBuilder,
    /// Whether batches are given a sequence number when they are sent.
    is_idempotent: bool,
    /// Bytes taken from the budget.
    reserved: usize,
    /// Bytes that the batch before had.
    usual: usize,
    opened: Option<Instant>,
    notify: Option<oneshot::Sender<Fate>>,
    notified: Option<Shared<oneshot::Receiver<Fate>>>,
    /// The marks of the records, if they have some; then nobody waits for them otherwise.
    marked: Option<Marked>,
    /// Each batch that was closed here holds a copy until it is sent for the first time.
    unsent: Arc<()>,
}

/// Whether a record went into a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Appended,
    /// The batch must be closed first.
    Full,
    /// The budget has not so many bytes.
    NoRoom {
        needed: usize,
    },
}

/// Which batches are held back although they have lingered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Nothing,
    /// Those [behind one that was not sent yet](Filling::is_held).
    BehindUnsent,
}

/// A record that borrows what it carries.
#[derive(Clone, Copy)]
pub(super) struct RecordParts<'a> {
    pub(super) timestamp: i64,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: &'a [Header<'a>],
}

impl RecordParts<'_> {
    /// At most how many bytes the record takes in a batch.
    #[inline]
    pub(super) fn size_at_most(&self) -> usize {
        BatchBuilder::record_size_at_most(self.key, self.value, self.headers.iter().copied())
    }
}

impl Filling {
    pub(super) fn new(compression: Compression, is_idempotent: bool) -> Self {
        Self {
            builder: BatchBuilder::new(compression, None, 0),
            is_idempotent,
            reserved: 0,
            usual: FIRST_RESERVATION,
            opened: None,
            notify: None,
            notified: None,
            marked: None,
            unsent: Arc::new(()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.builder.is_empty()
    }

    pub(super) fn records_count(&self) -> i32 {
        self.builder.records_count()
    }

    /// When the first record went in.
    pub(super) fn opened(&self) -> Option<Instant> {
        self.opened
    }

    /// Whether a batch that was closed before still waits to be sent. Closing another one would not bring its records
    /// forward: it fills meanwhile, so that batches are the larger the busier the broker is.
    pub(super) fn is_held(&self) -> bool {
        Arc::strong_count(&self.unsent) > 1
    }

    /// Appends a record, if it fits into what is left of `batch_size` and of the budget.
    #[inline]
    pub(super) fn append(
        &mut self,
        memory: &Memory,
        batch_size: usize,
        record: RecordParts<'_>,
    ) -> Result<Fit, RecordError> {
        let size = self.builder.size_in_bytes() + record.size_at_most();
        if size > self.reserved
            && let Some(refusal) = self.reserve(memory, batch_size, size)
        {
            return Ok(refusal);
        }
        let headers = record.headers.iter().copied();
        self.builder.append(record.timestamp, record.key, record.value, headers)?;
        Ok(Fit::Appended)
    }

    /// Makes room for a batch of `size` bytes, or says why not. Also where a batch is opened.
    #[cold]
    fn reserve(&mut self, memory: &Memory, batch_size: usize, size: usize) -> Option<Fit> {
        if size > batch_size && !self.is_empty() {
            return Some(Fit::Full);
        }
        let wanted = (2 * self.reserved).max(self.usual).min(batch_size).max(size);
        if !memory.take(wanted - self.reserved) {
            return Some(if self.is_empty() { Fit::NoRoom { needed: wanted } } else { Fit::Full });
        }
        self.reserved = wanted;
        self.opened.get_or_insert_with(Instant::now);
        None
    }

    /// What tells the fate of the record that was appended last.
    pub(super) fn delivery(&mut self, timestamp: i64) -> Delivery {
        let notified = self.notified.get_or_insert_with(|| {
            let (sender, receiver) = oneshot::channel();
            self.notify = Some(sender);
            receiver.shared()
        });
        Delivery::new(notified.clone(), self.builder.records_count() - 1, timestamp)
    }

    /// Marks the record that was appended last. All records of a batch have a mark, or none.
    #[inline]
    pub(super) fn mark(&mut self, mark: u64, refusals: &Refusals) {
        self.marked.get_or_insert_with(|| Marked::new(refusals.clone())).push(mark);
    }

    /// Forgets the records in the batch.
    pub(super) fn discard(&mut self, memory: &Memory) {
        self.builder.clear();
        memory.give_back(self.reserved);
        self.reserved = 0;
        self.opened = None;
        self.notified = None;
        self.notify = None;
        self.marked = None;
    }

    /// Closes the batch, if there is anything in it.
    pub(super) fn close(
        &mut self,
        memory: &Memory,
        compressor: &mut Compressor,
        partition: &TopicPartition,
    ) -> Option<Batch> {
        if self.is_empty() {
            return None;
        }
        let records = match self.is_idempotent {
            true => self.builder.finish_unsummed(compressor),
            false => self.builder.finish(compressor, None),
        };
        let reserved = records.size_in_bytes().min(self.reserved);
        memory.give_back(self.reserved - reserved);
        self.usual = self.reserved.max(FIRST_RESERVATION);
        self.reserved = 0;
        self.opened = None;
        self.notified = None;
        Some(Batch {
            partition: partition.clone(),
            records,
            reserved,
            handed_over: Instant::now(),
            notify: self.notify.take().map(Waiter::Whole).or(self.marked.take().map(Waiter::Marked)),
            serial: 0,
            place: (0, 0),
            span: u32::MAX,
            generation: 0,
            sequence: None,
            attempts: 0,
            maybe_written: false,
            unsent: Some(Arc::clone(&self.unsent)),
        })
    }
}

/// A batch on its way.
pub(super) struct Batch {
    pub(super) partition: TopicPartition,
    pub(super) records: RecordBatch,
    /// Bytes of the budget that it holds.
    pub(super) reserved: usize,
    pub(super) handed_over: Instant,
    /// Who waits for it: the records that were sent one by one.
    pub(super) notify: Option<Waiter>,
    /// By what it is known among the batches of its partition.
    pub(super) serial: u64,
    /// Its place among them: that of the batch that was filled, and where in it this part begins.
    pub(super) place: (u64, u32),
    /// How many parts of its own would find places in this.
    pub(super) span: u32,
    /// Which flush waits for it.
    pub(super) generation: u64,
    /// The sequence number of its first record, once it has been sent.
    pub(super) sequence: Option<i32>,
    pub(super) attempts: u32,
    /// Whether an attempt was not answered, or answered by "maybe".
    pub(super) maybe_written: bool,
    /// Held until it is sent for the first time.
    pub(super) unsent: Option<Arc<()>>,
}
