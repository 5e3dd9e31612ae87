//! Clients that want too much, by the thousand: a node in a process of its own keeps within its memory and serves the others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use tempfile::TempDir;
use thalweg_broker::BrokerConfig;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::frame::encode_request;
use thalweg_protocol::messages::Request;
use thalweg_protocol::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::calls::{FETCH, batch, create_topic, fetch, fetch_request, produce, read_all};
use crate::harness::Client;
use crate::node_process::{self, Node};

/// The most memory that a flooded node may ever have, in KiB. That of requests is 16 MiB of it.
const MOST_MEMORY_KIB: usize = 128 << 10;

/// Far longer than anything takes that is not held up.
const LONG: Duration = Duration::from_secs(30);

/// How long a good client waits for an answer at most: well below the times after which the floods are given up.
const PATIENCE: Duration = Duration::from_secs(6);

/// How long half of a request is waited for.
const PARTIAL_MS: u64 = 20_000;

/// Connections from one address.
const PER_ADDRESS: usize = 1_500;

const OTHER: [u8; 4] = [127, 0, 0, 2];

fn config(config: &mut BrokerConfig) {
    config.request_memory_bytes = 16 << 20;
    config.max_connections = 4_000;
    config.max_connections_per_address = PER_ADDRESS;
    config.partial_request_ms = PARTIAL_MS;
}

fn frame(request: impl Into<Request>, version: i16) -> Bytes {
    let frame = encode_request(&request.into(), version, 1, Some("it")).expect("it can be encoded");
    frame.into_bytes().expect("it is in memory")
}

/// This process needs as many descriptors as it can get: each connection is one.
fn raise_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to a value that outlives the calls.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    assert!(limit.rlim_cur >= 10_000, "{} descriptors are too few for a flood", limit.rlim_cur);
}

/// Clients that do no harm, from an address of their own, while others flood the node.
struct Good {
    is_over: Arc<AtomicBool>,
    served: JoinHandle<(i64, Duration)>,
}

impl Good {
    async fn start(node: &Node) -> Self {
        let client = node.connect_from(OTHER).await;
        create_topic(&client, "good", 1).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, address) = (Arc::clone(&is_over), node.address);
        let served = tokio::spawn(async move {
            let (mut sent, mut longest) = (0, Duration::ZERO);
            while !over.load(Ordering::Relaxed) {
                let start = Instant::now();
                let round = async {
                    assert_eq!(produce(&client, "good", batch(["good"])).await, sent);
                    assert_eq!(fetch(&client, "good", sent).await.error_code, 0);
                };
                timeout(PATIENCE, round).await.unwrap_or_else(|_| {
                    panic!(
                        "a good client waits for more than {PATIENCE:?}, after {sent} requests to {address}"
                    )
                });
                longest = longest.max(start.elapsed());
                sent += 1;
                sleep(Duration::from_millis(5)).await;
            }
            (sent, longest)
        });
        Self { is_over, served }
    }

    /// Ends them. They were served all along, and the node has kept within its memory.
    async fn check(self, node: &Node, flood: &str) {
        self.is_over.store(true, Ordering::Relaxed);
        let (sent, longest) = self.served.await.expect("good clients are served");
        let peak = node.peak_memory_kib();
        println!("{flood}: {sent} good requests, {longest:.1?} at the longest; {peak} KiB at the peak");
        assert!(sent > 20, "only {sent} good requests");
        assert!(peak < MOST_MEMORY_KIB, "{peak} KiB at the peak");
        let client = node.connect_from(OTHER).await;
        assert_eq!(read_all(&client, "good", 0).await.len() as i64, sent);
    }
}

/// Starts a node, has `flood` flood it, and checks what became of the others.
async fn check<F: Future<Output = ()>>(name: &str, flood: impl FnOnce(SocketAddr, Client) -> F) {
    raise_descriptors();
    let dir = TempDir::new().expect("a temporary directory");
    let mut node = Node::start(&format!("floods::{name}"), dir.path()).await;
    let good = Good::start(&node).await;
    flood(node.address, node.connect_from(OTHER).await).await;
    good.check(&node, name).await;
    assert!(node.lives());
    node.stop().await;
}

/// Whether the node closes the connection within this time.
async fn is_closed(socket: &mut TcpStream, within: Duration) -> bool {
    let mut byte = [0];
    matches!(timeout(within, socket.read(&mut byte)).await, Ok(Ok(0) | Err(_)))
}

