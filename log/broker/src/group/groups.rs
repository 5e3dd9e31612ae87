//! The groups of one partition of `__consumer_offsets`, as its log tells them.

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::{Offset, ProducerId};

use super::classic::{CONSUMER, ClassicGroup, GroupLimits, GroupMetadata, GroupState};
use super::consumer::{ConsumerGroup, ConsumerLimits, Image};
use super::membership::{GroupType, Membership};
use super::offsets::Offsets;
use super::records::GroupRecord;
use super::share::ShareGroup;
use super::topic_image::TopicImage;
use crate::coordinator::Now;

/// The protocol type of share groups.
const SHARE: &str = "share";

/// A group and its offsets.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) membership: Membership,
    pub(crate) offsets: Offsets,
    /// The deadline that is noted for it, in monotonic ms.
    pub(crate) scheduled: Option<u64>,
    /// The last record about its members: nobody is told of what is not committed yet.
    pub(crate) last_record: Option<Offset>,
}

/// A group as ListGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) id: ByteString,
    pub(crate) protocol_type: ByteString,
    pub(crate) group_type: GroupType,
    pub(crate) state: &'static str,
}

/// A group as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) state: GroupState,
    pub(crate) protocol_type: ByteString,
    pub(crate) protocol: ByteString,
    pub(crate) members: Vec<DescribedMember>,
}

/// A member as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedMember {
    pub(crate) id: ByteString,
    pub(crate) instance_id: Option<ByteString>,
    pub(crate) client_id: ByteString,
    pub(crate) client_host: ByteString,
    pub(crate) metadata: Bytes,
    pub(crate) assignment: Bytes,
}

/// All groups of one partition.
#[derive(Debug)]
pub(crate) struct Groups {
    limits: GroupLimits,
    groups: HashMap<ByteString, Group>,
    /// Which groups each producer's open transaction has offsets of.
    open: HashMap<ProducerId, BTreeSet<ByteString>>,
}

impl Groups {
    /// No groups.
    pub(crate) fn new(limits: GroupLimits) -> Self {
        Self { limits, groups: HashMap::new(), open: HashMap::new() }
    }

    /// The group of this id.
    pub(crate) fn get(&self, id: &str) -> Option<&Group> {
        self.groups.get(id)
    }

    /// The group of this id.
    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Group> {
        self.groups.get_mut(id)
    }

    /// The group of this id, made if there is none.
    pub(crate) fn get_or_create(&mut self, id: &ByteString, now: Now) -> &mut Group {
        let limits = self.limits;
        self.groups.entry(id.clone()).or_insert_with(|| Group {
            membership: Membership::Classic(ClassicGroup::new(id.clone(), limits, now)),
            offsets: Offsets::default(),
            scheduled: None,
            last_record: None,
        })
    }

    /// The ids of all groups, in order.
    pub(crate) fn ids(&self) -> Vec<ByteString> {
        let mut ids: Vec<_> = self.groups.keys().cloned().collect();
        ids.sort_unstable();
        ids
    }

    /// Removes a group.
    pub(crate) fn remove(&mut self, id: &str, now: Now) {
        if let Some(mut group) = self.groups.remove(id) {
            group.membership.bury(now);
        }
    }

    /// Removes a group that has never come to anything, such as one whose first member was refused.
    pub(crate) fn remove_if_unused(&mut self, id: &ByteString) {
        if let MapEntry::Occupied(entry) = self.groups.entry(id.clone())
            && entry.get().is_unused()
            && !entry.get().membership.is_written()
        {
            entry.remove();
        }
    }

    /// Notes that `producer`'s open transaction has offsets of group `id`.
    pub(crate) fn note_open(&mut self, producer: ProducerId, id: &ByteString) {
        self.open.entry(producer).or_default().insert(id.clone());
    }

    /// Ends `producer`'s transaction.
    pub(crate) fn complete(&mut self, producer: ProducerId, commits: bool) {
        for id in self.open.remove(&producer).unwrap_or_default() {
            if let Some(group) = self.groups.get_mut(&id) {
                group.offsets.complete(producer, commits);
            }
        }
    }

    /// Every group as ListGroups shows it.
    pub(crate) fn list(&self) -> Vec<Listing> {
        let listing = |(id, group): (&ByteString, &Group)| Listing {
            id: id.clone(),
            protocol_type: match &group.membership {
                Membership::Classic(group) => group.protocol_type().cloned().unwrap_or_default(),
                Membership::Consumer(_) => ByteString::from_static(CONSUMER),
                Membership::Share(_) => ByteString::from_static(SHARE),
            },
            group_type: group.membership.group_type(),
            state: group.membership.state_name(),
        };
        self.groups.iter().map(listing).collect()
    }
}

