//! The log that is being appended to.

use std::io;
use std::path::{Path, PathBuf};

use thalweg_protocol::{Offset, Uuid};

use super::disk::{Disk, DiskFile};
use super::frame::{self, Header};
use super::names;
use super::stopped::Stopped;

/// The log that is being appended to.
pub(super) struct LogFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Bytes in the file; a command that was being written when the disk was full has been taken back.
    length: u64,
    /// Bytes that have been synced.
    synced: u64,
    /// What the last mark says of that.
    marked: u64,
    /// The offset of the first command.
    first: Offset,
    /// The offset that the next command gets.
    next: Offset,
    /// That of its format.
    version: u32,
}

/// Where a log ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// Bytes of it that count.
    pub(super) length: u64,
    /// Bytes behind them that a crash has left.
    pub(super) torn: u64,
    /// The offset of the first command.
    pub(super) first: Offset,
    /// The offset after the last one.
    pub(super) next: Offset,
    /// That of its format.
    pub(super) version: u32,
}

/// Why nothing was appended.
#[derive(Debug)]
pub(super) enum AppendError {
    /// There is no space, and the file is as it was.
    Full,
    /// What the file holds now is not known.
    Failed(io::Error),
}

/// Why a file was not written.
#[derive(Debug)]
pub(super) enum WriteError {
    /// There is no space, or no descriptor left. The file is not there, and everything else is as it was.
    NotNow(io::Error),
    /// The file may be there, or may come to be there in a crash, or the disk cannot be trusted any more.
    Failed(io::Error),
}

impl LogFile {
    /// Makes a log that begins with the command at `first`.
    pub(super) fn create(
        disk: &dyn Disk,
        dir: &Path,
        cluster_id: Uuid,
        first: Offset,
    ) -> Result<Self, WriteError> {
        let path = dir.join(names::of(first, names::LOG));
        let version = frame::FORMAT_VERSION;
        let header = Header { version, cluster_id, first }.encode();
        let file = write_whole(disk, &path, &header)?;
        let length = header.len() as u64;
        Ok(Self { path, file, length, synced: length, marked: length, first, next: first, version })
    }

    /// Opens a log of which `length` bytes count, cuts off the rest if there is any, and makes them durable.
    pub(super) fn open(disk: &dyn Disk, path: &Path, tail: Tail) -> io::Result<Self> {
        let Tail { length, torn, first, next, version } = tail;
        let mut file = disk.append(path)?;
        if torn > 0 {
            file.truncate(length)?;
        }
        file.sync()?;
        let path = path.to_owned();
        Ok(Self { path, file, length, synced: length, marked: 0, first, next, version })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Whether there is no command in it.
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.first
    }

    /// Whether commands can be written to it that came with this version of the format.
    pub(super) fn has_version(&self, version: u32) -> bool {
        self.version >= version
    }

    /// The offset that the next command gets.
    pub(super) fn next(&self) -> Offset {
        self.next
    }

    /// Writes commands, all or none of them.
    pub(super) fn append<'a>(&mut self, commands: impl Iterator<Item = &'a [u8]>) -> Result<(), AppendError> {
        let mut frames = Vec::new();
        let mut next = self.next;
        for command in commands {
            frame::write_command(&mut frames, next, self.synced, command);
            next = next.plus(1);
        }
        self.write(&frames)?;
        self.next = next;
        Ok(())
    }

    /// Writes how far the log is synced, if that has not been written.
    pub(super) fn mark(&mut self) -> Result<(), AppendError> {
        if self.marked == self.synced {
            return Ok(());
        }
        let mut mark = Vec::new();
        frame::write_mark(&mut mark, self.next, self.synced);
        self.write(&mark)?;
        self.marked = self.synced;
        Ok(())
    }

    /// Makes durable what was written. After an error it is not known what is.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.synced = self.length;
        Ok(())
    }

    /// Writes down where the log ends, all of which has been synced.
    pub(super) fn note_stop(&self, disk: &dyn Disk, dir: &Path) -> Result<(), WriteError> {
        let stopped = Stopped { first: self.first, length: self.synced };
        write_whole(disk, &dir.join(names::STOPPED), &stopped.encode()).map(|_| ())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        match self.file.write(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) if is_full(&error) => {
                self.file.truncate(self.length).map_err(AppendError::Failed)?;
                Err(AppendError::Full)
            }
            Err(error) => Err(AppendError::Failed(error)),
        }
    }
}

/// Writes a file that is there wholly or not at all, whatever happens, and gives it back, open to be appended to.
///
/// Once it has its name nothing counts as not done: after a crash it may be there, and would be taken for the newest.
pub(super) fn write_whole(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
) -> Result<Box<dyn DiskFile>, WriteError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(names::TEMPORARY);
    let temporary = PathBuf::from(temporary);
    let dir = path.parent().expect("the path was made by joining a name to a directory");
    // Not after the renaming: it would be too late to do without.
    let mut dir = disk.open_dir(dir).map_err(WriteError::of)?;
    let written = (|| {
        let mut file = disk.create(&temporary).map_err(WriteError::of)?;
        file.write(bytes).map_err(WriteError::of)?;
        file.sync().map_err(WriteError::Failed)?;
        disk.rename(&temporary, path).map_err(WriteError::of)?;
        Ok(file)
    })();
    if written.is_err() {
        // The space is needed more elsewhere. If this fails too, the file is removed when the log is opened.
        let _ = disk.remove(&temporary);
    }
    let file = written?;
    dir.sync().map_err(WriteError::Failed)?;
    Ok(file)
}

impl WriteError {
    /// Of an operation that has done nothing when there is no space for it. Syncs are none of those.
    fn of(source: io::Error) -> Self {
        let is_out_of_descriptors = matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
        if is_full(&source) || is_out_of_descriptors { Self::NotNow(source) } else { Self::Failed(source) }
    }

    /// The error of the disk.
    pub(super) fn into_source(self) -> io::Error {
        match self {
            Self::NotNow(source) | Self::Failed(source) => source,
        }
    }
}

/// Whether writing will work again when there is space.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
