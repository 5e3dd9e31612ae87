//! One handler for each API, and the table of those that are served.

mod acls;
mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod alter_client_quotas;
mod alter_configs;
mod alter_replica_log_dirs;
pub(crate) mod api_versions;
mod asked_offsets;
mod configs;
mod consumer_group_describe;
mod consumer_group_heartbeat;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod denial;
mod describe_client_quotas;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_topic_partitions;
mod describe_transactions;
mod elect_leaders;
mod end_txn;
mod fetch;
mod find_coordinator;
mod get_telemetry_subscriptions;
mod group_heartbeat;
mod heartbeat;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_transactions;
mod metadata;
mod node_configs;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod partition_reassignments;
mod produce;
mod push_telemetry;
mod share_acknowledge;
mod share_fetch;
mod share_group_describe;
mod share_group_heartbeat;
mod share_offsets;
mod share_requests;
mod sync_group;
mod transactional_produce;
mod txn_offset_commit;
mod update_features;
mod user_scram_credentials;
mod write_txn_markers;

use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::messages::{ApiKey, Request, Response};
use thalweg_protocol::{ErrorCode, Uuid};
use tokio::time::Instant;

use crate::core::Core;
use crate::error::Refusal;
use crate::partitions::HeldTopic;
use crate::server::{Answer, Principal};
use crate::share::{ConnectionSessions, Shares};

pub(crate) use denial::deny;

/// The APIs that are served, in all their stable versions.
pub(crate) const SERVED: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::WriteTxnMarkers,
    ApiKey::TxnOffsetCommit,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::CreatePartitions,
    ApiKey::DeleteGroups,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::OffsetDelete,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::ConsumerGroupDescribe,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
    ApiKey::DescribeLogDirs,
    ApiKey::ElectLeaders,
    ApiKey::DescribeQuorum,
    ApiKey::UpdateFeatures,
    ApiKey::GetTelemetrySubscriptions,
    ApiKey::PushTelemetry,
    ApiKey::ListConfigResources,
    ApiKey::DescribeClientQuotas,
    ApiKey::AlterClientQuotas,
    ApiKey::DescribeTopicPartitions,
    ApiKey::AlterReplicaLogDirs,
    ApiKey::AlterPartitionReassignments,
    ApiKey::ListPartitionReassignments,
    ApiKey::DescribeAcls,
    ApiKey::CreateAcls,
    ApiKey::DeleteAcls,
    ApiKey::DescribeUserScramCredentials,
    ApiKey::AlterUserScramCredentials,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareGroupDescribe,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::DescribeShareGroupOffsets,
    ApiKey::AlterShareGroupOffsets,
    ApiKey::DeleteShareGroupOffsets,
];

/// Whether requests to this API are taken in this version.
pub(crate) fn is_served(api_key: ApiKey, version: i16) -> bool {
    let versions = *api_key.versions().start()..=api_key.last_stable_version();
    SERVED.contains(&api_key) && versions.contains(&version)
}

/// Whoever is at the other end of a connection.
#[derive(Debug)]
pub(crate) struct Client {
    /// Who it is.
    pub(crate) principal: Principal,
    /// Whose turn it is among the partitions that its fetches name.
    turn: AtomicUsize,
    /// The share sessions that it has opened, once it has.
    share_sessions: OnceLock<ConnectionSessions>,
    /// Guards until when its connection is not read, because it has used more than its quota; held for a look.
    muted_until: Mutex<Option<Instant>>,
}

impl Client {
    /// A client that has not authenticated.
    pub(crate) fn new(address: Option<IpAddr>) -> Self {
        Self {
            principal: Principal::anonymous(address),
            turn: AtomicUsize::new(0),
            share_sessions: OnceLock::new(),
            muted_until: Mutex::default(),
        }
    }

    /// Has its connection not read for so long.
    pub(crate) fn mute(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut muted_until = self.muted_until.lock();
        *muted_until = Some(muted_until.map_or(until, |before| before.max(until)));
    }

    /// Until when its connection is not read; `None` once it may be.
    pub(crate) fn muted_until(&self) -> Option<Instant> {
        let mut muted_until = self.muted_until.lock();
        if muted_until.is_some_and(|until| until <= Instant::now()) {
            *muted_until = None;
        }
        *muted_until
    }

    /// Counts up with each fetch.
    pub(crate) fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// The share sessions that it has opened. They end with it.
    pub(crate) fn share_sessions(&self, shares: &Arc<Shares>) -> &ConnectionSessions {
        self.share_sessions.get_or_init(|| shares.connect())
    }

    /// Its address as groups and transactions show it.
    pub(crate) fn host(&self) -> String {
        self.principal.address.map_or_else(|| "in-process".to_owned(), |address| format!("/{address}"))
    }
}