impl Group {
    /// Whether nobody is in the group and no offset is kept.
    pub(crate) fn is_unused(&self) -> bool {
        self.membership.is_deserted() && self.offsets.is_empty()
    }

    /// The group as DescribeGroups shows it; `None` if it does not speak the classic protocol. What members say of
    /// themselves is only told while it is what they were assigned by.
    pub(crate) fn describe(&self) -> Option<Description> {
        let group = self.membership.classic()?;
        let is_stable = group.state() == GroupState::Stable;
        let protocol = group.protocol().filter(|_| is_stable).cloned().unwrap_or_default();
        let members = group.members().values().map(|member| DescribedMember {
            id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: if is_stable { member.metadata(&protocol) } else { Bytes::new() },
            assignment: if is_stable { member.assignment.clone() } else { Bytes::new() },
        });
        Some(Description {
            state: group.state(),
            protocol_type: group.protocol_type().cloned().unwrap_or_default(),
            members: members.collect(),
            protocol,
        })
    }
}

/// Groups while the log is replayed.
#[derive(Debug)]
pub(crate) struct Replay {
    groups: Groups,
    metadata: HashMap<ByteString, GroupMetadata>,
    images: HashMap<ByteString, Image>,
    share_images: HashMap<ByteString, Image>,
    consumer_limits: ConsumerLimits,
    now: Now,
}

impl Replay {
    /// Begins at the log's start.
    pub(crate) fn new(limits: GroupLimits, consumer_limits: ConsumerLimits, now: Now) -> Self {
        Self {
            groups: Groups::new(limits),
            metadata: HashMap::new(),
            images: HashMap::new(),
            share_images: HashMap::new(),
            consumer_limits,
            now,
        }
    }

    /// Takes in the next record; with a producer, one that waits for the end of that one's transaction.
    pub(crate) fn record(
        &mut self,
        record: GroupRecord,
        record_offset: Offset,
        producer: Option<ProducerId>,
    ) {
        match record {
            GroupRecord::Group { group, metadata: Some(metadata) } => {
                self.metadata.insert(group, metadata);
            }
            GroupRecord::Group { group, metadata: None } => {
                self.metadata.remove(&group);
            }
            GroupRecord::Consumer { group, change } => {
                self.images.entry(group).or_default().apply(change);
            }
            GroupRecord::Share { group, change } => {
                self.share_images.entry(group).or_default().apply(change);
            }
            GroupRecord::Offset { group, topic, partition, committed: Some(offset) } => match producer {
                Some(producer) => {
                    self.groups.note_open(producer, &group);
                    let offsets = &mut self.groups.get_or_create(&group, self.now).offsets;
                    offsets.commit_pending(producer, &topic, partition, offset);
                }
                None => {
                    self.groups.get_or_create(&group, self.now).offsets.commit(&topic, partition, offset);
                }
            },
            GroupRecord::Offset { group, topic, partition, committed: None } => {
                if let Some(group) = self.groups.get_mut(&group) {
                    group.offsets.remove(&topic, partition, record_offset);
                }
            }
        }
    }

    /// Takes in the end of a producer's transaction.
    pub(crate) fn marker(&mut self, producer: ProducerId, commits: bool) {
        self.groups.complete(producer, commits);
    }

    /// The groups at the log's end. `share_limits` tells the limits of a share group.
    pub(crate) fn finish(
        mut self,
        topics: &TopicImage,
        share_limits: impl Fn(&ByteString) -> ConsumerLimits,
    ) -> Groups {
        let limits = self.groups.limits;
        for (id, metadata) in self.metadata {
            self.groups.get_or_create(&id, self.now).membership =
                Membership::Classic(ClassicGroup::restore(metadata, limits, self.now));
        }
        for (id, image) in self.images {
            if !image.is_blank() {
                let limits = self.consumer_limits.of_group(topics, &id);
                let group = ConsumerGroup::restore(id.clone(), image, limits, self.now);
                self.groups.get_or_create(&id, self.now).membership = Membership::Consumer(group);
            }
        }
        for (id, image) in self.share_images {
            if !image.is_blank() {
                let group = ShareGroup::restore(id.clone(), image, share_limits(&id), self.now);
                self.groups.get_or_create(&id, self.now).membership = Membership::Share(group);
            }
        }
        self.groups.groups.retain(|id, group| {
            let is_open = self.groups.open.values().any(|groups| groups.contains(id));
            is_open || !group.is_unused() || group.membership.is_written()
        });
        self.groups
    }
}
