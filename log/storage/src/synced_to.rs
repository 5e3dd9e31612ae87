//! The checkpoint of a data directory: how far each log was synced, and where it starts.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use thalweg_protocol::{Offset, TopicPartition, Uuid};

use crate::batch_scan::is_possible;
use crate::environment::Environment;
use crate::error::Error;
use crate::filesystem::{OpenMode, Reservation, StoredFile};
use crate::journal::JournalRound;
use crate::log::Standing;
use crate::partition_name::directory_name;

const VERSION: u32 = 1;

/// The file is written anew when it is this large, and [`GROWTH`] times what it was when last written anew.
const SMALLEST_REWRITE: u64 = 64 << 10;
const GROWTH: u64 = 4;

/// So many bytes of lines find space at least when the disk gets full: what is deleted then must be written down first.
const LEAST_RESERVED: u64 = 32 << 10;

/// What the checkpoint says of each log.
pub(crate) type Standings = BTreeMap<TopicPartition, Recorded>;

/// What the checkpoint says of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// The topic it belongs to: a log of that name that came later is another one. Zero where it is not known.
    pub(crate) topic_id: Uuid,
    /// How far it had come.
    pub(crate) standing: Standing,
    /// What the journal says of the log up to this round is void: its own files have it, or it is gone.
    pub(crate) void_to: JournalRound,
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
    /// The last round that the journal has begun.
    journal_round: AtomicU64,
}

