//! What the broker knows of topics besides their metadata: which are internal, and how new ones are proposed.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_controller::{Controller, CreateTopics, NewTopic, Rejection};
use thalweg_protocol::{ErrorCode, Uuid};

use crate::config::BrokerConfig;
use crate::core::propose;
use crate::error::Refusal;

/// The topic of committed offsets and group memberships.
pub(crate) const CONSUMER_OFFSETS: &str = "__consumer_offsets";

/// The topic of transactions.
pub(crate) const TRANSACTION_STATE: &str = "__transaction_state";

/// The topic of what share groups have read.
pub(crate) const SHARE_GROUP_STATE: &str = "__share_group_state";

/// Whether a topic belongs to the broker: clients may read it but not write to it.
pub(crate) fn is_internal(name: &str) -> bool {
    matches!(name, CONSUMER_OFFSETS | TRANSACTION_STATE | SHARE_GROUP_STATE)
}

/// A new id for a topic, a cluster or a node. Ids that begin with `-` are left out: on a command line they
/// would be taken for options.
pub(crate) fn random_id() -> Uuid {
    loop {
        let id = Uuid(fastrand::u128(..).to_be_bytes());
        if !id.is_zero() && !id.to_string().starts_with('-') {
            return id;
        }
    }
}

/// The topic that is made when a client asks for `name` and there is none. Internal topics are compacted, or
/// trimmed, and have as many partitions as `config` says.
pub(crate) fn new_topic(config: &BrokerConfig, name: ByteString) -> NewTopic {
    let (partitions, configs) = match &*name {
        CONSUMER_OFFSETS => (config.offsets_topic_partitions, internal_configs()),
        TRANSACTION_STATE => (config.transaction_topic_partitions, internal_configs()),
        SHARE_GROUP_STATE => (config.share_state_topic_partitions, trimmed_configs()),
        _ => (config.default_partitions, BTreeMap::new()),
    };
    NewTopic { name, id: random_id(), partitions, replication_factor: -1, assignment: Vec::new(), configs }
}

fn internal_configs() -> BTreeMap<String, String> {
    // Segments of 16 MiB (Kafka's have 100): compaction leaves the active one alone, and all of it is read at every
    // start. A record may have 10 MiB: one holds all members of a group with their assignments.
    let configs =
        [("cleanup.policy", "compact"), ("segment.bytes", "16777216"), ("max.message.bytes", "10485760")];
    configs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Of a topic whose beginning its coordinator lets go of: records belong to the snapshots before them, so that it cannot be
/// compacted.
fn trimmed_configs() -> BTreeMap<String, String> {
    let mut configs = internal_configs();
    let trimmed = [("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")];
    configs.extend(trimmed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    configs
}

/// Makes `topic` unless there is one of its name. When this returns without an error it takes writes here.
///
/// # Errors
/// Why it cannot be made, as a code of the protocol.
pub(crate) async fn ensure(controller: &Controller, topic: NewTopic) -> Result<(), Refusal> {
    let proposal = CreateTopics { topics: vec![topic], validate_only: false };
    let mut results = propose(controller, proposal).await?;
    match results.pop() {
        Some(Ok(_) | Err(Rejection::TopicAlreadyExists { .. })) => Ok(()),
        Some(Err(rejection)) => Err(rejection.into()),
        None => Err(ErrorCode::UnknownServerError.into()),
    }
}
