//! Reading: by assignment or by subscription, batches or records.

mod assignor;
mod fetched;
mod group_offsets;
mod offsets;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::{Offset, TopicPartition};

use crate::cluster::Cluster;
use crate::config::ConsumerConfig;
use crate::error::Result;

pub use assignor::{Assignment, Assignor, CooperativeSticky, GroupMember, Range, RoundRobin};
pub use fetched::{FetchedBatches, FetchedRecords, Polled, Progress, RebalanceEvent};
pub(crate) use group_offsets::{commit_offsets, fetch_offsets};
pub use offsets::{CommittedOffset, GroupMetadata, ListedOffset, OffsetSpec};

fn unfinished() -> ! {
    panic!("not built yet")
}

/// Reads the partitions it was assigned, or shares those of its topics with the other members of its group.
///
/// It belongs to one thread or task. Fetches are sent ahead of need whenever [`Consumer::poll`] is called; in between
/// the answers arrive by themselves, and a background task sends the group's heartbeats.
///
/// Dropping a consumer without [`Consumer::close`] leaves its group to notice by the session timeout.
pub struct Consumer {
    cluster: Arc<Cluster>,
    config: ConsumerConfig,
    assignors: Vec<Arc<dyn Assignor>>,
}

impl Consumer {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        config: ConsumerConfig,
        assignors: Vec<Arc<dyn Assignor>>,
    ) -> Result<Self> {
        Ok(Self { cluster, config, assignors })
    }

    /// Reads these partitions and no others, outside of any group's membership. Partitions that were assigned before
    /// keep their position and what is buffered of them; the others begin at the group's offset if there is a group,
    /// else by the rule of `offset_reset`. A call of `seek` before the next `poll` begins elsewhere.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) while topics are subscribed to.
    pub fn assign(&mut self, partitions: impl IntoIterator<Item = TopicPartition>) -> Result<()> {
        let _: BTreeSet<_> = partitions.into_iter().collect();
        unfinished()
    }

    /// Shares these topics with the other members of the group. `poll` joins the group and tells what is assigned.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) without a group or after `assign`.
    pub fn subscribe<T: Into<ByteString>>(&mut self, topics: impl IntoIterator<Item = T>) -> Result<()> {
        let _: BTreeSet<ByteString> = topics.into_iter().map(Into::into).collect();
        unfinished()
    }

    /// Leaves the group, or gives up the assignment.
    ///
    /// # Errors
    /// What kept the member from leaving; it is out of the group by the session timeout in any case.
    pub async fn unsubscribe(&mut self) -> Result<()> {
        unfinished()
    }

    /// The partitions that are being read.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        unfinished()
    }

    /// The topics that are subscribed to.
    pub fn subscription(&self) -> Vec<ByteString> {
        unfinished()
    }

    /// Returns what has been fetched since the last call, waiting at most `timeout` for something. Positions move past
    /// what is returned. An empty answer means that nothing came, or that a [`Waker`] woke it.
    ///
    /// Cancelling the future loses nothing.
    ///
    /// # Errors
    /// By kind: `Retry` when the cluster cannot be reached (it is tried again by the next call); `Fenced` when another
    /// member with the same instance id has taken over; `GiveUp` for damaged batches and positions without a rule
    /// ([`Error::NoOffset`](crate::Error::NoOffset),
    /// [`Error::OffsetOutOfRange`](crate::Error::OffsetOutOfRange),
    /// [`Error::DamagedBatch`](crate::Error::DamagedBatch)): seek, and poll again.
    pub async fn poll(&mut self, timeout: Duration) -> Result<Polled> {
        let _ = timeout;
        unfinished()
    }

    /// What makes a `poll` that waits return at once, from any thread.
    pub fn waker(&self) -> Waker {
        unfinished()
    }

    /// Goes on at `offset`; what is buffered of the partition is dropped.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) when the partition is not assigned.
    pub fn seek(&mut self, partition: &TopicPartition, offset: Offset) -> Result<()> {
        let _ = (partition, offset);
        unfinished()
    }

    /// Goes on at the first record there is, or at the end; which offset that is, the next `poll` finds out.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) when the partition is not assigned.
    pub fn seek_to(&mut self, partition: &TopicPartition, spec: OffsetSpec) -> Result<()> {
        let _ = (partition, spec);
        unfinished()
    }

    /// The offset of the next record that `poll` will return; `None` while that has to be found out.
    pub fn position(&self, partition: &TopicPartition) -> Option<Offset> {
        let _ = partition;
        unfinished()
    }

    /// How far a partition has been read and where its end was; `None` before the first fetch of it.
    pub fn progress(&self, partition: &TopicPartition) -> Option<Progress> {
        let _ = partition;
        unfinished()
    }

    /// Stops returning records of these partitions, without giving them up. What is buffered stays buffered.
    pub fn pause<'a>(&mut self, partitions: impl IntoIterator<Item = &'a TopicPartition>) {
        let _: Vec<_> = partitions.into_iter().collect();
        unfinished()
    }

    /// Goes on returning records of these partitions.
    pub fn resume<'a>(&mut self, partitions: impl IntoIterator<Item = &'a TopicPartition>) {
        let _: Vec<_> = partitions.into_iter().collect();
        unfinished()
    }

    /// The partitions that are paused.
    pub fn paused(&self) -> Vec<TopicPartition> {
        unfinished()
    }

    /// Commits the positions of all assigned partitions.
    ///
    /// # Errors
    /// By kind: `Rejoin` when the member is no longer in the group, so that others process the records again.
    pub async fn commit(&mut self) -> Result<()> {
        unfinished()
    }

    /// Commits these offsets.
    ///
    /// # Errors
    /// By kind: `Rejoin` when the member is no longer in the group, so that others process the records again.
    pub async fn commit_offsets(&mut self, offsets: &[(TopicPartition, CommittedOffset)]) -> Result<()> {
        let _ = offsets;
        unfinished()
    }

    /// Commits these offsets without waiting: the request has its place before the next commit; the future tells how
    /// it went, and may be dropped. It is not retried.
    pub fn commit_offsets_later(
        &mut self,
        offsets: &[(TopicPartition, CommittedOffset)],
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let _ = offsets;
        async { unfinished() }
    }

    /// What the group has committed for these partitions; those without a commit are left out. Waits for transactions
    /// that have offsets pending.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) without a group, and whatever keeps the coordinator from answering.
    pub async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<HashMap<TopicPartition, CommittedOffset>> {
        let _ = partitions;
        unfinished()
    }

    /// Who this member is, for [`Producer::send_offsets_to_transaction`](crate::Producer::send_offsets_to_transaction).
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) without a group.
    pub fn group_metadata(&self) -> Result<GroupMetadata> {
        unfinished()
    }

    /// The first offset of each partition.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn beginning_offsets(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Offset>> {
        let _ = partitions;
        unfinished()
    }

    /// The end of each partition: the last stable offset under read committed, else the high watermark.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn end_offsets(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Offset>> {
        let _ = partitions;
        unfinished()
    }

    /// For each partition the first record whose timestamp (ms since 1970) is at least the one given.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn offsets_for_times(
        &self,
        times: &[(TopicPartition, i64)],
    ) -> Result<BTreeMap<TopicPartition, ListedOffset>> {
        let _ = times;
        unfinished()
    }

    /// Leaves the group (a static member stays in it) and ends. With auto-commit, commits first.
    ///
    /// # Errors
    /// What kept the commit or the leave from succeeding; the consumer has ended in any case.
    pub async fn close(self) -> Result<()> {
        let _ = (self.cluster, self.config, self.assignors);
        unfinished()
    }
}

/// Makes a waiting [`Consumer::poll`] return.
#[derive(Clone, Debug)]
pub struct Waker {
    notify: Arc<tokio::sync::Notify>,
}

impl Waker {
    /// Makes the poll that is waiting, or else the next one, return at once.
    pub fn wake(&self) {
        self.notify.notify_one();
    }
}
