//! What the journal says of a consumer group, and nothing else.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytestring::ByteString;

use super::{
    Assignment, CurrentAssignment, GroupEpoch, MemberMetadata, ResolvedRegex, TargetEpoch, TopicIdPartition,
};

/// One record about a group: what it says of its key from now on, or that there is nothing to say any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The group itself.
    Group(Option<GroupFacts>),
    /// What a member says of itself.
    Member(ByteString, Option<Arc<MemberMetadata>>),
    /// The epoch that the targets belong to.
    TargetEpoch(Option<TargetEpoch>),
    /// What a member shall have.
    Target(ByteString, Option<Assignment>),
    /// What a member has.
    Current(ByteString, Option<CurrentAssignment>),
    /// The topics of a pattern.
    Regex(ByteString, Option<ResolvedRegex>),
}

/// The group itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupFacts {
    pub(crate) epoch: GroupEpoch,
    /// Of the topics that the members read: another one means that a topic has appeared, grown or gone.
    pub(crate) metadata_hash: i64,
}

/// What the journal says of a group. It changes by [`Image::apply`] alone, so that a replay makes the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    facts: Option<GroupFacts>,
    members: BTreeMap<ByteString, Arc<MemberMetadata>>,
    target_epoch: Option<TargetEpoch>,
    targets: BTreeMap<ByteString, Assignment>,
    current: BTreeMap<ByteString, CurrentAssignment>,
    regexes: BTreeMap<ByteString, ResolvedRegex>,
    /// Who has each partition, or has been told to give it up. It follows from `current`.
    owners: HashMap<TopicIdPartition, ByteString>,
    /// Member id by instance id. It follows from `members`.
    static_members: BTreeMap<ByteString, ByteString>,
}

impl Image {
    /// Takes a record in. Returns the record that takes it back.
    pub(crate) fn apply(&mut self, change: Change) -> Change {
        match change {
            Change::Group(facts) => Change::Group(std::mem::replace(&mut self.facts, facts)),
            Change::TargetEpoch(epoch) => {
                Change::TargetEpoch(std::mem::replace(&mut self.target_epoch, epoch))
            }
            Change::Member(id, metadata) => {
                let old = put(&mut self.members, &id, metadata.clone());
                self.index_instance(&id, old.as_deref(), metadata.as_deref());
                Change::Member(id, old)
            }
            Change::Target(id, target) => {
                let old = put(&mut self.targets, &id, target);
                Change::Target(id, old)
            }
            Change::Current(id, current) => {
                let old = put(&mut self.current, &id, current);
                self.index_owner(&id, old.as_ref());
                Change::Current(id, old)
            }
            Change::Regex(regex, resolved) => {
                let old = put(&mut self.regexes, &regex, resolved);
                Change::Regex(regex, old)
            }
        }
    }

    fn index_instance(
        &mut self,
        id: &ByteString,
        old: Option<&MemberMetadata>,
        new: Option<&MemberMetadata>,
    ) {
        let old = old.and_then(|metadata| metadata.instance_id.as_ref());
        let new = new.and_then(|metadata| metadata.instance_id.as_ref());
        if let Some(instance) = old
            && self.static_members.get(instance) == Some(id)
        {
            self.static_members.remove(instance);
        }
        if let Some(instance) = new {
            self.static_members.insert(instance.clone(), id.clone());
        }
    }

    /// A log that has been compacted may lack the record in which the former owner gave a partition up; so the later
    /// record counts.
    fn index_owner(&mut self, id: &ByteString, old: Option<&CurrentAssignment>) {
        for partition in old.into_iter().flat_map(|old| old.assigned.keys().chain(old.revoking.keys())) {
            if self.owners.get(partition) == Some(id) {
                self.owners.remove(partition);
            }
        }
        let new = self.current.get(id);
        for partition in new.into_iter().flat_map(|new| new.assigned.keys().chain(new.revoking.keys())) {
            self.owners.insert(*partition, id.clone());
        }
    }

    /// Whether nothing has been written of the group.
    pub(crate) fn is_blank(&self) -> bool {
        self.facts.is_none()
    }

    /// How many times the members, or what they read, have changed.
    pub(crate) fn epoch(&self) -> GroupEpoch {
        self.facts.unwrap_or_default().epoch
    }

    /// The hash of the topics that the members read, as they stood in this epoch.
    pub(crate) fn metadata_hash(&self) -> i64 {
        self.facts.unwrap_or_default().metadata_hash
    }

    /// The epoch that the targets belong to.
    pub(crate) fn target_epoch(&self) -> GroupEpoch {
        self.target_epoch.map_or(GroupEpoch::JOINING, |target| target.epoch)
    }

    /// What the members say of themselves, by their ids.
    pub(crate) fn members(&self) -> &BTreeMap<ByteString, Arc<MemberMetadata>> {
        &self.members
    }

    /// What a member says of itself.
    pub(crate) fn member(&self, id: &str) -> Option<&Arc<MemberMetadata>> {
        self.members.get(id)
    }

    /// The member that has this instance id.
    pub(crate) fn static_member(&self, instance_id: &str) -> Option<&ByteString> {
        self.static_members.get(instance_id)
    }

    /// What each member shall have.
    pub(crate) fn targets(&self) -> &BTreeMap<ByteString, Assignment> {
        &self.targets
    }

    /// What a member shall have.
    pub(crate) fn target(&self, id: &str) -> Option<&Assignment> {
        self.targets.get(id)
    }

    /// What a member has; `None` for one that has just come.
    pub(crate) fn current(&self, id: &str) -> Option<&CurrentAssignment> {
        self.current.get(id)
    }

    /// Who has a partition, or has been told to give it up.
    pub(crate) fn owner(&self, partition: TopicIdPartition) -> Option<&ByteString> {
        self.owners.get(&partition)
    }

    /// The patterns and their topics.
    pub(crate) fn regexes(&self) -> &BTreeMap<ByteString, ResolvedRegex> {
        &self.regexes
    }

    /// The records that end the group.
    pub(crate) fn tombstones(&self) -> Vec<Change> {
        let mut tombstones = Vec::new();
        tombstones.extend(self.current.keys().map(|id| Change::Current(id.clone(), None)));
        tombstones.extend(self.targets.keys().map(|id| Change::Target(id.clone(), None)));
        tombstones.extend(self.target_epoch.map(|_| Change::TargetEpoch(None)));
        tombstones.extend(self.members.keys().map(|id| Change::Member(id.clone(), None)));
        tombstones.extend(self.regexes.keys().map(|regex| Change::Regex(regex.clone(), None)));
        tombstones.extend(self.facts.map(|_| Change::Group(None)));
        tombstones
    }
}

/// Puts `value` in the place of what `key` had. Returns that.
fn put<V>(map: &mut BTreeMap<ByteString, V>, key: &ByteString, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key.clone(), value),
        None => map.remove(key),
    }
}
