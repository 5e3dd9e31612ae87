//! The data directory: its lock, and whose it is.

use std::path::{Path, PathBuf};

use thalweg_protocol::Uuid;

use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::filesystem::{DirectoryEntry, OpenMode};
use crate::lock::Lock;
use crate::manager::CLEAN_SHUTDOWN_FILE;
use crate::partition_name::parse_directory_name;
use crate::synced_to::SyncedTo;

const META_FILE: &str = "meta";
/// Its name while it is written.
const META_TEMPORARY: &str = "meta.tmp";
/// What it begins with.
const META_BEGINNING: &str = "format: ";
/// What its last line begins with.
const META_CHECKSUM: &str = "crc32c: ";

/// The checksum and the space in front of the checkpoint's first line.
const CHECKSUM: usize = 9;
/// So many bytes of a file are enough to know it by.
const HEAD: usize = 64;

/// The newest format of a data directory that this version reads, and the one it writes.
const FORMAT: u32 = 1;

/// Whose a data directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster.
    pub cluster_id: Uuid,
    /// The node's own id: a wiped node comes back with another one.
    pub node_uuid: Uuid,
}

/// The process that holds a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id, 0 while it has not written it yet.
    pub pid: u32,
    /// `host:port` where it listens, once it does.
    pub address: Option<String>,
}

/// A data directory, held by this process as long as this lives. The operating system frees it when the
/// process ends, however it ends.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    identity: Identity,
    environment: Environment,
    lock: Lock,
}

impl DataDirectory {
    /// Takes the directory, making it if it is missing; a fresh one gets the identity that `fresh` names.
    ///
    /// # Errors
    /// [`Error::DirectoryHeld`], [`Error::NotADataDirectory`], [`Error::ForeignDirectory`] if it belongs to a cluster other than
    /// `expected_cluster`, [`Error::NewerFormat`], [`Error::Corrupt`], I/O errors.
    pub fn open(
        path: &Path,
        fresh: Identity,
        expected_cluster: Option<Uuid>,
        environment: Environment,
    ) -> Result<Self, Error> {
        make_all(path, &environment)?;
        check_ours(path, &environment)?;
        let lock = Lock::take(path)?;
        let identity = match read_meta(path, &environment)? {
            Some(identity) => identity,
            None => {
                let identity = Identity { cluster_id: expected_cluster.unwrap_or(fresh.cluster_id), ..fresh };
                write_meta(path, identity, &environment)?;
                identity
            }
        };
        match expected_cluster {
            Some(expected) if expected != identity.cluster_id => {
                let found = identity.cluster_id;
                Err(Error::ForeignDirectory { path: path.to_owned(), found, expected })
            }
            _ => Ok(Self { path: path.to_owned(), identity, environment, lock }),
        }
    }

    /// Who holds the directory; `None` when nobody does or it does not exist.
    ///
    /// # Errors
    /// I/O errors.
    pub fn holder(path: &Path) -> Result<Option<Holder>, Error> {
        Lock::holder(path)
    }

    /// Whether there is a data directory at `path`, be it of a newer format or somebody else's.
    pub fn is_one(path: &Path) -> bool {
        path.join(META_FILE).is_file()
    }

