//! Transactions: where one is, and the calls that move it on.

mod ending;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::messages::add_offsets_to_txn::AddOffsetsToTxnRequest;
use thalweg_protocol::messages::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use thalweg_protocol::messages::end_txn::EndTxnRequest;
use thalweg_protocol::messages::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, TopicPartition};

use super::core::Core;
use super::identity::{INIT_KNOWN, INIT_VERSIONS, identity_of, init_request};
use super::queue::Identity;
use crate::by_leader::by_topic;
use crate::cluster::Cluster;
use crate::consumer::{CommittedOffset, GroupMetadata};
use crate::coordinator::{Coordinator, CoordinatorOf};
use crate::error::{Error, ErrorKind, Result};

/// The feature of a cluster that says which protocol its transactions follow; from level 2 on KIP-890's.
const FEATURE: &str = "transaction.version";
const FEATURE_LEVEL: i16 = 2;

/// The first versions of the implicit protocol; those before it are the last of the explicit one.
const END_IMPLICIT: i16 = 5;
const OFFSETS_IMPLICIT: i16 = 5;
/// The last version of TxnOffsetCommit that names topics.
const OFFSETS_NAMED: i16 = 5;
/// The last version of AddPartitionsToTxn that is for clients.
const ADD_PARTITIONS: i16 = 3;

/// A transactional producer's state.
pub(super) struct Transaction {
    id: String,
    timeout_ms: i32,
    coordinator: Coordinator,
    /// Guards which groups' coordinators are known: one or two.
    groups: Mutex<HashMap<ByteString, Arc<Coordinator>>>,
    /// Guards where the transaction is.
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    identity: Option<Identity>,
    /// Whether brokers add partitions and offsets to the transaction by themselves (KIP-890).
    is_implicit: bool,
    /// Whether a broker may know of the open transaction.
    has_started: bool,
}

#[derive(Clone, Debug)]
enum Phase {
    /// `init_transactions` comes first.
    New,
    Ready,
    Open,
    /// Only an abort leads on.
    Failed(Arc<Error>),
    Ending,
    /// Only `init_transactions` leads on.
    Unknown,
    Fenced,
}

impl Transaction {
    pub(super) fn new(cluster: &Arc<Cluster>, id: &str, timeout_ms: i32) -> Self {
        let state = State { phase: Phase::New, identity: None, is_implicit: false, has_started: false };
        Self {
            id: id.to_owned(),
            timeout_ms,
            coordinator: Coordinator::new(cluster, CoordinatorOf::Transaction, id),
            groups: Mutex::default(),
            state: Mutex::new(state),
        }
    }

    pub(super) fn is_implicit(&self) -> bool {
        self.state.lock().is_implicit
    }

    pub(super) fn note_started(&self) {
        self.state.lock().has_started = true;
    }

    pub(super) fn check_open(&self) -> Result<()> {
        match &self.state.lock().phase {
            Phase::Open => Ok(()),
            Phase::Failed(source) => Err(Error::TransactionFailed { source: Arc::clone(source) }),
            phase => Err(self.misfit("append", phase)),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Open | Phase::Failed(_))
    }

    /// Why a batch cannot be sent now, if it cannot.
    pub(super) fn refusal(&self) -> Option<Error> {
        match &self.state.lock().phase {
            Phase::Open | Phase::Ending => None,
            phase => Some(self.misfit("append", phase)),
        }
    }

    /// Why the open transaction cannot be committed.
    pub(super) fn failure(&self) -> Option<Error> {
        match &self.state.lock().phase {
            Phase::Failed(source) => Some(Error::TransactionFailed { source: Arc::clone(source) }),
            Phase::Fenced => Some(self.fenced()),
            _ => None,
        }
    }

    /// The open transaction cannot be committed.
    pub(super) fn fail(&self, error: Error) -> Error {
        let mut state = self.state.lock();
        if error.code() == Some(ErrorCode::ProducerFenced) || matches!(error, Error::ProducerFenced { .. }) {
            state.phase = Phase::Fenced;
            return self.fenced();
        }
        match &state.phase {
            Phase::Failed(source) => Error::TransactionFailed { source: Arc::clone(source) },
            Phase::Open | Phase::Ending => {
                let source = Arc::new(error);
                state.phase = Phase::Failed(Arc::clone(&source));
                Error::TransactionFailed { source }
            }
            _ => error,
        }
    }

    fn fenced(&self) -> Error {
        Error::ProducerFenced { transactional_id: self.id.clone() }
    }

    fn misfit(&self, operation: &'static str, phase: &Phase) -> Error {
        let advice = match phase {
            Phase::New => "call init_transactions first",
            Phase::Ready => "begin a transaction first",
            Phase::Open => "end the open transaction first",
            Phase::Failed(source) => return Error::TransactionFailed { source: Arc::clone(source) },
            Phase::Ending => "the transaction is being ended",
            Phase::Unknown => "the outcome of the last transaction is not known: call init_transactions",
            Phase::Fenced => return self.fenced(),
        };
        Error::Misuse { operation, advice }
    }

