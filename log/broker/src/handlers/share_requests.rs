//! What ShareFetch and ShareAcknowledge have in common: whose session it is, and what is said of records.

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_controller::ShareOffsetReset;
use thalweg_protocol::{ErrorCode, Offset, Uuid};
use tokio::task::spawn_blocking;

use super::{RequestContext, own};
use crate::group::TopicIdPartition;
use crate::partition::Partition;
use crate::share::{self, AckBatch, HeldShare, SessionKey, ShareKey, ShareSettings};

/// The longest member id: that of a UUID as Java prints it.
const LONGEST_MEMBER_ID: usize = 36;

/// Whose session a request is about.
///
/// # Errors
/// INVALID_REQUEST.
pub(super) fn session_key(
    group: Option<&ByteString>,
    member: Option<&ByteString>,
) -> Result<SessionKey, ErrorCode> {
    let group = group.filter(|group| !group.trim().is_empty()).ok_or(ErrorCode::InvalidRequest)?;
    let is_sound = |member: &&ByteString| !member.is_empty() && member.len() <= LONGEST_MEMBER_ID;
    let member = member.filter(is_sound).ok_or(ErrorCode::InvalidRequest)?;
    Ok(SessionKey { group: own(group), member: own(member) })
}

/// Who asks, as sessions remember it.
pub(super) fn owner(context: &RequestContext) -> (&'static str, ByteString) {
    let principal = &context.client.principal;
    (principal.kind, principal.name.clone())
}

/// What a request says of the records of a partition.
pub(super) struct SaidOf {
    pub(super) at: TopicIdPartition,
    /// `None` when it cannot be understood.
    pub(super) batches: Result<Vec<AckBatch>, ErrorCode>,
}

/// Reads what a request says of a partition. `batches` are the first and the last offset, and the types.
pub(super) fn said_of<'a>(
    topic_id: Uuid,
    partition: i32,
    batches: impl Iterator<Item = (i64, i64, &'a [i8])>,
    may_renew: bool,
) -> SaidOf {
    let batches = batches.map(|(first, last, types)| AckBatch::new(first, last, types, may_renew));
    SaidOf { at: TopicIdPartition::new(topic_id, partition), batches: batches.collect() }
}

/// What became of what was said of a partition.
pub(super) struct Acknowledged {
    pub(super) at: TopicIdPartition,
    code: ErrorCode,
    /// What is to be committed before that is told.
    written: Option<(Arc<HeldShare>, Offset)>,
}

impl Acknowledged {
    /// Waits until it is for good. Returns what to tell.
    pub(super) async fn settled(self) -> (TopicIdPartition, ErrorCode) {
        let code = match self.written {
            Some((held, written)) => held.committed(written).await.err().unwrap_or(ErrorCode::None),
            None => self.code,
        };
        (self.at, code)
    }
}

/// Has everything that was said of records take its effect.
pub(super) async fn acknowledge(
    context: &RequestContext,
    session: &SessionKey,
    settings: &ShareSettings,
    said: Vec<SaidOf>,
) -> Vec<Acknowledged> {
    let mut results = Vec::with_capacity(said.len());
    for SaidOf { at, batches } in said {
        let result = acknowledge_in(context, session, settings, at, batches).await;
        let (code, written) = match result {
            Ok(written) => (ErrorCode::None, written),
            Err(code) => (code, None),
        };
        results.push(Acknowledged { at, code, written });
    }
    results
}

async fn acknowledge_in(
    context: &RequestContext,
    session: &SessionKey,
    settings: &ShareSettings,
    at: TopicIdPartition,
    batches: Result<Vec<AckBatch>, ErrorCode>,
) -> Result<Option<(Arc<HeldShare>, Offset)>, ErrorCode> {
    let (batches, shares) = (batches?, context.core.groups.shares());
    leader(context, at)?;
    let key = share_key(session, at);
    let held = shares.find(&key).await?.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let written = held.acknowledge(&session.member, &batches, settings, shares.now())?;
    shares.tally().acknowledged(&batches);
    Ok(written.map(|written| (held, written)))
}

/// The share-partition of a session's group.
pub(super) fn share_key(session: &SessionKey, at: TopicIdPartition) -> ShareKey {
    ShareKey { group: session.group.clone(), topic_id: at.topic_id, partition: at.partition }
}

/// The partition itself.
///
/// # Errors
/// UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER.
pub(super) fn leader(context: &RequestContext, at: TopicIdPartition) -> Result<Arc<Partition>, ErrorCode> {
    context.core.partitions.topic_by_id(at.topic_id)?.leader(at.partition).cloned()
}

/// The share-partition of a session's group, made if nobody has read there yet.
///
/// # Errors
/// GROUP_ID_NOT_FOUND when there is no such share group; those of the coordinators and of storage.
pub(super) async fn open_share(
    context: &RequestContext,
    session: &SessionKey,
    at: TopicIdPartition,
    settings: &ShareSettings,
    leader: &Arc<Partition>,
) -> Result<Arc<HeldShare>, ErrorCode> {
    let (key, shares) = (share_key(session, at), context.core.groups.shares());
    if let Some(held) = shares.find(&key).await? {
        return Ok(held);
    }
    let groups = context.core.groups.shard(&session.group).await?;
    groups.share_group_has_members(&session.group).ok_or(ErrorCode::GroupIdNotFound)?;
    let (partition, settings, now_ms) = (Arc::clone(leader), *settings, shares.now().wall_ms);
    let start = match settings.auto_offset_reset {
        ShareOffsetReset::Earliest | ShareOffsetReset::Latest => {
            share::start_offset(&partition, &settings, now_ms)?
        }
        ShareOffsetReset::ByDuration(_) => {
            let look = spawn_blocking(move || share::start_offset(&partition, &settings, now_ms));
            look.await.unwrap_or(Err(ErrorCode::UnknownServerError))?
        }
    };
    shares.find_or_create(&key, start).await
}
