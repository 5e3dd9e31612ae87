//! Reading the journal after a crash.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thalweg_protocol::TopicPartition;

use super::files::{self, Found};
use super::header::FileHeader;
use super::record::{BLOCK, Entry, HEADER_SIZE, RecordHeader};
use super::round::JournalRound;
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::filesystem::{OpenMode, StoredFile};

/// How much of a file is read at once to look for records behind its end.
const WINDOW: usize = 1 << 20;

/// An entry, and where its bytes are.
#[derive(Debug)]
pub(crate) struct EntryAt {
    pub(crate) round: JournalRound,
    pub(crate) entry: Entry,
    /// Which of the files.
    pub(crate) file: usize,
    /// Where in it, in bytes.
    pub(crate) position: u64,
}

/// What the journal holds.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) files: Vec<(PathBuf, StoredFile)>,
    /// The entries of each log, oldest first.
    pub(crate) entries: BTreeMap<TopicPartition, Vec<EntryAt>>,
}

/// Reads the files of the newest run.
///
/// # Errors
/// [`Error::Corrupt`] when a record is damaged that is not the last one; I/O errors.
pub(crate) fn scan(found: &[Found], environment: &Environment) -> Result<Content, Error> {
    let mut used: Vec<(&Path, FileHeader)> =
        found.iter().filter_map(|found| Some((&*found.path, found.header?))).collect();
    let newest = used.iter().map(|(_, header)| header.run).max();
    used.retain(|(_, header)| Some(header.run) == newest);
    used.sort_by_key(|(_, header)| header.first_round);
    let mut content = Content::default();
    for (at, &(path, header)) in used.iter().enumerate() {
        let file = environment.open(path, OpenMode::Read)?;
        let scan = Scan { path, file, header, environment };
        content.files.push((path.to_owned(), scan.file.clone()));
        let (next_round, position) = scan.records(at, &mut content)?;
        let is_damaged = match used.get(at + 1) {
            Some((_, next)) => next.first_round != next_round,
            None => scan.has_later_round(position, next_round)?,
        };
        if is_damaged {
            return Err(scan.corrupt(position, "a record is damaged, and there are later ones"));
        }
    }
    Ok(content)
}

struct Scan<'a> {
    path: &'a Path,
    file: StoredFile,
    header: FileHeader,
    environment: &'a Environment,
}

impl Scan<'_> {
    /// Collects the entries of all good records. Returns the round that is expected next, and where.
    fn records(&self, file: usize, content: &mut Content) -> Result<(JournalRound, u64), Error> {
        let mut expected = self.header.first_round;
        let mut position = files::FIRST_RECORD;
        while let Some((header, record)) = self.record(position)? {
            if header.round != expected {
                break;
            }
            for (entry, Range { start, .. }) in record {
                let position = position + start as u64;
                let at = EntryAt { round: header.round, entry, file, position };
                content.entries.entry(at.entry.partition.clone()).or_default().push(at);
            }
            expected = expected.next();
            position += header.padded_len();
        }
        Ok((expected, position))
    }

    /// The record at `position`, if there is a good one.
    #[expect(clippy::type_complexity, reason = "private, and taken apart at once")]
    fn record(&self, position: u64) -> Result<Option<(RecordHeader, Vec<(Entry, Range<usize>)>)>, Error> {
        let remaining = self.header.file_bytes.saturating_sub(position);
        if remaining < BLOCK as u64 {
            return Ok(None);
        }
        let mut head = [0; HEADER_SIZE];
        self.environment.read_at(&self.file, self.path, &mut head, position)?;
        let Some(header) = RecordHeader::parse(&head, self.header.salt) else { return Ok(None) };
        if header.padded_len() > remaining {
            return Ok(None);
        }
        let mut bytes = vec![0; header.len()];
        self.environment.read_at(&self.file, self.path, &mut bytes, position)?;
        Ok(header.entries(&bytes).map(|entries| (header, entries)))
    }

    /// Whether a record of a round after `round` begins in the file from `position` on.
    fn has_later_round(&self, position: u64, round: JournalRound) -> Result<bool, Error> {
        let mut window = Vec::new();
        let mut at = position;
        while at < self.header.file_bytes {
            let len = (self.header.file_bytes - at).min(WINDOW as u64);
            window.resize(len as usize, 0);
            self.environment.read_at(&self.file, self.path, &mut window, at)?;
            let mut headers =
                window.chunks(BLOCK).filter_map(|block| RecordHeader::parse(block, self.header.salt));
            if headers.any(|header| header.round > round) {
                return Ok(true);
            }
            at += len;
        }
        Ok(false)
    }

    fn corrupt(&self, position: u64, what: &'static str) -> Error {
        Error::Corrupt { path: self.path.to_owned(), position, corruption: Corruption::Malformed { what } }
    }
}
