//! The settings of a node under the names that Kafka's brokers have for them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use thalweg_controller::TopicConfig;

use crate::config::{BrokerConfig, GroupMigrationPolicy};
use crate::error::Error;

/// The types of values, by the numbers of the protocol.
pub(crate) mod kind {
    pub(crate) const BOOLEAN: i8 = 1;
    pub(crate) const STRING: i8 = 2;
    pub(crate) const INT: i8 = 3;
    pub(crate) const LONG: i8 = 5;
    pub(crate) const LIST: i8 = 7;
}

/// A setting with a default.
pub(crate) struct NodeSetting {
    pub(crate) name: &'static str,
    /// The type of its values.
    pub(crate) kind: i8,
    /// What it is for, in a sentence.
    pub(crate) documentation: &'static str,
    /// The field of [`BrokerConfig`], as text.
    pub(crate) value: fn(&BrokerConfig) -> String,
    /// Sets the field from text; the error says what a value must be.
    set: fn(&mut BrokerConfig, &str) -> Result<(), String>,
}

macro_rules! settings {
    ($($name:literal: $kind:ident, $field:ident, $least:expr, $documentation:literal;)*) => {
        static SETTINGS: &[NodeSetting] = &[$(NodeSetting {
            name: $name,
            kind: kind::$kind,
            documentation: $documentation,
            value: |config| config.$field.to_string(),
            set: |config, text| {
                config.$field = parse(text, $least)?;
                Ok(())
            },
        },)*
        NodeSetting {
            name: "offsets.retention.minutes",
            kind: kind::INT,
            documentation: "Minutes for which the offsets of a group without members are kept.",
            value: |config| (config.offsets_retention_ms / 60_000).to_string(),
            set: |config, text| {
                config.offsets_retention_ms = i64::from(parse::<i32>(text, 1)?) * 60_000;
                Ok(())
            },
        },
        NodeSetting {
            name: "group.consumer.migration.policy",
            kind: kind::STRING,
            documentation: "Which groups with members may change from one protocol to the other: disabled, upgrade, downgrade or bidirectional.",
            value: |config| config.group_consumer_migration_policy.word().to_owned(),
            set: |config, text| {
                let policies = GroupMigrationPolicy::ALL;
                let policy = policies.into_iter().find(|policy| policy.word().eq_ignore_ascii_case(text));
                config.group_consumer_migration_policy = policy.ok_or("it is none of disabled, upgrade, downgrade, bidirectional")?;
                Ok(())
            },
        },
        NodeSetting {
            name: "delete.topic.enable",
            kind: kind::BOOLEAN,
            documentation: "Whether topics can be deleted.",
            value: |_| true.to_string(),
            set: |_, text| match parse(text, false)? {
                true => Ok(()),
                false => Err("it can only be true here".to_owned()),
            },
        }];
    };
}