async fn connect(address: SocketAddr) -> TcpStream {
    timeout(LONG, TcpStream::connect(address)).await.expect("it listens").expect("it listens")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_connections_is_capped() {
    if node_process::is_node() {
        return node_process::serve(config).await;
    }
    check("a_flood_of_connections_is_capped", async |address, _| {
        let mut open = Vec::new();
        for _ in 0..3 * PER_ADDRESS {
            open.push(connect(address).await);
        }
        let mut refused = 0;
        for socket in &mut open {
            refused += usize::from(is_closed(socket, Duration::from_millis(1)).await);
        }
        assert_eq!(refused, 2 * PER_ADDRESS, "one address has its share and no more");
        // More of them for a while, each refused at once.
        for _ in 0..1_000 {
            assert!(is_closed(&mut connect(address).await, LONG).await);
        }
        // When they go, their places are free.
        drop(open);
        let start = Instant::now();
        while is_closed(&mut connect(address).await, Duration::from_millis(100)).await {
            assert!(start.elapsed() < LONG);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halves_of_requests_keep_nobody_out() {
    if node_process::is_node() {
        return node_process::serve(config).await;
    }
    check("halves_of_requests_keep_nobody_out", async |address, _| {
        let mut halves = Vec::new();
        // Of heartbeats, of requests of all sizes up to the largest, and of none at all.
        for size in
            [0, 3, 100, 4_000, 10_000, 16_000, 70_000, 1 << 20, 90 << 20].into_iter().cycle().take(1_400)
        {
            let mut socket = connect(address).await;
            let mut half = BytesMut::new();
            half.put_i32(size);
            half.put_bytes(0, (size / 2).min(2_000) as usize);
            half.truncate(if size <= 3 { size as usize } else { half.len() });
            socket.write_all(&half).await.expect("it is open");
            halves.push(socket);
        }
        sleep(PATIENCE + Duration::from_secs(2)).await;
        let mut closed = 0;
        for socket in &mut halves {
            closed += usize::from(is_closed(socket, Duration::from_millis(1)).await);
        }
        println!("{closed} of {} are closed before their time", halves.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_are_not_piled_up() {
    if node_process::is_node() {
        return node_process::serve(config).await;
    }
    check("answers_that_nobody_reads_are_not_piled_up", async |address, client| {
        let mut describe = DescribeConfigsRequest {
            include_synonyms: true,
            include_documentation: true,
            ..Default::default()
        };
        for topic in 0..20 {
            let name = format!("wide-{topic}");
            create_topic(&client, &name, 1).await;
            let resource_name = name.into();
            let resource =
                DescribeConfigsResource { resource_type: 2, resource_name, configuration_keys: None };
            describe.resources.push(resource);
        }
        let mut parked = fetch_request("wide-0", &[(0, 0)]);
        (parked.max_wait_ms, parked.min_bytes) = (60_000, 1 << 20);
        let describe = frame(describe, 4);
        let answer = {
            let mut socket = connect(address).await;
            socket.write_all(&describe).await.expect("it is open");
            socket.read_i32().await.expect("an answer")
        };
        assert!(answer > 100_000, "an answer of {answer} bytes is no burden");
        let all = describe.repeat(1_000);
        let mut floods = Vec::new();
        // Unoptimised, it takes long to make so many answers.
        for at in 0..if cfg!(debug_assertions) { 6 } else { 40 } {
            // What the system takes off the node's hands is little.
            let socket = TcpSocket::new_v4().expect("a descriptor is left");
            socket.set_recv_buffer_size(4_096).expect("it may be small");
            let mut socket = socket.connect(address).await.expect("the node listens");
            // Half of them wait for something before the answers can leave.
            if at % 2 == 0 {
                socket.write_all(&frame(parked.clone(), FETCH)).await.expect("it is open");
            }
            let all = all.clone();
            floods.push(tokio::spawn(async move {
                let sent =
                    timeout(Duration::from_secs(5), async { while socket.write_all(&all).await.is_ok() {} });
                assert!(sent.await.is_err(), "it is not read on, and not closed");
                socket
            }));
        }
        for flood in floods {
            flood.await.expect("it is flooded");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_hold_up_nobody() {
    if node_process::is_node() {
        return node_process::serve(config).await;
    }
    check("slow_readers_hold_up_nobody", async |address, client| {
        create_topic(&client, "t", 1).await;
        let large = batch(["x".repeat(900_000)]);
        for _ in 0..60 {
            produce(&client, "t", large.clone()).await;
        }
        let mut request = fetch_request("t", &[(0, 0)]);
        request.topics[0].partitions[0].partition_max_bytes = 50 << 20;
        let request = frame(request, FETCH);
        let mut readers = Vec::new();
        for _ in 0..200 {
            let mut socket = connect(address).await;
            socket.write_all(&request).await.expect("it is open");
            readers.push(tokio::spawn(async move {
                assert!(socket.read_i32().await.expect("the size of the answer") > 45 << 20);
                let mut piece = [0; 100];
                for _ in 0..50 {
                    socket.read_exact(&mut piece).await.expect("the answer goes on");
                    sleep(Duration::from_millis(100)).await;
                }
            }));
        }
        // A quick one gets the same answer meanwhile, all of it.
        let start = Instant::now();
        let mut socket = connect(address).await;
        socket.write_all(&request).await.expect("it is open");
        let size = socket.read_i32().await.expect("the size of the answer");
        let mut answer = vec![0; size as usize];
        timeout(LONG, socket.read_exact(&mut answer)).await.expect("in time").expect("all of it");
        println!("{size} bytes in {:.1?} beside slow readers", start.elapsed());
        for reader in readers {
            reader.await.expect("it is read slowly");
        }
        assert_eq!(ErrorCode::from(fetch(&client, "t", 0).await.error_code), ErrorCode::None);
    })
    .await;
}
