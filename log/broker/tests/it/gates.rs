//! Every request passes the gate, whichever way it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thalweg_broker::{Gate, Principal, Verdict};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::api_versions::ApiVersionsResponse;
use thalweg_protocol::messages::{ApiKey, Request, Response};

use crate::calls::{PRODUCE, batch, create_topic, list_offset, only, produce_request};
use crate::harness::{Client, Harness, Way};
use crate::versions::{api_versions, harmless};

/// Denies what its function says, and counts what it is asked.
struct TestGate {
    denies: fn(&Request) -> bool,
    asked: Arc<AtomicUsize>,
}

impl Gate for TestGate {
    fn judge(&self, principal: &Principal, request: &Request) -> Verdict {
        assert_eq!(principal.to_string(), "User:ANONYMOUS");
        self.asked.fetch_add(1, Ordering::Relaxed);
        if (self.denies)(request) { Verdict::Deny } else { Verdict::Admit }
    }
}

async fn start(way: Way, denies: fn(&Request) -> bool) -> (Harness, Arc<AtomicUsize>) {
    let asked = Arc::default();
    let gate = TestGate { denies, asked: Arc::clone(&asked) };
    (Harness::start_with(way, |_| {}, gate).await, asked)
}

async fn served(client: &Client) -> Vec<ApiKey> {
    let ApiVersionsResponse { api_keys, .. } = client.call(api_versions(), 4).await;
    let keys = api_keys.iter().map(|api| ApiKey::try_from(api.api_key).expect("a known API"));
    keys.collect()
}

#[tokio::test]
async fn every_api_can_be_denied() {
    for way in [Way::Tcp, Way::InProcess, Way::ThroughBytes] {
        let (harness, asked) = start(way, |_| true).await;
        let client = harness.connect().await;
        for api_key in served(&client).await {
            let before = asked.load(Ordering::Relaxed);
            let request = harmless(api_key).expect("it is in the table");
            let version = api_key.last_stable_version();
            let answer = client.0.send(request, version).await;
            let answer = answer.unwrap_or_else(|error| panic!("{api_key} is denied by closing: {error}"));
            assert_eq!(answer.api_key(), api_key);
            assert_eq!(asked.load(Ordering::Relaxed), before + 1, "{api_key} passed by the gate");
        }
        let request = produce_request("t", -1, vec![(0, batch(["v"]))]);
        let code = only(client.call(request, PRODUCE).await).error_code;
        assert_eq!(ErrorCode::from(code), ErrorCode::TopicAuthorizationFailed, "{way:?}");
        harness.finish().await;
    }
}

#[tokio::test]
async fn what_is_denied_has_no_effect() {
    for way in [Way::Tcp, Way::InProcess, Way::ThroughBytes] {
        let (harness, _) = start(way, |request| matches!(request, Request::Produce(_))).await;
        let client = harness.connect().await;
        create_topic(&client, "t", 1).await;
        let request = produce_request("t", -1, vec![(0, batch(["v"]))]);
        let code = only(client.call(request, PRODUCE).await).error_code;
        assert_eq!(ErrorCode::from(code), ErrorCode::TopicAuthorizationFailed, "{way:?}");
        assert_eq!(list_offset(&client, "t", -1).await.offset, 0, "{way:?}");
        let silent = produce_request("t", 0, vec![(0, batch(["v"]))]).into();
        let _ = client.0.send(silent, PRODUCE).await;
        // Only the end of the connection can tell a producer that wants no answers.
        let after = client.0.send(harmless(ApiKey::Metadata).expect("harmless"), 9).await;
        assert!(after.is_err(), "{way:?}: {:?}", after.map(|response: Response| response.api_key()));
        harness.finish().await;
    }
}

/// Asks for a pause after each Produce.
struct Throttling;

impl Gate for Throttling {
    fn judge(&self, _: &Principal, _: &Request) -> Verdict {
        Verdict::Admit
    }

    fn throttle_ms(&self, _: &Principal, request: &Request) -> i32 {
        if matches!(request, Request::Produce(_)) { 70 } else { 0 }
    }
}

#[tokio::test]
async fn a_quota_reaches_the_client() {
    for way in [Way::Tcp, Way::InProcess, Way::ThroughBytes] {
        let harness = Harness::start_with(way, |_| {}, Throttling).await;
        let client = harness.connect().await;
        create_topic(&client, "t", 1).await;
        for acks in [1, -1] {
            let request = produce_request("t", acks, vec![(0, batch(["v"]))]);
            assert_eq!(client.call(request, PRODUCE).await.throttle_time_ms, 70, "{way:?}");
        }
        let fetched = client.call(crate::calls::fetch_request("t", &[(0, 0)]), crate::calls::FETCH).await;
        assert_eq!(fetched.throttle_time_ms, 0, "{way:?}");
        harness.finish().await;
    }
}
