use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn set(pairs: &[(&str, &str)]) -> Result<TopicConfig, ConfigError> {
    let overrides: BTreeMap<String, String> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    TopicConfig::default().with_overrides(&overrides)
}

#[test]
fn every_definition_accepts_its_own_default_and_says_what_it_is_for() {
    let mut names = BTreeSet::new();
    for definition in TopicConfig::definitions() {
        assert!(names.insert(definition.name), "{} is there twice", definition.name);
        assert_eq!(definition.check(&definition.default_value()), Ok(()), "{}", definition.name);
        assert_eq!(TopicConfig::default().get(definition.name), Some(definition.default_value()));
        assert!(definition.documentation().ends_with('.'), "{}", definition.name);
    }
}

#[test]
fn values_are_typed() {
    let config = set(&[
        ("cleanup.policy", " compact , delete"),
        ("retention.ms", "-1"),
        ("preallocate", "TRUE"),
        ("durability", "relaxed"),
        ("compression.type", "zstd"),
        ("message.timestamp.type", "LogAppendTime"),
        ("min.cleanable.dirty.ratio", "0.25"),
    ])
    .expect("all are valid");
    assert_eq!(config.cleanup_policy, CleanupPolicy { delete: true, compact: true });
    assert_eq!(config.retention_ms, -1);
    assert!(config.preallocate);
    assert_eq!(config.durability, Durability::Relaxed);
    assert_eq!(config.compression_type, TopicCompression::Zstd);
    assert_eq!(config.message_timestamp_type, TimestampType::LogAppendTime);
    assert_eq!(config.min_cleanable_dirty_ratio, 0.25);
    assert_eq!(config.get("cleanup.policy").as_deref(), Some("delete,compact"));
    assert_eq!(config.get("no.such"), None);
}

#[test]
fn what_is_not_valid_is_named() {
    let check = |key: &str, value: &str, reason: &str| {
        let error = set(&[(key, value)]).expect_err(key);
        assert_eq!((error.key.as_str(), error.reason.as_str()), (key, reason));
    };
    check("retention.ms", "-2", "-2 is less than -1");
    check("retention.ms", "a week", "'a week' is not a 64-bit integer");
    check("segment.bytes", "3000000000", "'3000000000' is not a 32-bit integer");
    check("segment.bytes", "14", "14 is less than 4096");
    check("min.cleanable.dirty.ratio", "1.5", "1.5 is not between 0 and 1");
    check("min.cleanable.dirty.ratio", "NaN", "NaN is not between 0 and 1");
    check("preallocate", "yes", "'yes' is neither true nor false");
    check("cleanup.policy", "delete,burn", "'burn' is neither delete nor compact");
    check("durability", "high", "'high' is none of durable, relaxed");
    check("min.insync.replicas", "0", "0 is less than 1");
    check("retention", "1", "topics have no such config");
    check("retention_ms", "1", "topics have no such config; did you mean 'retention.ms'?");
    check("log.retention.ms", "1", "topics have no such config; did you mean 'retention.ms'?");
    let long = "1".repeat(limits::MAX_CONFIG_VALUE + 1);
    check("retention.ms", &long, "a value may have 8192 bytes at most");

    let error = set(&[("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "9")]).expect_err("crossed");
    assert_eq!(error.reason, "10 is more than max.compaction.lag.ms, which is 9");
}

#[test]
fn three_replicas_ask_for_two_in_sync() {
    assert_eq!(TopicConfig::for_replication(1).min_insync_replicas, 1);
    assert_eq!(TopicConfig::for_replication(2).min_insync_replicas, 1);
    assert_eq!(TopicConfig::for_replication(3).min_insync_replicas, 2);
}
