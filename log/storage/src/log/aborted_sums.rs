//! Checksums of the indexes of aborted transactions; see `docs/formats/checkpoints.md`.
//!
//! A reader of committed records skips what these indexes name. Their format is Kafka's and has no checksum, and an entry that
//! is lost leaves no other trace: whoever trusts a damaged one delivers what was aborted.

use std::collections::BTreeMap;
use std::path::Path;

use thalweg_protocol::Offset;

use crate::environment::Environment;
use crate::error::Error;
use crate::synced_to::{checked, with_checksum};

/// The file that has them, in the log's directory.
pub(super) const ABORTED_SUMS_FILE: &str = "aborted-sums";
const TITLE: &str = "thalweg aborted-sums ";
const VERSION: u32 = 1;

/// The checksums of the segments that have an index with entries to which nothing will be added, by base offset. One that is
/// not there says nothing; one that does not fit says that the index is to be built anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AbortedSums(BTreeMap<Offset, Sum>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    len: u64,
    crc: u32,
}

impl Sum {
    fn of(content: &[u8]) -> Self {
        Self { len: content.len() as u64, crc: crc32c::crc32c(content) }
    }
}

impl AbortedSums {
    /// What the directory of a log says.
    ///
    /// # Errors
    /// [`Error::NewerFormat`]; I/O errors.
    pub(super) fn read(directory: &Path, environment: &Environment) -> Result<Self, Error> {
        let path = directory.join(ABORTED_SUMS_FILE);
        let Some(bytes) = environment.read_whole(&path)? else { return Ok(Self::default()) };
        let mut sums = Self::default();
        for line in bytes.split_inclusive(|&b| b == b'\n') {
            match checked(line).map(|line| (line.strip_prefix(TITLE), line)) {
                Some((Some(version), _)) => match version.parse() {
                    Ok(found) if found > VERSION => {
                        return Err(Error::NewerFormat { path, found, supported: VERSION });
                    }
                    _ => {}
                },
                Some((None, line)) => sums.0.extend(parse(line)),
                None => tracing::warn!(file = %path.display(), "a damaged line is passed over"),
            }
        }
        Ok(sums)
    }

    /// Whether the index of the segment with this base, as it is now, is not another one than it was.
    pub(super) fn fits(&self, base_offset: Offset, content: &[u8]) -> bool {
        self.0.get(&base_offset).is_none_or(|sum| *sum == Sum::of(content))
    }

    /// Whether there is one of the segment with this base.
    pub(super) fn has(&self, base_offset: Offset) -> bool {
        self.0.contains_key(&base_offset)
    }

    /// Enters the index of a segment. Returns whether anything changed.
    pub(super) fn enter(&mut self, base_offset: Offset, content: &[u8]) -> bool {
        match content {
            [] => self.0.remove(&base_offset).is_some(),
            _ => self.0.insert(base_offset, Sum::of(content)) != Some(Sum::of(content)),
        }
    }

    /// Forgets those of segments whose base is not in `[first, end)`. Returns whether there were any.
    pub(super) fn keep(&mut self, first: Offset, end: Offset) -> bool {
        let before = self.0.len();
        self.0.retain(|&base, _| (first..end).contains(&base));
        before != self.0.len()
    }

    /// The content of the file.
    pub(super) fn encode(&self) -> String {
        let mut text = with_checksum(&format!("{TITLE}{VERSION}"));
        for (base_offset, Sum { len, crc }) in &self.0 {
            text.push_str(&with_checksum(&format!("{base_offset} {len} {crc:08x}")));
        }
        text
    }
}

fn parse(line: &str) -> Option<(Offset, Sum)> {
    let mut fields = line.split(' ');
    let base_offset = Offset(fields.next()?.parse().ok()?);
    let len = fields.next()?.parse().ok()?;
    let crc = u32::from_str_radix(fields.next()?, 16).ok()?;
    fields.next().is_none().then_some((base_offset, Sum { len, crc }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::filesystem::DiskFilesystem;

    #[test]
    fn it_is_read_as_it_is_written_and_a_damaged_line_says_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let environment =
            Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), directory.path());
        let read = |content: &[u8]| {
            std::fs::write(directory.path().join(ABORTED_SUMS_FILE), content).expect("written");
            AbortedSums::read(directory.path(), &environment)
        };
        assert_eq!(AbortedSums::read(directory.path(), &environment).expect("none"), AbortedSums::default());
        let mut sums = AbortedSums::default();
        assert!(!sums.enter(Offset(0), b""), "there is nothing to lose");
        assert!(sums.enter(Offset(4096), b"123456789") && !sums.enter(Offset(4096), b"123456789"));
        let text = sums.encode();
        let docs = include_str!("../../../../docs/formats/checkpoints.md");
        assert!(docs.contains(&text), "{text}");
        assert!(sums.enter(Offset(9000), b"another"));
        let text = sums.encode().into_bytes();
        assert_eq!(read(&text).expect("read"), sums);
        assert!(sums.fits(Offset(9000), b"another") && !sums.fits(Offset(9000), b"anothes"));
        assert!(!sums.fits(Offset(9000), b"") && sums.fits(Offset(1), b"not known"));
        for at in 0..text.len() {
            let mut flipped = text.clone();
            flipped[at] ^= 1;
            for damaged in [&flipped, &text[..at].to_vec()] {
                let found = read(damaged).expect("read");
                assert!(found.0.iter().all(|(base, sum)| sums.0.get(base) == Some(sum)), "damaged at {at}");
            }
        }
        assert!(sums.keep(Offset(4097), Offset(9001)) && !sums.keep(Offset(4097), Offset(9001)));
        assert!(sums.enter(Offset(9000), b"") && sums == AbortedSums::default());
        let newer = with_checksum(&format!("{TITLE}2"));
        assert!(matches!(read(newer.as_bytes()), Err(Error::NewerFormat { found: 2, .. })));
    }
}
