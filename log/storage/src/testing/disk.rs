//! What of a simulated file system would be there after a crash.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files and directories by number, as they are and as the disk has them.
#[derive(Debug)]
pub(super) struct Disk {
    nodes: HashMap<u64, Node>,
    paths: HashMap<u64, PathBuf>,
    next_id: u64,
}

#[derive(Debug)]
enum Node {
    File(FileNode),
    Directory(DirectoryNode),
}

#[derive(Debug)]
struct FileNode {
    /// The real file, which is what the page cache would show.
    live: Arc<File>,
    synced: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write { position: u64, bytes: Vec<u8> },
    SetLen(u64),
}

#[derive(Debug, Default)]
struct DirectoryNode {
    live: BTreeMap<String, u64>,
    synced: BTreeMap<String, u64>,
    /// Names that were set or removed since the last sync, in order; what belongs together is one change.
    unsynced: Vec<Vec<(String, Option<u64>)>>,
}

/// The directory that everything is in.
const ROOT: u64 = 0;
/// What a disk writes as a whole.
const SECTOR: usize = 512;

impl Disk {
    /// Takes what is in `root` for synced.
    pub(super) fn load(root: &Path) -> Self {
        let mut disk = Self { nodes: HashMap::new(), paths: HashMap::new(), next_id: ROOT };
        disk.load_directory(root, Path::new(""));
        disk
    }

    fn load_directory(&mut self, path: &Path, relative: &Path) -> u64 {
        let id = self.add(Node::Directory(DirectoryNode::default()));
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(path).expect("the directory can be read") {
            let entry = entry.expect("the directory can be read");
            let name = entry.file_name().into_string().expect("names are UTF-8");
            let child = if entry.path().is_dir() {
                self.load_directory(&entry.path(), &relative.join(&name))
            } else {
                let live = File::options().read(true).write(true).open(entry.path());
                let live = Arc::new(live.expect("the file can be opened"));
                let synced = content(&live);
                self.add(Node::File(FileNode { live, synced, unsynced: Vec::new() }))
            };
            self.paths.insert(child, relative.join(&name));
            names.insert(name, child);
        }
        let directory = self.directory(id);
        directory.live = names.clone();
        directory.synced = names;
        id
    }

