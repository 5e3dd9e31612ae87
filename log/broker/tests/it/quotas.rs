//! Quotas of clients: how they are set and shown, and what follows when they are used up.

use std::time::{Duration, Instant};

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::alter_client_quotas::{
    AlterClientQuotasRequest, EntityData, EntryData, OpData,
};
use thalweg_protocol::messages::create_topics::{CreatableTopic, CreateTopicsRequest, CreateTopicsResponse};
use thalweg_protocol::messages::describe_client_quotas::{ComponentData, DescribeClientQuotasRequest};
use thalweg_protocol::messages::metadata::MetadataRequest;

use crate::calls::{FETCH, PRODUCE, batch, create_topic, fetch_request, produce_request};
use crate::harness::{Client, Harness, Way, three_ways};

three_ways!(
    quotas_are_set_and_shown,
    who_produces_too_much_has_to_pause,
    who_fetches_too_much_has_to_pause,
    who_makes_too_many_partitions_is_refused,
    who_takes_too_much_time_has_to_pause,
);

fn entity(parts: &[(&str, Option<&str>)]) -> Vec<EntityData> {
    let part = |&(kind, name): &(&str, Option<&str>)| EntityData {
        entity_type: kind.into(),
        entity_name: name.map(Into::into),
    };
    parts.iter().map(part).collect()
}

/// Sets a quota, or takes it away.
async fn alter(
    client: &Client,
    parts: &[(&str, Option<&str>)],
    (key, value): (&str, Option<f64>),
    validate_only: bool,
) -> ErrorCode {
    let op = OpData { key: key.into(), value: value.unwrap_or_default(), remove: value.is_none() };
    let entries = vec![EntryData { entity: entity(parts), ops: vec![op] }];
    let response = client.call(AlterClientQuotasRequest { entries, validate_only }, 1).await;
    assert_eq!(response.entries[0].entity, entity(parts));
    response.entries[0].error_code.into()
}

/// The quotas that match: each as its entity, key and value.
async fn describe(
    client: &Client,
    components: &[(&str, i8, Option<&str>)],
    strict: bool,
) -> Result<Vec<String>, ErrorCode> {
    let component = |&(kind, match_type, name): &(&str, i8, Option<&str>)| ComponentData {
        entity_type: kind.into(),
        match_type,
        r#match: name.map(Into::into),
    };
    let components = components.iter().map(component).collect();
    let response = client.call(DescribeClientQuotasRequest { components, strict }, 1).await;
    let Some(entries) = response.entries else { return Err(response.error_code.into()) };
    let shown = entries.iter().flat_map(|entry| {
        let parts = entry
            .entity
            .iter()
            .map(|part| format!("{}={} ", part.entity_type, part.entity_name.as_deref().unwrap_or("*")));
        let parts: String = parts.collect();
        entry.values.iter().map(move |value| format!("{parts}{}={}", value.key, value.value))
    });
    Ok(shown.collect())
}

