//! SyncGroup and Heartbeat of members that speak the classic protocol in a group that is assigned to by the coordinator.

use std::collections::BTreeMap;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::records::{ConsumerProtocolAssignment, TopicPartition};

use super::{Assignment, ClassicMember, ConsumerGroup, CurrentAssignment, GroupEpoch, MemberState, by_topic};
use crate::coordinator::Now;
use crate::group::classic::{CONSUMER, Protocol, Sync, SyncAnswer};
use crate::group::topic_image::TopicImage;

impl ConsumerGroup {
    /// Takes a SyncGroup: the member gets what it has been assigned.
    pub(crate) fn sync_classic(&mut self, request: &Sync, topics: &TopicImage, now: Now) -> SyncAnswer {
        match self.assigned_classic(request, topics, now) {
            Ok(answer) => answer,
            Err(code) => SyncAnswer::error(code),
        }
    }

    fn assigned_classic(
        &mut self,
        request: &Sync,
        topics: &TopicImage,
        now: Now,
    ) -> Result<SyncAnswer, ErrorCode> {
        let member_id = &request.member_id;
        let (member, current) =
            self.classic_member(member_id, request.instance_id.as_deref(), request.generation)?;
        let protocol = member.protocols.first().map(|protocol| protocol.name.clone());
        let differs = request.protocol_type.as_deref().is_some_and(|given| given != CONSUMER)
            || request.protocol.is_some() && request.protocol != protocol;
        if differs {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        // One that is to give partitions up has joined for that already.
        if self.image.epoch() > current.epoch && current.state != MemberState::UnrevokedPartitions {
            return Err(self.must_rejoin(member_id, now));
        }
        self.has_synced(member_id);
        self.renew_session(member_id, now);
        let version = member.protocols.first().map_or(0, subscription_version);
        Ok(SyncAnswer {
            error: ErrorCode::None,
            protocol_type: Some(ByteString::from_static(CONSUMER)),
            protocol,
            assignment: assignment_bytes(&current.assignment(), version, topics),
        })
    }

    /// Takes a Heartbeat.
    pub(crate) fn heartbeat_classic(
        &mut self,
        member_id: &ByteString,
        instance_id: Option<&str>,
        generation: i32,
        now: Now,
    ) -> ErrorCode {
        let current = match self.classic_member(member_id, instance_id, generation) {
            Ok((_, current)) => current,
            Err(code) => return code,
        };
        self.renew_session(member_id, now);
        let can_go_on = match current.state {
            MemberState::UnrevokedPartitions => true,
            MemberState::UnreleasedPartitions => !self.waits_for_others(member_id, &current),
            MemberState::Stable | MemberState::Unknown => false,
        };
        if current.epoch < self.image.epoch() || can_go_on {
            return self.must_rejoin(member_id, now);
        }
        ErrorCode::None
    }

    /// Whether some partition that the member shall have is still somebody else's.
    fn waits_for_others(&self, member_id: &ByteString, current: &CurrentAssignment) -> bool {
        let target = self.image.target(member_id).into_iter().flatten();
        let mut missing = target.filter(|partition| !current.assigned.contains_key(partition));
        missing.any(|partition| self.image.owner(*partition).is_some_and(|owner| owner != member_id))
    }

    fn classic_member(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(ClassicMember, CurrentAssignment), ErrorCode> {
        self.check_identity(member_id, instance_id).map_err(|refusal| refusal.code)?;
        let member = self.known(member_id).map_err(|refusal| refusal.code)?;
        let classic = member.classic.clone().ok_or(ErrorCode::UnknownMemberId)?;
        let current = self.image.current(member_id).cloned().unwrap_or_default();
        if current.epoch != GroupEpoch(generation) {
            return Err(ErrorCode::IllegalGeneration);
        }
        Ok((classic, current))
    }
}

/// The version in which a member has written its subscription, and reads its assignment.
fn subscription_version(protocol: &Protocol) -> i16 {
    let version = protocol.metadata.first_chunk::<2>().map_or(0, |bytes| i16::from_be_bytes(*bytes));
    let versions = ConsumerProtocolAssignment::VERSIONS;
    version.clamp(*versions.start(), *versions.end())
}

/// An assignment as members of the classic protocol read it. Topics that are gone are left out.
fn assignment_bytes(assignment: &Assignment, version: i16, topics: &TopicImage) -> Bytes {
    let named = by_topic(assignment.iter().copied())
        .filter_map(|(id, partitions)| Some(TopicPartition { topic: topics.name(id)?.clone(), partitions }));
    let assignment = ConsumerProtocolAssignment { assigned_partitions: named.collect(), user_data: None };
    // Names that came from a subscription are short enough for an assignment.
    assignment.to_bytes(version).unwrap_or_default()
}

impl ConsumerGroup {
    /// What each member would be told of its target in the classic protocol, by member id.
    pub(super) fn classic_targets(&self, topics: &TopicImage) -> BTreeMap<ByteString, Bytes> {
        let classic = self.image.members().iter().filter_map(|(id, member)| {
            let version = subscription_version(member.classic.as_ref()?.protocols.first()?);
            let target = self.image.target(id).cloned().unwrap_or_default();
            Some((id.clone(), assignment_bytes(&target, version, topics)))
        });
        classic.collect()
    }
}