settings! {
    "num.partitions": INT, default_partitions, 1,
        "Partitions of a topic that is created without saying how many.";
    "auto.create.topics.enable": BOOLEAN, auto_create_topics, false,
        "Whether a topic is created when a client first asks for it.";
    "socket.request.max.bytes": INT, max_request_bytes, 1,
        "Bytes that a request may have.";
    "queued.max.request.bytes": LONG, request_memory_bytes, 1,
        "Bytes of requests that may be in memory at once; sockets are not read above it.";
    "max.connections": INT, max_connections, 1,
        "Connections at once.";
    "max.connections.per.ip": INT, max_connections_per_address, 1,
        "Connections at once from one address.";
    "connections.max.idle.ms": LONG, idle_connection_ms, 1,
        "Milliseconds without a request after which a connection is closed.";
    "fetch.max.bytes": INT, fetch_max_bytes, 1024,
        "Bytes of records in one answer to a fetch, whatever the client asks for.";
    "max.incremental.fetch.session.cache.slots": INT, fetch_sessions, 0,
        "Fetch sessions at once.";
    "log.retention.check.interval.ms": LONG, retention_check_interval_ms, 1,
        "Milliseconds between two looks for segments that are to be deleted.";
    "log.cleaner.backoff.ms": LONG, cleaner_check_interval_ms, 1,
        "Milliseconds between two looks for logs that are to be compacted.";
    "log.cleaner.dedupe.buffer.size": LONG, cleaner_memory_bytes, 1,
        "Bytes of memory that compaction may take for keys.";
    "log.cleaner.io.max.bytes.per.second": LONG, cleaner_io_bytes_per_second, 1,
        "Bytes per second that compaction may read and write.";
    "offsets.topic.num.partitions": INT, offsets_topic_partitions, 1,
        "Partitions of the topic of committed offsets, once it is made.";
    "transaction.state.log.num.partitions": INT, transaction_topic_partitions, 1,
        "Partitions of the topic of transactions, once it is made.";
    "group.initial.rebalance.delay.ms": INT, group_initial_rebalance_delay_ms, 0,
        "Milliseconds that an empty group waits for more members before its first rebalance.";
    "group.min.session.timeout.ms": INT, group_min_session_timeout_ms, 0,
        "The shortest session timeout in ms that a member of a group may ask for.";
    "group.max.session.timeout.ms": INT, group_max_session_timeout_ms, 0,
        "The longest session timeout in ms that a member of a group may ask for.";
    "group.max.size": INT, group_max_size, 1,
        "Members that a group may have.";
    "group.consumer.heartbeat.interval.ms": INT, group_consumer_heartbeat_interval_ms, 1,
        "Milliseconds between two heartbeats of a member of the consumer protocol.";
    "group.consumer.session.timeout.ms": INT, group_consumer_session_timeout_ms, 1,
        "Milliseconds without a heartbeat after which a member of the consumer protocol is given up.";
    "group.consumer.max.size": INT, group_consumer_max_size, 1,
        "Members that a group of the consumer protocol may have.";
    "group.share.heartbeat.interval.ms": INT, group_share_heartbeat_interval_ms, 1,
        "Milliseconds between two heartbeats of a member of a share group.";
    "group.share.session.timeout.ms": INT, group_share_session_timeout_ms, 1,
        "Milliseconds without a heartbeat after which a member of a share group is given up.";
    "group.share.max.size": INT, group_share_max_size, 1,
        "Members that a share group may have.";
    "group.share.record.lock.duration.ms": INT, group_share_record_lock_duration_ms, 1,
        "Milliseconds for which a member of a share group may have a record.";
    "group.share.delivery.count.limit": INT, group_share_delivery_count_limit, 1,
        "How often a record is delivered to a share group at most.";
    "group.share.partition.max.record.locks": INT, group_share_partition_max_record_locks, 1,
        "Records of a partition that a share group may have before it.";
    "group.share.max.share.sessions": INT, group_share_max_share_sessions, 1,
        "Sessions of members of share groups at once.";
    "share.coordinator.state.topic.num.partitions": INT, share_state_topic_partitions, 1,
        "Partitions of the topic of what share groups have read, once it is made.";
    "offset.metadata.max.bytes": INT, offset_metadata_max_bytes, 0,
        "Bytes that the metadata of a committed offset may have.";
    "transaction.max.timeout.ms": INT, transaction_max_timeout_ms, 1,
        "The longest transaction timeout in ms that a producer may ask for.";
    "transactional.id.expiration.ms": INT, transactional_id_expiration_ms, 1,
        "Milliseconds for which a transactional id is remembered without being used.";
}

impl NodeSetting {
    /// All of them.
    pub(crate) fn all() -> &'static [Self] {
        SETTINGS
    }

    /// The setting of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    fn set(&self, config: &mut BrokerConfig, text: &str) -> Result<(), String> {
        let is_of_kind = match self.kind {
            kind::BOOLEAN => text.parse::<bool>().is_ok(),
            kind::INT => text.parse::<i32>().is_ok(),
            kind::LONG => text.parse::<i64>().is_ok(),
            _ => true,
        };
        match self.kind {
            _ if is_of_kind => (self.set)(config, text),
            kind::BOOLEAN => Err(format!("{text:?} is neither true nor false")),
            kind::INT => Err(format!("{text:?} is not a 32-bit integer")),
            _ => Err(format!("{text:?} is not a 64-bit integer")),
        }
    }
}

