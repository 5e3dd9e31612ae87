//! Joining a group: the calls of one rebalance, from JoinGroup to the assignment (KIP-62, 345, 394, 429).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use thalweg_protocol::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use thalweg_protocol::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, TopicPartition, Uuid};

use super::assignor::{Assignment, Assignor, GroupMember};
use super::group_offsets::refused_member;
use super::heartbeat::{Heart, Signal};
use super::offsets::GroupMetadata;
use super::protocol::{
    PROTOCOL_TYPE, decode_assignment, decode_member, encode_assignment, encode_subscription,
};
use crate::coordinator::Coordinator;
use crate::error::{Error, ErrorKind, Result};

/// How often in a row another rebalance may begin before a member has got its assignment.
const MAX_INTERRUPTIONS: u32 = 100;

/// How long after the rebalance timeout the coordinator may answer a JoinGroup.
const JOIN_MARGIN: Duration = Duration::from_secs(5);

/// Who a member is, shared with its heartbeats.
#[derive(Debug)]
pub(super) struct Identity {
    group: ByteString,
    instance_id: Option<ByteString>,
    /// Guards the generation and the id that goes with it.
    current: Mutex<(i32, ByteString)>,
}

impl Identity {
    pub(super) fn new(group: &str, instance_id: Option<&str>) -> Self {
        let current = Mutex::new((-1, ByteString::new()));
        Self { group: ByteString::from(group), instance_id: instance_id.map(ByteString::from), current }
    }

    /// A member that chooses its id itself, and keeps it (KIP-848).
    pub(super) fn with_id(group: &str, instance_id: Option<&str>, id: Uuid) -> Self {
        let identity = Self::new(group, instance_id);
        identity.set(-1, ByteString::from(id.to_string()));
        identity
    }

    pub(super) fn metadata(&self) -> GroupMetadata {
        let (generation, member_id) = self.current.lock().clone();
        GroupMetadata {
            group: self.group.clone(),
            generation,
            member_id,
            instance_id: self.instance_id.clone(),
        }
    }

    /// The member is in this epoch; under which id, if that is news.
    pub(super) fn enter(&self, epoch: i32, member_id: Option<ByteString>) {
        let mut current = self.current.lock();
        current.0 = epoch;
        if let Some(member_id) = member_id.filter(|id| !id.is_empty()) {
            current.1 = member_id;
        }
    }

    fn set(&self, generation: i32, member_id: ByteString) {
        *self.current.lock() = (generation, member_id);
    }

    /// The member is in no generation; it keeps its id, by which the coordinator knows it.
    pub(super) fn leave_generation(&self) {
        self.current.lock().0 = -1;
    }

    /// The coordinator does not know the member.
    pub(super) fn forget(&self) {
        self.set(-1, ByteString::new());
    }
}

/// What a member brings into a rebalance.
pub(super) struct Joining {
    pub(super) coordinator: Arc<Coordinator>,
    pub(super) identity: Arc<Identity>,
    pub(super) heart: Arc<Heart>,
    pub(super) assignors: Vec<Arc<dyn Assignor>>,
    pub(super) topics: Vec<ByteString>,
    pub(super) owned: Vec<TopicPartition>,
    pub(super) rack: Option<String>,
    pub(super) session_timeout_ms: i32,
    pub(super) rebalance_timeout_ms: i32,
}

/// How a rebalance ended for a member.
#[derive(Debug)]
pub(super) enum Joined {
    Assigned {
        assignment: Assignment,
        /// Which of the member's assignors was agreed on.
        assignor: usize,
        /// For the leader: how many partitions the topics had.
        counts: Option<BTreeMap<ByteString, i32>>,
    },
    /// The coordinator had taken the member for dead: what it owned is lost, and it must join anew.
    Lost,
}

impl Joining {
    /// Joins, assigns if the member leads the group, and learns what the member gets. From then on its heart beats.
    ///
    /// `commit` is of what is given up, and is waited for before. Until the first request the heart beats in the generation before; then the coordinator waits for the member's
    /// requests, and takes it for alive while it has one of them.
    pub(super) async fn run(self, commit: Option<BoxFuture<'static, Result<()>>>) -> Result<Joined> {
        if let Some(commit) = commit
            && let Err(error) = commit.await
        {
            tracing::warn!(group = %self.coordinator.key(), %error, "the commit before a rebalance failed");
        }
        if self.heart.stop().await == Some(Signal::Lost) {
            return Ok(Joined::Lost);
        }
        let cluster = self.coordinator.cluster();
        let mut retry = cluster.retry("joining a group");
        let mut interruptions = 0;
        loop {
            let error = match self.attempt().await {
                Ok(joined) => {
                    self.heart.start();
                    return Ok(joined);
                }
                Err(error) => error,
            };
            match error {
                // The group has begun another rebalance, for which the member is in time.
                Error::NotInGroup { reason: ErrorCode::RebalanceInProgress, .. } => {
                    interruptions += 1;
                    if interruptions > MAX_INTERRUPTIONS {
                        return Err(error);
                    }
                    retry = cluster.retry("joining a group");
                    retry.pause(error).await?;
                }
                error if error.kind() == ErrorKind::Rejoin => {
                    self.identity.forget();
                    if !self.owned.is_empty() {
                        return Ok(Joined::Lost);
                    }
                    retry.pause(error).await?;
                }
                error if error.kind() == ErrorKind::Retry => retry.pause(error).await?,
                error => return Err(error),
            }
        }
    }

