//! Going through the batches of a segment file.

use std::path::Path;

use thalweg_protocol::Offset;
use thalweg_protocol::record::{BatchHeader, RecordError};

use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::filesystem::StoredFile;

/// From this byte of a batch on the checksum covers it.
const CHECKSUMMED: usize = 21;

/// Goes from batch to batch through a stretch of a segment file, through a window that is read at once.
pub(crate) struct BatchScan<'a> {
    environment: &'a Environment,
    file: &'a StoredFile,
    path: &'a Path,
    position: u64,
    end: u64,
    window_size: usize,
    window: Vec<u8>,
    window_start: u64,
}

/// What a scan finds at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// A batch that lies in the stretch as a whole.
    Batch { position: u64, header: BatchHeader },
    /// Something that is not such a batch.
    Damage { position: u64, damage: Damage },
    /// The end of the stretch, right after a batch.
    End,
}

/// What is wrong with bytes that should be a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    Record(RecordError),
    /// An offset that no log has; the checksum does not cover it.
    Offset(Offset),
}

impl Damage {
    /// As what is wrong with the segment, where a batch with this offset was expected.
    pub(crate) fn corruption(self, expected: Offset) -> Corruption {
        match self {
            Self::Record(problem) => Corruption::Batch { expected, problem },
            Self::Offset(found) => Corruption::Gap { expected, found },
        }
    }
}

impl<'a> BatchScan<'a> {
    /// For looking up one batch: an index interval and a little more.
    pub(crate) const LOOK_UP_WINDOW: usize = 8 << 10;
    /// For going through a whole segment.
    pub(crate) const WHOLE_WINDOW: usize = 256 << 10;

    /// Scans from `position`, where a batch begins, to `end`.
    pub(crate) fn new(
        environment: &'a Environment,
        file: &'a StoredFile,
        path: &'a Path,
        position: u64,
        end: u64,
        window_size: usize,
    ) -> Self {
        Self {
            environment,
            file,
            path,
            position,
            end,
            window_size,
            window: Vec::new(),
            window_start: position,
        }
    }

    /// Steps over the next batch, looking at its header only.
    pub(crate) fn next_header(&mut self) -> Result<Scanned, Error> {
        let remaining = self.end.saturating_sub(self.position);
        if remaining == 0 {
            return Ok(Scanned::End);
        }
        let position = self.position;
        let available = usize::try_from(remaining).unwrap_or(usize::MAX);
        if available < BatchHeader::SIZE {
            let problem = RecordError::Truncated { needed: BatchHeader::SIZE, available };
            return Ok(Scanned::Damage { position, damage: Damage::Record(problem) });
        }
        let header = match BatchHeader::parse(self.bytes(position, BatchHeader::SIZE)?) {
            Ok(header) => header,
            Err(problem) => return Ok(Scanned::Damage { position, damage: Damage::Record(problem) }),
        };
        let needed = header.size_in_bytes();
        if needed > available {
            let problem = RecordError::Truncated { needed, available };
            return Ok(Scanned::Damage { position, damage: Damage::Record(problem) });
        }
        if let Err(damage) = check_numbers(&header) {
            return Ok(Scanned::Damage { position, damage });
        }
        self.position += needed as u64;
        Ok(Scanned::Batch { position, header })
    }

    /// Steps over the next batch and verifies its checksum and counts.
    pub(crate) fn next_verified(&mut self) -> Result<Scanned, Error> {
        let found = self.next_header()?;
        let Scanned::Batch { position, header } = found else { return Ok(found) };
        let computed = self.checksum(position, header.size_in_bytes())?;
        match check_content(&header, computed) {
            Ok(()) => Ok(found),
            Err(problem) => {
                self.position = position;
                Ok(Scanned::Damage { position, damage: Damage::Record(problem) })
            }
        }
    }

    /// The checksum of a batch of `len` bytes. One that is larger than the window is gone through in steps: until its
    /// checksum is known to be right its length may be anything.
    fn checksum(&mut self, position: u64, len: usize) -> Result<u32, Error> {
        let (mut at, end) = (position + CHECKSUMMED as u64, position + len as u64);
        if len <= self.window_size {
            let batch = self.bytes(position, len)?;
            return Ok(crc32c::crc32c(&batch[CHECKSUMMED..]));
        }
        let mut computed = 0;
        while at < end {
            let step = self.window_size.min((end - at) as usize);
            computed = crc32c::crc32c_append(computed, self.bytes(at, step)?);
            at += step as u64;
        }
        Ok(computed)
    }

    /// The bytes of a batch that the last step found.
    pub(crate) fn batch(&mut self, position: u64, header: &BatchHeader) -> Result<&[u8], Error> {
        self.bytes(position, header.size_in_bytes())
    }

