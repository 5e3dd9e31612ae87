//! Segments of 1 GiB that hardly take room: a record at each end, and a hole between.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use thalweg_protocol::record::BatchBuilder;
use thalweg_protocol::{Compression, Compressor};

use super::Result;

/// The segments of a log, the first of which begins at offset 0. Behind the full ones there is one with a single record, to which
/// the node appends.
pub struct Segments;

impl Segments {
    pub const BYTES: u64 = 1 << 30;
    const OFFSETS: i64 = 1_000_000;
    /// As many as one each 4 KiB, of 8 bytes.
    const INDEX_BYTES: u64 = Self::BYTES / 4096 * 8;

    /// The first offset of the segment; it has a record.
    pub fn base(at: usize) -> i64 {
        at as i64 * Self::OFFSETS
    }

    /// The timestamp of that record, in ms.
    pub fn time(at: usize) -> i64 {
        1_356_998_400_000 + at as i64 * 1_000
    }

    /// The end of a log of so many full segments.
    pub fn end(count: usize) -> i64 {
        Self::base(count) + 1
    }

    /// Puts `count` full segments into the directory of a log that is empty and closed.
    pub fn fill(directory: &Path, count: usize) -> Result<()> {
        // What the stop has written of producers: that there are none.
        let snapshot = fs::read(directory.join(format!("{:020}.snapshot", 0)))?;
        for at in 0..count {
            let base = Self::base(at);
            let path = |suffix: &str| directory.join(format!("{base:020}.{suffix}"));
            let (first, last) =
                (batch(base, Self::time(at)), batch(base + Self::OFFSETS - 1, Self::time(at) + 500));
            let position = Self::BYTES - last.len() as u64;
            let log = File::create(path("log"))?;
            log.write_all_at(&first, 0)?;
            log.write_all_at(&last, position)?;
            let relative = (Self::OFFSETS - 1) as u32;
            let entry = [relative.to_be_bytes(), (position as u32).to_be_bytes()].concat();
            File::create(path("index"))?.write_all_at(&entry, Self::INDEX_BYTES - entry.len() as u64)?;
            let entry = [&(Self::time(at) + 500).to_be_bytes()[..], &relative.to_be_bytes()].concat();
            fs::write(path("timeindex"), entry)?;
            fs::write(path("txnindex"), [])?;
            fs::write(path("snapshot"), &snapshot)?;
        }
        let path = |suffix: &str| directory.join(format!("{:020}.{suffix}", Self::base(count)));
        fs::write(path("log"), batch(Self::base(count), Self::time(count)))?;
        for suffix in ["index", "timeindex", "txnindex"] {
            fs::write(path(suffix), [])?;
        }
        fs::write(path("snapshot"), snapshot)?;
        Ok(())
    }
}

/// A batch of one record of the first leader.
fn batch(offset: i64, timestamp: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None, None, 0);
    builder.append(timestamp, None, Some(b"a record"), []).expect("it fits");
    let mut bytes = builder.finish(&mut Compressor::new(), None).bytes().to_vec();
    // Neither is covered by the checksum.
    bytes[..8].copy_from_slice(&offset.to_be_bytes());
    bytes[12..16].copy_from_slice(&0_i32.to_be_bytes());
    bytes
}