impl BrokerConfig {
    /// What [`BrokerConfig::set`] knows, by name: the default of each, and what it is for, in a sentence or two.
    pub fn settings() -> BTreeMap<&'static str, (String, &'static str)> {
        let defaults = Self::default();
        let own = SETTINGS
            .iter()
            .map(|setting| (setting.name, ((setting.value)(&defaults), setting.documentation)));
        let of_topics = TopicConfig::definitions().iter().filter_map(|definition| {
            Some((definition.node_wide?, (definition.default_value(), definition.documentation())))
        });
        own.chain(of_topics).collect()
    }

    /// Sets what Kafka calls `name` (`group.initial.rebalance.delay.ms`, `log.retention.ms`, …): a setting of the node, or
    /// under the name that it has there the default of a topic's config.
    ///
    /// # Errors
    /// [`Error::Setting`] for a name that there is not and a value that it cannot have.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let wrong = |reason| Error::Setting { name: name.to_owned(), reason };
        let value = value.trim();
        if let Some(setting) = NodeSetting::find(name) {
            return setting.set(self, value).map_err(wrong);
        }
        let definition =
            TopicConfig::definitions().iter().find(|definition| definition.node_wide == Some(name));
        let definition = definition.ok_or_else(|| wrong("there is no such setting".to_owned()))?;
        definition.check(value).map_err(wrong)?;
        self.topic_defaults.insert(definition.name.to_owned(), value.to_owned());
        Ok(())
    }
}

fn parse<V: FromStr + PartialOrd + Display>(text: &str, least: V) -> Result<V, String> {
    match text.parse::<V>() {
        Ok(value) if value >= least => Ok(value),
        _ => Err(format!("{text} is less than {least}")),
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
            assert!(names.insert(setting.name), "{}", setting.name);
            assert!(setting.documentation.ends_with('.'), "{}", setting.name);
            // Its default is one of the values it may be set to.
            let mut config = BrokerConfig::default();
            let value = (setting.value)(&config);
            config.set(setting.name, &value).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(config, BrokerConfig::default(), "{}", setting.name);
        }
    }

    #[test]
    fn settings_are_set_by_name() {
        let check = |name: &str, text: &str, expected: Result<&str, &str>| {
            let mut config = BrokerConfig::default();
            let set = config.set(name, text).map_err(|error| error.to_string());
            match (set, expected) {
                (Ok(()), Ok(value)) => {
                    let definition = TopicConfig::definitions()
                        .iter()
                        .find(|definition| definition.node_wide == Some(name));
                    let shown = match (NodeSetting::find(name), definition) {
                        (Some(setting), _) => (setting.value)(&config),
                        (None, Some(definition)) => config.topic_defaults[definition.name].clone(),
                        (None, None) => panic!("{name}"),
                    };
                    assert_eq!(shown, value, "{name}");
                }
                (Err(error), Err(reason)) => {
                    assert_eq!(error, format!("the setting {name} is invalid: {reason}"));
                    assert_eq!(config, BrokerConfig::default(), "{name}");
                }
                (set, _) => panic!("{name}={text}: {set:?}"),
            }
        };
        check("group.initial.rebalance.delay.ms", "3000", Ok("3000"));
        check("group.min.session.timeout.ms", " 1000 ", Ok("1000"));
        check("offsets.retention.minutes", "5", Ok("5"));
        check("auto.create.topics.enable", "false", Ok("false"));
        check("group.consumer.migration.policy", "Upgrade", Ok("upgrade"));
        check("log.retention.ms", "7000", Ok("7000"));
        check("log.retention.ms", "soon", Err("'soon' is not a 64-bit integer"));
        check("group.max.size", "0", Err("0 is less than 1"));
        check("group.max.size", "-5", Err("-5 is less than 1"));
        check("group.max.size", "4294967296", Err("\"4294967296\" is not a 32-bit integer"));
        check("num.partitions", "many", Err("\"many\" is not a 32-bit integer"));
        check("auto.create.topics.enable", "yes", Err("\"yes\" is neither true nor false"));
        check("delete.topic.enable", "false", Err("it can only be true here"));
        check(
            "group.consumer.migration.policy",
            "sideways",
            Err("it is none of disabled, upgrade, downgrade, bidirectional"),
        );
        check("retention.ms", "7000", Err("there is no such setting"));
    }
}
