//! What a client cannot take from the others: memory, time and connections.

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use thalweg_broker::AllowAll;
use thalweg_protocol::frame::encode_request;
use thalweg_protocol::messages::Request;
use thalweg_protocol::messages::metadata::MetadataRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::calls::{FETCH, PRODUCE, batch, create_topic, fetch_request, only, produce, produce_request};
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

/// Who reads slowly has the time of an idle connection for each stretch of an answer, not for all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_that_goes_on_reads_to_the_end() {
    const IDLE: Duration = Duration::from_millis(1_500);
    let change = |config: &mut thalweg_broker::BrokerConfig| config.idle_connection_ms = 1_500;
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    for _ in 0..40 {
        produce(&client, "t", batch(["x".repeat(900_000)])).await;
    }
    let mut request = fetch_request("t", &[(0, 0)]);
    request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
    let mut socket = socket(&harness).await;
    socket.write_all(&frame(request, FETCH)).await.expect("it is open");
    let size = socket.read_i32().await.expect("the size of the answer") as usize;
    assert!(size > 35_000_000, "{size}");
    let start = Instant::now();
    let mut piece = vec![0; 1 << 20];
    let mut left = size;
    while left > 0 {
        // The kernel keeps some MiB on either side.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let wanted = left.min(piece.len());
        socket.read_exact(&mut piece[..wanted]).await.expect("the answer goes on");
        left -= wanted;
    }
    assert!(start.elapsed() > 3 * IDLE, "{:?}", start.elapsed());
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

/// One that never sends the rest of a large request keeps out others, whichever way they come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beyond_the_memory_budget_wait() {
    for way in [Way::Tcp, Way::InProcess, Way::ThroughBytes] {
        let change = |config: &mut thalweg_broker::BrokerConfig| {
            // The share of large requests is 7/8 of this, 896 KiB.
            config.request_memory_bytes = 1 << 20;
            config.listen = vec!["127.0.0.1:0".to_owned()];
        };
        let harness = Harness::start_with(way, change, AllowAll).await;
        wait_for_the_budget(&harness).await;
        harness.finish().await;
    }
}

async fn wait_for_the_budget(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let mut hoarder = socket(harness).await;
    let mut half = BytesMut::new();
    half.put_i32(800 * 1024);
    half.put_slice(&[0; 1000]);
    hoarder.write_all(&half).await.expect("the socket is open");

    let large = batch(["x".repeat(400 * 1024)]);
    // Those are answered that come before the broker has read what the hoarder sent.
    let mut answered = 0;
    let start = Instant::now();
    let waiting = loop {
        let request = produce_request("t", -1, vec![(0, large.clone())]);
        let mut waiting = tokio::spawn(client.send(request, PRODUCE));
        if timeout(Duration::from_millis(500), &mut waiting).await.is_err() {
            break waiting;
        }
        answered += 1;
        assert!(start.elapsed() < LONG, "{:?}: the budget is not taken", harness.way);
    };
    let other = harness.connect().await;
    let small = produce_request("t", -1, vec![(0, batch(["small"]))]);
    let small = timeout(LONG, other.call(small, PRODUCE)).await;
    assert_eq!(only(small.expect("small requests have a share of their own")).base_offset, answered);
    assert!(!waiting.is_finished(), "{:?}: the budget is still taken", harness.way);
    drop(hoarder);
    let answer = timeout(LONG, waiting).await.expect("the budget is free again").expect("it is answered");
    assert_eq!(only(answer).base_offset, answered + 1);
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

/// A request as it goes over the wire.
fn frame(request: impl Into<Request>, version: i16) -> Bytes {
    let frame = encode_request(&request.into(), version, 1, Some("it")).expect("it can be encoded");
    frame.into_bytes().expect("it is in memory")
}

async fn answered(socket: &mut TcpStream) {
    let size = timeout(LONG, socket.read_i32()).await.expect("in time").expect("an answer");
    let mut answer = vec![0; size as usize];
    socket.read_exact(&mut answer).await.expect("a whole answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_kept_waiting_is_not_taken_for_a_slow_one() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        config.partial_request_ms = 500;
        config.max_in_flight_requests = 1;
    };
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    create_topic(&harness.connect().await, "t", 1).await;
    let mut fetch = fetch_request("t", &[(0, 0)]);
    fetch.max_wait_ms = 1_500;
    let (first, second) = (frame(fetch, FETCH), frame(MetadataRequest::default(), 9));
    // The broker gets half of the second request with the first, and reads no further before it has answered that.
    let mut socket = socket(&harness).await;
    let (half, rest) = second.split_at(second.len() / 2);
    socket.write_all(&[&first, half].concat()).await.expect("the socket is open");
    answered(&mut socket).await;
    socket.write_all(rest).await.expect("the socket is open");
    answered(&mut socket).await;
    harness.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_holds_up_a_shutdown() {
    let harness = Harness::start(Way::Tcp).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    // More than the buffers between the two take.
    let large = batch(["x".repeat(900_000)]);
    for _ in 0..40 {
        produce(&client, "t", large.clone()).await;
    }
    let mut fetch = fetch_request("t", &[(0, 0)]);
    fetch.topics[0].partitions[0].partition_max_bytes = 50 << 20;
    let mut unread = socket(&harness).await;
    unread.write_all(&frame(fetch, FETCH)).await.expect("the socket is open");
    // The answer is on its way, and nobody reads on.
    assert!(unread.read_i32().await.expect("the size of the answer") > 30 << 20);

    // Another one never lets the broker come to rest.
    let flood = frame(produce_request("t", 0, vec![(0, batch(["x"]))]), PRODUCE).repeat(200);
    let mut flooding = std::net::TcpStream::connect(harness.broker.addresses()[0]).expect("it listens");
    let flooding =
        std::thread::spawn(move || while std::io::Write::write_all(&mut flooding, &flood).is_ok() {});
    while crate::calls::list_offset(&client, "t", -1).await.offset < 1_000 {}

    timeout(LONG, harness.finish()).await.expect("nobody is waited for");
    flooding.join().expect("its connection is closed");
}

/// What ends the connection behind whole requests does not take their answers along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_before_the_end_of_a_connection_is_answered() {
    const WHOLE: usize = 15;
    let harness = Harness::start(Way::Tcp).await;
    create_topic(&harness.connect().await, "t", 1).await;
    let nowhere = frame(produce_request("nowhere", 0, vec![(0, batch(["x"]))]), PRODUCE);
    let half = frame(MetadataRequest::default(), 9);
    let mut unknown = BytesMut::new();
    unknown.put_i32(10);
    unknown.put_i16(999);
    unknown.put_slice(&[0; 8]);
    let ends = [&half[..half.len() / 2], &unknown[..], &[0xff; 4], &nowhere[..]];
    for acks in [1, -1] {
        for end in ends {
            let whole = frame(produce_request("t", acks, vec![(0, batch(["x"]))]), PRODUCE).repeat(WHOLE);
            let mut socket = socket(&harness).await;
            socket.write_all(&[&whole, end].concat()).await.expect("the socket is open");
            socket.shutdown().await.expect("the socket is open");
            for _ in 0..WHOLE {
                answered(&mut socket).await;
            }
            closed(&mut socket).await;
        }
    }
    let appended = crate::calls::list_offset(&harness.connect().await, "t", -1).await.offset;
    assert_eq!(appended, (2 * ends.len() * WHOLE) as i64);
    harness.finish().await;
}
