//! Real files in memory, where the system has a place for that: a slice of a log is a stretch of a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_storage::testing::ManualClock;
use thalweg_storage::{DiskFilesystem, Environment, Error};

use crate::harness::NOW_MS;

/// Content by path, relative to the place.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self(place.expect("a temporary directory"))
    }

    /// Where the files are.
    pub fn root(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Has these files and no others.
    pub fn put(&self, files: &Files) {
        let root = self.root();
        if root.exists() {
            fs::remove_dir_all(&root).expect("it can be removed");
        }
        fs::create_dir(&root).expect("it can be made");
        let mut made = root.clone();
        for (path, bytes) in files {
            let path = root.join(path);
            let parent = path.parent().expect("it has one");
            if parent != made {
                fs::create_dir_all(parent).expect("it can be made");
                made = parent.to_owned();
            }
            fs::write(path, bytes).expect("it can be written");
        }
    }

    /// Anew each time: one that has failed stays offline.
    pub fn environment(&self) -> Environment {
        Environment::new(Arc::new(DiskFilesystem), ManualClock::new(NOW_MS + 1_000_000), self.root())
    }

    /// What came out, unless it was an error that tells where to look.
    pub fn told<T>(&self, result: Result<T, Error>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error.to_string(),
        };
        let root = self.root();
        assert!(error.contains(root.to_str().expect("UTF-8")), "the message names no file: {error}");
        None
    }
}

/// The files below a directory.
pub fn read_tree(root: &Path) -> Files {
    let mut files = Files::new();
    read_below(root, Path::new(""), &mut files);
    files
}

fn read_below(root: &Path, below: &Path, files: &mut Files) {
    for entry in fs::read_dir(root.join(below)).expect("a directory") {
        let entry = entry.expect("an entry");
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            read_below(root, &path, files);
        } else {
            files.insert(path, fs::read(entry.path()).expect("it can be read"));
        }
    }
}