    /// Takes over the transactional id; returns the identity that the sender must use.
    ///
    /// The identity that this producer had lets the coordinator find out whether a newer producer has taken over.
    /// While a transaction may be open under it, though, the coordinator aborts that under a newer epoch of its own,
    /// and then takes whoever comes with the old one for a producer of before: so it is left out.
    pub(super) async fn init(&self) -> Result<Identity> {
        let known = {
            let mut state = self.state.lock();
            match state.phase {
                Phase::New | Phase::Ready => {
                    // If the answer gets lost, the identity may be an older one already.
                    state.phase = Phase::New;
                    state.identity
                }
                Phase::Unknown => None,
                ref phase => return Err(self.misfit("init_transactions", phase)),
            }
        };
        let mut retry = self.coordinator.cluster().retry("initialising transactions");
        loop {
            match self.init_once(known).await {
                Ok(identity) => return Ok(identity),
                Err(error) if error.kind() == ErrorKind::Retry => retry.pause(error).await?,
                Err(error) if error.kind() == ErrorKind::Fenced => {
                    self.state.lock().phase = Phase::Fenced;
                    return Err(self.fenced());
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn init_once(&self, known: Option<Identity>) -> Result<Identity> {
        let node = self.coordinator.node().await?;
        let versions = if known.is_some() { INIT_KNOWN..=*INIT_VERSIONS.end() } else { INIT_VERSIONS };
        let request = init_request(Some(&self.id), self.timeout_ms, known);
        let answer = node.call_within(request, versions, Duration::ZERO).await;
        let response = answer.inspect_err(|_| self.coordinator.forget())?;
        let identity = identity_of(&response, true)
            .map_err(|code| self.coordinator.refused(ApiKey::InitProducerId, code))?;
        let offers_implicit = node.offered().feature(FEATURE) >= FEATURE_LEVEL
            && node.offered().pick(ApiKey::EndTxn, END_IMPLICIT..=*EndTxnRequest::VERSIONS.end()).is_ok();
        *self.state.lock() = State {
            phase: Phase::Ready,
            identity: Some(identity),
            is_implicit: offers_implicit,
            has_started: false,
        };
        Ok(identity)
    }

    pub(super) fn begin(&self) -> Result<()> {
        let mut state = self.state.lock();
        match &state.phase {
            Phase::Ready => {
                state.phase = Phase::Open;
                state.has_started = false;
                Ok(())
            }
            phase => Err(self.misfit("begin_transaction", phase)),
        }
    }

    /// Adds a group's offsets to the transaction.
    pub(super) async fn send_offsets(
        &self,
        offsets: &[(TopicPartition, CommittedOffset)],
        group: &GroupMetadata,
    ) -> Result<()> {
        self.check_open()?;
        if offsets.is_empty() {
            return Ok(());
        }
        let (identity, is_implicit) = {
            let mut state = self.state.lock();
            state.has_started = true;
            let missing = Error::Misuse { operation: "send_offsets", advice: "call init_transactions first" };
            (state.identity.ok_or(missing)?, state.is_implicit)
        };
        let sent = self.send_offsets_as(identity, is_implicit, offsets, group).await;
        sent.map_err(|error| self.fail(error))
    }

    async fn send_offsets_as(
        &self,
        identity: Identity,
        is_implicit: bool,
        offsets: &[(TopicPartition, CommittedOffset)],
        group: &GroupMetadata,
    ) -> Result<()> {
        if !is_implicit {
            self.add_offsets(identity, &group.group).await?;
        }
        let coordinator = {
            let mut groups = self.groups.lock();
            let known = groups.entry(group.group.clone()).or_insert_with(|| {
                Arc::new(Coordinator::for_short_calls(self.coordinator.cluster(), &group.group))
            });
            Arc::clone(known)
        };
        let request = offsets_request(&self.id, identity, offsets, group);
        let versions = match is_implicit {
            true => OFFSETS_IMPLICIT..=OFFSETS_NAMED,
            false => *TxnOffsetCommitRequest::VERSIONS.start()..=(OFFSETS_IMPLICIT - 1),
        };
        let mut retry = self.coordinator.cluster().retry("sending offsets to a transaction");
        loop {
            match send_offsets_once(&coordinator, request.clone(), versions.clone(), group).await {
                Err(error) if error.kind() == ErrorKind::Retry => retry.pause(error).await?,
                answer => return answer,
            }
        }
    }

    async fn add_offsets(&self, identity: Identity, group: &ByteString) -> Result<()> {
        let mut retry = self.coordinator.cluster().retry("adding a group to a transaction");
        loop {
            let request = AddOffsetsToTxnRequest {
                transactional_id: ByteString::from(self.id.as_str()),
                producer_id: identity.id.0,
                producer_epoch: identity.epoch.0,
                group_id: group.clone(),
            };
            let answer = self.coordinator.call(request, i16::MAX, Duration::ZERO).await;
            let error = match answer.map(|response| ErrorCode::from(response.error_code)) {
                Ok(ErrorCode::None) => return Ok(()),
                Ok(code) => self.coordinator.refused(ApiKey::AddOffsetsToTxn, code),
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::Retry => retry.pause(error).await?,
                _ => return Err(error),
            }
        }
    }
}

fn offsets_request(
    transactional_id: &str,
    identity: Identity,
    offsets: &[(TopicPartition, CommittedOffset)],
    group: &GroupMetadata,
) -> TxnOffsetCommitRequest {
    let partition = |(partition_index, offset): (i32, CommittedOffset)| TxnOffsetCommitRequestPartition {
        partition_index,
        committed_offset: offset.offset.0,
        committed_leader_epoch: offset.leader_epoch.0,
        committed_metadata: Some(offset.metadata),
    };
    let topic = |(name, partitions): (ByteString, Vec<_>)| TxnOffsetCommitRequestTopic {
        name,
        partitions: partitions.into_iter().map(partition).collect(),
        ..TxnOffsetCommitRequestTopic::default()
    };
    TxnOffsetCommitRequest {
        transactional_id: ByteString::from(transactional_id),
        group_id: group.group.clone(),
        producer_id: identity.id.0,
        producer_epoch: identity.epoch.0,
        generation_id_or_member_epoch: group.generation,
        member_id: group.member_id.clone(),
        group_instance_id: group.instance_id.clone(),
        topics: by_topic(offsets.iter().cloned()).into_iter().map(topic).collect(),
    }
}

async fn send_offsets_once(
    coordinator: &Coordinator,
    request: TxnOffsetCommitRequest,
    versions: RangeInclusive<i16>,
    group: &GroupMetadata,
) -> Result<()> {
    let node = coordinator.node().await?;
    let answer = node.call_within(request, versions, Duration::ZERO).await;
    let response = answer.inspect_err(|_| coordinator.forget())?;
    let codes = response.topics.into_iter().flat_map(|topic| topic.partitions).map(|found| found.error_code);
    for code in codes.map(ErrorCode::from) {
        if code.is_none() {
            continue;
        }
        let error = coordinator.refused(ApiKey::TxnOffsetCommit, code);
        // The consumer has lost its place; that is the group's business, the transaction only has to be
        // aborted.
        return Err(match error.kind() {
            ErrorKind::Rejoin => Error::NotInGroup { group: group.group.to_string(), reason: code },
            _ if code == ErrorCode::FencedInstanceId => {
                Error::NotInGroup { group: group.group.to_string(), reason: code }
            }
            _ => error,
        });
    }
    Ok(())
}

/// Tells the coordinator that batches for these partitions will follow (before KIP-890).
pub(super) async fn add_partitions(
    core: &Core,
    identity: Identity,
    partitions: &[TopicPartition],
) -> Result<()> {
    let Some(transaction) = &core.transaction else { return Ok(()) };
    let coordinator = &transaction.coordinator;
    let mut retry = coordinator.cluster().retry("adding partitions to a transaction");
    loop {
        let topics = by_topic(partitions.iter().map(|partition| (partition.clone(), ())));
        let topic = |(name, partitions): (ByteString, Vec<(i32, ())>)| AddPartitionsToTxnTopic {
            name,
            partitions: partitions.into_iter().map(|(partition, ())| partition).collect(),
        };
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: ByteString::from(transaction.id.as_str()),
            v3_and_below_producer_id: identity.id.0,
            v3_and_below_producer_epoch: identity.epoch.0,
            v3_and_below_topics: topics.into_iter().map(topic).collect(),
            ..AddPartitionsToTxnRequest::default()
        };
        let error = match coordinator.call(request, ADD_PARTITIONS, Duration::ZERO).await {
            Ok(response) => {
                let results = response.results_by_topic_v3_and_below.into_iter();
                let codes = results
                    .flat_map(|topic| topic.results_by_partition)
                    .map(|found| found.partition_error_code);
                let refusal = codes
                    .map(ErrorCode::from)
                    .find(|code| !matches!(code, ErrorCode::None | ErrorCode::OperationNotAttempted));
                match refusal {
                    None => return Ok(()),
                    Some(code) => coordinator.refused(ApiKey::AddPartitionsToTxn, code),
                }
            }
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::Retry => retry.pause(error).await?,
            _ => return Err(error),
        }
    }
}
