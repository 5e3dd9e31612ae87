//! The configs of a topic: one row each, from which come the typed values, the checks and what
//! DescribeConfigs says.

mod value;

use std::collections::BTreeMap;

pub(crate) use value::elements;
pub use value::{
    CleanupPolicy, ConfigKind, Durability, IsolationLevel, ReplicaList, TimestampType, TopicCompression,
};
pub(crate) use value::{ConfigValue, any, at_least, between, shortened};
use value::{gzip_level, only_false};

use crate::limits;

/// What is known of one config.
#[derive(Clone, Copy, Debug)]
pub struct ConfigDefinition {
    /// Its name, as clients write it.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ConfigKind,
    /// The name of the node-wide config that Kafka has for its default (`log.…`); `None` where it has none.
    pub node_wide: Option<&'static str>,
    pub(crate) doc: &'static str,
    pub(crate) default: fn() -> String,
    pub(crate) check: fn(&str) -> Result<(), String>,
}

impl ConfigDefinition {
    /// What it is for, in a sentence or two.
    pub fn documentation(&self) -> &'static str {
        self.doc.trim_start()
    }

    /// The default, as text.
    pub fn default_value(&self) -> String {
        (self.default)()
    }

    /// The first metadata version that knows it.
    pub fn since(&self) -> u16 {
        if SINCE_2.contains(&self.name) { 2 } else { 1 }
    }

    /// Checks a value on its own; the error says what a value must be.
    pub fn check(&self, value: &str) -> Result<(), String> {
        (self.check)(value)
    }
}

/// The configs that metadata version 2 has brought.
const SINCE_2: &[&str] = &[
    "max.decompressed.message.bytes",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "remote.storage.enable",
    "local.retention.ms",
    "local.retention.bytes",
    "remote.log.copy.disable",
    "remote.copy.lag.ms",
    "remote.copy.lag.bytes",
    "remote.log.delete.on.disable",
    "errors.deadletterqueue.group.enable",
];

/// Why a config was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the config '{key}' is not valid: {reason}")]
pub struct ConfigError {
    /// The config's name.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A struct with a field for each config, and what is known of each.
macro_rules! config_table {
    ($(#[doc = $struct_doc:literal])* $table:ident { $(
        $(#[doc = $doc:literal])*
        $field:ident: $type:ty = $name:literal ($node_wide:expr), default $default:expr, $check:expr;
    )* }) => {
        $(#[doc = $struct_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $table {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        static DEFINITIONS: &[ConfigDefinition] = &[$(ConfigDefinition {
            name: $name,
            doc: concat!($($doc),*),
            kind: <$type as ConfigValue>::KIND,
            node_wide: $node_wide,
            default: || { let value: $type = $default; value.show() },
            check: |text| parse::<$type>(text, $check).map(|_| ()),
        },)*];

        impl $table {
            /// The value of a config as text; `None` if there is no such config.
            pub fn get(&self, key: &str) -> Option<String> {
                match key {
                    $($name => Some(self.$field.show()),)*
                    _ => None,
                }
            }

            fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
                match key {
                    $($name => self.$field = parse::<$type>(text, $check)?,)*
                    _ => return Err(unknown(key)),
                }
                Ok(())
            }
        }
    };
}
pub(crate) use config_table;

