//! Opening, creating and closing a log.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use thalweg_protocol::{Offset, TopicPartition, Uuid};

use super::recovery::{Recovered, recover};
use super::{Log, Offsets, Standing, Writer};
use crate::clock::Pace;
use crate::config::LogConfig;
use crate::environment::Environment;
use crate::error::{Corruption, Error};
use crate::producers::UndecidedTransactions;
use crate::synced_to::SyncedTo;

pub(crate) const METADATA_FILE: &str = "partition.metadata";

impl Log {
    /// Opens the log in `directory`, creating it (and its directory) when there is none, and recovers it as
    /// far as `standing` demands. What recovery found is synced when this returns. `topic_id` is that of a new
    /// log; one that exists knows its own.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when bytes below the synced-to offset are damaged or missing: nothing is changed
    /// then. I/O errors.
    pub fn open(
        directory: &Path,
        partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        standing: Standing,
        environment: &Environment,
    ) -> Result<Arc<Self>, Error> {
        let (log, is_new) =
            Self::open_with(directory, partition, topic_id, config, standing, environment, None)?;
        if let Some(parent) = directory.parent().filter(|_| is_new) {
            environment.sync_directory(parent)?;
        }
        Ok(log)
    }

    /// [`open`](Self::open), with the checkpoint that is to be told before anything is removed. Also returns whether the directory
    /// may have been made: its name lasts only once its parent is synced, which is left to the caller.
    pub(crate) fn open_with(
        directory: &Path,
        partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        standing: Standing,
        environment: &Environment,
        checkpoint: Option<Arc<SyncedTo>>,
    ) -> Result<(Arc<Self>, bool), Error> {
        let (topic_id, is_new) = make_directory(directory, topic_id, environment)?;
        let mut recovered = recover(directory, &config, standing, environment)?;
        // Its name is synced with those of its files.
        recovered.unsynced.directory |= is_new;
        let needs_sync = recovered.needs_sync();
        let log =
            Self::new(directory, partition, topic_id, config, standing, environment, checkpoint, recovered);
        if needs_sync {
            log.sync()?;
        }
        Ok((log, is_new))
    }

    #[expect(clippy::too_many_arguments, reason = "private, and all of them are fields")]
    fn new(
        directory: &Path,
        partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        standing: Standing,
        environment: &Environment,
        checkpoint: Option<Arc<SyncedTo>>,
        recovered: Recovered,
    ) -> Arc<Self> {
        let recovered_needs_sync = recovered.needs_sync();
        let Recovered {
            segments,
            producers,
            ended,
            epochs,
            cleaned,
            aborted_sums,
            log_start,
            log_end,
            unsynced,
        } = recovered;
        let high_watermark = standing.high_watermark.max(log_start).min(log_end);
        let mut undecided = UndecidedTransactions::new(producers.open_transactions());
        for ended in &ended {
            undecided.ended(ended.transaction.first_offset, ended.transaction.last_offset);
        }
        undecided.committed(high_watermark);
        let first_undecided = undecided.first().unwrap_or(Offset(i64::MAX));
        let synced = if unsynced.active.is_some() {
            standing.synced_to.unwrap_or(log_start).max(log_start)
        } else {
            log_end
        };
        let finished_at = (standing.is_clean && !recovered_needs_sync).then_some((log_end, 0));
        let pace = Pace::of(&*environment.clock);
        let void_to = checkpoint.as_ref().map(|checkpoint| checkpoint.journal_round()).unwrap_or_default();
        Arc::new_cyclic(|me| Self {
            partition,
            topic_id,
            directory: directory.to_owned(),
            environment: environment.clone(),
            cached_only: environment.cached_only(),
            checkpoint,
            me: me.clone(),
            rounds: OnceLock::new(),
            is_queued: AtomicBool::new(false),
            is_untold: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            config: RwLock::new(Arc::new(config)),
            changing: Mutex::default(),
            syncing: Mutex::new(()),
            writer: Mutex::new(Writer {
                producers,
                epochs,
                cleaned,
                aborted_sums,
                unsynced,
                finished_at,
                pace,
                ..Writer::default()
            }),
            segments: RwLock::new(Arc::new(segments)),
            undecided: Mutex::new(undecided),
            offsets: Offsets {
                log_start: AtomicI64::new(log_start.0),
                log_end: AtomicI64::new(log_end.0),
                synced: AtomicI64::new(synced.0),
                in_files: AtomicI64::new(synced.0),
                last_entry: AtomicU64::new(0),
                void_to: AtomicU64::new(void_to.0),
                high_watermark: AtomicI64::new(high_watermark.0),
                first_undecided: AtomicI64::new(first_undecided.0),
            },
        })
    }

