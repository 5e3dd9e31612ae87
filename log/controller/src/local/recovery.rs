//! Finds out what a directory holds, and what of it counts.

use std::path::{Path, PathBuf};

use thalweg_protocol::{Offset, Uuid};

use super::disk::Disk;
use super::frame::{self, Header, HeaderFault};
use super::log_file::Tail;
use super::names;
use super::stopped::{Stopped, StoppedFault};
use crate::command::Command;
use crate::error::Error;
use crate::snapshot::{self, SnapshotError};
use crate::state::ClusterState;
use crate::state_machine::Entry;

/// The format whose logs begin by the first rules.
const FIRST_FORMAT: u32 = 1;

/// The version of those rules.
const FIRST_METADATA_VERSION: u16 = 1;

/// What the files of a directory come to.
pub(super) struct Recovered {
    /// The state of the newest snapshot, or that of a new cluster.
    pub(super) state: ClusterState,
    /// Bytes of that snapshot.
    pub(super) snapshot_bytes: u64,
    /// The commands after it.
    pub(super) entries: Vec<Entry>,
    /// The log to append to.
    pub(super) log: PathBuf,
    /// Where it ends.
    pub(super) tail: Tail,
    /// Files that nothing needs any more.
    pub(super) leftovers: Vec<PathBuf>,
}

/// Reads a directory and changes nothing.
pub(super) fn recover(disk: &dyn Disk, dir: &Path, cluster_id: Uuid) -> Result<Recovered, Error> {
    let names = disk.list(dir).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::Missing { dir: dir.to_owned() },
        _ => Error::io("list", dir, source),
    })?;
    let newest = |suffix| names.iter().filter_map(|name| names::parse(name, suffix)).max();
    let log = newest(names::LOG);
    let stopped = read_stopped(disk, dir, &names)?;
    if let Some(stopped) = stopped {
        check_newest(dir, log, stopped)?;
    }
    let log = log.ok_or_else(|| Error::Missing { dir: dir.to_owned() })?;
    let snapshot = newest(names::SNAPSHOT);
    let start = snapshot.unwrap_or(Offset(0));
    if log > start {
        return Err(Error::Gap { dir: dir.to_owned(), from: start.0, until: log.0 });
    }
    let (mut state, snapshot_bytes) = match snapshot {
        Some(offset) => read_snapshot(disk, dir, offset, cluster_id)?,
        None => (ClusterState::new(cluster_id), 0),
    };
    let path = dir.join(names::of(log, names::LOG));
    let bytes = disk.read(&path).map_err(|source| Error::io("read", &path, source))?;
    let least = stopped.filter(|stopped| stopped.first == log).map_or(0, |stopped| stopped.length);
    let scan = Scan { path: &path, bytes: &bytes }.run(cluster_id, log, start, least)?;
    if snapshot.is_none() && scan.version == FIRST_FORMAT {
        // What stands in it was decided by the rules of its time.
        state = ClusterState::at_version(cluster_id, FIRST_METADATA_VERSION);
    }
    let needed = [
        Some(names::of(log, names::LOG)),
        snapshot.map(|offset| names::of(offset, names::SNAPSHOT)),
        stopped.map(|_| names::STOPPED.to_owned()),
    ];
    let is_leftover = |name: &String| names::is_ours(name) && !needed.contains(&Some(name.clone()));
    Ok(Recovered {
        state,
        snapshot_bytes,
        entries: scan.entries,
        tail: Tail {
            length: scan.length as u64,
            torn: (bytes.len() - scan.length) as u64,
            first: log,
            next: scan.next,
            version: scan.version,
        },
        leftovers: names.iter().filter(|name| is_leftover(name)).map(|name| dir.join(name)).collect(),
        log: path,
    })
}

/// Where the log ended when the node was last stopped in order; `None` if it never was, or by a version that did not say so.
fn read_stopped(disk: &dyn Disk, dir: &Path, names: &[String]) -> Result<Option<Stopped>, Error> {
    if !names.iter().any(|name| name == names::STOPPED) {
        return Ok(None);
    }
    let path = dir.join(names::STOPPED);
    let bytes = disk.read(&path).map_err(|source| Error::io("read", &path, source))?;
    match Stopped::decode(&bytes) {
        Ok(stopped) => Ok(Some(stopped)),
        Err(StoppedFault::Newer { found }) => {
            Err(Error::NewerFormat { path, found, supported: Stopped::VERSION })
        }
        Err(StoppedFault::Corrupt { what }) => {
            Err(Error::Corrupt { path, position: 0, what: what.to_owned() })
        }
    }
}

/// Refuses to take an older log for the newest.
fn check_newest(dir: &Path, newest: Option<Offset>, stopped: Stopped) -> Result<(), Error> {
    if newest.is_some_and(|newest| newest >= stopped.first) {
        return Ok(());
    }
    let what = format!("it is missing, and had {} bytes when the node was stopped", stopped.length);
    Err(Error::Corrupt { path: dir.join(names::of(stopped.first, names::LOG)), position: 0, what })
}

