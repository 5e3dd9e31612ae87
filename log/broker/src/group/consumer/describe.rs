//! A consumer group as ConsumerGroupDescribe shows it.

use std::sync::Arc;

use bytestring::ByteString;

use super::{Assignment, Assignor, ConsumerGroup, ConsumerState, GroupEpoch, MemberMetadata};

/// A consumer group as ConsumerGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsumerDescription {
    pub(crate) state: ConsumerState,
    pub(crate) epoch: GroupEpoch,
    pub(crate) target_epoch: GroupEpoch,
    pub(crate) assignor: Assignor,
    pub(crate) members: Vec<DescribedConsumer>,
}

/// A member as ConsumerGroupDescribe shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedConsumer {
    pub(crate) id: ByteString,
    pub(crate) metadata: Arc<MemberMetadata>,
    pub(crate) epoch: GroupEpoch,
    pub(crate) assigned: Assignment,
    pub(crate) target: Assignment,
}

impl ConsumerGroup {
    /// The group as it stands.
    pub(crate) fn describe(&self) -> ConsumerDescription {
        let members = self.image.members().iter().map(|(id, metadata)| {
            let current = self.image.current(id).cloned().unwrap_or_default();
            DescribedConsumer {
                id: id.clone(),
                metadata: Arc::clone(metadata),
                epoch: current.epoch,
                assigned: current.assignment(),
                target: self.image.target(id).cloned().unwrap_or_default(),
            }
        });
        ConsumerDescription {
            state: self.state(),
            epoch: self.image.epoch(),
            target_epoch: self.image.target_epoch(),
            assignor: self.assignor(),
            members: members.collect(),
        }
    }
}
