//! The metadata log on the file system that the logs are on, so that one crash is that of both.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_controller::{Disk, DiskDirectory, DiskFile};
use thalweg_storage::testing::SimulatedFilesystem;
use thalweg_storage::{Filesystem, OpenMode, StoredFile};

pub(super) struct MetadataDisk(pub(super) Arc<SimulatedFilesystem>);

struct MetadataFile {
    filesystem: Arc<SimulatedFilesystem>,
    file: StoredFile,
    length: u64,
}

impl MetadataDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<MetadataFile> {
        let file = self.0.open(path, mode)?;
        let length = file.file.metadata()?.len();
        Ok(MetadataFile { filesystem: Arc::clone(&self.0), file, length })
    }
}

impl Disk for MetadataDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        match self.0.create_directory(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        Ok(self.0.list(dir)?.into_iter().map(|entry| entry.name).collect())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let MetadataFile { file, length, .. } = self.open(path, OpenMode::Read)?;
        let mut bytes = vec![0; length as usize];
        self.0.read_at(&file, &mut bytes, 0)?;
        Ok(bytes)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.open(path, OpenMode::Create)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.open(path, OpenMode::Write)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDirectory>> {
        Ok(Box::new(MetadataDirectory { filesystem: Arc::clone(&self.0), path: dir.to_owned() }))
    }
}

struct MetadataDirectory {
    filesystem: Arc<SimulatedFilesystem>,
    path: PathBuf,
}

impl DiskDirectory for MetadataDirectory {
    fn sync(&mut self) -> io::Result<()> {
        self.filesystem.sync_directory(&self.path)
    }
}

impl DiskFile for MetadataFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.filesystem.write_at(&self.file, &mut [IoSlice::new(bytes)], self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.filesystem.sync(&self.file)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.filesystem.set_len(&self.file, length)?;
        self.length = length;
        Ok(())
    }
}