async fn quotas_are_set_and_shown(harness: &Harness) {
    let client = harness.connect().await;
    for (parts, quota, expected) in [
        (&[("user", Some("u"))][..], ("producer_byte_rate", Some(1e9)), ErrorCode::None),
        (&[("user", None)], ("consumer_byte_rate", Some(2e9)), ErrorCode::None),
        (&[("user", Some("u")), ("client-id", None)], ("request_percentage", Some(150.5)), ErrorCode::None),
        (&[("client-id", Some("c"))], ("controller_mutation_rate", Some(1e6)), ErrorCode::None),
        (&[("ip", Some("192.0.2.1"))], ("connection_creation_rate", Some(3.0)), ErrorCode::None),
        (&[], ("producer_byte_rate", Some(1.0)), ErrorCode::InvalidRequest),
        (&[("group", Some("g"))], ("producer_byte_rate", Some(1.0)), ErrorCode::InvalidRequest),
        (
            &[("user", Some("u")), ("user", None)],
            ("producer_byte_rate", Some(1.0)),
            ErrorCode::InvalidRequest,
        ),
        (&[("user", Some("u"))], ("no_such_rate", Some(1.0)), ErrorCode::InvalidRequest),
        (&[("user", Some("u"))], ("producer_byte_rate", Some(f64::NAN)), ErrorCode::InvalidRequest),
        (&[("user", Some("u"))], ("producer_byte_rate", Some(0.0)), ErrorCode::InvalidRequest),
    ] {
        assert_eq!(alter(&client, parts, quota, true).await, expected, "{parts:?} {quota:?}");
    }
    assert_eq!(describe(&client, &[], false).await, Ok(Vec::new()), "they were only validated");
    for (parts, quota) in [
        (&[("user", Some("u"))][..], ("producer_byte_rate", Some(1e9))),
        (&[("user", None)], ("consumer_byte_rate", Some(2e9))),
        (&[("user", Some("u")), ("client-id", None)], ("request_percentage", Some(150.5))),
        (&[("ip", Some("192.0.2.1"))], ("connection_creation_rate", Some(3.0))),
    ] {
        assert_eq!(alter(&client, parts, quota, false).await, ErrorCode::None);
    }
    let user = "user=u producer_byte_rate=1000000000";
    let any_user = "user=* consumer_byte_rate=2000000000";
    let both = "user=u client-id=* request_percentage=150.5";
    let ip = "ip=192.0.2.1 connection_creation_rate=3";
    for (components, strict, expected) in [
        (&[][..], false, vec![user, any_user, both, ip]),
        (&[], true, vec![]),
        (&[("user", 2, None)], false, vec![user, any_user, both]),
        (&[("user", 2, None)], true, vec![user, any_user]),
        (&[("user", 0, Some("u"))], false, vec![user, both]),
        (&[("user", 1, None)], false, vec![any_user]),
        (&[("user", 0, Some("u")), ("client-id", 1, None)], true, vec![both]),
        (&[("client-id", 2, None)], true, vec![]),
        (&[("ip", 2, None)], true, vec![ip]),
    ] {
        let mut found = describe(&client, components, strict).await.expect("the filter is right");
        found.sort();
        let mut expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
        expected.sort();
        assert_eq!(found, expected, "{components:?} {strict}");
    }
    for (components, expected) in [
        (&[("group", 2, None)][..], ErrorCode::UnsupportedVersion),
        (&[("user", 2, None), ("user", 1, None)], ErrorCode::InvalidRequest),
        (&[("user", 7, None)], ErrorCode::InvalidRequest),
        (&[("user", 0, None)], ErrorCode::InvalidRequest),
    ] {
        assert_eq!(describe(&client, components, false).await, Err(expected), "{components:?}");
    }
    assert_eq!(
        alter(&client, &[("user", Some("u"))], ("producer_byte_rate", None), false).await,
        ErrorCode::None
    );
    assert_eq!(describe(&client, &[("user", 0, Some("u"))], true).await, Ok(Vec::new()));
}

/// Gives everyone this quota.
async fn limit(client: &Client, key: &str, value: f64) {
    assert_eq!(alter(client, &[("user", None)], (key, Some(value)), false).await, ErrorCode::None);
}

/// How long the next request on a connection takes.
async fn next(client: &Client) -> Duration {
    let start = Instant::now();
    client.call(MetadataRequest { topics: Some(Vec::new()), ..Default::default() }, 9).await;
    start.elapsed()
}

