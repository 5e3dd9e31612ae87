//! The disk under the metadata log, as far as the log uses it: a seam, so that tests can let it fail and
//! crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// A disk.
pub trait Disk: Send + Sync + 'static {
    /// Creates a directory, and those above it; it may be there already.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// The names of the files in a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Everything in a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Creates a file, or empties the one that is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to append to it.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, in the place of the one that had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Opens a directory: before anything is done that must then be made durable, for there may be no descriptor left.
    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDirectory>>;
}

/// An open directory.
pub trait DiskDirectory: Send {
    /// Makes durable which files are in it.
    fn sync(&mut self) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send {
    /// Writes at the end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes durable what was written.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file off after `length` bytes.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// The disk that the operating system shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(dir)?.map(name).collect()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let options = OpenOptions::new().append(true).create(true).open(path);
        let file = options?;
        file.set_len(0)?;
        Ok(Box::new(OsFile::new(file)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OsFile::new(OpenOptions::new().append(true).open(path)?)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDirectory>> {
        Ok(Box::new(OsDirectory(File::open(dir)?)))
    }
}

struct OsDirectory(File);

impl DiskDirectory for OsDirectory {
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// How much of the disk a file has behind its end, in bytes: on a full disk a node must start, which it registers, and topics
/// be deleted.
const AHEAD: u64 = 64 << 10;

struct OsFile {
    file: File,
    length: u64,
    /// Up to where the disk has room for it.
    reserved: u64,
}

impl OsFile {
    fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut file = Self { file, length, reserved: 0 };
        file.reserve();
        Ok(file)
    }

    /// Takes room behind the end, which leaves the length as it is. Where there is none, or the file system cannot do it,
    /// the file does without.
    fn reserve(&mut self) {
        if self.length + AHEAD / 2 <= self.reserved {
            return;
        }
        let (start, len) = (self.length as libc::off_t, AHEAD as libc::off_t);
        // SAFETY: the descriptor is open for as long as the file lives.
        let result = unsafe { libc::fallocate(self.file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, start, len) };
        if result == 0 {
            self.reserved = self.length + AHEAD;
        }
    }
}

impl DiskFile for OsFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.reserve();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        (self.length, self.reserved) = (length, 0);
        self.reserve();
        Ok(())
    }
}
