//! The settings of a node under the names that Kafka's brokers have for them. None can be changed while it runs.

use bytestring::ByteString;
use thalweg_controller::TopicConfig;
use thalweg_protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResourceResult, DescribeConfigsSynonym,
};

use super::configs::source;
use crate::config::BrokerConfig;
use crate::core::Core;

/// The types of values, by the numbers of the protocol.
mod kind {
    pub(super) const BOOLEAN: i8 = 1;
    pub(super) const INT: i8 = 3;
    pub(super) const LONG: i8 = 5;
    pub(super) const LIST: i8 = 7;
}

/// A setting with a default.
struct Setting {
    name: &'static str,
    kind: i8,
    documentation: &'static str,
    /// The field of [`BrokerConfig`], as text.
    value: fn(&BrokerConfig) -> String,
}

macro_rules! settings {
    ($($name:literal: $kind:ident, $value:expr, $documentation:literal;)*) => {
        static SETTINGS: &[Setting] = &[$(Setting {
            name: $name,
            kind: kind::$kind,
            documentation: $documentation,
            value: $value,
        },)*];
    };
}

settings! {
    "num.partitions": INT, |config| config.default_partitions.to_string(),
        "Partitions of a topic that is created without saying how many.";
    "auto.create.topics.enable": BOOLEAN, |config| config.auto_create_topics.to_string(),
        "Whether a topic is created when a client first asks for it.";
    "socket.request.max.bytes": INT, |config| config.max_request_bytes.to_string(),
        "Bytes that a request may have.";
    "queued.max.request.bytes": LONG, |config| config.request_memory_bytes.to_string(),
        "Bytes of requests that may be in memory at once; sockets are not read above it.";
    "max.connections": INT, |config| config.max_connections.to_string(),
        "Connections at once.";
    "max.connections.per.ip": INT, |config| config.max_connections_per_address.to_string(),
        "Connections at once from one address.";
    "connections.max.idle.ms": LONG, |config| config.idle_connection_ms.to_string(),
        "Milliseconds without a request after which a connection is closed.";
    "fetch.max.bytes": INT, |config| config.fetch_max_bytes.to_string(),
        "Bytes of records in one answer to a fetch, whatever the client asks for.";
    "max.incremental.fetch.session.cache.slots": INT, |config| config.fetch_sessions.to_string(),
        "Fetch sessions at once.";
    "log.retention.check.interval.ms": LONG, |config| config.retention_check_interval_ms.to_string(),
        "Milliseconds between two looks for segments that are to be deleted.";
    "log.cleaner.backoff.ms": LONG, |config| config.cleaner_check_interval_ms.to_string(),
        "Milliseconds between two looks for logs that are to be compacted.";
    "log.cleaner.dedupe.buffer.size": LONG, |config| config.cleaner_memory_bytes.to_string(),
        "Bytes of memory that compaction may take for keys.";
    "log.cleaner.io.max.bytes.per.second": LONG, |config| config.cleaner_io_bytes_per_second.to_string(),
        "Bytes per second that compaction may read and write.";
    "offsets.topic.num.partitions": INT, |config| config.offsets_topic_partitions.to_string(),
        "Partitions of the topic of committed offsets, once it is made.";
    "transaction.state.log.num.partitions": INT, |config| config.transaction_topic_partitions.to_string(),
        "Partitions of the topic of transactions, once it is made.";
    "group.initial.rebalance.delay.ms": INT, |config| config.group_initial_rebalance_delay_ms.to_string(),
        "Milliseconds that an empty group waits for more members before its first rebalance.";
    "group.min.session.timeout.ms": INT, |config| config.group_min_session_timeout_ms.to_string(),
        "The shortest session timeout in ms that a member of a group may ask for.";
    "group.max.session.timeout.ms": INT, |config| config.group_max_session_timeout_ms.to_string(),
        "The longest session timeout in ms that a member of a group may ask for.";
    "group.max.size": INT, |config| config.group_max_size.to_string(),
        "Members that a group may have.";
    "offset.metadata.max.bytes": INT, |config| config.offset_metadata_max_bytes.to_string(),
        "Bytes that the metadata of a committed offset may have.";
    "offsets.retention.minutes": INT, |config| (config.offsets_retention_ms / 60_000).to_string(),
        "Minutes for which the offsets of a group without members are kept.";
    "transaction.max.timeout.ms": INT, |config| config.transaction_max_timeout_ms.to_string(),
        "The longest transaction timeout in ms that a producer may ask for.";
    "transactional.id.expiration.ms": INT, |config| config.transactional_id_expiration_ms.to_string(),
        "Milliseconds for which a transactional id is remembered without being used.";
    "delete.topic.enable": BOOLEAN, |_| true.to_string(),
        "Whether topics can be deleted.";
}

