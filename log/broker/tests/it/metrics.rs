//! What a running broker tells over HTTP.

use std::net::SocketAddr;

use tempfile::TempDir;
use thalweg_broker::{AllowAll, Broker, BrokerConfig, Error};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::calls::{batch, create_topic, produce, read_all};
use crate::harness::{Harness, Way};

/// Sends `request` and returns all that comes back.
async fn exchange(address: SocketAddr, request: &[u8]) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(request).await?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await?;
    Ok(String::from_utf8(answer).expect("it is text"))
}

async fn try_get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    exchange(address, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await
}

pub async fn get(address: SocketAddr, path: &str) -> String {
    try_get(address, path).await.expect("it answers and closes")
}

/// What a metric without labels says.
pub async fn counted(address: SocketAddr, metric: &str) -> u64 {
    let page = get(address, "/metrics").await;
    let value = page.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {metric} in {page}")).parse().expect("a number")
}

pub fn listening(config: &mut BrokerConfig) {
    config.metrics_listen = Some("localhost:0".to_owned());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_partitions_and_health_are_told() {
    for way in [Way::Tcp, Way::InProcess] {
        let harness = Harness::start_with(way, listening, AllowAll).await;
        let address = harness.broker.metrics_address().expect("it listens");
        let client = harness.connect().await;
        create_topic(&client, "t", 2).await;
        produce(&client, "t", batch(["a", "b", "c"])).await;
        assert_eq!(read_all(&client, "t", 0).await.len(), 3);
        let page = get(address, "/metrics").await;
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("content-type: text/plain; version=0.0.4"), "{page}");
        for line in [
            "thalweg_partitions 2\n",
            "thalweg_directory_online 1\n",
            "thalweg_offline_partitions 0\n",
            "thalweg_high_watermark{topic=\"t\",partition=\"0\"} 3\n",
            "thalweg_high_watermark{topic=\"t\",partition=\"1\"} 0\n",
            "thalweg_appended_records_total{topic=\"t\",partition=\"0\"} 3\n",
            "thalweg_request_wait_seconds_count{api=\"Produce\"} 1\n",
            "thalweg_request_effect_seconds_bucket{api=\"CreateTopics\",le=\"+Inf\"} 1\n",
        ] {
            assert!(page.contains(line), "{way:?}: no {line} in {page}");
        }
        // A durable append waits for its sync.
        let waited = page
            .lines()
            .find_map(|line| line.strip_prefix("thalweg_request_wait_seconds_sum{api=\"Produce\"} "));
        assert!(waited.expect("it is there").parse::<f64>().expect("a number") > 0.0);
        let connections = format!("thalweg_connections {}\n", u8::from(way == Way::Tcp));
        assert!(page.contains(&connections), "{way:?}: no {connections} in {page}");
        assert!(get(address, "/health/live").await.ends_with("alive\n"));
        assert!(get(address, "/health/ready").await.ends_with("ready\n"));
        harness.finish().await;
        assert!(TcpStream::connect(address).await.is_err(), "it ends with the broker");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_lost_makes_the_broker_unready() {
    let harness = Harness::start_with(Way::InProcess, listening, AllowAll).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["a"])).await;
    let dir = harness.stop().await;
    // What was synced is not there any more.
    std::fs::remove_dir_all(dir.path().join("t-0")).expect("it is there");
    let mut config = Harness::config(Way::InProcess, dir.path());
    listening(&mut config);
    let broker = Broker::start(config).await.expect("it starts");
    let address = broker.metrics_address().expect("it listens");
    let ready = get(address, "/health/ready").await;
    assert!(ready.starts_with("HTTP/1.1 503 "), "{ready}");
    assert!(ready.contains("1 partition cannot be opened, t-0 among them"), "{ready}");
    assert!(get(address, "/metrics").await.contains("thalweg_offline_partitions 1\n"));
    assert!(get(address, "/health/live").await.contains("200 OK"));
    broker.shutdown().await.expect("it closes");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_for_it_is_refused() {
    let harness = Harness::start_with(Way::InProcess, listening, AllowAll).await;
    let address = harness.broker.metrics_address().expect("it listens");
    for (request, status) in [
        ("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "405"),
        ("garbage\r\n\r\n", "400"),
    ] {
        let answer = exchange(address, request.as_bytes()).await.expect("it answers and closes");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    // Heads that never end take all places for a while, and no longer: whoever comes meanwhile is turned away at once.
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(TcpStream::connect(address).await.expect("the system queues it"));
    }
    let mut turned_away = idle.pop().expect("the last of them");
    let closed = turned_away.read(&mut [0; 1]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    while !try_get(address, "/health/live").await.is_ok_and(|answer| answer.ends_with("alive\n")) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    harness.finish().await;
    let dir = TempDir::new().expect("a temporary directory");
    let config = BrokerConfig {
        data_dir: dir.path().to_owned(),
        metrics_listen: Some("0.0.0.0:0".to_owned()),
        ..BrokerConfig::default()
    };
    let refused = Broker::start(config).await.err().expect("others could reach it");
    assert!(matches!(refused, Error::Config { name: "metrics_listen", .. }), "{refused}");
}
