//! The checkpoint of a data directory: how far each log was synced, and where it starts.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use thalweg_protocol::{Offset, TopicPartition, Uuid};

use crate::environment::Environment;
use crate::error::Error;
use crate::filesystem::{OpenMode, StoredFile};
use crate::log::Standing;

const VERSION: u32 = 1;

/// The file is written anew when it is this large, and [`GROWTH`] times what it was when last written anew.
const SMALLEST_REWRITE: u64 = 64 << 10;
const GROWTH: u64 = 4;

/// What the checkpoint says of each log.
pub(crate) type Standings = BTreeMap<TopicPartition, Recorded>;

/// What the checkpoint says of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// The topic it belongs to: a log of that name that came later is another one. Zero where it is not known.
    pub(crate) topic_id: Uuid,
    /// How far it had come.
    pub(crate) standing: Standing,
}

impl Recorded {
    /// Whether records were in the log, so that one without any is not it.
    pub(crate) fn had_records(&self) -> bool {
        let Standing { synced_to, log_start, high_watermark, .. } = self.standing;
        synced_to.unwrap_or_default().max(log_start).max(high_watermark) > Offset(0)
    }
}

/// The open checkpoint file; see `docs/formats/checkpoints.md`.
#[derive(Debug)]
pub(crate) struct SyncedTo {
    path: PathBuf,
    directory: PathBuf,
    environment: Environment,
    /// Held over a sync, so that whoever finds nothing left to sync knows that it has ended. Taken before `state`.
    syncing: Mutex<()>,
    /// Guards the file: lines are written one after the other. Taken after any lock of a log.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: StoredFile,
    size: u64,
    size_when_rewritten: u64,
    is_synced: bool,
    standings: Standings,
}

impl SyncedTo {
    /// The name of the file in its directory.
    pub(crate) const FILE: &str = "synced-to";
    /// What its first line begins with, behind the checksum.
    pub(crate) const TITLE: &str = "thalweg synced-to ";

    /// Reads the checkpoint of a data directory; empty when there is none.
    ///
    /// # Errors
    /// [`Error::NewerFormat`]; I/O errors.
    pub(crate) fn read(directory: &Path, environment: &Environment) -> Result<Standings, Error> {
        let path = directory.join(Self::FILE);
        let Some(bytes) = environment.read_whole(&path)? else { return Ok(Standings::new()) };
        let mut standings = Standings::new();
        for line in bytes.split_inclusive(|&b| b == b'\n') {
            match parse(line) {
                Some(Line::Title(version)) if version > VERSION => {
                    return Err(Error::NewerFormat { path, found: version, supported: VERSION });
                }
                Some(Line::Title(_)) => {}
                Some(Line::Log(partition, recorded)) => {
                    standings.insert(partition, recorded);
                }
                None => tracing::warn!(file = %path.display(), "a damaged line is passed over"),
            }
        }
        Ok(standings)
    }

    /// Writes the checkpoint anew and opens it. On a full disk the one that is there is appended to.
    pub(crate) fn create(
        directory: &Path,
        standings: Standings,
        environment: Environment,
    ) -> Result<Self, Error> {
        let path = directory.join(Self::FILE);
        let (file, size) = match rewrite(&path, directory, &standings, &environment) {
            Err(full @ Error::StorageFull { .. }) => match environment.read_whole(&path)? {
                Some(bytes) => (environment.open(&path, OpenMode::Write)?, bytes.len() as u64),
                None => return Err(full),
            },
            other => other?,
        };
        let state = State { file, size, size_when_rewritten: size, is_synced: true, standings };
        let directory = directory.to_owned();
        Ok(Self { path, directory, environment, syncing: Mutex::new(()), state: Mutex::new(state) })
    }

    /// Writes down a log's standing, if it is not the one written last. It is asked for under the lock: of two
    /// that are recorded, the later one is the newer. `None` says that the log is gone, and another one of its name
    /// may have come.
    pub(crate) fn record(
        &self,
        partition: &TopicPartition,
        topic_id: Uuid,
        standing: impl FnOnce() -> Option<Standing>,
    ) -> Result<(), Error> {
        let mut state = self.state.lock();
        let Some(standing) = standing() else { return Ok(()) };
        let recorded = Recorded { topic_id, standing };
        if state.standings.get(partition) == Some(&recorded) {
            return Ok(());
        }
        let line = line_of(partition, &recorded);
        let parts = &mut [IoSlice::new(line.as_bytes())];
        // What a full disk lets through of a line is overwritten by the next one.
        self.environment.write_at(&state.file, &self.path, parts, state.size)?;
        state.size += line.len() as u64;
        state.is_synced = false;
        state.standings.insert(partition.clone(), recorded);
        Ok(())
    }

    /// What was recorded last of each log.
    pub(crate) fn standings(&self) -> Standings {
        self.state.lock().standings.clone()
    }

    /// Forgets a log that is gone; its lines remain until the file is written anew.
    pub(crate) fn forget(&self, partition: &TopicPartition) {
        self.state.lock().standings.remove(partition);
    }

    /// Makes what was recorded last. The file is shortened when it has grown.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let _syncing = self.syncing.lock();
        let file = {
            let mut state = self.state.lock();
            if state.size >= SMALLEST_REWRITE.max(GROWTH * state.size_when_rewritten) {
                let (file, size) = rewrite(&self.path, &self.directory, &state.standings, &self.environment)?;
                (state.file, state.size, state.size_when_rewritten) = (file, size, size);
                state.is_synced = true;
            }
            if state.is_synced {
                return Ok(());
            }
            // Lines that come during the sync are for the next one.
            state.is_synced = true;
            state.file.clone()
        };
        self.environment.sync(&file, &self.path)
    }
}

