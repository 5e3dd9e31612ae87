//! The indexes of a segment: files of entries of one size, ordered, appended to at the end.

mod entry;
mod file;

pub(crate) use entry::{AbortedEntry, Entry, OffsetEntry, TimeEntry};
pub(crate) use file::IndexFile;
