//! Making logs.

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use thalweg_protocol::{TopicPartition, Uuid};

use super::open::{has_batches, remove_tree};
use super::threads::on_threads;
use super::{Changes, LOGS_PER_THREAD, LogManager, nothing};
use crate::config::LogConfig;
use crate::error::Error;
use crate::log::{Log, Standing};
use crate::partition_name::directory_name;

impl LogManager {
    /// Makes the log of a new partition. It lasts when this returns.
    ///
    /// # Errors
    /// [`Error::InvalidTopicName`], [`Error::LogExists`], I/O errors.
    pub fn create(
        &self,
        partition: &TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
    ) -> Result<Arc<Log>, Error> {
        let mut made = self.make(slice::from_ref(partition), topic_id, &config)?;
        Ok(made.pop().expect("one was asked for"))
    }

    /// Makes the logs of many new partitions of a topic, several at a time. They last when this returns.
    ///
    /// # Errors
    /// As for [`create`](Self::create), the first one. There may be some of the logs then, but not all.
    pub fn create_all(
        &self,
        partitions: &[TopicPartition],
        topic_id: Uuid,
        config: &LogConfig,
    ) -> Result<(), Error> {
        self.make(partitions, topic_id, config).map(|_| ())
    }

    fn make(
        &self,
        partitions: &[TopicPartition],
        topic_id: Uuid,
        config: &LogConfig,
    ) -> Result<Vec<Arc<Log>>, Error> {
        let environment = self.directory.environment();
        let changes = self.changes.lock();
        let mut places = Vec::with_capacity(partitions.len());
        for partition in partitions {
            places.push((partition, self.free_place(&changes, partition)?));
        }
        for partition in partitions {
            // A line of an earlier log of this name must not be taken for this one's.
            let line = nothing(topic_id, &self.checkpoint);
            self.checkpoint.record_doubly(partition, || Some(line))?;
        }
        self.checkpoint.sync()?;
        let results = on_threads(places.len() / LOGS_PER_THREAD, &places, |(partition, path)| {
            let (checkpoint, standing) = (Some(Arc::clone(&self.checkpoint)), Standing::default());
            let partition = TopicPartition::clone(partition);
            Log::open_with(path, partition, topic_id, config.clone(), standing, environment, checkpoint)
                .map(|(log, _)| log)
        });
        environment.sync_directory(self.directory.path())?;
        let (made, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        let made: Vec<Arc<Log>> = made.into_iter().flatten().collect();
        if let Some(rounds) = self.rounds.get() {
            made.iter().for_each(|log| rounds.attach(log));
        }
        self.logs.write().extend(made.iter().map(|log| (log.partition().clone(), Arc::clone(log))));
        match failed.into_iter().next() {
            Some(Err(error)) => Err(error),
            _ => Ok(made),
        }
    }

    /// Where the log of a new partition is to be. What an earlier attempt that failed has left there is removed.
    fn free_place(&self, changes: &Changes, partition: &TopicPartition) -> Result<PathBuf, Error> {
        let environment = self.directory.environment();
        let path = self.directory.path().join(directory_name(partition)?);
        self.check_open(changes, partition)?;
        let is_taken = self.log(partition).is_some()
            || changes.offline.contains_key(partition)
            // An earlier attempt has left no batches.
            || has_batches(&path, environment)?;
        if is_taken {
            return Err(Error::LogExists { partition: partition.clone() });
        }
        remove_tree(&path, environment)?;
        Ok(path)
    }
}
