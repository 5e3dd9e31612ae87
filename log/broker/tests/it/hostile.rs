//! A hundred thousand hostile frames: no panic, nothing appended, and a good client is served all along.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use thalweg_broker::AllowAll;
use thalweg_protocol::frame::encode_request;
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::{Compression, Compressor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::calls::{
    PRODUCE, batch, create_topic, fetch_request, list_offset, only, produce, produce_request,
};
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

/// Says to the process that the test starts that it is the one to be attacked.
const CHILD: &str = "THALWEG_TEST_HOSTILE";

/// The most memory that the attacked process may ever have, in KiB: two threads that decompress up to 64 MiB
/// each, 16 MiB of requests, and as much again for everything else, the attackers included.
const MOST_MEMORY_KIB: usize = 256 << 10;

/// The test runs in a process of its own, whose memory is nobody else's.
#[test]
fn hostile_frames_do_no_harm() {
    if std::env::var_os(CHILD).is_none() {
        let test = std::env::current_exe().expect("this test is a program");
        let arguments = ["--exact", "hostile::hostile_frames_do_no_harm", "--nocapture"];
        let status = Command::new(test).args(arguments).env(CHILD, "1").status().expect("it can be started");
        assert!(status.success(), "{status}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(attacked());
    let peak = peak_memory_kib();
    assert!(peak < MOST_MEMORY_KIB, "{peak} KiB at the peak");
}

fn peak_memory_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak is among it");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

async fn attacked() {
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
    send_bad_batches(&harness).await;
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

/// Sends batches whose checksums are right and which are wrong all the same.
async fn send_bad_batches(harness: &Harness) {
    let client = harness.connect().await;
    for (what, batch) in bad_batches() {
        let request = produce_request("untouched", -1, vec![(0, batch)]);
        let answer = timeout(PATIENCE, client.call(request, PRODUCE)).await.expect("it is answered");
        assert_ne!(only(answer).error_code, 0, "{what} was taken");
    }
}

fn bad_batches() -> Vec<(String, Bytes)> {
    let valid = batch(["first", "second", "third"]);
    let mut bad = Vec::new();
    // Where each field begins is drawn at `BatchHeader`.
    for (at, field) in [(57, "records count"), (23, "last offset delta")] {
        for value in [-1, 0, 1, 2, 4, 1000, i32::MIN, i32::MAX] {
            let mut batch = BytesMut::from(&valid[..]);
            if batch[at..at + 4] != value.to_be_bytes() {
                batch[at..at + 4].copy_from_slice(&value.to_be_bytes());
                bad.push((format!("{field} {value}"), batch));
            }
        }
    }
    for attributes in [0x05_u16, 0x07, 0x20, 0x30, 0x40, 0x80, 0x8000] {
        let mut batch = BytesMut::from(&valid[..]);
        batch[21..23].copy_from_slice(&attributes.to_be_bytes());
        bad.push((format!("attributes {attributes:#x}"), batch));
    }
    for (producer_id, epoch, sequence) in [(-2_i64, 0_i16, 0_i32), (1, -1, 0), (1, 0, -1)] {
        let mut batch = BytesMut::from(&valid[..]);
        batch[43..51].copy_from_slice(&producer_id.to_be_bytes());
        batch[51..53].copy_from_slice(&epoch.to_be_bytes());
        batch[53..57].copy_from_slice(&sequence.to_be_bytes());
        bad.push((format!("producer {producer_id}, {epoch}, {sequence}"), batch));
    }
    // The first record: length, attributes, timestamp delta, offset delta, key length −1, value length.
    for (at, field) in [(61, "record length"), (64, "offset delta"), (65, "key length"), (66, "value length")]
    {
        for value in [0x03, 0x05, 0x7e, 0x7f] {
            let mut batch = BytesMut::from(&valid[..]);
            batch[at] = value;
            bad.push((format!("{field} {value:#x}"), batch));
        }
    }
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        bad.push((format!("a bomb of {compression}"), bomb(&valid, compression)));
    }
    let checked = bad.into_iter().map(|(what, mut batch)| {
        let length = (batch.len() - 12) as u32;
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        let checksum = crc32c::crc32c(&batch[21..]);
        batch[17..21].copy_from_slice(&checksum.to_be_bytes());
        (what, batch.freeze())
    });
    checked.collect()
}

/// Some hundred bytes of stream that decompress to a mebibyte of zeros, as often as fits into a request: codecs
/// either take the streams together, for hundreds of mebibytes, or find something behind the first.
fn bomb(valid: &Bytes, compression: Compression) -> BytesMut {
    let mut stream = Vec::new();
    Compressor::new().compress(compression, None, &vec![0; 1 << 20], &mut stream);
    let mut batch = BytesMut::from(&valid[..61]);
    batch[22] = compression as u8;
    while batch.len() + stream.len() < 900_000 {
        batch.extend_from_slice(&stream);
    }
    batch
}
