//! Deletes the records of repartition topics that have been processed: nobody reads them again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use thalweg_protocol::{Offset, TopicPartition};

use super::shared::Shared;
use super::task::Task;

/// Remembers what a thread has had deleted.
pub(super) struct Purge {
    purged_at: Instant,
    purged: BTreeMap<TopicPartition, i64>,
}

/// How often records are deleted; as Kafka Streams' `repartition.purge.interval.ms`.
const PURGE_EVERY: Duration = Duration::from_secs(30);

impl Purge {
    pub(super) fn new() -> Self {
        Self { purged_at: Instant::now(), purged: BTreeMap::new() }
    }

    /// Has deleted, now and then, what lies before the positions of `tasks`. To be called right after a
    /// commit, when those are committed. Nothing waits for it, and what fails is deleted the next time.
    pub(super) fn run<'t>(&mut self, shared: &Shared, tasks: impl Iterator<Item = &'t Task>) {
        if self.purged_at.elapsed() < PURGE_EVERY {
            return;
        }
        self.purged_at = Instant::now();
        let mut before = Vec::new();
        for task in tasks {
            for (input, partition) in task.sources() {
                let position = task.inputs().position(input);
                if shared.plan.is_repartition(&partition.topic)
                    && self.purged.insert(partition.clone(), position) != Some(position)
                {
                    before.push((partition.clone(), Offset(position)));
                }
            }
        }
        if before.is_empty() {
            return;
        }
        let admin = shared.client.admin();
        shared.handle.spawn(async move {
            if let Err(error) = admin.delete_records(&before).await {
                tracing::warn!(%error, "processed records of repartition topics are not deleted yet");
            }
        });
    }
}
