//! A hundred thousand hostile frames: no panic, nothing appended, and a good client is served all along.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use thalweg_broker::AllowAll;
use thalweg_protocol::frame::encode_request;
use thalweg_protocol::messages::{ApiKey, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::calls::{batch, create_topic, fetch_request, list_offset, produce, produce_request};
use crate::harness::{Harness, Way};
use crate::versions::harmless;

const FRAMES: usize = 100_000;

/// A frame is answered, or its connection closed, within this time; only a broken broker takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Valid requests, without their sizes, that mutation starts from.
fn seeds() -> Vec<Bytes> {
    let mut seeds = Vec::new();
    let mut add = |request: Request, version: i16| {
        let frame = encode_request(&request, version, 1, Some("hostile")).expect("it can be encoded");
        seeds.push(frame.into_bytes().expect("it is in memory").slice(4..));
    };
    for &api_key in ApiKey::ALL {
        // What creates topics or members is left out: it may do so.
        let is_harmless =
            !matches!(api_key, ApiKey::JoinGroup | ApiKey::CreateTopics | ApiKey::InitProducerId);
        if let Some(request) = harmless(api_key).filter(|_| is_harmless) {
            for version in api_key.versions() {
                add(request.clone(), version);
            }
        }
    }
    for version in 3..=12 {
        // Mutated checksums do not match any more, so that nothing of this is ever appended; the few that are
        // not mutated where it matters go to a topic that is not there.
        add(
            produce_request("hostile", 1, vec![(0, batch(["value", "another"])), (1, batch(["x"]))]).into(),
            version,
        );
    }
    for version in 4..=12 {
        add(fetch_request("good", &[(0, 0), (5, 17)]).into(), version);
    }
    seeds
}

/// Changes a few bytes, cuts off, or puts in what breaks parsers: extreme counts, sizes and varints.
fn mutate(random: &mut fastrand::Rng, seed: &Bytes) -> BytesMut {
    const BREAKERS: [&[u8]; 8] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff],
        &[0x80, 0, 0, 0],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
        &[0x7f, 0xff],
        &[0xc3, 0x28],
    ];
    let mut frame = BytesMut::from(&seed[..]);
    for _ in 0..random.usize(1..4) {
        // The key and version are left alone most of the time, to get past them.
        let first = if random.u8(..) < 230 { 8.min(frame.len()) } else { 0 };
        let at = random.usize(first..=frame.len());
        match random.u8(0..5) {
            0 if at < frame.len() => frame[at] ^= 1 << random.u8(0..8),
            1 if at < frame.len() => frame[at] = random.u8(..),
            2 => frame.truncate(at.max(1)),
            3 => {
                let tail = frame.split_off(at);
                frame.extend_from_slice(BREAKERS[random.usize(..BREAKERS.len())]);
                let skipped = random.usize(0..=4).min(tail.len());
                frame.extend_from_slice(&tail[skipped..]);
            }
            _ => frame.extend((0..random.usize(1..64)).map(|_| random.u8(..))),
        }
    }
    frame
}

/// Sends `frames` mutated frames, on a new connection whenever the broker has closed the old one.
async fn attack(address: std::net::SocketAddr, seed: u64, frames: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let seeds = seeds();
    let mut socket: Option<TcpStream> = None;
    for _ in 0..frames {
        let seed = random.usize(..seeds.len());
        let body = mutate(&mut random, &seeds[seed]);
        let size = match random.u8(..) {
            0 => random.i32(..),
            1 => body.len() as i32 + random.i32(-4..4),
            _ => body.len() as i32,
        };
        let is_honest = size == body.len() as i32;
        let mut frame = BytesMut::with_capacity(body.len() + 4);
        frame.put_i32(size);
        frame.put_slice(&body);
        let mut open = match socket.take() {
            Some(open) => open,
            None => TcpStream::connect(address).await.expect("the broker lives"),
        };
        if open.write_all(&frame).await.is_err() || !is_honest {
            continue;
        }
        if timeout(PATIENCE, answered(&mut open, &body)).await.expect("the broker answers or closes") {
            socket = Some(open);
        }
    }
}

/// Reads one answer; says whether the connection is still of use.
async fn answered(socket: &mut TcpStream, body: &[u8]) -> bool {
    // A Produce that was turned into one with acks = 0 has no answer, and a Fetch may have been turned into one
    // that waits for hours: the connection is given up.
    if body.starts_with(&[0, 0]) || body.starts_with(&[0, 1]) {
        let mut byte = [0; 4096];
        let _ = timeout(Duration::from_millis(2), socket.read(&mut byte)).await;
        return false;
    }
    let Ok(size) = socket.read_i32().await else { return false };
    let mut answer = vec![0; size as usize];
    socket.read_exact(&mut answer).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_frames_do_no_harm() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        config.auto_create_topics = false;
        config.request_memory_bytes = 16 << 20;
        config.max_request_bytes = 1 << 20;
        config.partial_request_ms = 500;
    };
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let address = harness.broker.addresses()[0];
    let good = harness.connect().await;
    create_topic(&good, "good", 1).await;
    create_topic(&good, "untouched", 2).await;

    let is_over = Arc::new(AtomicBool::new(false));
    let (client, over) = (harness.connect().await, Arc::clone(&is_over));
    let served = tokio::spawn(async move {
        let mut sent = 0;
        while !over.load(Ordering::Relaxed) {
            let answer = timeout(PATIENCE, produce(&client, "good", batch(["good"]))).await;
            assert_eq!(answer.expect("a good client is served"), sent);
            sent += 1;
        }
        sent
    });
    let attackers: Vec<_> = (0..8).map(|seed| tokio::spawn(attack(address, seed, FRAMES / 8))).collect();
    for attacker in attackers {
        attacker.await.expect("the broker lives");
    }
    is_over.store(true, Ordering::Relaxed);
    let sent = served.await.expect("a good client is served");
    assert!(sent > 10, "only {sent} good requests were served meanwhile");
    assert_eq!(list_offset(&good, "good", -1).await.offset, sent, "nothing else was appended");
    assert_eq!(list_offset(&good, "untouched", -1).await.offset, 0);
    harness.finish().await;
}
