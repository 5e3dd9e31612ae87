//! A disk for metadata that is never lost in these tests, and so need not be synced.

use std::io;
use std::path::Path;

use thalweg_controller::{Disk, DiskDirectory, DiskFile, OsDisk};

/// The operating system's, without the syncs.
pub(super) struct UnsyncedDisk;

struct UnsyncedFile(Box<dyn DiskFile>);

impl Disk for UnsyncedDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        OsDisk.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        OsDisk.list(dir)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        OsDisk.read(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(UnsyncedFile(OsDisk.create(path)?)))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(UnsyncedFile(OsDisk.append(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)
    }

    fn open_dir(&self, _: &Path) -> io::Result<Box<dyn DiskDirectory>> {
        Ok(Box::new(UnsyncedDirectory))
    }
}

struct UnsyncedDirectory;

impl DiskDirectory for UnsyncedDirectory {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for UnsyncedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.truncate(length)
    }
}
