//! The entries of the three indexes, as `docs/formats/indexes.md` draws them.

use thalweg_protocol::{Offset, ProducerId};

/// An entry of an index file.
pub(crate) trait Entry: Copy + std::fmt::Debug {
    /// Its size on disk in bytes.
    const SIZE: usize;
    /// Appends its `SIZE` bytes to `out`.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads it from its `SIZE` bytes.
    fn read(bytes: &[u8]) -> Self;
}

/// `.index`: the last offset of a batch, relative to the segment's base, and where the batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    pub(crate) relative_offset: i32,
    pub(crate) position: i32,
}

impl Entry for OffsetEntry {
    const SIZE: usize = 8;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.relative_offset.to_be_bytes());
        out.extend(self.position.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        Self { relative_offset: i32_at(bytes, 0), position: i32_at(bytes, 4) }
    }
}

/// `.timeindex`: the largest timestamp so far, and the last offset, relative to the segment's base, of the first
/// batch that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp: i64,
    pub(crate) relative_offset: i32,
}

impl Entry for TimeEntry {
    const SIZE: usize = 12;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.timestamp.to_be_bytes());
        out.extend(self.relative_offset.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        Self { timestamp: i64_at(bytes, 0), relative_offset: i32_at(bytes, 8) }
    }
}

/// `.txnindex`: an aborted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbortedEntry {
    pub(crate) producer_id: ProducerId,
    pub(crate) first_offset: Offset,
    /// The offset of the marker.
    pub(crate) last_offset: Offset,
    pub(crate) last_stable_offset: Offset,
}

impl AbortedEntry {
    const VERSION: i16 = 0;
}

impl Entry for AbortedEntry {
    const SIZE: usize = 34;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(Self::VERSION.to_be_bytes());
        out.extend(self.producer_id.0.to_be_bytes());
        out.extend(self.first_offset.0.to_be_bytes());
        out.extend(self.last_offset.0.to_be_bytes());
        out.extend(self.last_stable_offset.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        Self {
            producer_id: ProducerId(i64_at(bytes, 2)),
            first_offset: Offset(i64_at(bytes, 10)),
            last_offset: Offset(i64_at(bytes, 18)),
            last_stable_offset: Offset(i64_at(bytes, 26)),
        }
    }
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(*bytes[at..].first_chunk().expect("an entry has its size"))
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(*bytes[at..].first_chunk().expect("an entry has its size"))
}
