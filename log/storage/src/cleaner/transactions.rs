//! What a pass over a log knows of its transactions.

use std::collections::HashSet;
use std::ops::Range;

use thalweg_protocol::record::BatchHeader;
use thalweg_protocol::{Offset, ProducerId};

use crate::error::Error;
use crate::index::AbortedEntry;
use crate::log::Log;

/// Tells the data of aborted transactions from other data, and markers that are still needed from those that are not.
#[derive(Debug)]
pub(super) struct Transactions {
    /// Whether any transaction was aborted in the log: else none is looked for.
    has_aborted: bool,
    /// The aborted transactions that touch the offsets of `covered`, by producer and last offset.
    aborted: Vec<AbortedEntry>,
    covered: Range<Offset>,
    /// The producers of whose open transaction some batch was kept.
    with_data: HashSet<ProducerId>,
}

/// How many offsets are looked up at a time: no more transactions than that are in memory, and those that span more.
const WINDOW: i64 = 1 << 16;

impl Transactions {
    pub(super) fn new(log: &Log) -> Self {
        Self {
            has_aborted: log.has_aborted(),
            aborted: Vec::new(),
            covered: Offset(0)..Offset(0),
            with_data: HashSet::new(),
        }
    }

    /// The transaction of a transactional batch, data or marker, if it was aborted.
    pub(super) fn aborted(&mut self, log: &Log, header: &BatchHeader) -> Result<Option<AbortedEntry>, Error> {
        if !self.has_aborted {
            return Ok(None);
        }
        let at = header.base_offset;
        if !self.covered.contains(&at) {
            self.covered = at..at.plus(WINDOW);
            self.aborted = log.aborted_between(self.covered.start, self.covered.end)?;
            self.aborted.sort_by_key(|entry| (entry.producer_id, entry.last_offset));
        }
        let wanted = (header.producer_id, at);
        let found = self.aborted.partition_point(|entry| (entry.producer_id, entry.last_offset) < wanted);
        let entry = self.aborted.get(found).copied();
        Ok(entry.filter(|entry| entry.producer_id == header.producer_id && entry.first_offset <= at))
    }

    /// Notes that a batch of a transaction is kept, with or without records.
    pub(super) fn kept(&mut self, header: &BatchHeader) {
        if header.is_transactional() {
            self.with_data.insert(header.producer_id);
        }
    }

    /// Notes that a marker ends a producer's transaction. Returns whether any batch of it is left.
    pub(super) fn ended(&mut self, producer: ProducerId) -> bool {
        self.with_data.remove(&producer)
    }
}
