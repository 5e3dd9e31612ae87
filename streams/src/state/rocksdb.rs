//! State in RocksDB, one database per task directory.
//!
//! The write-ahead log is off, because the changelog is one. So a crash takes back what the memtable held,
//! and nothing else: there is one column family, a write set lies in one memtable as a whole, and memtables
//! are flushed in order. After a crash the database is what it was at some earlier commit, and its
//! checkpoint says at which.
//!
//! A database that was found to be damaged gets a file named `damaged` beside its own, with the reason in it. It is not
//! opened again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, ErrorKind, Options, ReadOptions, WriteBatch,
    WriteBufferManager, WriteOptions,
};

use super::backend::{Backend, BackendError, ByteStrings, Change, Found, Visit, WriteSet};

/// What all databases of a process share: one budget for the block cache and the memtables.
pub(crate) struct RocksShared {
    options: Options,
}

/// How large a memtable grows before it is flushed, unless memory is short, in bytes.
const MEMTABLE_BYTES: usize = 32 << 20;

/// How many files a database keeps open; the rest are opened when they are read.
const OPEN_FILES: i32 = 256;

impl RocksShared {
    /// Caches and memtables that take up to `memory_bytes` together.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        let cache = Cache::new_lru_cache(memory_bytes);
        let memtables =
            WriteBufferManager::new_write_buffer_manager_with_cache(memory_bytes / 2, false, cache.clone());
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        blocks.set_bloom_filter(10.0, false);
        blocks.set_format_version(5);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        options.set_write_buffer_manager(&memtables);
        options.set_write_buffer_size(MEMTABLE_BYTES);
        // Most look-ups that get here are of keys never seen: a filter over the memtable answers them.
        options.set_memtable_prefix_bloom_ratio(0.05);
        options.set_memtable_whole_key_filtering(true);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_max_open_files(OPEN_FILES);
        options.set_max_background_jobs(2);
        // One thread writes, in whole commits: the machinery for many writers only costs.
        options.set_allow_concurrent_memtable_write(false);
        options.set_enable_write_thread_adaptive_yield(false);
        options.set_keep_log_file_num(2);
        Self { options }
    }
}

/// The one column family, which every database has.
const FAMILY: &str = "default";

/// The file that says that the database is damaged.
const DAMAGED: &str = "damaged";

/// A database.
pub(crate) struct RocksBackend {
    db: DB,
    write: WriteOptions,
    directory: PathBuf,
    damage: OnceLock<String>,
    /// Goes after the database, whose place in the order of fields is before.
    in_use: Arc<()>,
}

impl RocksBackend {
    /// Opens the database in `directory`, or makes one; not one that was condemned.
    pub(crate) fn open(directory: &Path, shared: &RocksShared) -> Result<Self, BackendError> {
        check_for_damage(directory)?;
        // Named, so that there is a handle to it, which batched reads want.
        let families = [(FAMILY, shared.options.clone())];
        let db = DB::open_cf_with_opts(&shared.options, directory, families);
        let db = db.map_err(failed)?;
        let mut write = WriteOptions::default();
        write.disable_wal(true);
        let directory = directory.to_path_buf();
        Ok(Self { db, write, directory, damage: OnceLock::new(), in_use: Arc::new(()) })
    }

    /// Is alive as long as the database is open.
    pub(super) fn in_use(&self) -> Weak<()> {
        Arc::downgrade(&self.in_use)
    }
}

/// Tells damage from everything that says nothing about what is stored.
fn failed(error: rocksdb::Error) -> BackendError {
    match error.kind() {
        ErrorKind::Corruption => BackendError::Damaged(error.into_string()),
        _ => BackendError::Failed(error.into_string()),
    }
}

fn check_for_damage(directory: &Path) -> Result<(), BackendError> {
    let path = directory.join(DAMAGED);
    match fs::read(&path) {
        Ok(reason) => Err(BackendError::Damaged(String::from_utf8_lossy(&reason).into_owned())),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        Err(error) => Err(BackendError::Failed(format!("{}: {error}", path.display()))),
    }
}

impl Backend for RocksBackend {
    fn multi_get(&self, keys: &ByteStrings, found: &mut Found) -> Result<(), BackendError> {
        let family = self.db.cf_handle(FAMILY).expect("the database was opened with it");
        for value in self.db.batched_multi_get_cf(&family, keys.iter(), false) {
            found.push(value.map_err(failed)?.as_deref());
        }
        Ok(())
    }