fn rewrite(
    path: &Path,
    directory: &Path,
    standings: &Standings,
    environment: &Environment,
) -> Result<(StoredFile, u64), Error> {
    let mut text = with_checksum(&format!("{}{VERSION}", SyncedTo::TITLE));
    for (partition, recorded) in standings {
        text.push_str(&line_of(partition, recorded));
    }
    environment.replace_or_clear(path, text.as_bytes())?;
    environment.sync_directory(directory)?;
    Ok((environment.open(path, OpenMode::Write)?, text.len() as u64))
}

enum Line {
    Title(u32),
    Log(TopicPartition, Recorded),
}

fn line_of(partition: &TopicPartition, recorded: &Recorded) -> String {
    let TopicPartition { topic, partition } = partition;
    let Recorded { topic_id, standing } = recorded;
    let synced_to = standing.synced_to.unwrap_or_default();
    let Standing { log_start, high_watermark, .. } = standing;
    with_checksum(&format!("{topic} {partition} {synced_to} {log_start} {high_watermark} {topic_id}"))
}

/// A line of text with its CRC-32C before it.
pub(crate) fn with_checksum(content: &str) -> String {
    format!("{:08x} {content}\n", crc32c::crc32c(content.as_bytes()))
}

/// What [`with_checksum`] was given, if the line is whole and good.
pub(crate) fn checked(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (checksum, content) = line.split_once(' ')?;
    // Exactly as it is written: no sign, no capitals.
    (checksum == format!("{:08x}", crc32c::crc32c(content.as_bytes()))).then_some(content)
}

fn parse(line: &[u8]) -> Option<Line> {
    let content = checked(line)?;
    if let Some(version) = content.strip_prefix(SyncedTo::TITLE) {
        return Some(Line::Title(version.parse().ok()?));
    }
    let mut fields = content.split(' ');
    let topic = fields.next()?.to_owned();
    let partition = fields.next()?.parse().ok()?;
    let mut offset = || fields.next()?.parse().ok().map(Offset);
    let standing = Standing {
        synced_to: Some(offset()?),
        log_start: offset()?,
        high_watermark: offset()?,
        is_clean: false,
    };
    // Lines from before the id was written do without.
    let topic_id = match fields.next() {
        Some(id) => Uuid::parse(id)?,
        None => Uuid::ZERO,
    };
    Some(Line::Log(TopicPartition::new(topic, partition), Recorded { topic_id, standing }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::environment::DirectoryHealth;
    use crate::filesystem::DiskFilesystem;

    const ID: Uuid = Uuid(*b"0123456789abcdef");

    #[test]
    fn nothing_is_written_of_a_log_that_is_gone() {
        let directory = tempfile::tempdir().expect("a directory");
        let environment = Environment {
            filesystem: Arc::new(DiskFilesystem),
            clock: Arc::new(SystemClock),
            health: DirectoryHealth::new(directory.path()),
        };
        let path = directory.path();
        let checkpoint =
            SyncedTo::create(path, Standings::new(), environment.clone()).expect("it is created");
        let partition = TopicPartition::new("flights", 3);
        let anew = Standing { synced_to: Some(Offset(0)), ..Standing::default() };
        checkpoint.record(&partition, ID, || Some(anew)).expect("written");
        // The log of that name before, which was deleted meanwhile.
        checkpoint.record(&partition, ID, || None).expect("nothing to write");
        let recorded = Recorded { topic_id: ID, standing: anew };
        assert_eq!(SyncedTo::read(path, &environment).expect("read"), [(partition, recorded)].into());
    }

    #[test]
    fn a_line_is_read_as_it_is_written_and_not_otherwise() {
        let partition = TopicPartition::new("flights", 3);
        let standing = Standing {
            synced_to: Some(Offset(4711)),
            log_start: Offset(17),
            high_watermark: Offset(4700),
            is_clean: false,
        };
        let recorded = Recorded { topic_id: ID, standing };
        let line = line_of(&partition, &recorded);
        // The example in docs/formats/checkpoints.md.
        let example = TopicPartition::new("flights", 3);
        let in_docs = Standing { log_start: Offset(0), high_watermark: Offset(4711), ..standing };
        let docs = include_str!("../../../docs/formats/checkpoints.md");
        let in_docs = line_of(&example, &Recorded { topic_id: ID, standing: in_docs });
        assert!(docs.contains(&in_docs), "{in_docs}");
        assert!(
            docs.contains(&with_checksum("thalweg synced-to 1")),
            "{}",
            with_checksum("thalweg synced-to 1")
        );
        let Some(Line::Log(found, read)) = parse(line.as_bytes()) else { panic!("not read: {line:?}") };
        assert_eq!((found, read), (partition.clone(), recorded));
        // As it was written before it had the id.
        let without = with_checksum("flights 3 4711 17 4700");
        let Some(Line::Log(found, read)) = parse(without.as_bytes()) else { panic!("not read: {without:?}") };
        assert_eq!((found, read), (partition, Recorded { topic_id: Uuid::ZERO, standing }));
        for cut in 0..line.len() {
            assert!(parse(&line.as_bytes()[..cut]).is_none(), "cut after {cut} bytes");
        }
        for at in 0..line.len() {
            let mut flipped = line.clone().into_bytes();
            flipped[at] ^= 1;
            assert!(parse(&flipped).is_none(), "bit flipped in byte {at}");
        }
    }
}