config_table! {
    /// The configs of a topic, as typed values.
    TopicConfig {
    /// What happens to old segments: `delete` removes them by time and size, `compact` keeps the latest
    /// record of each key, `delete,compact` does both; with an empty list they stay for ever.
    cleanup_policy: CleanupPolicy = "cleanup.policy" (Some("log.cleanup.policy")),
        default CleanupPolicy::DELETE, any;

    /// Milliseconds for which records are kept under the `delete` policy, −1 for ever. A segment goes when
    /// its latest record is older.
    retention_ms: i64 = "retention.ms" (Some("log.retention.ms")),
        default 604_800_000, at_least(-1);

    /// Bytes that a partition keeps under the `delete` policy, −1 without a limit.
    retention_bytes: i64 = "retention.bytes" (Some("log.retention.bytes")),
        default -1, at_least(-1);

    /// Bytes after which a segment is closed and the next one begun.
    segment_bytes: i32 = "segment.bytes" (Some("log.segment.bytes")),
        default 1 << 30, at_least(4_096);

    /// Milliseconds after which a segment is closed even if it is not full, so that retention and compaction
    /// reach its records.
    segment_ms: i64 = "segment.ms" (Some("log.roll.ms")),
        default 604_800_000, at_least(1);

    /// Accepted from tools that set it, without effect: a segment closes with the first record after `segment.ms`.
    segment_jitter_ms: i64 = "segment.jitter.ms" (Some("log.roll.jitter.ms")),
        default 0, at_least(0);

    /// Bytes that an offset index may have.
    segment_index_bytes: i32 = "segment.index.bytes" (Some("log.index.size.max.bytes")),
        default 10 << 20, at_least(4);

    /// Bytes of records between two index entries: fewer make look-ups read less, and indexes larger.
    index_interval_bytes: i32 = "index.interval.bytes" (Some("log.index.interval.bytes")),
        default 4_096, at_least(0);

    /// Accepted from tools that set it, without effect: files grow with what is written.
    preallocate: bool = "preallocate" (Some("log.preallocate")),
        default false, any;

    /// Milliseconds between a segment's deletion and that of its files, for the readers that still use them.
    file_delete_delay_ms: i64 = "file.delete.delay.ms" (Some("log.segment.delete.delay.ms")),
        default 60_000, at_least(0);

    /// Bytes that a record batch may have, compressed.
    max_message_bytes: i32 = "max.message.bytes" (Some("message.max.bytes")),
        default 1_048_588, at_least(0);

    /// How batches are stored: `producer` as they come, or compressed anew with the codec named here where they come with
    /// another one.
    compression_type: TopicCompression = "compression.type" (Some("compression.type")),
        default TopicCompression::Producer, any;

    /// Whose timestamps the records carry: `CreateTime` the producer's, `LogAppendTime` the log's.
    message_timestamp_type: TimestampType = "message.timestamp.type" (Some("log.message.timestamp.type")),
        default TimestampType::CreateTime, any;

    /// Milliseconds by which a producer's timestamp may lie before the node's clock.
    message_timestamp_before_max_ms: i64 = "message.timestamp.before.max.ms" (Some("log.message.timestamp.before.max.ms")),
        default i64::MAX, at_least(0);

    /// Milliseconds by which a producer's timestamp may lie after the node's clock.
    message_timestamp_after_max_ms: i64 = "message.timestamp.after.max.ms" (Some("log.message.timestamp.after.max.ms")),
        default 3_600_000, at_least(0);

    /// Replicas that must be in sync for a write with `acks=all`, the leader included. Unless it is set, it
    /// is 2 for topics with three or more replicas.
    min_insync_replicas: i32 = "min.insync.replicas" (Some("min.insync.replicas")),
        default 1, at_least(1);

    /// Accepted from tools that set it. A replica that is not in sync leads only on an operator's word,
    /// whatever is set here, because records are lost by that.
    unclean_leader_election_enable: bool = "unclean.leader.election.enable" (Some("unclean.leader.election.enable")),
        default false, any;

    /// What an acknowledgement with `acks=all` and the visibility to consumers wait for: `durable` for the
    /// disk as well, `relaxed` for the replicas only, as in Kafka: what a power cut on all of them takes is
    /// then lost.
    durability: Durability = "durability" (None),
        default Durability::Durable, any;

    /// Accepted from tools that set it, without effect: `durability=durable` waits for the disk with each record, and
    /// `relaxed` leaves it to the system.
    flush_messages: i64 = "flush.messages" (Some("log.flush.interval.messages")),
        default i64::MAX, at_least(1);

    /// Accepted from tools that set it, without effect, as `flush.messages`.
    flush_ms: i64 = "flush.ms" (Some("log.flush.interval.ms")),
        default i64::MAX, at_least(0);

    /// Milliseconds for which the deletion of a key stays visible in a compacted topic: a reader that starts
    /// at the beginning must reach the end within it to see all deletions.
    delete_retention_ms: i64 = "delete.retention.ms" (Some("log.cleaner.delete.retention.ms")),
        default 86_400_000, at_least(0);

    /// Milliseconds for which a record is safe from compaction.
    min_compaction_lag_ms: i64 = "min.compaction.lag.ms" (Some("log.cleaner.min.compaction.lag.ms")),
        default 0, at_least(0);

    /// Milliseconds after which a record is compacted at the latest.
    max_compaction_lag_ms: i64 = "max.compaction.lag.ms" (Some("log.cleaner.max.compaction.lag.ms")),
        default i64::MAX, at_least(1);

    /// The part of a log that must be uncompacted before compaction runs.
    min_cleanable_dirty_ratio: f64 = "min.cleanable.dirty.ratio" (Some("log.cleaner.min.cleanable.ratio")),
        default 0.5, between(0.0, 1.0);

    /// Accepted from tools that set it: what a batch may hold once it is decompressed has a limit of its own here.
    max_decompressed_message_bytes: i32 = "max.decompressed.message.bytes" (Some("max.decompressed.message.bytes")),
        default 2_147_483_639, between(1, 2_147_483_639);

    /// How hard gzip tries where `compression.type` is `gzip`, 1 to 9; −1 is 6.
    compression_gzip_level: i32 = "compression.gzip.level" (Some("compression.gzip.level")),
        default -1, gzip_level;

    /// Accepted from tools that set it: LZ4 has one level here.
    compression_lz4_level: i32 = "compression.lz4.level" (Some("compression.lz4.level")),
        default 9, between(1, 17);

    /// How hard Zstandard tries where `compression.type` is `zstd`.
    compression_zstd_level: i32 = "compression.zstd.level" (Some("compression.zstd.level")),
        default 3, between(-131_072, 22);

    /// Accepted from tools that set it while they move replicas, `partition:node` each or `*` for all; nothing is
    /// throttled by it.
    leader_replication_throttled_replicas: ReplicaList = "leader.replication.throttled.replicas" (None),
        default ReplicaList::default(), any;

    /// The same for the replicas that follow.
    follower_replication_throttled_replicas: ReplicaList = "follower.replication.throttled.replicas" (None),
        default ReplicaList::default(), any;

    /// Whether old segments move to a remote store. There is none, so that it can only be false.
    remote_storage_enable: bool = "remote.storage.enable" (None),
        default false, only_false;

    /// Milliseconds for which a topic with a remote store keeps records here as well, −2 as `retention.ms`.
    local_retention_ms: i64 = "local.retention.ms" (Some("log.local.retention.ms")),
        default -2, at_least(-2);

    /// Bytes that a topic with a remote store keeps here as well, −2 as `retention.bytes`.
    local_retention_bytes: i64 = "local.retention.bytes" (Some("log.local.retention.bytes")),
        default -2, at_least(-2);

    /// Whether a topic with a remote store copies nothing to it any more. There is none.
    remote_log_copy_disable: bool = "remote.log.copy.disable" (None),
        default false, only_false;

    /// Milliseconds that a segment waits before it is copied to a remote store. There is none.
    remote_copy_lag_ms: i64 = "remote.copy.lag.ms" (Some("log.remote.copy.lag.ms")),
        default 0, at_least(-1);

    /// Bytes that follow a segment before it is copied to a remote store. There is none.
    remote_copy_lag_bytes: i64 = "remote.copy.lag.bytes" (Some("log.remote.copy.lag.bytes")),
        default -1, at_least(-1);

    /// Whether what lies in a remote store is deleted when that is no longer used. There is none.
    remote_log_delete_on_disable: bool = "remote.log.delete.on.disable" (None),
        default false, only_false;

    /// Whether share groups may write to the topic what they cannot process. There are none yet.
    errors_deadletterqueue_group_enable: bool = "errors.deadletterqueue.group.enable" (None),
        default false, only_false;
}
}