    /// `len` bytes from `position`, which the caller knows to lie before the end.
    fn bytes(&mut self, position: u64, len: usize) -> Result<&[u8], Error> {
        let window_end = self.window_start + self.window.len() as u64;
        if position < self.window_start || position + len as u64 > window_end {
            let remaining = usize::try_from(self.end - position).unwrap_or(usize::MAX);
            let size = self.window_size.max(len).min(remaining);
            self.window.resize(size, 0);
            self.window_start = position;
            if let Err(error) = self.environment.read_at(self.file, self.path, &mut self.window, position) {
                self.window.clear();
                return Err(error);
            }
        }
        let from = (position - self.window_start) as usize;
        Ok(&self.window[from..from + len])
    }
}

/// Checks that offsets can be computed from the header without leaving the numbers there are.
pub(crate) fn check_numbers(header: &BatchHeader) -> Result<(), Damage> {
    let BatchHeader { base_offset, records_count, last_offset_delta, .. } = *header;
    if !is_possible(base_offset) {
        return Err(Damage::Offset(base_offset));
    }
    if last_offset_delta < 0 {
        return Err(Damage::Record(RecordError::RecordCount { records_count, last_offset_delta }));
    }
    Ok(())
}

/// Whether a batch of any size can stand at the offset.
pub(crate) fn is_possible(offset: Offset) -> bool {
    const LARGEST: i64 = i64::MAX - i32::MAX as i64 - 1;
    (0..=LARGEST).contains(&offset.0)
}

/// What `RecordBatch::verify` checks, for bytes that are not shared.
pub(crate) fn verify(header: &BatchHeader, batch: &[u8]) -> Result<(), RecordError> {
    check_content(header, crc32c::crc32c(&batch[CHECKSUMMED..]))
}

/// The same, for a batch of whose bytes from [`CHECKSUMMED`] on this is the checksum.
fn check_content(header: &BatchHeader, computed: u32) -> Result<(), RecordError> {
    if computed != header.crc {
        return Err(RecordError::Checksum { stored: header.crc, computed });
    }
    header.compression()?;
    let BatchHeader { records_count, last_offset_delta, .. } = *header;
    if last_offset_delta < 0
        || records_count < 0
        || i64::from(records_count) > i64::from(last_offset_delta) + 1
    {
        return Err(RecordError::RecordCount { records_count, last_offset_delta });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::sync::Arc;

    use thalweg_protocol::record::BatchBuilder;
    use thalweg_protocol::{Compression, Compressor};

    use super::*;
    use crate::clock::SystemClock;
    use crate::filesystem::{DiskFilesystem, OpenMode};

    const WINDOW: usize = 1_000;

    /// What a scan of a file with these bytes finds first, and how large its window has become.
    fn scan(bytes: &[u8]) -> (Scanned, usize) {
        let directory = tempfile::tempdir().expect("a directory");
        let environment =
            Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), directory.path());
        let path = directory.path().join("x.log");
        let file = environment.open(&path, OpenMode::Create).expect("created");
        environment.write_at(&file, &path, &mut [IoSlice::new(bytes)], 0).expect("written");
        let mut scan = BatchScan::new(&environment, &file, &path, 0, bytes.len() as u64, WINDOW);
        let found = scan.next_verified().expect("it can be read");
        (found, scan.window.capacity())
    }

    #[test]
    fn batches_larger_than_the_window_are_verified_in_steps() {
        for size in [10, WINDOW - 100, WINDOW, 2 * WINDOW - 40, 10 * WINDOW + 7] {
            let mut builder = BatchBuilder::new(Compression::None, None, size + 100);
            builder.append(0, None, Some(&vec![b'x'; size]), []).expect("it fits");
            let batch = builder.finish(&mut Compressor::new(), None);
            let (found, window) = scan(batch.bytes());
            assert!(matches!(found, Scanned::Batch { position: 0, .. }), "{size}: {found:?}");
            assert!(window <= WINDOW, "{size}: {window} bytes");
            for at in [CHECKSUMMED, batch.bytes().len() / 2, batch.bytes().len() - 1] {
                let mut flipped = batch.bytes().to_vec();
                flipped[at] ^= 1;
                let (found, _) = scan(&flipped);
                assert!(matches!(found, Scanned::Damage { position: 0, .. }), "{size}, {at}: {found:?}");
            }
        }
    }

    #[test]
    fn a_length_that_chance_has_written_takes_no_memory() {
        let mut builder = BatchBuilder::new(Compression::None, None, 100);
        builder.append(0, None, Some(b"x"), []).expect("it fits");
        let mut bytes = builder.finish(&mut Compressor::new(), None).bytes().to_vec();
        bytes.resize(4 << 20, 7);
        let most = bytes.len() as i32 - 12;
        bytes[8..12].copy_from_slice(&most.to_be_bytes());
        let (found, window) = scan(&bytes);
        let is_checksum = |damage| matches!(damage, Damage::Record(RecordError::Checksum { .. }));
        assert!(matches!(found, Scanned::Damage { damage, .. } if is_checksum(damage.clone())));
        assert!(window <= WINDOW, "{window} bytes");
    }
}