    fn add(&mut self, node: Node) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.nodes.insert(id, node);
        id
    }

    fn directory(&mut self, id: u64) -> &mut DirectoryNode {
        match self.nodes.get_mut(&id) {
            Some(Node::Directory(directory)) => directory,
            other => panic!("{id} is no directory but {other:?}"),
        }
    }

    fn file(&mut self, id: u64) -> &mut FileNode {
        match self.nodes.get_mut(&id) {
            Some(Node::File(file)) => file,
            other => panic!("{id} is no file but {other:?}"),
        }
    }

    /// The node at a path relative to the root, as it is now.
    pub(super) fn find(&self, path: &Path) -> Option<u64> {
        path.iter().try_fold(ROOT, |id, name| match self.nodes.get(&id)? {
            Node::Directory(directory) => directory.live.get(name.to_str()?).copied(),
            Node::File(_) => None,
        })
    }

    /// Sets or removes names, all in one directory, as one change.
    pub(super) fn set_names(&mut self, names: &[(&Path, Option<u64>)]) {
        let parents: Vec<_> = names.iter().map(|(path, _)| path.parent()).collect();
        assert!(parents.windows(2).all(|pair| pair[0] == pair[1]), "nothing is moved between directories");
        let parent = self.find(parents[0].expect("not the root")).expect("the directory exists");
        let mut change = Vec::new();
        for (path, id) in names {
            let name = path.file_name().and_then(|name| name.to_str()).expect("names are UTF-8").to_owned();
            let directory = self.directory(parent);
            match id {
                Some(id) => {
                    directory.live.insert(name.clone(), *id);
                    self.paths.insert(*id, (*path).to_owned());
                }
                None => {
                    directory.live.remove(&name);
                }
            }
            change.push((name, *id));
        }
        self.directory(parent).unsynced.push(change);
    }

    /// The path that a file was last given.
    pub(super) fn path_of(&self, id: u64) -> PathBuf {
        self.paths.get(&id).cloned().unwrap_or_default()
    }

    pub(super) fn add_file(&mut self, path: &Path, live: Arc<File>) -> u64 {
        let id = self.add(Node::File(FileNode { live, synced: Vec::new(), unsynced: Vec::new() }));
        self.set_names(&[(path, Some(id))]);
        id
    }

    pub(super) fn add_directory(&mut self, path: &Path) {
        let id = self.add(Node::Directory(DirectoryNode::default()));
        self.set_names(&[(path, Some(id))]);
    }

    pub(super) fn wrote(&mut self, id: u64, position: u64, bytes: Vec<u8>) {
        self.file(id).unsynced.push(Change::Write { position, bytes });
    }

    /// What was written has reached the disk, whatever else has not.
    pub(super) fn wrote_through(&mut self, id: u64, position: u64, bytes: &[u8]) {
        let synced = &mut self.file(id).synced;
        let (from, to) = (position as usize, position as usize + bytes.len());
        synced.resize(synced.len().max(to), 0);
        synced[from..to].copy_from_slice(bytes);
    }

    pub(super) fn set_len(&mut self, id: u64, len: u64) {
        self.file(id).unsynced.push(Change::SetLen(len));
    }

    pub(super) fn has_unsynced(&mut self, id: u64) -> bool {
        !self.file(id).unsynced.is_empty()
    }

    pub(super) fn sync_file(&mut self, id: u64) {
        let file = self.file(id);
        file.synced = content(&file.live);
        file.unsynced.clear();
    }

    pub(super) fn sync_directory(&mut self, path: &Path) {
        let id = self.find(path).expect("the directory exists");
        let directory = self.directory(id);
        directory.synced = directory.live.clone();
        directory.unsynced.clear();
    }

    /// Makes `root` what a crash would leave of it: what was synced, and of the rest what `fate` lets through.
    pub(super) fn restore(&self, root: &Path, fate: &mut Fate) {
        for entry in fs::read_dir(root).expect("the directory can be read") {
            let path = entry.expect("the directory can be read").path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.expect("it can be removed");
        }
        self.restore_directory(ROOT, root, fate);
    }

    fn restore_directory(&self, id: u64, path: &Path, fate: &mut Fate) {
        let Node::Directory(directory) = &self.nodes[&id] else { panic!("{id} is no directory") };
        let mut names = directory.synced.clone();
        // A journal keeps the order: some first changes are there, the others are not.
        for (name, child) in directory.unsynced[..fate.how_many(directory.unsynced.len())].iter().flatten() {
            match child {
                Some(child) => names.insert(name.clone(), *child),
                None => names.remove(name),
            };
        }
        for (name, child) in names {
            let path = path.join(name);
            match &self.nodes[&child] {
                Node::Directory(_) => {
                    fs::create_dir(&path).expect("it can be made");
                    self.restore_directory(child, &path, fate);
                }
                Node::File(file) => fs::write(&path, file.after_crash(fate)).expect("it can be written"),
            }
        }
    }
}

impl FileNode {
    fn after_crash(&self, fate: &mut Fate) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for change in &self.unsynced {
            match change {
                Change::SetLen(len) if fate.happens() => bytes.resize(*len as usize, 0),
                Change::SetLen(_) => {}
                Change::Write { position, bytes: written } => {
                    // The size may have grown without the bytes, and sectors are written in any order.
                    let position = *position as usize;
                    let end = position + written.len();
                    if bytes.len() < end && fate.happens() {
                        bytes.resize(end, 0);
                    }
                    let mut at = position;
                    while at < end {
                        let sector_end = (at / SECTOR + 1) * SECTOR;
                        let to = sector_end.min(end);
                        if fate.happens() && bytes.len() >= at {
                            bytes.resize(bytes.len().max(to), 0);
                            bytes[at..to].copy_from_slice(&written[at - position..to - position]);
                        }
                        at = to;
                    }
                }
            }
        }
        bytes
    }
}

/// What becomes of unsynced changes.
pub(super) enum Fate {
    /// None of them last.
    Dropped,
    /// Each may last or not.
    Random(u64),
}

impl Fate {
    fn how_many(&mut self, of: usize) -> usize {
        match self {
            Self::Dropped => 0,
            Self::Random(_) => (self.next() % (of as u64 + 1)) as usize,
        }
    }

    fn happens(&mut self) -> bool {
        match self {
            Self::Dropped => false,
            Self::Random(_) => self.next().is_multiple_of(2),
        }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        let Self::Random(state) = self else { return 0 };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn content(file: &File) -> Vec<u8> {
    let len = file.metadata().expect("the file has a size").len();
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0).expect("the file can be read");
    bytes
}
