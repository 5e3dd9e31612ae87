//! From where to where partitions reach, and which offset a place in them is.

use std::collections::BTreeMap;

use thalweg_client::{Admin, Isolation, ListedOffset, OffsetSpec};
use thalweg_protocol::TopicPartition;

use crate::offset_range::Place;

/// Where partitions began and ended when they were asked.
pub struct Extents {
    admin: Admin,
    isolation: Isolation,
    /// First offset and end; `None` of a partition that did not answer.
    known: BTreeMap<TopicPartition, (Option<i64>, Option<i64>)>,
}

impl Extents {
    /// Asks for those of `partitions`. A reader with this isolation reads to these ends.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn of(
        admin: Admin,
        partitions: &[TopicPartition],
        isolation: Isolation,
    ) -> anyhow::Result<Self> {
        let starts = admin.list_offsets(&ask(partitions, OffsetSpec::Earliest), isolation).await?;
        let ends = admin.list_offsets(&ask(partitions, OffsetSpec::Latest), isolation).await?;
        let extent = |at: &TopicPartition| (at.clone(), (offset_in(&starts, at), offset_in(&ends, at)));
        let known = partitions.iter().map(extent).collect();
        Ok(Self { admin, isolation, known })
    }

    /// The first offset, if the partition answered.
    pub fn start(&self, partition: &TopicPartition) -> Option<i64> {
        self.known.get(partition)?.0
    }

    /// Where it ends, if the partition answered.
    pub fn end(&self, partition: &TopicPartition) -> Option<i64> {
        self.known.get(partition)?.1
    }

    /// The offset of `place` in each partition. Places before the start or behind the end are not moved, but for those that
    /// are counted from the end: they go no further than to the start.
    ///
    /// # Errors
    /// Whatever keeps the cluster from looking up a time.
    pub async fn resolve(&self, place: Place) -> anyhow::Result<BTreeMap<TopicPartition, i64>> {
        let timed = match place {
            Place::Time(time) => {
                let partitions: Vec<_> = self.known.keys().cloned().collect();
                self.admin
                    .list_offsets(&ask(&partitions, OffsetSpec::Timestamp(time)), self.isolation)
                    .await?
            }
            _ => BTreeMap::new(),
        };
        let offset = |(at, (start, end)): (&TopicPartition, &(Option<i64>, Option<i64>))| {
            let (start, end) = (start.unwrap_or(0), end.unwrap_or(0));
            let offset = match place {
                Place::Start => start,
                Place::End => end,
                Place::Offset(offset) => offset,
                Place::BeforeEnd(records) => end.saturating_sub(records).max(start),
                Place::AfterStart(records) => start.saturating_add(records),
                Place::Time(_) => offset_in(&timed, at).unwrap_or(end),
            };
            (at.clone(), offset)
        };
        Ok(self.known.iter().map(offset).collect())
    }
}

fn ask(partitions: &[TopicPartition], spec: OffsetSpec) -> Vec<(TopicPartition, OffsetSpec)> {
    partitions.iter().map(|partition| (partition.clone(), spec)).collect()
}

fn offset_in(offsets: &BTreeMap<TopicPartition, ListedOffset>, at: &TopicPartition) -> Option<i64> {
    offsets.get(at).and_then(|listed| listed.offset).map(|offset| offset.0)
}