    /// Writes into the lock file where this process listens, for other processes to find.
    ///
    /// # Errors
    /// I/O errors.
    pub fn announce(&self, address: &str) -> Result<(), Error> {
        self.lock.write(Some(address))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The disk, the clock and the directory's health.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// Refuses a directory without [`META_FILE`] that holds anything but what a start that was cut short may leave. Nothing is
/// changed in it.
fn check_ours(path: &Path, environment: &Environment) -> Result<(), Error> {
    let entries = environment.list(path)?;
    if entries.iter().any(|entry| entry.name == META_FILE) {
        return Ok(());
    }
    // Each says in its content that it is ours: the names alone may be anybody's.
    let checkpoint = head(&path.join(SyncedTo::FILE), environment)?;
    let is_checkpoint =
        |head: Vec<u8>| head.get(CHECKSUM..).is_some_and(|rest| rest.starts_with(SyncedTo::TITLE.as_bytes()));
    let marker = head(&path.join(CLEAN_SHUTDOWN_FILE), environment)?;
    if checkpoint.is_some_and(is_checkpoint) || marker.is_some_and(|head| head.starts_with(b"thalweg ")) {
        return Err(nameless(path));
    }
    // A crash leaves a part of what we write, perhaps nothing of it or zeros in its place.
    let is_part_of = |name: &str, beginning: &str| -> Result<bool, Error> {
        let head = head(&path.join(name), environment)?;
        Ok(head.is_some_and(|head| {
            head.iter().zip(beginning.as_bytes()).all(|(found, ours)| found == ours || *found == 0)
        }))
    };
    let mut has_logs = false;
    for DirectoryEntry { name, is_directory, .. } in entries {
        let is_left_over = match &*name {
            // A file system's own directory for what it finds after a crash is nobody's data.
            "lost+found" => is_directory,
            Lock::FILE => is_part_of(&name, Lock::BEGINNING)?,
            META_TEMPORARY => is_part_of(&name, META_BEGINNING)?,
            _ => false,
        };
        let is_log = is_directory && parse_directory_name(&name).is_some();
        has_logs |= is_log;
        if !is_left_over && !is_log {
            return Err(Error::NotADataDirectory { path: path.to_owned(), found: name });
        }
    }
    // Somebody's data, ours or another's: nothing to guess about.
    if has_logs { Err(nameless(path)) } else { Ok(()) }
}

/// The error for a directory with data and without [`META_FILE`].
fn nameless(directory: &Path) -> Error {
    let what = "the file is missing although there are logs; restore it from a copy of the directory";
    Error::Corrupt {
        path: directory.join(META_FILE),
        position: 0,
        corruption: Corruption::Malformed { what },
    }
}

/// The first bytes of a file, so many as are needed to know it by; `None` when there is no such file.
fn head(path: &Path, environment: &Environment) -> Result<Option<Vec<u8>>, Error> {
    // None of ours is anything but a file, and what else may block is not opened.
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(None) };
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut head = vec![0; (metadata.len() as usize).min(HEAD)];
    let file = environment.open(path, OpenMode::Read)?;
    environment.read_at(&file, path, &mut head, 0)?;
    Ok(Some(head))
}

/// Makes a directory and those above it, each name lasting.
fn make_all(path: &Path, environment: &Environment) -> Result<(), Error> {
    match environment.create_directory(path) {
        Ok(()) => {}
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
            return match environment.list(path) {
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
        }
        Err(error) if error.is_not_found() => match path.parent() {
            Some(parent) if parent != path && !parent.as_os_str().is_empty() => {
                make_all(parent, environment)?;
                environment.create_directory(path)?;
            }
            _ => return Err(error),
        },
        Err(error) => return Err(error),
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => environment.sync_directory(parent),
        _ => Ok(()),
    }
}

fn read_meta(directory: &Path, environment: &Environment) -> Result<Option<Identity>, Error> {
    let path = directory.join(META_FILE);
    let malformed = |what| {
        let path = path.clone();
        Error::Corrupt { path, position: 0, corruption: Corruption::Malformed { what } }
    };
    let Some(bytes) = environment.read_whole(&path)? else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| malformed("text is expected"))?;
    let field = |name| text.lines().find_map(|line| line.strip_prefix(name));
    let format: u32 = field(META_BEGINNING)
        .and_then(|f| f.parse().ok())
        .ok_or_else(|| malformed("a format is expected"))?;
    if format > FORMAT {
        return Err(Error::NewerFormat { path, found: format, supported: FORMAT });
    }
    let id = |name| field(name).and_then(Uuid::parse);
    // Directories of before it was written do without.
    let checksum = text.find(META_CHECKSUM).map(|at| (text.get(..at), text.get(at + META_CHECKSUM.len()..)));
    if let Some((content, checksum)) = checksum
        && checksum != content.map(checksum_line).as_deref()
    {
        return Err(malformed("its checksum does not fit: restore it from a copy of the directory"));
    }
    match (id("cluster_id: "), id("node_uuid: ")) {
        (Some(cluster_id), Some(node_uuid)) => Ok(Some(Identity { cluster_id, node_uuid })),
        _ => Err(malformed("a cluster id and a node uuid are expected")),
    }
}

/// The CRC-32C of the lines before it, as it stands in its own.
fn checksum_line(content: &str) -> String {
    format!("{:08x}\n", crc32c::crc32c(content.as_bytes()))
}

fn write_meta(directory: &Path, identity: Identity, environment: &Environment) -> Result<(), Error> {
    let Identity { cluster_id, node_uuid } = identity;
    let content = format!("{META_BEGINNING}{FORMAT}\ncluster_id: {cluster_id}\nnode_uuid: {node_uuid}\n");
    let text = format!("{content}{META_CHECKSUM}{}", checksum_line(&content));
    environment.replace(&directory.join(META_FILE), text.as_bytes())?;
    environment.sync_directory(directory)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::filesystem::DiskFilesystem;

    #[test]
    fn whose_it_is_is_read_as_it_is_written_and_not_otherwise() {
        let directory = tempfile::tempdir().expect("a directory");
        let environment =
            Environment::new(Arc::new(DiskFilesystem), Arc::new(SystemClock::new()), directory.path());
        let path = directory.path().join(META_FILE);
        let identity = Identity { cluster_id: Uuid(*b"0123456789abcdef"), node_uuid: Uuid([0xff; 16]) };
        write_meta(directory.path(), identity, &environment).expect("written");
        let text = std::fs::read_to_string(&path).expect("there");
        let docs = include_str!("../../../docs/formats/checkpoints.md");
        assert!(docs.contains(&text), "{text}");
        for at in 0..text.len() {
            let mut flipped = text.clone().into_bytes();
            flipped[at] ^= 1;
            for damaged in [&flipped, &text.as_bytes()[..at].to_vec()] {
                std::fs::write(&path, damaged).expect("written");
                match read_meta(directory.path(), &environment) {
                    Ok(found) => assert_eq!(found, Some(identity), "damaged at {at}"),
                    Err(error) => assert!(error.to_string().contains("meta"), "{error}"),
                }
            }
        }
        // As it was written before it had a checksum.
        let (content, _) = text.split_once(META_CHECKSUM).expect("it has one");
        std::fs::write(&path, content).expect("written");
        assert_eq!(read_meta(directory.path(), &environment).expect("read"), Some(identity));
    }
}
