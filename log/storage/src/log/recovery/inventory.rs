//! What lies in the directory of a log.

use std::collections::BTreeMap;
use std::path::Path;

use thalweg_protocol::Offset;

use crate::environment::Environment;
use crate::error::Error;
use crate::segment::{
    CLEANED_SUFFIX, DELETED_SUFFIX, FileKind, IndexLengths, TEMPORARY_SUFFIX, parse_file_name,
};

/// The files of a log, by what they are.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    /// Segments by base offset.
    pub(super) segments: BTreeMap<Offset, SegmentFiles>,
    /// Offsets of producer snapshots, ascending.
    pub(super) snapshots: Vec<Offset>,
    /// Names of files that a crash left behind: half written, or deleted and not yet removed.
    pub(super) leftovers: Vec<String>,
}

/// The sizes of a segment's files.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentFiles {
    pub(super) log: u64,
    /// `None` when one of the index files is missing.
    pub(super) indexes: Option<IndexLengths>,
}

impl Inventory {
    pub(super) fn read(directory: &Path, environment: &Environment) -> Result<Self, Error> {
        let mut inventory = Self::default();
        let mut sizes: BTreeMap<Offset, [Option<u64>; 4]> = BTreeMap::new();
        for entry in environment.list(directory)?.into_iter().filter(|entry| !entry.is_directory) {
            let suffixes = [DELETED_SUFFIX, TEMPORARY_SUFFIX, CLEANED_SUFFIX];
            if suffixes.iter().any(|suffix| entry.name.ends_with(suffix)) {
                inventory.leftovers.push(entry.name);
                continue;
            }
            match parse_file_name(&entry.name) {
                Some((offset, FileKind::Snapshot)) => inventory.snapshots.push(offset),
                Some((offset, kind)) => {
                    let at = FileKind::OF_A_SEGMENT.iter().position(|&k| k == kind);
                    let at = at.expect("every kind but snapshots is a segment's");
                    sizes.entry(offset).or_default()[at] = Some(entry.len);
                }
                None => {}
            }
        }
        for (base, [log, offsets, times, transactions]) in sizes {
            let Some(log) = log else {
                // Indexes without batches.
                inventory
                    .leftovers
                    .extend(FileKind::OF_A_SEGMENT.iter().map(|&kind| crate::segment::file_name(base, kind)));
                continue;
            };
            let indexes = match (offsets, times, transactions) {
                (Some(offsets), Some(times), Some(transactions)) => Some([offsets, times, transactions]),
                _ => None,
            };
            inventory.segments.insert(base, SegmentFiles { log, indexes });
        }
        Ok(inventory)
    }
}