    async fn attempt(&self) -> Result<Joined> {
        let joined = self.join().await?;
        let name = joined.protocol_name.clone().unwrap_or_default();
        let assignor = self.assignors.iter().position(|assignor| assignor.name() == &*name);
        let assignor = assignor.ok_or(Error::BadAnswer {
            api: ApiKey::JoinGroup,
            reason: "the assignor is not one of this member's",
        })?;
        let mut counts = None;
        let mut assignments = BTreeMap::new();
        if joined.leader == joined.member_id {
            let members: Vec<GroupMember> =
                joined.members.into_iter().map(decode_member).collect::<Result<_>>()?;
            let topics = self.count_partitions(&members).await?;
            if !joined.skip_assignment {
                assignments = self.assignors[assignor].assign(&topics, &members)?;
            }
            counts = Some(topics);
        }
        let assignment = self.sync(assignments, &name).await?;
        Ok(Joined::Assigned {
            assignment: decode_assignment(ApiKey::SyncGroup, assignment)?,
            assignor,
            counts,
        })
    }

    async fn join(&self) -> Result<JoinGroupResponse> {
        let member = self.identity.metadata();
        let protocols = self.assignors.iter().map(|assignor| {
            let user_data = assignor.user_data(&self.topics);
            let metadata = encode_subscription(
                &self.topics,
                &self.owned,
                member.generation,
                self.rack.as_deref(),
                user_data,
            )?;
            Ok(JoinGroupRequestProtocol { name: ByteString::from(assignor.name()), metadata })
        });
        let mut request = JoinGroupRequest {
            group_id: member.group.clone(),
            session_timeout_ms: self.session_timeout_ms,
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            member_id: member.member_id.clone(),
            group_instance_id: member.instance_id.clone(),
            protocol_type: PROTOCOL_TYPE,
            protocols: protocols.collect::<Result<_>>()?,
            reason: None,
        };
        loop {
            let wait = Duration::from_millis(u64::try_from(self.rebalance_timeout_ms).unwrap_or_default());
            let versions = *JoinGroupRequest::VERSIONS.end();
            let response = self.coordinator.call(request.clone(), versions, wait + JOIN_MARGIN).await?;
            match ErrorCode::from(response.error_code) {
                ErrorCode::None => {
                    self.identity.set(response.generation_id, response.member_id.clone());
                    return Ok(response);
                }
                // The coordinator wants to know who is real before it lets the group wait for them (KIP-394).
                ErrorCode::MemberIdRequired if request.member_id.is_empty() => {
                    self.identity.set(-1, response.member_id.clone());
                    request.member_id = response.member_id;
                }
                code => return Err(refused_member(&self.coordinator, &member, ApiKey::JoinGroup, code)),
            }
        }
    }

    /// How many partitions the topics have that any member subscribes to; those that don't exist are left
    /// out.
    async fn count_partitions(&self, members: &[GroupMember]) -> Result<BTreeMap<ByteString, i32>> {
        let topics: BTreeSet<&ByteString> = members.iter().flat_map(|member| &member.topics).collect();
        let cluster = self.coordinator.cluster();
        cluster.want(topics.iter().copied());
        let metadata = cluster.refresh().await?;
        let count =
            |topic: &ByteString| Some((topic.clone(), metadata.topic(topic)?.partitions.len() as i32));
        Ok(topics.into_iter().filter_map(count).collect())
    }

    async fn sync(
        &self,
        assignments: BTreeMap<ByteString, Assignment>,
        protocol: &ByteString,
    ) -> Result<Bytes> {
        let member = self.identity.metadata();
        let assignments = assignments.iter().map(|(member_id, assignment)| {
            Ok(SyncGroupRequestAssignment {
                member_id: member_id.clone(),
                assignment: encode_assignment(assignment)?,
            })
        });
        let request = SyncGroupRequest {
            group_id: member.group.clone(),
            generation_id: member.generation,
            member_id: member.member_id.clone(),
            group_instance_id: member.instance_id.clone(),
            protocol_type: Some(PROTOCOL_TYPE),
            protocol_name: Some(protocol.clone()),
            assignments: assignments.collect::<Result<_>>()?,
        };
        let wait = Duration::from_millis(u64::try_from(self.rebalance_timeout_ms).unwrap_or_default());
        let versions = *SyncGroupRequest::VERSIONS.end();
        let response = self.coordinator.call(request, versions, wait + JOIN_MARGIN).await?;
        match ErrorCode::from(response.error_code) {
            ErrorCode::None => Ok(response.assignment),
            code => Err(refused_member(&self.coordinator, &member, ApiKey::SyncGroup, code)),
        }
    }
}
