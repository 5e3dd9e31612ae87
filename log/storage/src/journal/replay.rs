//! Giving segments after a crash what only the journal has.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use thalweg_protocol::{Offset, TopicPartition};

use super::files::{self, Found};
use super::round::JournalRound;
use super::scan::{Content, EntryAt, scan};
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::filesystem::OpenMode;
use crate::log::read_topic_id;
use crate::segment::{FileKind, file_name};
use crate::synced_to::{Recorded, Standings, SyncedTo};

/// What was done before the logs are opened.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// The journal and the checkpoint know of no later round.
    pub(crate) last_round: JournalRound,
    /// Logs that have not got what the journal has, and why. They must not be opened, and the journal must stay as it is.
    pub(crate) failed: BTreeMap<TopicPartition, Error>,
}

/// Replays the journal of a data directory whose logs lie in these directories, and raises what `standings` say to be synced.
/// After an orderly stop there is nothing to replay.
///
/// # Errors
/// [`Error::Corrupt`] when the journal is damaged; I/O errors.
pub(crate) fn replay(
    directory: &Path,
    logs: &BTreeMap<TopicPartition, PathBuf>,
    standings: &mut Standings,
    is_clean: bool,
    environment: &Environment,
) -> Result<Replayed, Error> {
    let mut found = files::find(&directory.join(files::DIRECTORY), is_clean, environment)?;
    let last_round = last_round(&found, standings);
    // What is void for every log may be damaged, too.
    let void_to = standings.values().map(|recorded| recorded.void_to).min().unwrap_or_default();
    found.retain(|found| found.newest_round().is_some_and(|round| round > void_to));
    let mut failed = BTreeMap::new();
    if !is_clean {
        let content = scan(&found, environment)?;
        let replay = Replay { directory, content: &content, environment };
        for partition in content.entries.keys() {
            let path = logs.get(partition).map(PathBuf::as_path);
            match replay.log(partition, path, standings.get_mut(partition)) {
                Ok(()) => {}
                Err(error @ (Error::StorageFull { .. } | Error::Corrupt { .. })) => {
                    failed.insert(partition.clone(), error);
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(Replayed { last_round, failed })
}

/// The same for one log, of which [`replay`] has said that it failed.
pub(crate) fn replay_one(
    directory: &Path,
    partition: &TopicPartition,
    path: &Path,
    recorded: Option<&mut Recorded>,
    environment: &Environment,
) -> Result<(), Error> {
    let found = files::find(&directory.join(files::DIRECTORY), false, environment)?;
    let content = scan(&found, environment)?;
    Replay { directory, content: &content, environment }.log(partition, Some(path), recorded)
}

/// A round that none in these files, nor any that a log was told of, is after.
fn last_round(found: &[Found], standings: &Standings) -> JournalRound {
    let in_files = found.iter().filter_map(Found::newest_round).max();
    let in_lines = standings.values().map(|recorded| recorded.void_to).max();
    in_files.max(in_lines).unwrap_or_default()
}

struct Replay<'a> {
    directory: &'a Path,
    content: &'a Content,
    environment: &'a Environment,
}

impl Replay<'_> {
    /// Gives one log what it lacks; `path` is its directory, if it is there.
    fn log(
        &self,
        partition: &TopicPartition,
        path: Option<&Path>,
        recorded: Option<&mut Recorded>,
    ) -> Result<(), Error> {
        let all = self.content.entries.get(partition).map_or(&[][..], |entries| entries);
        let topic_id = match path {
            // Where the file with the id is damaged the log will not be opened.
            Some(path) => read_topic_id(path, self.environment).unwrap_or_default(),
            None => None,
        };
        let topic_id = topic_id.or(recorded.as_ref().map(|recorded| recorded.topic_id));
        let void_to = recorded.as_ref().map(|recorded| recorded.void_to).unwrap_or_default();
        let is_due = |at: &&EntryAt| at.round > void_to && Some(at.entry.topic_id) == topic_id;
        let entries: Vec<&EntryAt> = all.iter().filter(is_due).collect();
        let (Some(last), false) = (entries.last(), topic_id.is_none_or(|id| id.is_zero())) else {
            return Ok(());
        };
        let Some(recorded) = recorded else {
            // Every log has a line before it has records.
            return Err(Error::Corrupt {
                path: self.directory.join(SyncedTo::FILE),
                position: 0,
                corruption: Corruption::Malformed { what: "the line of a log is lost" },
            });
        };
        let synced_to = recorded.standing.synced_to.unwrap_or_default().max(last.entry.end);
        recorded.standing.synced_to = Some(synced_to);
        let Some(path) = path else { return Ok(()) };
        tracing::info!(%partition, entries = entries.len(), %synced_to, "the log gets what the journal has of it");
        for entries in entries.chunk_by(|a, b| a.entry.base_offset == b.entry.base_offset) {
            if !self.segment(path, entries[0].entry.base_offset, entries)? {
                break;
            }
        }
        Ok(())
    }

    /// Gives a segment what it lacks of these entries. Returns false when there is a hole before one of them: recovery will
    /// find that the log ends early.
    fn segment(&self, directory: &Path, base_offset: Offset, entries: &[&EntryAt]) -> Result<bool, Error> {
        let environment = self.environment;
        let path = directory.join(file_name(base_offset, FileKind::Log));
        let segment = match environment.open(&path, OpenMode::Write) {
            // Retention has dropped it; or else the log will be found to end early.
            Err(error) if error.is_not_found() => return Ok(true),
            other => other?,
        };
        let mut len = environment.len(&segment, &path)?;
        let mut is_whole = true;
        for at in entries {
            let position = u64::from(at.entry.position);
            if position > len {
                tracing::error!(file = %path.display(), position, len, "the segment lacks what comes before");
                is_whole = false;
                break;
            }
            let bytes = self.bytes(at)?;
            let there = (len - position).min(bytes.len() as u64) as usize;
            let mut current = vec![0; there];
            environment.read_at(&segment, &path, &mut current, position)?;
            if current != bytes {
                environment.write_at(&segment, &path, &mut [IoSlice::new(&bytes)], position)?;
                len = len.max(position + bytes.len() as u64);
            }
        }
        // Whatever was found there may be in the page cache only.
        environment.sync(&segment, &path)?;
        Ok(is_whole)
    }

    fn bytes(&self, at: &EntryAt) -> Result<Vec<u8>, Error> {
        let (path, file) = &self.content.files[at.file];
        let mut bytes = vec![0; at.entry.len as usize];
        self.environment.read_at(file, path, &mut bytes, at.position)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::Uuid;

    use super::*;
    use crate::journal::header::FileHeader;
    use crate::log::Standing;

    #[test]
    fn no_round_is_given_twice() {
        let file = |first, len| Found {
            path: PathBuf::from("0"),
            len,
            header: Some(FileHeader {
                file_bytes: len,
                first_round: JournalRound(first),
                run: JournalRound(1),
                salt: 0,
            }),
        };
        let line = |void_to| Recorded {
            topic_id: Uuid::ZERO,
            standing: Standing::default(),
            void_to: JournalRound(void_to),
        };
        let unused = Found { header: None, ..file(1, 1 << 20) };
        let cases = [
            (vec![], vec![], 0),
            (vec![unused], vec![], 0),
            (vec![file(1, 16 * 4096), file(700, 16 * 4096)], vec![], 716),
            (vec![file(1, 16 * 4096)], vec![line(3), line(90), line(5)], 90),
            (vec![file(100, 16 * 4096)], vec![line(105)], 116),
        ];
        for (found, lines, expected) in cases {
            let standings = lines.into_iter().enumerate();
            let standings =
                standings.map(|(n, line)| (TopicPartition::new("flights", n as i32), line)).collect();
            assert_eq!(last_round(&found, &standings), JournalRound(expected), "{found:?}");
        }
    }
}
