//! Configs of topics and of nodes: what is shown, and what can be changed.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_broker::AllowAll;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::alter_configs::{self, AlterConfigsRequest};
use thalweg_protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
};
use thalweg_protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use thalweg_protocol::messages::list_config_resources::ListConfigResourcesRequest;
use thalweg_protocol::messages::produce::ProduceResponse;

use crate::calls::{batch, create_topic, create_topic_with, produce_request};
use crate::consumer_groups::join;
use crate::grouping::find_coordinator;
use crate::harness::{Client, Harness, Way, three_ways};

three_ways!(
    every_config_of_a_topic_is_shown,
    lists_grow_and_shrink,
    what_a_node_is_started_with_cannot_be_changed,
    a_node_is_given_other_defaults_for_topics,
    what_does_not_fit_across_layers_leaves_the_rest_alone,
    groups_have_configs_of_their_own,
    configs_are_replaced_as_a_whole,
);

const TOPIC: i8 = 2;
const NODE: i8 = 4;
const GROUP: i8 = 32;

type Shown = BTreeMap<String, DescribeConfigsResourceResult>;

async fn describe(
    client: &Client,
    resource: (i8, &str),
    keys: Option<&[&str]>,
    change: impl FnOnce(&mut DescribeConfigsRequest),
) -> Result<Shown, ErrorCode> {
    let resource = DescribeConfigsResource {
        resource_type: resource.0,
        resource_name: resource.1.into(),
        configuration_keys: keys.map(|keys| keys.iter().map(|&key| key.into()).collect()),
    };
    let mut request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    change(&mut request);
    let result = client.call(request, 4).await.results.remove(0);
    match ErrorCode::from(result.error_code) {
        ErrorCode::None => {
            Ok(result.configs.into_iter().map(|config| (config.name.to_string(), config)).collect())
        }
        code => Err(code),
    }
}

async fn every_config_of_a_topic_is_shown(harness: &Harness) {
    let client = harness.connect().await;
    create_topic_with(&client, "t", 1, &[("retention.ms", "1000000"), ("compression.zstd.level", "7")]).await;
    let whole = |request: &mut DescribeConfigsRequest| {
        (request.include_synonyms, request.include_documentation) = (true, true);
    };
    let shown = describe(&client, (TOPIC, "t"), None, whole).await.expect("it is there");
    // What clients of Kafka 4.4 may set.
    for (name, default) in [
        ("cleanup.policy", "delete"),
        ("compression.gzip.level", "-1"),
        ("compression.lz4.level", "9"),
        ("compression.type", "producer"),
        ("delete.retention.ms", "86400000"),
        ("errors.deadletterqueue.group.enable", "false"),
        ("file.delete.delay.ms", "60000"),
        ("flush.messages", "9223372036854775807"),
        ("flush.ms", "9223372036854775807"),
        ("follower.replication.throttled.replicas", ""),
        ("index.interval.bytes", "4096"),
        ("leader.replication.throttled.replicas", ""),
        ("local.retention.bytes", "-2"),
        ("local.retention.ms", "-2"),
        ("max.compaction.lag.ms", "9223372036854775807"),
        ("max.decompressed.message.bytes", "2147483639"),
        ("max.message.bytes", "1048588"),
        ("message.timestamp.after.max.ms", "3600000"),
        ("message.timestamp.before.max.ms", "9223372036854775807"),
        ("message.timestamp.type", "CreateTime"),
        ("min.cleanable.dirty.ratio", "0.5"),
        ("min.compaction.lag.ms", "0"),
        ("min.insync.replicas", "1"),
        ("preallocate", "false"),
        ("remote.copy.lag.bytes", "-1"),
        ("remote.copy.lag.ms", "0"),
        ("remote.log.copy.disable", "false"),
        ("remote.log.delete.on.disable", "false"),
        ("remote.storage.enable", "false"),
        ("retention.bytes", "-1"),
        ("segment.bytes", "1073741824"),
        ("segment.index.bytes", "10485760"),
        ("segment.jitter.ms", "0"),
        ("segment.ms", "604800000"),
        ("unclean.leader.election.enable", "false"),
    ] {
        let config = shown.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!((config.value.as_deref(), config.config_source), (Some(default), 5), "{name}");
        assert_eq!((config.is_sensitive, config.read_only), (false, false), "{name}");
        let synonym = config.synonyms.last().expect("the default is one");
        assert_eq!((synonym.source, synonym.value.as_deref()), (5, Some(default)), "{name}");
        assert!(config.documentation.as_ref().is_some_and(|text| text.ends_with('.')), "{name}");
    }
    for (name, value) in [("retention.ms", "1000000"), ("compression.zstd.level", "7")] {
        assert_eq!((shown[name].value.as_deref(), shown[name].config_source), (Some(value), 1));
        let sources: Vec<_> = shown[name].synonyms.iter().map(|synonym| synonym.source).collect();
        assert_eq!(sources, [1, 5], "{name}");
    }
    let wanted: &[&str] = &["retention.ms", "no.such"];
    let shown = describe(&client, (TOPIC, "t"), Some(wanted), |_| {}).await.expect("it is there");
    assert_eq!(shown.len(), 1);
    let config = &shown["retention.ms"];
    assert!(config.synonyms.is_empty() && config.documentation.is_none(), "nobody asked for them");
    let missing = describe(&client, (TOPIC, "nowhere"), None, |_| {}).await;
    assert_eq!(missing.err(), Some(ErrorCode::UnknownTopicOrPartition));
}

