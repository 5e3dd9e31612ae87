//! The offsets that a group has committed, and those that wait for the end of a transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytestring::ByteString;
use thalweg_protocol::{LeaderEpoch, Offset, ProducerId, Uuid};

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommittedOffset {
    /// The next offset to read.
    pub(crate) offset: Offset,
    /// The leader epoch of the last record read, −1 if the client did not say.
    pub(crate) leader_epoch: LeaderEpoch,
    /// What the client wants to be told again.
    pub(crate) metadata: ByteString,
    /// When it was committed, in wall-clock ms.
    pub(crate) commit_timestamp_ms: i64,
    /// When it expires, in wall-clock ms, if the client said so (OffsetCommit v2–4).
    pub(crate) expire_timestamp_ms: Option<i64>,
    /// The topic's id at the time; zero when it is not known.
    pub(crate) topic_id: Uuid,
    /// Where the commit stands in `__consumer_offsets`: the later one counts.
    pub(crate) record_offset: Offset,
}

/// What a group is told about one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FetchedOffset<'a> {
    /// The committed offset.
    Committed(&'a CommittedOffset),
    /// There is none.
    Missing,
    /// A transaction that may change it is not decided yet (KIP-447).
    Unstable,
}

type ByPartition = BTreeMap<ByteString, BTreeMap<i32, CommittedOffset>>;

/// All offsets of one group.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    committed: ByPartition,
    /// What each producer's open transaction will commit.
    pending: HashMap<ProducerId, ByPartition>,
}

impl Offsets {
    /// Whether nothing is committed and nothing is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.committed.is_empty() && self.pending.is_empty()
    }

    /// Whether a transaction with offsets of this group is open.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes in a commit, unless a later one is here already.
    pub(crate) fn commit(&mut self, topic: &ByteString, partition: i32, offset: CommittedOffset) {
        put(&mut self.committed, topic, partition, offset);
    }

    /// Takes in a commit that counts once `producer`'s transaction commits.
    pub(crate) fn commit_pending(
        &mut self,
        producer: ProducerId,
        topic: &ByteString,
        partition: i32,
        offset: CommittedOffset,
    ) {
        put(self.pending.entry(producer).or_default(), topic, partition, offset);
    }

    /// Ends `producer`'s transaction: what was pending counts, or is dropped.
    pub(crate) fn complete(&mut self, producer: ProducerId, commits: bool) {
        let Some(pending) = self.pending.remove(&producer) else { return };
        if commits {
            for (topic, partitions) in pending {
                for (partition, offset) in partitions {
                    put(&mut self.committed, &topic, partition, offset);
                }
            }
        }
    }

    /// Forgets a commit, unless it is later than `record_offset`, where the tombstone stands.
    pub(crate) fn remove(&mut self, topic: &str, partition: i32, record_offset: Offset) {
        let Some(partitions) = self.committed.get_mut(topic) else { return };
        if partitions.get(&partition).is_some_and(|offset| offset.record_offset < record_offset) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                self.committed.remove(topic);
            }
        }
    }

    /// The offset of one partition. With `require_stable`, an open transaction that would change it hides it.
    pub(crate) fn fetch(&self, topic: &str, partition: i32, require_stable: bool) -> FetchedOffset<'_> {
        if require_stable && self.is_pending(topic, partition) {
            return FetchedOffset::Unstable;
        }
        match self.committed.get(topic).and_then(|partitions| partitions.get(&partition)) {
            Some(offset) => FetchedOffset::Committed(offset),
            None => FetchedOffset::Missing,
        }
    }

    fn is_pending(&self, topic: &str, partition: i32) -> bool {
        self.pending
            .values()
            .any(|p| p.get(topic).is_some_and(|partitions| partitions.contains_key(&partition)))
    }

    /// How many partitions have a committed offset.
    pub(crate) fn len(&self) -> usize {
        self.committed.values().map(BTreeMap::len).sum()
    }

    /// The partitions that have a committed offset, by topic; with `with_pending` those, too, that will have
    /// one if a transaction commits.
    pub(crate) fn known_partitions(&self, with_pending: bool) -> Vec<(ByteString, Vec<i32>)> {
        let pending = self.pending.values().filter(|_| with_pending);
        let mut known: BTreeMap<&ByteString, BTreeSet<i32>> = BTreeMap::new();
        for (topic, partitions) in std::iter::once(&self.committed).chain(pending).flatten() {
            known.entry(topic).or_default().extend(partitions.keys());
        }
        known.into_iter().map(|(topic, at)| (topic.clone(), at.into_iter().collect())).collect()
    }

    /// The partitions whose offset is older than `retention_ms` at wall-clock ms `now_ms`. Age counts
    /// from `idle_since_ms`, when the group's last member left, if that is later than the commit.
    pub(crate) fn expired(
        &self,
        now_ms: i64,
        retention_ms: i64,
        idle_since_ms: Option<i64>,
    ) -> Vec<(ByteString, i32)> {
        let is_expired = |offset: &CommittedOffset| match offset.expire_timestamp_ms {
            Some(expires_ms) => expires_ms <= now_ms,
            None => {
                let since_ms = idle_since_ms.unwrap_or(i64::MIN).max(offset.commit_timestamp_ms);
                since_ms.saturating_add(retention_ms) <= now_ms
            }
        };
        let mut expired = Vec::new();
        for (topic, partitions) in &self.committed {
            for (partition, offset) in partitions {
                if is_expired(offset) && !self.is_pending(topic, *partition) {
                    expired.push((topic.clone(), *partition));
                }
            }
        }
        expired
    }
}