fn read_snapshot(
    disk: &dyn Disk,
    dir: &Path,
    offset: Offset,
    cluster_id: Uuid,
) -> Result<(ClusterState, u64), Error> {
    let path = dir.join(names::of(offset, names::SNAPSHOT));
    let bytes = disk.read(&path).map_err(|source| Error::io("read", &path, source))?;
    let state = snapshot::decode(&bytes).map_err(|error| match error {
        SnapshotError::Newer { found, supported } => {
            Error::NewerFormat { path: path.clone(), found, supported }
        }
        SnapshotError::Corrupt { position, what } => {
            Error::Corrupt { path: path.clone(), position: position as u64, what }
        }
    })?;
    check_cluster(&path, state.cluster_id(), cluster_id)?;
    if state.offset().0 + 1 != offset.0 {
        let what = format!("it holds the state before the command at {}", state.offset().0 + 1);
        return Err(Error::Corrupt { path, position: 0, what });
    }
    Ok((state, bytes.len() as u64))
}

/// Whether a directory holds no metadata, or that of a cluster to which nothing has happened.
pub(super) fn is_unused(disk: &dyn Disk, dir: &Path) -> Result<bool, Error> {
    let names = disk.list(dir).map_err(|source| Error::io("list", dir, source))?;
    if names.iter().any(|name| name == names::STOPPED) {
        return Ok(false);
    }
    let first = names::of(Offset(0), names::LOG);
    if names.iter().any(|name| names::is_whole(name) && *name != first) {
        return Ok(false);
    }
    if !names.contains(&first) {
        return Ok(true);
    }
    let path = dir.join(first);
    let bytes = disk.read(&path).map_err(|source| Error::io("read", &path, source))?;
    let mut rest = bytes.get(frame::HEADER..).unwrap_or_default();
    while let Some(frame) = frame::read(rest).filter(|frame| frame.command.is_none()) {
        rest = &rest[frame.size..];
    }
    Ok(Header::decode(&bytes).is_ok() && rest.is_empty())
}

struct Scan<'a> {
    path: &'a Path,
    bytes: &'a [u8],
}

struct Scanned {
    entries: Vec<Entry>,
    /// Bytes of the log that count.
    length: usize,
    /// The offset after the last command.
    next: Offset,
    /// That of its format.
    version: u32,
}

impl Scan<'_> {
    /// Reads a log that begins with the command at `first`, for those from `start` on. Of all that counts there must be `least`
    /// bytes.
    fn run(&self, cluster_id: Uuid, first: Offset, start: Offset, least: u64) -> Result<Scanned, Error> {
        let header = Header::decode(self.bytes).map_err(|fault| match fault {
            HeaderFault::Newer { found } => {
                Error::NewerFormat { path: self.path.to_owned(), found, supported: frame::FORMAT_VERSION }
            }
            HeaderFault::Corrupt { position, what } => self.corrupt(position, what),
        })?;
        check_cluster(self.path, header.cluster_id, cluster_id)?;
        if header.first != first {
            return Err(self.corrupt(28, &format!("it begins with the command at {}", header.first)));
        }
        let mut entries = Vec::new();
        let mut next = first;
        let mut position = frame::HEADER;
        while let Some(frame) = frame::read(&self.bytes[position..]) {
            if frame.offset != next {
                let what = format!("the command at {next} was expected, not the one at {}", frame.offset);
                return Err(self.corrupt(position, &what));
            }
            if let Some(command) = frame.command {
                if next >= start {
                    let command = Command::decode(command).map_err(|what| {
                        self.corrupt(position, &format!("the command at {next} is not understood: {what}"))
                    })?;
                    entries.push(Entry { offset: Some(next), command });
                }
                next = next.plus(1);
            }
            position += frame.size;
        }
        if position < self.bytes.len() && frame::was_synced(self.bytes, position) {
            return Err(self.corrupt(position, "what was written there cannot be read any more"));
        }
        if (position as u64) < least {
            let what =
                format!("it ends there, and had {least} bytes when the node was stopped: the rest is lost");
            return Err(self.corrupt(position, &what));
        }
        if next < start {
            let what = format!("it ends before the command at {start}, where the snapshot stands");
            return Err(self.corrupt(position, &what));
        }
        Ok(Scanned { entries, length: position, next, version: header.version })
    }

    fn corrupt(&self, position: usize, what: &str) -> Error {
        Error::Corrupt { path: self.path.to_owned(), position: position as u64, what: what.to_owned() }
    }
}

fn check_cluster(path: &Path, found: Uuid, expected: Uuid) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::ForeignCluster { path: path.to_owned(), found, expected })
}
