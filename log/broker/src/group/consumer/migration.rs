//! Groups that change from one protocol to the other while their members live on (KIP-848, "online migration").

use std::collections::BTreeSet;
use std::sync::Arc;

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::records::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};

use super::join::owned_partitions;
use super::{
    Assignment, Change, Changes, ClassicMember, ConsumerGroup, ConsumerLimits, CurrentAssignment, GroupEpoch,
    MemberMetadata, MemberState, TargetEpoch,
};
use crate::coordinator::Now;
use crate::error::Refusal;
use crate::group::classic::{CONSUMER, ClassicGroup, GroupLimits, Heir, Member};
use crate::group::topic_image::TopicImage;

impl ConsumerGroup {
    /// The group that goes on from where `classic` stands, with its members in the epoch that was their generation and
    /// what they had been assigned as their target.
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND for a group that is not of consumers, has too many members, or whose members cannot be
    /// understood.
    pub(crate) fn succeed(
        classic: &ClassicGroup,
        limits: ConsumerLimits,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) -> Result<Self, Refusal> {
        let refused = |message: &str| {
            let message = format!("the group speaks the classic protocol, and {message}");
            Refusal::new(ErrorCode::GroupIdNotFound, message)
        };
        if classic.protocol_type().is_none_or(|name| *name != CONSUMER) {
            return Err(refused("is not one of consumers"));
        }
        if classic.members().len() > limits.max_members {
            return Err(refused("has more members than one of consumers may have"));
        }
        let mut group = Self::new(classic.id().clone(), limits, now);
        let epoch = GroupEpoch(classic.generation());
        let mut taken = Assignment::new();
        let mut assignments = Vec::with_capacity(classic.members().len());
        for member in classic.members().values() {
            let (metadata, mut assigned) = understood(classic, member, topics)
                .ok_or_else(|| refused("a member cannot be understood"))?;
            // A leader may assign one partition to two members; here it has one owner.
            assigned.retain(|partition| taken.insert(*partition));
            group.put(changes, Change::Member(member.id.clone(), Some(Arc::new(metadata))));
            assignments.push((member.id.clone(), assigned));
        }
        let facts = super::GroupFacts { epoch, metadata_hash: group.metadata_hash(topics) };
        group.put(changes, Change::Group(Some(facts)));
        for (id, assigned) in &assignments {
            group.put(changes, Change::Target(id.clone(), Some(assigned.clone())));
        }
        let target_epoch = TargetEpoch { epoch, computed_ms: now.wall_ms };
        group.put(changes, Change::TargetEpoch(Some(target_epoch)));
        for (id, assigned) in assignments {
            let current = CurrentAssignment {
                epoch,
                previous_epoch: epoch,
                state: MemberState::Stable,
                assigned: assigned.into_iter().map(|partition| (partition, epoch)).collect(),
                revoking: Default::default(),
            };
            group.put(changes, Change::Current(id.clone(), Some(current)));
            group.renew_session(&id, now);
        }
        Ok(group)
    }

    /// Whether nobody in the group speaks the consumer protocol any more, but somebody the classic one.
    pub(crate) fn is_all_classic(&self) -> bool {
        let mut members = self.image.members().values();
        !self.is_empty() && members.all(|member| member.classic.is_some())
    }

    /// The classic group that goes on from where this one stands; its members have what they were to have here.
    pub(crate) fn hand_over(&self, limits: GroupLimits, topics: &TopicImage, now: Now) -> ClassicGroup {
        let mut assignments = self.classic_targets(topics);
        let heirs = self.image.members().iter().filter_map(|(id, member)| {
            let classic = member.classic.clone()?;
            Some(Heir {
                id: id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                session_timeout_ms: classic.session_timeout_ms,
                rebalance_timeout_ms: member.rebalance_timeout_ms,
                protocols: classic.protocols,
                assignment: assignments.remove(id).unwrap_or_default(),
            })
        });
        ClassicGroup::inherit(self.id.clone(), self.image.epoch().0, heirs, limits, now)
    }
}

/// What a member of a classic group says of itself, and what it has been assigned.
fn understood(
    classic: &ClassicGroup,
    member: &Member,
    topics: &TopicImage,
) -> Option<(MemberMetadata, Assignment)> {
    let said = match classic.protocol() {
        Some(protocol) => member.metadata(protocol),
        None => member.protocols.first()?.metadata.clone(),
    };
    let subscription = ConsumerProtocolSubscription::from_bytes(said).ok()?;
    let assigned = if member.assignment.is_empty() {
        Assignment::new()
    } else {
        let assignment = ConsumerProtocolAssignment::from_bytes(member.assignment.clone()).ok()?;
        owned_partitions(&assignment.assigned_partitions, topics)
    };
    let millis = |ms: u64| i32::try_from(ms).unwrap_or(i32::MAX);
    let metadata = MemberMetadata {
        instance_id: member.instance_id.clone(),
        rack_id: subscription.rack_id,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        topics: subscription.topics.into_iter().collect::<BTreeSet<_>>(),
        regex: None,
        rebalance_timeout_ms: millis(member.rebalance_timeout_ms),
        assignor: None,
        classic: Some(ClassicMember {
            session_timeout_ms: millis(member.session_timeout_ms),
            protocols: member.protocols.clone(),
        }),
    };
    Some((metadata, assigned))
}