fn put(offsets: &mut ByPartition, topic: &ByteString, partition: i32, offset: CommittedOffset) {
    let is_newer = |old: &CommittedOffset| old.record_offset <= offset.record_offset;
    match offsets.get_mut(topic) {
        Some(partitions) => {
            if partitions.get(&partition).is_none_or(is_newer) {
                partitions.insert(partition, offset);
            }
        }
        None => {
            offsets.insert(topic.clone(), BTreeMap::from([(partition, offset)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: i64, record_offset: i64) -> CommittedOffset {
        CommittedOffset {
            offset: Offset(offset),
            leader_epoch: LeaderEpoch(3),
            metadata: ByteString::from_static("m"),
            commit_timestamp_ms: 1_000,
            expire_timestamp_ms: None,
            topic_id: Uuid::ZERO,
            record_offset: Offset(record_offset),
        }
    }

    fn fetched(offsets: &Offsets, require_stable: bool) -> Option<i64> {
        match offsets.fetch("t", 0, require_stable) {
            FetchedOffset::Committed(committed) => Some(committed.offset.0),
            FetchedOffset::Missing => None,
            FetchedOffset::Unstable => Some(-99),
        }
    }

    #[test]
    fn the_later_record_counts_whatever_the_order_of_arrival() {
        let topic = ByteString::from_static("t");
        let mut offsets = Offsets::default();
        offsets.commit(&topic, 0, at(20, 6));
        offsets.commit(&topic, 0, at(10, 5));
        assert_eq!(fetched(&offsets, true), Some(20));
        offsets.remove("t", 0, Offset(4));
        assert_eq!(fetched(&offsets, true), Some(20), "an older tombstone takes nothing away");
        offsets.remove("t", 0, Offset(7));
        assert!(offsets.is_empty());
    }

    #[test]
    fn a_pending_offset_counts_when_its_transaction_commits() {
        let topic = ByteString::from_static("t");
        let (one, two) = (ProducerId(1), ProducerId(2));
        let mut offsets = Offsets::default();
        offsets.commit(&topic, 0, at(10, 0));
        offsets.commit_pending(one, &topic, 0, at(20, 1));
        offsets.commit_pending(two, &topic, 0, at(30, 2));
        assert_eq!((fetched(&offsets, false), fetched(&offsets, true)), (Some(10), Some(-99)));
        offsets.complete(one, false);
        assert_eq!((fetched(&offsets, false), fetched(&offsets, true)), (Some(10), Some(-99)));
        offsets.complete(two, true);
        assert_eq!((fetched(&offsets, false), fetched(&offsets, true)), (Some(30), Some(30)));
        offsets.commit_pending(one, &topic, 0, at(40, 3));
        offsets.commit(&topic, 0, at(50, 4));
        offsets.complete(one, true);
        assert_eq!(fetched(&offsets, true), Some(50), "a plain commit after the transactional one wins");
    }

    #[test]
    fn offsets_expire_by_age_of_commit_or_idleness() {
        let topic = ByteString::from_static("t");
        let mut offsets = Offsets::default();
        offsets.commit(&topic, 0, at(10, 0));
        offsets.commit(&topic, 1, CommittedOffset { expire_timestamp_ms: Some(1_200), ..at(10, 1) });
        let expired =
            |now_ms, idle| offsets.expired(now_ms, 500, idle).into_iter().map(|(_, p)| p).collect::<Vec<_>>();
        for (now_ms, idle_since_ms, partitions) in [
            (1_199, None, vec![]),
            (1_200, None, vec![1]),
            (1_500, None, vec![0, 1]),
            (1_500, Some(1_100), vec![1]),
            (1_600, Some(1_100), vec![0, 1]),
        ] {
            assert_eq!(
                expired(now_ms, idle_since_ms),
                partitions,
                "at {now_ms}, idle since {idle_since_ms:?}"
            );
        }
    }
}