    fn write(&self, changes: &WriteSet) -> Result<(), BackendError> {
        let mut batch =
            WriteBatch::with_capacity_bytes(changes.size_in_bytes() + changes.size_in_bytes() / 4);
        for change in changes.iter() {
            match change {
                Change::Put(key, value) => batch.put(key, value),
                Change::Delete(key) => batch.delete(key),
                Change::DeleteRange(from, to) => batch.delete_range(from, to),
            }
        }
        self.db.write_opt(batch, &self.write).map_err(failed)
    }

    fn flush(&self) -> Result<(), BackendError> {
        self.db.flush().map_err(failed)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), BackendError> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(to);
        let mut iterator = self.db.raw_iterator_opt(options);
        iterator.seek(from);
        while let Some((key, value)) = iterator.item() {
            if visit(key, value).is_break() {
                break;
            }
            iterator.next();
        }
        iterator.status().map_err(failed)
    }

    fn condemn(&self, reason: &str) {
        if self.damage.set(reason.to_owned()).is_err() {
            return;
        }
        // It need not survive a loss of power: then the damage is met again.
        let path = self.directory.join(DAMAGED);
        if let Err(error) = fs::write(&path, reason) {
            tracing::error!(path = %path.display(), %error, "damage could not be noted");
        }
    }

    fn damage(&self) -> Option<&str> {
        self.damage.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::Offset;
    use thalweg_protocol::record::Record as RawRecord;

    use super::*;
    use crate::program::TaskId;
    use crate::state::{Checkpoint, StoreSpec, StoredValues, TaskState};

    #[test]
    fn is_a_map_of_bytes() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let backend = RocksBackend::open(directory.path(), &RocksShared::new(8 << 20)).expect("opened");
        crate::state::backend::checks::a_map_of_bytes(&backend);
    }

    /// Copies what a kill at this moment would leave: the files, without what lies in memory.
    fn crash(from: &Path, to: &Path) {
        for entry in std::fs::read_dir(from).expect("readable") {
            let entry = entry.expect("readable");
            if entry.file_name() != "LOCK" {
                std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
            }
        }
    }

    #[test]
    fn a_lost_memtable_leaves_an_earlier_commit_as_a_whole() {
        let shared = RocksShared::new(8 << 20);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let task = TaskId { subtopology: 0, partition: 0 };
        let specs = [StoreSpec::key_value("counts"), StoreSpec::window("windows", 1000)];
        let backend = Arc::new(RocksBackend::open(directory.path(), &shared).expect("opened"));
        let mut state = TaskState::open(task, backend, &specs).expect("opened");
        let mut stores = state.stores(0);
        for sequence in 1..=5_u64 {
            for store in &mut stores {
                for key in 0..100_u32 {
                    let key = format!("key {key:03} window 000000");
                    store.put(key.as_bytes(), sequence as i64, &sequence.to_be_bytes());
                }
            }
            let checkpoint = Checkpoint { sequence, ..Checkpoint::default() };
            state.commit(&mut stores, checkpoint).expect("committed");
            if sequence == 3 {
                state.flush().expect("flushed");
            }
        }
        let record = RawRecord {
            offset: Offset(0),
            timestamp: 0,
            key: Some(b"restored"),
            value: Some(b"!"),
            headers: Default::default(),
        };
        state.restore(0, [record].into_iter(), 1).expect("restored");

        let after = tempfile::tempdir().expect("a temporary directory");
        crash(directory.path(), after.path());
        let backend = Arc::new(RocksBackend::open(after.path(), &shared).expect("opened after a crash"));
        let state = TaskState::open(task, backend, &specs).expect("opened");
        assert_eq!(state.checkpoint().sequence, 3);
        assert_eq!(state.checkpoint().changelog("counts"), 0);
        let mut values = StoredValues::new();
        for store in &mut state.stores(0) {
            let keys: Vec<_> = (0..100).map(|key| format!("key {key:03} window 000000")).collect();
            store.multi_get(keys.iter().map(String::as_bytes), &mut values).expect("readable");
            for at in 0..keys.len() {
                let found = values.get(at).expect("it was flushed");
                assert_eq!((found.timestamp, found.value), (3, &3_u64.to_be_bytes()[..]));
            }
        }
    }
}
