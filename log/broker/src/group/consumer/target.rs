//! What every member of a group shall have.

use std::collections::BTreeMap;

use bytestring::ByteString;

use super::{Assignor, Change, Changes, ConsumerGroup, TargetEpoch};
use crate::coordinator::Now;
use crate::group::consumer::assignor::{Spec, Subscriber};
use crate::group::topic_image::TopicImage;

/// The start of an FNV-1a hash, and what it multiplies with.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

impl ConsumerGroup {
    /// Computes the targets of the group's epoch, and puts down those that differ from what they were.
    pub(super) fn assign(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) {
        let assigned = {
            let nothing = Default::default();
            let subscribers = self.image.members().iter().map(|(id, member)| {
                let subscriber = Subscriber {
                    topics: self.topic_ids_of(member, topics).into_keys().collect(),
                    held: self.image.target(id).unwrap_or(&nothing),
                    instance_id: member.instance_id.as_deref(),
                };
                (id.as_ref(), subscriber)
            });
            let mut partitions = BTreeMap::new();
            for member in self.image.members().values() {
                partitions.extend(self.topic_ids_of(member, topics));
            }
            self.assignor().assign(&Spec { members: subscribers.collect(), topics: partitions })
        };
        let gone: Vec<ByteString> = {
            let is_gone = |id: &&ByteString| self.image.member(id).is_none();
            self.image.targets().keys().filter(is_gone).cloned().collect()
        };
        for id in gone {
            self.put(changes, Change::Target(id, None));
        }
        for (id, target) in assigned {
            if self.image.target(&id) != Some(&target) {
                self.put(changes, Change::Target(id, Some(target)));
            }
        }
        let target_epoch = TargetEpoch { epoch: self.image.epoch(), computed_ms: now.wall_ms };
        self.put(changes, Change::TargetEpoch(Some(target_epoch)));
    }

    /// The assignor that most members would like best; the one that comes first decides a tie.
    pub(super) fn assignor(&self) -> Assignor {
        let wanted = self.image.members().values().filter_map(|member| member.assignor.as_deref());
        let mut votes: BTreeMap<Assignor, usize> = BTreeMap::new();
        for assignor in wanted.filter_map(Assignor::named) {
            *votes.entry(assignor).or_default() += 1;
        }
        let most = votes.values().copied().max();
        votes
            .into_iter()
            .find(|(_, count)| Some(*count) == most)
            .map_or(Assignor::Uniform, |(found, _)| found)
    }

    /// A hash of the topics that the members read, with their ids and the numbers of their partitions; 0 for none.
    pub(super) fn metadata_hash(&self, topics: &TopicImage) -> i64 {
        topics_hash(self.subscribed_topics(), topics)
    }
}

/// A hash of the topics of these names, with their ids and the numbers of their partitions; 0 for none.
pub(crate) fn topics_hash<'a>(names: impl IntoIterator<Item = &'a ByteString>, topics: &TopicImage) -> i64 {
    let mut hash = 0u64;
    for name in names {
        let Some((id, partitions)) = topics.topic(name) else { continue };
        let bytes = name.as_bytes().iter().chain(&[0]).chain(&id.0);
        let mut one = FNV_OFFSET;
        for byte in bytes.copied().chain(partitions.to_be_bytes()) {
            one = (one ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        // The names come in order, but need not for the sum to be the same.
        hash = hash.wrapping_add(one);
    }
    hash as i64
}