impl TopicConfig {
    /// What is known of each config, in the order in which they are best read.
    pub fn definitions() -> &'static [ConfigDefinition] {
        DEFINITIONS
    }

    /// What is known of this config.
    pub fn definition(key: &str) -> Option<&'static ConfigDefinition> {
        DEFINITIONS.iter().find(|definition| definition.name == key)
    }

    /// The defaults of a topic with so many replicas.
    pub fn for_replication(factor: usize) -> Self {
        let min_insync_replicas = if factor >= 3 { 2 } else { 1 };
        Self { min_insync_replicas, ..Self::default() }
    }

    /// This config with other values in the places that `overrides` names, which were checked when they were given. What was
    /// valid in each layer need not fit together across them (a lag that is longer than the longest); it stands all the same.
    pub fn layered(mut self, overrides: &BTreeMap<String, String>) -> Self {
        for (key, text) in overrides {
            if let Err(reason) = self.set(key, text) {
                tracing::warn!(key, text, reason, "a config that is not valid any more is passed over");
            }
        }
        self
    }

    pub(crate) fn unknown(key: &str) -> ConfigError {
        ConfigError { key: key.to_owned(), reason: unknown(key) }
    }

    /// This config with other values in the places that `overrides` names. Called on a node's own defaults,
    /// it gives what that node should use for a topic with these overrides.
    pub fn with_overrides(mut self, overrides: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        for (key, text) in overrides {
            self.set(key, text).map_err(|reason| ConfigError { key: key.clone(), reason })?;
        }
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms {
            return Err(ConfigError {
                key: "min.compaction.lag.ms".to_owned(),
                reason: format!(
                    "{} is more than max.compaction.lag.ms, which is {}",
                    self.min_compaction_lag_ms, self.max_compaction_lag_ms
                ),
            });
        }
        Ok(self)
    }
}

pub(crate) fn parse<V: ConfigValue>(
    text: &str,
    check: impl Fn(&V) -> Result<(), String>,
) -> Result<V, String> {
    if text.len() > limits::MAX_CONFIG_VALUE {
        return Err(format!("a value may have {} bytes at most", limits::MAX_CONFIG_VALUE));
    }
    let value = V::read(text.trim())?;
    check(&value)?;
    Ok(value)
}

/// Says that there is no such config, and which one may be meant.
fn unknown(key: &str) -> String {
    let wanted: String =
        key.chars().take(64).map(|c| if c == '_' { '.' } else { c.to_ascii_lowercase() }).collect();
    match DEFINITIONS
        .iter()
        .find(|definition| definition.name == wanted || definition.node_wide == Some(&wanted))
    {
        Some(definition) => format!("topics have no such config; did you mean '{}'?", definition.name),
        None => "topics have no such config".to_owned(),
    }
}

#[cfg(test)]
mod tests;
