//! JoinGroup of a member that speaks the classic protocol in a group that is assigned to by the coordinator (KIP-848,
//! "online migration").

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::records::{ConsumerProtocolSubscription, TopicPartition};

use super::{Assignment, Change, Changes, ClassicMember, ConsumerGroup, MemberMetadata, TopicIdPartition};
use crate::coordinator::Now;
use crate::group::classic::{CONSUMER, GroupLimits, Join, JoinAnswer};
use crate::group::topic_image::TopicImage;

/// Why a JoinGroup is refused, and the id that the member is told.
#[derive(Debug)]
pub(crate) struct RefusedJoin {
    pub(crate) code: ErrorCode,
    pub(crate) member_id: ByteString,
}

impl ConsumerGroup {
    /// Takes a JoinGroup. It waits for nobody: the answer may leave as soon as the changes last.
    ///
    /// # Errors
    /// Why it is refused; what has been changed by then is to be taken back.
    pub(crate) fn join_classic(
        &mut self,
        request: &Join,
        limits: GroupLimits,
        topics: &TopicImage,
        now: Now,
        changes: &mut Changes,
    ) -> Result<JoinAnswer, RefusedJoin> {
        let refused = |code| RefusedJoin { code, member_id: request.member_id.clone() };
        let subscription = self.check_join(request, limits).map_err(refused)?;
        let is_unknown = request.member_id.is_empty();
        if is_unknown && request.instance_id.is_none() && request.needs_known_id {
            let timeout_ms = u64::try_from(request.session_timeout_ms).unwrap_or(0);
            self.await_id(&request.fresh_member_id, timeout_ms, now);
            let (code, member_id) = (ErrorCode::MemberIdRequired, request.fresh_member_id.clone());
            return Err(RefusedJoin { code, member_id });
        }
        let member_id = if is_unknown { &request.fresh_member_id } else { &request.member_id };
        let instance_id = request.instance_id.as_ref();
        // One that has been given up and comes back with what it had must not: others may have that by now.
        if !is_unknown && (instance_id.is_some() || !self.is_pending(member_id)) {
            self.check_identity(member_id, instance_id.map(AsRef::as_ref))
                .map_err(|refusal| refused(refusal.code))?;
        }
        self.enter(member_id, instance_id, true, changes).map_err(|refusal| refused(refusal.code))?;
        let owned = owned_partitions(&subscription.owned_partitions, topics);
        let metadata = metadata(request, subscription);
        let before = self.image.member(member_id).cloned();
        let reads_others = before
            .as_deref()
            .is_none_or(|before| before.topics != metadata.topics || before.regex != metadata.regex);
        if before.as_deref() != Some(&metadata) {
            self.put(changes, Change::Member(member_id.clone(), Some(Arc::new(metadata))));
        }
        self.advance(member_id, reads_others, Some(&owned), topics, now, changes);
        self.has_joined(member_id);
        self.renew_session(member_id, now);
        self.await_sync(member_id, rebalance_timeout_ms(request), now);
        let epoch = self.image.current(member_id).cloned().unwrap_or_default().epoch;
        Ok(JoinAnswer {
            error: ErrorCode::None,
            member_id: member_id.clone(),
            generation: epoch.0,
            protocol_type: Some(ByteString::from_static(CONSUMER)),
            protocol: request.protocols.first().map(|protocol| protocol.name.clone()),
            // Nobody that joins leads: the coordinator assigns.
            leader: ByteString::new(),
            skip_assignment: false,
            members: Vec::new(),
        })
    }

    /// Whether the member can be one; if so, what it reads.
    fn check_join(
        &self,
        request: &Join,
        limits: GroupLimits,
    ) -> Result<ConsumerProtocolSubscription, ErrorCode> {
        let sessions = limits.min_session_timeout_ms..=limits.max_session_timeout_ms;
        if !sessions.contains(&request.session_timeout_ms) {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        self.check_size(&request.member_id, request.instance_id.as_deref())
            .map_err(|refusal| refusal.code)?;
        let others = || {
            let others = self.image.members().iter().filter(|(id, _)| **id != request.member_id);
            others.filter_map(|(_, member)| member.classic.as_ref())
        };
        let all_support = |name: &ByteString| {
            others().all(|member| member.protocols.iter().any(|protocol| protocol.name == *name))
        };
        if request.protocol_type != CONSUMER
            || !request.protocols.iter().any(|protocol| all_support(&protocol.name))
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let first = request.protocols.first().ok_or(ErrorCode::InconsistentGroupProtocol)?;
        ConsumerProtocolSubscription::from_bytes(first.metadata.clone())
            .map_err(|_| ErrorCode::InconsistentGroupProtocol)
    }
}

/// JoinGroup v0 has no rebalance timeout: the session's stands for it.
fn rebalance_timeout_ms(request: &Join) -> u64 {
    let session_ms = u64::try_from(request.session_timeout_ms).unwrap_or(0);
    u64::try_from(request.rebalance_timeout_ms).unwrap_or(session_ms)
}

fn metadata(request: &Join, subscription: ConsumerProtocolSubscription) -> MemberMetadata {
    MemberMetadata {
        instance_id: request.instance_id.clone(),
        rack_id: subscription.rack_id,
        client_id: request.client_id.clone(),
        client_host: request.client_host.clone(),
        topics: subscription.topics.into_iter().collect(),
        regex: None,
        rebalance_timeout_ms: i32::try_from(rebalance_timeout_ms(request)).unwrap_or(i32::MAX),
        assignor: None,
        classic: Some(ClassicMember {
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols.clone(),
        }),
    }
}

/// Partitions of named topics, those of unknown ones left out.
pub(super) fn owned_partitions(named: &[TopicPartition], topics: &TopicImage) -> Assignment {
    let known = named.iter().filter_map(|topic| Some((topics.topic(&topic.topic)?.0, &topic.partitions)));
    let partitions =
        known.flat_map(|(id, partitions)| partitions.iter().map(move |at| TopicIdPartition::new(id, *at)));
    partitions.collect()
}