async fn alter(
    client: &Client,
    resource: (i8, &str),
    changes: &[(&str, i8, Option<&str>)],
    validate_only: bool,
) -> (ErrorCode, String) {
    let changes = changes.iter().map(|&(name, config_operation, value)| AlterableConfig {
        name: name.into(),
        config_operation,
        value: value.map(Into::into),
    });
    let resource = AlterConfigsResource {
        resource_type: resource.0,
        resource_name: resource.1.into(),
        configs: changes.collect(),
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
    let answer = client.call(request, 1).await.responses.remove(0);
    (answer.error_code.into(), answer.error_message.unwrap_or_default().to_string())
}

async fn value(client: &Client, topic: &str, name: &str) -> String {
    let shown = describe(client, (TOPIC, topic), Some(&[name]), |_| {}).await.expect("it is there");
    shown[name].value.as_deref().unwrap_or_default().to_owned()
}

async fn lists_grow_and_shrink(harness: &Harness) {
    let (set, delete, append, subtract) = (0, 1, 2, 3);
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let throttled = "leader.replication.throttled.replicas";
    for (name, operation, operand, expected, after) in [
        ("cleanup.policy", append, Some("compact"), ErrorCode::None, "delete,compact"),
        ("cleanup.policy", append, Some("compact"), ErrorCode::None, "delete,compact"),
        ("cleanup.policy", subtract, Some("delete"), ErrorCode::None, "compact"),
        ("cleanup.policy", append, Some("burn"), ErrorCode::InvalidConfig, "compact"),
        ("cleanup.policy", delete, None, ErrorCode::None, "delete"),
        (throttled, append, Some("0:1,1:1"), ErrorCode::None, "0:1,1:1"),
        (throttled, subtract, Some("0:1"), ErrorCode::None, "1:1"),
        (throttled, set, Some("everything"), ErrorCode::InvalidConfig, "1:1"),
        (throttled, set, Some("*"), ErrorCode::None, "*"),
        ("retention.ms", append, Some("1"), ErrorCode::InvalidConfig, "604800000"),
        ("retention.ms", set, None, ErrorCode::InvalidRequest, "604800000"),
        ("retention.ms", 9, Some("1"), ErrorCode::InvalidRequest, "604800000"),
        ("remote.storage.enable", set, Some("true"), ErrorCode::InvalidConfig, "false"),
        ("remote.storage.enable", set, Some("false"), ErrorCode::None, "false"),
    ] {
        let (code, message) = alter(&client, (TOPIC, "t"), &[(name, operation, operand)], false).await;
        assert_eq!(code, expected, "{name} {operation} {operand:?}: {message}");
        assert_eq!(value(&client, "t", name).await, after, "{name} {operation} {operand:?}");
    }
    // All changes to a topic are carried out or none; and none that is only validated.
    let half = [("retention.ms", set, Some("5")), ("segment.ms", set, Some("never"))];
    assert_eq!(alter(&client, (TOPIC, "t"), &half, false).await.0, ErrorCode::InvalidConfig);
    assert_eq!(alter(&client, (TOPIC, "t"), &half[..1], true).await.0, ErrorCode::None);
    assert_eq!(alter(&client, (TOPIC, "t"), &half[1..], true).await.0, ErrorCode::InvalidConfig);
    assert_eq!(value(&client, "t", "retention.ms").await, "604800000");
    let unknown = [("no.such", set, Some("1"))];
    assert_eq!(alter(&client, (TOPIC, "t"), &unknown, false).await.0, ErrorCode::InvalidConfig);
}

async fn what_a_node_is_started_with_cannot_be_changed(harness: &Harness) {
    let client = harness.connect().await;
    for (resource, name, expected) in [
        ((NODE, "1"), "num.partitions", ErrorCode::InvalidRequest),
        ((NODE, ""), "group.initial.rebalance.delay.ms", ErrorCode::InvalidRequest),
        ((NODE, "2"), "log.retention.ms", ErrorCode::InvalidRequest),
        ((NODE, "1"), "no.such", ErrorCode::InvalidConfig),
        ((8, "1"), "kafka.server", ErrorCode::InvalidRequest),
        ((16, "metrics"), "interval.ms", ErrorCode::InvalidRequest),
    ] {
        let (code, message) = alter(&client, resource, &[(name, 0, Some("1"))], false).await;
        assert_eq!(code, expected, "{resource:?} {name}");
        assert!(
            !message.is_empty() && (resource.0 != NODE || resource.1 == "2" || message.contains(name)),
            "{message}"
        );
    }
    let shown = describe(&client, (NODE, "1"), None, |_| {}).await.expect("it is there");
    assert_eq!(shown["node.id"].value.as_deref(), Some("1"));
    for (name, value, read_only) in [
        ("num.partitions", "1", true),
        ("log.retention.ms", "604800000", false),
        ("fetch.max.bytes", "57671680", true),
        ("background.threads", "10", false),
    ] {
        let config = &shown[name];
        assert_eq!((config.value.as_deref(), config.config_source), (Some(value), 5), "{name}");
        assert_eq!(config.read_only, read_only, "{name}");
    }
    assert!(shown.values().all(|config| !config.is_sensitive));
    assert!(describe(&client, (NODE, ""), None, |_| {}).await.expect("nothing").is_empty());
    assert_eq!(describe(&client, (NODE, "2"), None, |_| {}).await.err(), Some(ErrorCode::InvalidRequest));
    assert!(describe(&client, (16, "metrics"), None, |_| {}).await.expect("nothing").is_empty());
    assert_eq!(describe(&client, (8, "1"), None, |_| {}).await.err(), Some(ErrorCode::InvalidRequest));
}

/// The value of a config, and each of its synonyms with where it comes from.
async fn synonyms(client: &Client, resource: (i8, &str), name: &str) -> (String, Vec<(String, i8)>) {
    let with_synonyms = |request: &mut DescribeConfigsRequest| request.include_synonyms = true;
    let shown = describe(client, resource, Some(&[name]), with_synonyms).await.expect("it is there");
    let Some(config) = shown.get(name) else { return Default::default() };
    let text = |value: &Option<ByteString>| value.as_deref().unwrap_or_default().to_owned();
    let synonyms: Vec<_> =
        config.synonyms.iter().map(|synonym| (text(&synonym.value), synonym.source)).collect();
    assert_eq!(synonyms[0].1, config.config_source);
    (text(&config.value), synonyms)
}

async fn a_node_is_given_other_defaults_for_topics(harness: &Harness) {
    let (set, delete, append) = (0, 1, 2);
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    create_topic_with(&client, "own", 1, &[("retention.ms", "5")]).await;
    let default = || ("604800000".to_owned(), 5);
    for (resource, change, synonyms_of_node) in [
        (NODE_1, ("log.retention.ms", set, Some("7")), vec![("7".to_owned(), 2), default()]),
        (ALL_NODES, ("log.retention.ms", set, Some("8")), vec![("7".into(), 2), ("8".into(), 3), default()]),
        (NODE_1, ("log.retention.ms", delete, None), vec![("8".into(), 3), default()]),
        (ALL_NODES, ("log.retention.ms", delete, None), vec![default()]),
    ] {
        assert_eq!(alter(&client, resource, &[change], false).await, (ErrorCode::None, String::new()));
        let effective = synonyms_of_node[0].0.clone();
        let shown = synonyms(&client, NODE_1, "log.retention.ms").await;
        assert_eq!(shown, (effective.clone(), synonyms_of_node), "{change:?}");
        assert_eq!(value(&client, "t", "retention.ms").await, effective);
        assert_eq!(value(&client, "own", "retention.ms").await, "5");
        let of_all = describe(&client, ALL_NODES, None, |_| {}).await.expect("it is there");
        let is_given = shown.1.iter().any(|&(_, source)| source == 3);
        assert_eq!(
            of_all.keys().map(String::as_str).collect::<Vec<_>>(),
            &["log.retention.ms"][..is_given.into()]
        );
    }
    // It takes effect at once, on the topics that are there.
    let large = batch(["x".repeat(2000)]);
    let refused = [("message.max.bytes", set, Some("1000"))];
    assert_eq!(alter(&client, NODE_1, &refused, false).await.0, ErrorCode::None);
    let answer = client.call(produce_request("t", -1, vec![(0, large.clone())]), 9).await;
    let code =
        |answer: &ProduceResponse| ErrorCode::from(answer.responses[0].partition_responses[0].error_code);
    assert_eq!(code(&answer), ErrorCode::MessageTooLarge);
    assert_eq!(
        alter(&client, NODE_1, &[("message.max.bytes", delete, None)], false).await.0,
        ErrorCode::None
    );
    let answer = client.call(produce_request("t", -1, vec![(0, large)]), 9).await;
    assert_eq!(code(&answer), ErrorCode::None);
    // Lists begin with what they are; what has no effect is kept and shown.
    let several = [("log.cleanup.policy", append, Some("compact")), ("background.threads", set, Some("9"))];
    assert_eq!(alter(&client, NODE_1, &several, false).await.0, ErrorCode::None);
    assert_eq!(synonyms(&client, NODE_1, "log.cleanup.policy").await.0, "delete,compact");
    assert_eq!(synonyms(&client, NODE_1, "background.threads").await.0, "9");
    assert_eq!(
        alter(&client, NODE_1, &[("log.retention.ms", set, Some("soon"))], false).await.0,
        ErrorCode::InvalidConfig
    );
}

/// Each of two lags is valid where it was given, and together they cross. Nothing else that was given may be lost by that.
async fn what_does_not_fit_across_layers_leaves_the_rest_alone(harness: &Harness) {
    let set = 0;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    create_topic(&client, "other", 1).await;
    let done = (ErrorCode::None, String::new());
    let of_node =
        [("log.retention.ms", set, Some("-1")), ("log.cleaner.min.compaction.lag.ms", set, Some("10000"))];
    assert_eq!(alter(&client, ALL_NODES, &of_node, false).await, done);
    let of_topic = [("max.compaction.lag.ms", set, Some("5000"))];
    assert_eq!(alter(&client, (TOPIC, "t"), &of_topic, false).await, done);
    for (topic, max) in [("t", "5000"), ("other", "9223372036854775807")] {
        assert_eq!(value(&client, topic, "retention.ms").await, "-1", "{topic}");
        assert_eq!(value(&client, topic, "min.compaction.lag.ms").await, "10000", "{topic}");
        assert_eq!(value(&client, topic, "max.compaction.lag.ms").await, max, "{topic}");
    }
    let of_node = [("log.cleaner.max.compaction.lag.ms", set, Some("6000"))];
    assert_eq!(alter(&client, NODE_1, &of_node, false).await, done);
    assert_eq!(value(&client, "other", "retention.ms").await, "-1");
    assert_eq!(value(&client, "other", "max.compaction.lag.ms").await, "6000");
}

const NODE_1: (i8, &str) = (NODE, "1");
const ALL_NODES: (i8, &str) = (NODE, "");

async fn groups_have_configs_of_their_own(harness: &Harness) {
    let (set, delete) = (0, 1);
    let client = harness.connect().await;
    let (timeout, interval) = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms");
    let group = (GROUP, "g");
    for (name, change, expected, shown) in [
        (timeout, (set, Some("50000")), ErrorCode::None, vec![("50000", 8), ("45000", 5)]),
        (timeout, (set, Some("1")), ErrorCode::InvalidConfig, vec![("50000", 8), ("45000", 5)]),
        ("no.such", (set, Some("1")), ErrorCode::InvalidConfig, vec![]),
        (timeout, (delete, None), ErrorCode::None, vec![("45000", 5)]),
        (interval, (set, Some("7000")), ErrorCode::None, vec![("7000", 8), ("5000", 5)]),
    ] {
        let (code, message) = alter(&client, group, &[(name, change.0, change.1)], false).await;
        assert_eq!(code, expected, "{name} {change:?}: {message}");
        let found = synonyms(&client, group, name).await;
        let expected: Vec<_> = shown.iter().map(|&(value, source)| (value.to_owned(), source)).collect();
        assert_eq!(found.1, expected, "{name} {change:?}");
    }
    let listed = client.call(ListConfigResourcesRequest { resource_types: vec![GROUP] }, 1).await;
    let listed: Vec<_> = listed.config_resources.iter().map(|resource| &*resource.resource_name).collect();
    assert_eq!(listed, ["g"]);
    // Members are told at once, those of other groups are not.
    create_topic(&client, "t", 1).await;
    for (id, expected) in [("g", 7_000), ("other", 5_000)] {
        find_coordinator(&client, id, 0).await;
        let answer = client.call(join(id, "m", &["t"]), 1).await;
        assert_eq!((answer.error_code, answer.heartbeat_interval_ms), (0, expected));
    }
    assert_eq!(alter(&client, group, &[(interval, delete, None)], false).await.0, ErrorCode::None);
    let answer = client.call(join("g", "m", &["t"]), 1).await;
    assert_eq!((answer.error_code, answer.heartbeat_interval_ms), (0, 5_000));
    assert_eq!(
        alter(&client, (GROUP, ""), &[(interval, delete, None)], false).await.0,
        ErrorCode::InvalidRequest
    );
    assert_eq!(describe(&client, (GROUP, ""), None, |_| {}).await.err(), Some(ErrorCode::InvalidRequest));
}

async fn configs_are_replaced_as_a_whole(harness: &Harness) {
    let client = harness.connect().await;
    create_topic_with(&client, "t", 1, &[("retention.ms", "5000"), ("segment.ms", "9000")]).await;
    let replace = |name: &str, value: &str, validate_only| AlterConfigsRequest {
        resources: vec![alter_configs::AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: "t".into(),
            configs: vec![alter_configs::AlterableConfig { name: name.into(), value: Some(value.into()) }],
        }],
        validate_only,
    };
    for (request, expected, retention, segment) in [
        (replace("retention.ms", "6000", true), ErrorCode::None, "5000", "9000"),
        (replace("retention.ms", "soon", false), ErrorCode::InvalidConfig, "5000", "9000"),
        (replace("retention.ms", "6000", false), ErrorCode::None, "6000", "604800000"),
    ] {
        let response = client.call(request, 2).await;
        assert_eq!(ErrorCode::from(response.responses[0].error_code), expected);
        assert_eq!(value(&client, "t", "retention.ms").await, retention);
        assert_eq!(value(&client, "t", "segment.ms").await, segment);
    }
}