#[derive(Debug)]
struct State {
    file: StoredFile,
    size: u64,
    size_when_rewritten: u64,
    /// Up to where there is space for it.
    reserved: u64,
    is_synced: bool,
    /// Whether it has its name for good.
    is_named: bool,
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
        for line in bytes.split_inclusive(|&b| b == b'\n').filter(|line| line != b"\n") {
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

    /// Writes the checkpoint anew and opens it. On a full disk the one that is there is appended to. The rounds of the journal
    /// come after `last_round`.
    pub(crate) fn create(
        directory: &Path,
        standings: Standings,
        last_round: JournalRound,
        environment: Environment,
    ) -> Result<Self, Error> {
        let path = directory.join(Self::FILE);
        let (file, size) = match rewrite(&path, &standings, &environment) {
            Err(full @ Error::StorageFull { .. }) => match environment.read_whole(&path)? {
                Some(bytes) => (environment.open(&path, OpenMode::Write)?, bytes.len() as u64),
                None => return Err(full),
            },
            other => {
                let written = other?;
                environment.sync_directory(directory)?;
                written
            }
        };
        let (is_synced, is_named) = (true, true);
        let mut state =
            State { file, size, size_when_rewritten: size, reserved: 0, is_synced, is_named, standings };
        state.reserve(&path, &environment)?;
        let directory = directory.to_owned();
        Ok(Self {
            path,
            directory,
            environment,
            syncing: Mutex::new(()),
            state: Mutex::new(state),
            journal_round: AtomicU64::new(last_round.0),
        })
    }

    /// The last round that the journal has begun: what is synced of a log while none that it is in is going on makes the
    /// entries up to this one void.
    pub(crate) fn journal_round(&self) -> JournalRound {
        JournalRound(self.journal_round.load(Ordering::SeqCst))
    }

    /// Begins the next round of the journal; for the journal alone.
    pub(crate) fn begin_journal_round(&self) -> JournalRound {
        JournalRound(self.journal_round.fetch_add(1, Ordering::SeqCst)).next()
    }

    /// Writes down a log's standing, if it is not the one written last. It is asked for under the lock: of two
    /// that are recorded, the later one is the newer. `None` says that the log is gone, and another one of its name
    /// may have come.
    pub(crate) fn record(
        &self,
        partition: &TopicPartition,
        recorded: impl FnOnce() -> Option<Recorded>,
    ) -> Result<(), Error> {
        let mut state = self.state.lock();
        let Some(recorded) = recorded() else { return Ok(()) };
        match state.standings.get(partition) == Some(&recorded) {
            true => Ok(()),
            false => self.write_lines(&mut state, partition, recorded, &line_of(partition, &recorded)),
        }
    }

    /// The same, but for a log of which nothing must come back, from the journal or from before its start: the line is written
    /// in any case, and twice, so that it counts even if one of them is damaged.
    pub(crate) fn record_doubly(
        &self,
        partition: &TopicPartition,
        recorded: impl FnOnce() -> Option<Recorded>,
    ) -> Result<(), Error> {
        let mut state = self.state.lock();
        let Some(recorded) = recorded() else { return Ok(()) };
        let lines = twice(&line_of(partition, &recorded));
        self.write_lines(&mut state, partition, recorded, &lines)
    }

    fn write_lines(
        &self,
        state: &mut State,
        partition: &TopicPartition,
        recorded: Recorded,
        lines: &str,
    ) -> Result<(), Error> {
        state.reserve(&self.path, &self.environment)?;
        let parts = &mut [IoSlice::new(lines.as_bytes())];
        // What a full disk lets through of a line is overwritten by the next one.
        self.environment.write_at(&state.file, &self.path, parts, state.size)?;
        state.size += lines.len() as u64;
        state.is_synced = false;
        state.standings.insert(partition.clone(), recorded);
        Ok(())
    }

    /// What was recorded last of each log.
    pub(crate) fn standings(&self) -> Standings {
        self.state.lock().standings.clone()
    }

    /// Up to which round it was recorded that entries of the log are void.
    pub(crate) fn void_to(&self, partition: &TopicPartition) -> JournalRound {
        self.state.lock().standings.get(partition).map(|recorded| recorded.void_to).unwrap_or_default()
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
                match rewrite(&self.path, &state.standings, &self.environment) {
                    // From here on the lines belong into this one, even if there is no descriptor to sync the directory.
                    Ok((file, size)) => {
                        (state.file, state.size, state.size_when_rewritten) = (file, size, size);
                        (state.reserved, state.is_synced, state.is_named) = (0, true, false);
                        state.reserve(&self.path, &self.environment)?;
                    }
                    // The long one does as well.
                    Err(Error::StorageFull { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if !state.is_named {
                self.environment.sync_directory(&self.directory)?;
                state.is_named = true;
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

impl State {
    /// Sees to it that lines find space, as far as there is any and the file system knows of such a thing.
    fn reserve(&mut self, path: &Path, environment: &Environment) -> Result<(), Error> {
        if self.reserved < self.size + LEAST_RESERVED {
            let to = self.size + 2 * LEAST_RESERVED;
            match environment.reserve(&self.file, path, self.size, to)? {
                Reservation::Made => self.reserved = to,
                Reservation::Unsupported => self.reserved = u64::MAX,
                Reservation::NoSpace => {}
            }
        }
        Ok(())
    }
}

/// It lasts once the directory is synced.
fn rewrite(
    path: &Path,
    standings: &Standings,
    environment: &Environment,
) -> Result<(StoredFile, u64), Error> {
    let mut text = with_checksum(&format!("{}{VERSION}", SyncedTo::TITLE));
    for (partition, recorded) in standings {
        let line = line_of(partition, recorded);
        // Of one whose first records were deleted there is no line before that would do.
        match recorded.standing.log_start > Offset(0) {
            true => text.push_str(&twice(&line)),
            false => text.push_str(&line),
        }
    }
    Ok((environment.replace_or_clear(path, text.as_bytes())?, text.len() as u64))
}

/// With an empty line between, or a damaged line feed would join the two.
fn twice(line: &str) -> String {
    format!("{line}\n{line}")
}

enum Line {
    Title(u32),
    Log(TopicPartition, Recorded),
}

fn line_of(partition: &TopicPartition, recorded: &Recorded) -> String {
    let TopicPartition { topic, partition } = partition;
    let Recorded { topic_id, standing, void_to } = recorded;
    let synced_to = standing.synced_to.unwrap_or_default();
    let Standing { log_start, high_watermark, .. } = standing;
    with_checksum(&format!(
        "{topic} {partition} {synced_to} {log_start} {high_watermark} {topic_id} {void_to}"
    ))
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
    let partition = TopicPartition::new(topic, fields.next()?.parse().ok()?);
    directory_name(&partition).ok()?;
    let mut offset = || fields.next()?.parse().ok().map(Offset).filter(|offset| is_possible(*offset));
    let standing = Standing {
        synced_to: Some(offset()?),
        log_start: offset()?,
        high_watermark: offset()?,
        is_clean: false,
    };
    // Lines from before the id was written, and from before there was a journal, do without.
    let topic_id = match fields.next() {
        Some(id) => Uuid::parse(id)?,
        None => Uuid::ZERO,
    };
    let void_to = match fields.next() {
        Some(round) => JournalRound::read(round.parse().ok()?)?,
        None => JournalRound::default(),
    };
    Some(Line::Log(partition, Recorded { topic_id, standing, void_to }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::filesystem::DiskFilesystem;
    use crate::testing::{OperationKind, Performed, SimulatedFilesystem};

    const ID: Uuid = Uuid(*b"0123456789abcdef");

    #[test]
    fn nothing_is_written_of_a_log_that_is_gone() {
        let directory = tempfile::tempdir().expect("a directory");
        let environment =
            Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), directory.path());
        let path = directory.path();
        let checkpoint =
            SyncedTo::create(path, Standings::new(), JournalRound(7), environment.clone()).expect("created");
        assert_eq!(
            (checkpoint.begin_journal_round(), checkpoint.journal_round()),
            (JournalRound(8), JournalRound(8))
        );
        let partition = TopicPartition::new("flights", 3);
        let anew = Standing { synced_to: Some(Offset(0)), ..Standing::default() };
        let recorded = Recorded { topic_id: ID, standing: anew, void_to: JournalRound(8) };
        checkpoint.record(&partition, || Some(recorded)).expect("written");
        // The log of that name before, which was deleted meanwhile.
        checkpoint.record(&partition, || None).expect("nothing to write");
        assert_eq!(SyncedTo::read(path, &environment).expect("read"), [(partition, recorded)].into());
    }

    #[test]
    fn lines_go_into_the_file_that_has_the_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        let disk = Arc::new(SimulatedFilesystem::new(path));
        let environment = Environment::new(disk.clone(), Arc::new(SystemClock::new()), path);
        let checkpoint =
            SyncedTo::create(path, Standings::new(), JournalRound(0), environment.clone()).expect("created");
        let (partition, mut end) = (TopicPartition::new("flights", 3), 0);
        let mut record = || {
            end += 1;
            let standing = Standing { synced_to: Some(Offset(end)), ..Standing::default() };
            let recorded = Recorded { topic_id: ID, standing, void_to: JournalRound(0) };
            checkpoint.record(&partition, || Some(recorded)).expect("written");
            recorded
        };
        while checkpoint.state.lock().size < SMALLEST_REWRITE {
            record();
        }
        // The new file is made, written, synced and renamed. Then there is no descriptor for the directory.
        disk.fail_at(disk.performed().len() + 4, libc::EMFILE);
        let error = checkpoint.sync().expect_err("the directory cannot be synced");
        assert!(matches!(error, Error::TooManyOpenFiles { .. }), "{error}");
        let size = || std::fs::metadata(path.join(SyncedTo::FILE)).expect("there").len();
        assert!(size() < 1_000, "it has been written anew");
        let last = record();
        assert_eq!(SyncedTo::read(path, &environment).expect("read"), [(partition.clone(), last)].into());
        let is_sync = |operation: &Performed| operation.kind == OperationKind::SyncDirectory;
        let before = disk.performed().len();
        checkpoint.sync().expect("now");
        checkpoint.sync().expect("there is nothing left to do");
        let performed = disk.performed().split_off(before);
        assert_eq!(performed.iter().filter(|operation| is_sync(operation)).count(), 1, "{performed:?}");
        assert_eq!(performed.len(), 2, "{performed:?}");
    }

    #[test]
    fn what_makes_entries_void_outlives_a_damaged_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let environment =
            Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), directory.path());
        let (path, partition) = (directory.path(), TopicPartition::new("flights", 3));
        let checkpoint =
            SyncedTo::create(path, Standings::new(), JournalRound(0), environment.clone()).expect("created");
        let recorded = |round| Recorded {
            topic_id: ID,
            standing: Standing { synced_to: Some(Offset(9)), ..Standing::default() },
            void_to: JournalRound(round),
        };
        checkpoint.record(&partition, || Some(recorded(3))).expect("written");
        let before = std::fs::read(path.join(SyncedTo::FILE)).expect("there").len();
        checkpoint.record_doubly(&partition, || Some(recorded(4))).expect("written");
        let whole = std::fs::read(path.join(SyncedTo::FILE)).expect("there");
        for at in before..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(path.join(SyncedTo::FILE), damaged).expect("written");
            let found = SyncedTo::read(path, &environment).expect("read");
            assert_eq!(found.get(&partition), Some(&recorded(4)), "bit flipped in byte {at}");
        }
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
        let recorded = Recorded { topic_id: ID, standing, void_to: JournalRound(12) };
        let line = line_of(&partition, &recorded);
        // The example in docs/formats/checkpoints.md.
        let example = TopicPartition::new("flights", 3);
        let in_docs = Standing { log_start: Offset(0), high_watermark: Offset(4711), ..standing };
        let docs = include_str!("../../../docs/formats/checkpoints.md");
        let in_docs = line_of(&example, &Recorded { standing: in_docs, ..recorded });
        assert!(docs.contains(&in_docs), "{in_docs}");
        assert!(
            docs.contains(&with_checksum("thalweg synced-to 1")),
            "{}",
            with_checksum("thalweg synced-to 1")
        );
        let Some(Line::Log(found, read)) = parse(line.as_bytes()) else { panic!("not read: {line:?}") };
        assert_eq!((found, read), (partition.clone(), recorded));
        // As it was written before it had the round, and before it had the id.
        let no_round = Recorded { void_to: JournalRound(0), ..recorded };
        for (without, expected) in [
            (format!("flights 3 4711 17 4700 {ID}"), no_round),
            ("flights 3 4711 17 4700".to_owned(), Recorded { topic_id: Uuid::ZERO, ..no_round }),
        ] {
            let Some(Line::Log(found, read)) = parse(with_checksum(&without).as_bytes()) else {
                panic!("not read: {without:?}")
            };
            assert_eq!((found, read), (partition.clone(), expected));
        }
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