/// What a handler knows besides the request itself.
#[derive(Clone)]
pub(crate) struct RequestContext {
    /// The broker.
    pub(crate) core: Arc<Core>,
    /// Who asks.
    pub(crate) client: Arc<Client>,
    /// The name that the client gives itself. It may share the memory of the request's frame.
    pub(crate) client_id: Option<ByteString>,
    /// The version of the request, and of the answer.
    pub(crate) version: i16,
}

/// The version of Produce and of Fetch from which requests name topics by their ids (KIP-516).
const FIRST_VERSION_WITH_IDS: i16 = 13;

impl RequestContext {
    /// The topic that a Produce or Fetch names, in the way of its version.
    fn named_topic(&self, name: &str, id: Uuid) -> Result<Arc<HeldTopic>, ErrorCode> {
        match self.version {
            FIRST_VERSION_WITH_IDS.. => self.core.partitions.topic_by_id(id),
            _ => self.core.partitions.topic(name),
        }
    }
}

/// Begins a request that has passed the gate.
pub(crate) fn begin(context: &RequestContext, request: Request) -> Answer {
    match request {
        Request::Produce(request) => produce::begin(context, request),
        Request::Fetch(request) => fetch::begin(context, request),
        Request::Metadata(request) => metadata::begin(context, request),
        Request::ListOffsets(request) => list_offsets::begin(context, request),
        Request::ApiVersions(request) => Answer::now(api_versions::handle(context, &request)),
        Request::OffsetForLeaderEpoch(request) => {
            Answer::now(offset_for_leader_epoch::handle(context, request))
        }
        Request::DeleteRecords(request) => blocks(delete_records::handle(context.clone(), request)),
        Request::DescribeConfigs(request) => Answer::now(describe_configs::handle(context, &request)),
        Request::DescribeCluster(request) => Answer::now(describe_cluster::handle(context, &request)),
        Request::CreateTopics(request) => blocks(create_topics::handle(context.clone(), request)),
        Request::DeleteTopics(request) => blocks(delete_topics::handle(context.clone(), request)),
        Request::CreatePartitions(request) => blocks(create_partitions::handle(context.clone(), request)),
        Request::AlterConfigs(request) => blocks(alter_configs::replace(context.clone(), request)),
        Request::IncrementalAlterConfigs(request) => blocks(alter_configs::change(context.clone(), request)),
        other => begin_administrative(context, other),
    }
}

/// Begins a request of those who look after a cluster.
fn begin_administrative(context: &RequestContext, request: Request) -> Answer {
    match request {
        Request::DescribeTopicPartitions(request) => {
            Answer::now(describe_topic_partitions::handle(context, &request))
        }
        Request::ListConfigResources(request) => {
            Answer::now(list_config_resources::handle(context, &request))
        }
        Request::DescribeClientQuotas(request) => {
            Answer::now(describe_client_quotas::handle(context, &request))
        }
        Request::AlterClientQuotas(request) => blocks(alter_client_quotas::handle(context.clone(), request)),
        Request::DescribeLogDirs(request) => blocks(describe_log_dirs::handle(context.clone(), request)),
        Request::DescribeQuorum(request) => Answer::now(describe_quorum::handle(context, &request)),
        Request::ElectLeaders(request) => blocks(elect_leaders::handle(context.clone(), request)),
        Request::UpdateFeatures(request) => blocks(update_features::handle(context.clone(), request)),
        Request::DescribeProducers(request) => Answer::now(describe_producers::handle(context, request)),
        Request::GetTelemetrySubscriptions(request) => {
            Answer::now(get_telemetry_subscriptions::handle(&request))
        }
        Request::PushTelemetry(request) => Answer::now(push_telemetry::handle(&request)),
        Request::AlterReplicaLogDirs(request) => {
            Answer::now(alter_replica_log_dirs::handle(context, request))
        }
        Request::AlterPartitionReassignments(request) => {
            Answer::now(partition_reassignments::alter(context, request))
        }
        Request::ListPartitionReassignments(_) => Answer::now(partition_reassignments::list()),
        Request::DescribeAcls(_) => Answer::now(acls::refuse_describe(acls::none())),
        Request::CreateAcls(request) => Answer::now(acls::refuse_create(&request, &acls::none())),
        Request::DeleteAcls(request) => Answer::now(acls::refuse_delete(&request, &acls::none())),
        Request::DescribeUserScramCredentials(request) => {
            Answer::now(user_scram_credentials::describe(&request))
        }
        Request::AlterUserScramCredentials(request) => Answer::now(user_scram_credentials::alter(&request)),
        other => begin_coordinated(context.clone(), other),
    }
}

