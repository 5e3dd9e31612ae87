//! What a client cannot take from the others: memory, time and connections.

use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use thalweg_broker::AllowAll;
use thalweg_protocol::messages::metadata::MetadataRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::calls::{PRODUCE, batch, create_topic, only, produce_request};
use crate::harness::{Client, Harness, Way};
use crate::raw_tcp::RawTcp;

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

async fn socket(harness: &Harness) -> TcpStream {
    TcpStream::connect(harness.broker.addresses()[0]).await.expect("it listens")
}

/// Waits until the broker closes the connection.
async fn closed(socket: &mut TcpStream) {
    let mut byte = [0];
    let read = timeout(LONG, socket.read(&mut byte)).await.expect("the broker closes in time");
    assert!(matches!(read, Ok(0) | Err(_)), "no answer was to come");
}

#[tokio::test]
async fn frames_of_impossible_sizes_end_the_connection() {
    let harness = Harness::start_with(Way::Tcp, |config| config.max_request_bytes = 10_000, AllowAll).await;
    for size in [-1, i32::MIN, 10_001, i32::MAX] {
        let mut socket = socket(&harness).await;
        socket.write_i32(size).await.expect("the socket is open");
        closed(&mut socket).await;
    }
    harness.finish().await;
}

#[tokio::test]
async fn half_sent_requests_and_idle_connections_are_not_kept() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        config.partial_request_ms = 100;
        config.idle_connection_ms = 400;
    };
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let start = Instant::now();
    for sent in [&[0][..], &[0, 0, 0], &[0, 0, 0, 100], &[0, 0, 0, 100, 0, 3, 0], &[0, 1, 0, 0, 1]] {
        let mut socket = socket(&harness).await;
        socket.write_all(sent).await.expect("the socket is open");
        closed(&mut socket).await;
    }
    let mut idle = socket(&harness).await;
    closed(&mut idle).await;
    assert!(start.elapsed() >= Duration::from_millis(5 * 100 + 400));
    // A fetch that waits longer than that is not idle.
    let client = Client(RawTcp::connect(harness.broker.addresses()[0]).await);
    create_topic(&client, "t", 1).await;
    let mut request = crate::calls::fetch_request("t", &[(0, 0)]);
    request.max_wait_ms = 1000;
    client.call(request, crate::calls::FETCH).await;
    harness.finish().await;
}

#[tokio::test]
async fn connections_are_capped() {
    let harness = Harness::start_with(Way::Tcp, |config| config.max_connections = 3, AllowAll).await;
    let mut open = Vec::new();
    for _ in 0..3 {
        let client = Client(RawTcp::connect(harness.broker.addresses()[0]).await);
        client.call(MetadataRequest::default(), 9).await;
        open.push(client);
    }
    let mut refused = socket(&harness).await;
    closed(&mut refused).await;
    open.pop();
    // The place is free once the broker has noticed.
    let start = Instant::now();
    loop {
        let client = Client(RawTcp::connect(harness.broker.addresses()[0]).await);
        if client.0.send(MetadataRequest::default().into(), 9).await.is_ok() {
            break;
        }
        assert!(start.elapsed() < LONG);
    }
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beyond_the_memory_budget_wait() {
    // The share of large requests is 7/8 of this, 896 KiB.
    let harness =
        Harness::start_with(Way::Tcp, |config| config.request_memory_bytes = 1 << 20, AllowAll).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let mut hoarder = socket(&harness).await;
    let mut half = BytesMut::new();
    half.put_i32(800 * 1024);
    half.put_slice(&[0; 1000]);
    hoarder.write_all(&half).await.expect("the socket is open");
    tokio::time::sleep(Duration::from_millis(50)).await;

    let large = batch(["x".repeat(400 * 1024)]);
    let waiting = tokio::spawn(client.send(produce_request("t", -1, vec![(0, large)]), PRODUCE));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished(), "the budget is taken");
    let other = harness.connect().await;
    let small = produce_request("t", -1, vec![(0, batch(["small"]))]);
    assert_eq!(
        only(other.call(small, PRODUCE).await).base_offset,
        0,
        "small requests have a share of their own"
    );
    drop(hoarder);
    let answer = timeout(LONG, waiting).await.expect("the budget is free again").expect("it is answered");
    assert_eq!(only(answer).base_offset, 1);
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_requests_go_through_a_small_budget() {
    for way in [Way::Tcp, Way::InProcess, Way::ThroughBytes] {
        let change = |config: &mut thalweg_broker::BrokerConfig| config.request_memory_bytes = 1 << 20;
        let harness = Harness::start_with(way, change, AllowAll).await;
        let first = harness.connect().await;
        create_topic(&first, "t", 1).await;
        let large = batch(["x".repeat(600 * 1024)]);
        let mut answers = Vec::new();
        for _ in 0..4 {
            let client = harness.connect().await;
            for _ in 0..4 {
                let request = produce_request("t", -1, vec![(0, large.clone())]);
                answers.push(tokio::spawn(client.send(request, PRODUCE)));
            }
        }
        for answer in answers {
            let answer = timeout(LONG, answer).await.expect("none is starved").expect("it is answered");
            assert_eq!(only(answer).error_code, 0);
        }
        assert_eq!(crate::calls::list_offset(&first, "t", -1).await.offset, 16, "{way:?}");
        harness.finish().await;
    }
}