async fn who_produces_too_much_has_to_pause(harness: &Harness) {
    let (client, other) = (harness.connect().await, harness.connect().await);
    create_topic(&client, "t", 11).await;
    // What ten seconds bring may be used at once.
    limit(&client, "producer_byte_rate", 100_000.0).await;
    let filled = batch(["x".repeat(100_000)]);
    let fill = |count| produce_request("t", -1, (0..count).map(|at| (at, filled.clone())).collect());
    let answer = client.call(fill(9), PRODUCE).await;
    assert_eq!(answer.throttle_time_ms, 0);
    let answer = client.call(fill(2), PRODUCE).await;
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0, "it is taken all the same");
    let pause = answer.throttle_time_ms;
    assert!((300..=1_100).contains(&pause), "{pause}");
    let waited = next(&client).await;
    assert!(waited >= Duration::from_millis(pause as u64 / 2), "{waited:?} of {pause} ms");
    assert!(next(&other).await < waited, "other connections go on");
    // Without the quota there is no pause.
    assert_eq!(alter(&client, &[("user", None)], ("producer_byte_rate", None), false).await, ErrorCode::None);
    assert_eq!(client.call(fill(11), PRODUCE).await.throttle_time_ms, 0);
}

async fn who_fetches_too_much_has_to_pause(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 11).await;
    let filled = batch(["x".repeat(100_000)]);
    let batches = (0..11).map(|at| (at, filled.clone())).collect();
    client.call(produce_request("t", -1, batches), PRODUCE).await;
    limit(&client, "consumer_byte_rate", 100_000.0).await;
    let offsets: Vec<_> = (0..11).map(|partition| (partition, 0)).collect();
    let answer = client.call(fetch_request("t", &offsets), FETCH).await;
    assert!((500..=1_100).contains(&answer.throttle_time_ms), "{}", answer.throttle_time_ms);
    let waited = next(&client).await;
    assert!(waited >= Duration::from_millis(answer.throttle_time_ms as u64 / 2), "{waited:?}");
    // One that waits for its records is counted, too.
    let parked = fetch_request("t", &[(0, 0)]);
    let answer = client.call(parked, FETCH).await;
    assert!(answer.throttle_time_ms > 0);
}

async fn create(client: &Client, name: &str, num_partitions: i32, version: i16) -> CreateTopicsResponse {
    let topic =
        CreatableTopic { name: name.into(), num_partitions, replication_factor: -1, ..Default::default() };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    client.call(request, version).await
}

async fn who_makes_too_many_partitions_is_refused(harness: &Harness) {
    let (client, other) = (harness.connect().await, harness.connect().await);
    // Of 22 partitions there is one, and the others are paid off in minutes, however slow the machine is.
    limit(&client, "controller_mutation_rate", 0.1).await;
    let answer = create(&client, "a", 22, 7).await;
    assert_eq!((answer.topics[0].error_code, answer.throttle_time_ms > 0), (0, true));
    let answer = create(&other, "b", 1, 7).await;
    assert_eq!(ErrorCode::from(answer.topics[0].error_code), ErrorCode::ThrottlingQuotaExceeded);
    assert_eq!(answer.throttle_time_ms, 10_000, "the longest pause");
    // Clients of old know no such error.
    let answer = create(&harness.connect().await, "b", 1, 5).await;
    assert_eq!((answer.topics[0].error_code, answer.throttle_time_ms > 0), (0, true));
}

async fn who_takes_too_much_time_has_to_pause(harness: &Harness) {
    let client = harness.connect().await;
    // A thousandth of a second may be used at once.
    limit(&client, "request_percentage", 0.01).await;
    let mut asked = 0;
    loop {
        let request = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
        if client.call(request, 9).await.throttle_time_ms > 0 {
            break;
        }
        asked += 1;
        assert!(asked < 20_000, "nothing is counted");
    }
}

#[tokio::test]
async fn quotas_outlive_a_restart_and_hold_connections_back() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    let quota = ("connection_creation_rate", Some(1.0));
    assert_eq!(alter(&client, &[("ip", Some("127.0.0.1"))], quota, false).await, ErrorCode::None);
    drop(client);
    let harness = harness.restart().await;
    let start = Instant::now();
    for _ in 0..11 {
        next(&harness.connect().await).await;
    }
    assert!(start.elapsed() >= Duration::from_millis(900), "{:?}", start.elapsed());
    harness.finish().await;
}