    /// Syncs the log and everything that opening it again would otherwise have to rebuild, and refuses all
    /// further use. Blocks on the disk.
    ///
    /// # Errors
    /// I/O errors; the log is closed nevertheless.
    pub fn close(&self) -> Result<(), Error> {
        // A swap that cannot be finished now is when the log is opened again.
        let _changing = self.changing.lock();
        let _syncing = self.syncing.lock();
        let result = self.finish();
        self.abandon();
        result
    }

    fn finish(&self) -> Result<(), Error> {
        if self.is_finished()? {
            return self.sync_locked().map(|_| ());
        }
        let prepared = self.prepare_to_finish();
        // A full disk keeps nobody from syncing what is there.
        if matches!(&prepared, Err(error) if !error.is_retriable()) {
            return prepared;
        }
        self.sync_locked()?;
        prepared?;
        self.active().sync_indexes(&self.environment)
    }

    /// Whether nothing was appended or cut since the log was opened after an orderly stop: then what that stop has left is good
    /// for the next start, too.
    fn is_finished(&self) -> Result<bool, Error> {
        let writer = self.lock_writer()?;
        Ok(writer.finished_at == Some((self.log_end_offset(), writer.truncations)))
    }

    fn prepare_to_finish(&self) -> Result<(), Error> {
        let mut writer = self.lock_writer()?;
        let active = self.active();
        active.complete(&self.environment)?;
        let aborted = active.aborted_content(&self.environment)?;
        writer.unsynced.aborted_sums |= writer.aborted_sums.enter(active.base_offset(), &aborted);
        let snapshot = self.write_snapshot(&writer, self.log_end_offset())?;
        writer.unsynced.snapshots.push(snapshot);
        writer.unsynced.directory = true;
        Ok(())
    }

    /// Refuses all further use, once the sync or append that is going on has ended.
    pub(crate) fn close_unsynced(&self) {
        let _changing = self.changing.lock();
        let _syncing = self.syncing.lock();
        self.abandon();
    }

    /// For the holder of `syncing`.
    fn abandon(&self) {
        let _writer = self.writer.lock();
        self.is_closed.store(true, Ordering::SeqCst);
        self.segments().iter().for_each(|segment| segment.close());
    }
}

/// Makes the directory of a log, if it is not there, with the file that names its topic. Returns the topic's id, and whether the
/// file's name is to be synced, and the directory's with it.
fn make_directory(
    directory: &Path,
    topic_id: Uuid,
    environment: &Environment,
) -> Result<(Uuid, bool), Error> {
    match read_topic_id(directory, environment)? {
        Some(topic_id) => return Ok((topic_id, false)),
        None if environment.list(directory).is_err_and(|error| error.is_not_found()) => {
            environment.create_directory(directory)?;
        }
        None => {}
    }
    let text = format!("version: 0\ntopic_id: {topic_id}\n");
    environment.replace(&directory.join(METADATA_FILE), text.as_bytes())?;
    Ok((topic_id, true))
}

/// The topic's id as the directory of a log has it.
///
/// # Errors
/// [`Error::Corrupt`] when the file is there but says something else; I/O errors.
pub(crate) fn read_topic_id(directory: &Path, environment: &Environment) -> Result<Option<Uuid>, Error> {
    let path = directory.join(METADATA_FILE);
    let Some(bytes) = environment.read_whole(&path)? else { return Ok(None) };
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let topic_id = text
        .strip_prefix("version: 0\ntopic_id: ")
        .and_then(|rest| rest.strip_suffix('\n'))
        .and_then(Uuid::parse);
    match topic_id {
        Some(topic_id) => Ok(Some(topic_id)),
        None => {
            let corruption = Corruption::Malformed { what: "a version and a topic id are expected" };
            Err(Error::Corrupt { path, position: 0, corruption })
        }
    }
}