/// What tells this node from others: its name, kind, value and what it is.
fn own(core: &Core) -> Vec<(&'static str, i8, String, &'static str)> {
    let state = core.controller.state();
    let listens = core.config.listen.iter().map(|address| format!("PLAINTEXT://{address}"));
    let advertised = state.node(core.node).filter(|_| !core.config.listen.is_empty());
    let advertised = advertised.map(|node| format!("PLAINTEXT://{}:{}", node.host, node.port));
    let directory = core.partitions.logs().directory().path();
    vec![
        ("node.id", kind::INT, core.node.to_string(), "The id of the node."),
        ("broker.id", kind::INT, core.node.to_string(), "The id of the node."),
        ("listeners", kind::LIST, listens.collect::<Vec<_>>().join(","), "Where the node listens."),
        (
            "advertised.listeners",
            kind::LIST,
            advertised.unwrap_or_default(),
            "Where clients are told to connect to.",
        ),
        ("log.dirs", kind::LIST, directory.display().to_string(), "The directory that holds the logs."),
    ]
}

/// Whether a node has a setting of this name.
pub(super) fn is_known(name: &str) -> bool {
    let of_topics = TopicConfig::definitions().iter().any(|definition| definition.node_wide == Some(name));
    let is_own = matches!(name, "node.id" | "broker.id" | "listeners" | "advertised.listeners" | "log.dirs");
    of_topics || is_own || SETTINGS.iter().any(|setting| setting.name == name)
}

/// All settings but the defaults for topics.
pub(super) fn describe(core: &Core, request: &DescribeConfigsRequest) -> Vec<DescribeConfigsResourceResult> {
    let own = own(core)
        .into_iter()
        .map(|(name, kind, value, documentation)| shown(request, name, kind, documentation, value, None));
    let defaults = BrokerConfig::default();
    let with_defaults = SETTINGS.iter().map(|setting| {
        let (value, default) = ((setting.value)(&core.config), (setting.value)(&defaults));
        shown(request, setting.name, setting.kind, setting.documentation, value, Some(default))
    });
    own.chain(with_defaults).collect()
}

fn shown(
    request: &DescribeConfigsRequest,
    name: &'static str,
    config_type: i8,
    documentation: &'static str,
    value: String,
    default: Option<String>,
) -> DescribeConfigsResourceResult {
    let name = ByteString::from_static(name);
    let is_default = default.as_ref() == Some(&value);
    let synonym = |value: String, source| DescribeConfigsSynonym {
        name: name.clone(),
        value: Some(value.into()),
        source,
    };
    let set = (!is_default).then(|| synonym(value.clone(), source::NODE));
    let synonyms = set.into_iter().chain(default.map(|default| synonym(default, source::DEFAULT)));
    DescribeConfigsResourceResult {
        value: Some(value.into()),
        read_only: true,
        config_source: if is_default { source::DEFAULT } else { source::NODE },
        is_sensitive: false,
        synonyms: if request.include_synonyms { synonyms.collect() } else { Vec::new() },
        config_type,
        documentation: request.include_documentation.then(|| ByteString::from_static(documentation)),
        name,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_setting_has_a_name_of_its_own_and_says_what_it_is() {
        let topics = TopicConfig::definitions().iter().filter_map(|definition| definition.node_wide);
        let mut names: HashSet<_> = topics.collect();
        for setting in SETTINGS {
            assert!(names.insert(setting.name) && is_known(setting.name), "{}", setting.name);
            assert!(setting.documentation.ends_with('.'), "{}", setting.name);
            let value = (setting.value)(&BrokerConfig::default());
            let is_valid = match setting.kind {
                kind::BOOLEAN => value.parse::<bool>().is_ok(),
                kind::INT => value.parse::<i32>().is_ok(),
                _ => value.parse::<i64>().is_ok(),
            };
            assert!(is_valid, "{} is {value}", setting.name);
        }
        assert!(!is_known("no.such"));
    }
}
