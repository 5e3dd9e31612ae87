//! The disk under the metadata log, as far as the log uses it: a seam, so that tests can let it fail and
//! crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
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

    /// Makes durable which files are in a directory.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
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
        Ok(Box::new(OsFile(file)))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OsFile(OpenOptions::new().append(true).open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

struct OsFile(File);

impl DiskFile for OsFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }
}