/// Begins a request to one of the coordinators. Its effect may have to wait until that is loaded.
fn begin_coordinated(context: RequestContext, request: Request) -> Answer {
    match request {
        Request::FindCoordinator(request) => blocks(find_coordinator::handle(context, request)),
        Request::JoinGroup(request) => Answer::Blocks(Box::pin(join_group::begin(context, request))),
        Request::SyncGroup(request) => Answer::Blocks(Box::pin(sync_group::begin(context, request))),
        Request::Heartbeat(request) => blocks(heartbeat::handle(context, request)),
        Request::LeaveGroup(request) => blocks(leave_group::handle(context, request)),
        Request::OffsetCommit(request) => Answer::Blocks(Box::pin(offset_commit::begin(context, request))),
        Request::OffsetFetch(request) => Answer::Blocks(Box::pin(offset_fetch::begin(context, request))),
        Request::DescribeGroups(request) => blocks(describe_groups::handle(context, request)),
        Request::ListGroups(request) => blocks(list_groups::handle(context, request)),
        Request::DeleteGroups(request) => blocks(delete_groups::handle(context, request)),
        Request::ConsumerGroupHeartbeat(request) => {
            Answer::Blocks(Box::pin(consumer_group_heartbeat::begin(context, request)))
        }
        Request::ConsumerGroupDescribe(request) => blocks(consumer_group_describe::handle(context, request)),
        Request::OffsetDelete(request) => blocks(offset_delete::handle(context, request)),
        Request::InitProducerId(request) => {
            Answer::Blocks(Box::pin(init_producer_id::begin(context, request)))
        }
        Request::AddPartitionsToTxn(request) => blocks(add_partitions_to_txn::handle(context, request)),
        Request::AddOffsetsToTxn(request) => blocks(add_offsets_to_txn::handle(context, request)),
        Request::TxnOffsetCommit(request) => {
            Answer::Blocks(Box::pin(txn_offset_commit::begin(context, request)))
        }
        Request::EndTxn(request) => Answer::Blocks(Box::pin(end_txn::begin(context, request))),
        Request::WriteTxnMarkers(request) => blocks(write_txn_markers::handle(context, request)),
        Request::DescribeTransactions(request) => blocks(describe_transactions::handle(context, request)),
        Request::ListTransactions(request) => blocks(list_transactions::handle(context, request)),
        other => begin_shared(context, other),
    }
}

/// Begins a request about share groups.
fn begin_shared(context: RequestContext, request: Request) -> Answer {
    if !context.core.controller.state().has_share_groups() {
        return denial::refuse_shared(request, ErrorCode::UnsupportedVersion);
    }
    match request {
        Request::ShareFetch(request) => Answer::Blocks(Box::pin(share_fetch::begin(context, request))),
        Request::ShareAcknowledge(request) => {
            Answer::Blocks(Box::pin(share_acknowledge::begin(context, request)))
        }
        Request::ShareGroupHeartbeat(request) => {
            Answer::Blocks(Box::pin(share_group_heartbeat::begin(context, request)))
        }
        Request::ShareGroupDescribe(request) => blocks(share_group_describe::handle(context, request)),
        Request::DescribeShareGroupOffsets(request) => blocks(share_offsets::describe(context, request)),
        Request::AlterShareGroupOffsets(request) => blocks(share_offsets::alter(context, request)),
        Request::DeleteShareGroupOffsets(request) => blocks(share_offsets::delete(context, request)),
        other => Answer::Close { reason: format!("{} is not served here", other.api_key()) },
    }
}

/// Refuses a request that makes or deletes partitions.
pub(crate) fn refuse_mutations(context: &RequestContext, request: Request, refusal: &Refusal) -> Answer {
    match request {
        Request::CreateTopics(request) => Answer::now(create_topics::refuse(&request, refusal)),
        Request::DeleteTopics(request) => Answer::now(delete_topics::refuse(context, request, refusal)),
        Request::CreatePartitions(request) => Answer::now(create_partitions::refuse(&request, refusal)),
        other => begin(context, other),
    }
}

/// The answer of a handler that may have to wait; the connection's next request begins when it has answered.
fn blocks<R: Into<Response>>(handler: impl Future<Output = R> + Send + 'static) -> Answer {
    Answer::Blocks(Box::pin(async move { Answer::now(handler.await) }))
}

/// A string that outlives its request, in memory of its own: as it came it keeps the request's whole frame.
fn own(text: &ByteString) -> ByteString {
    ByteString::from(text.to_string())
}

/// How long a request waits that says how many ms it would, at most `most`.
fn within(timeout_ms: i32, most: Duration) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)).min(most)
}

/// 32 random hexadecimal digits, grouped as Java prints a UUID.
fn random_uuid() -> String {
    let bits = fastrand::u128(..);
    let (a, b, c) = (bits >> 96, (bits >> 80) & 0xffff, (bits >> 64) & 0xffff);
    let (d, e) = ((bits >> 48) & 0xffff, bits & 0xffff_ffff_ffff);
    format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
}

/// Clients before version `first` of an API know PRODUCER_FENCED only as INVALID_PRODUCER_EPOCH (KIP-588).
fn fenced_from(first: i16, version: i16, code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::ProducerFenced if version < first => ErrorCode::InvalidProducerEpoch,
        code => code,
    }
}