#[tokio::test]
async fn what_nodes_and_groups_are_given_outlives_a_restart() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let group = (GROUP, "g");
    assert_eq!(alter(&client, NODE_1, &[("log.retention.ms", 0, Some("7"))], false).await.0, ErrorCode::None);
    assert_eq!(
        alter(&client, group, &[("share.auto.offset.reset", 0, Some("earliest"))], false).await.0,
        ErrorCode::None
    );
    drop(client);
    let harness = harness.restart().await;
    let client = harness.connect().await;
    assert_eq!(value(&client, "t", "retention.ms").await, "7");
    assert_eq!(synonyms(&client, group, "share.auto.offset.reset").await.0, "earliest");
    harness.finish().await;
}

#[tokio::test]
async fn a_node_shows_what_it_was_started_with() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        config.default_partitions = 3;
        config.topic_defaults = [("retention.ms".to_owned(), "7000".to_owned())].into();
    };
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    let with_synonyms = |request: &mut DescribeConfigsRequest| request.include_synonyms = true;
    let shown = describe(&client, (NODE, "1"), None, with_synonyms).await.expect("it is there");
    for (name, set, default) in [("num.partitions", "3", "1"), ("log.retention.ms", "7000", "604800000")] {
        let config = &shown[name];
        assert_eq!((config.value.as_deref(), config.config_source), (Some(set), 4), "{name}");
        let synonyms: Vec<_> =
            config.synonyms.iter().map(|synonym| (synonym.value.as_deref(), synonym.source)).collect();
        assert_eq!(synonyms, [(Some(set), 4), (Some(default), 5)], "{name}");
    }
    let port = harness.broker.addresses()[0].port();
    let advertised = shown["advertised.listeners"].value.as_deref();
    assert_eq!(advertised, Some(format!("PLAINTEXT://127.0.0.1:{port}").as_str()));
    harness.finish().await;
}
