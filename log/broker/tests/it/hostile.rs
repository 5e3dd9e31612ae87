//! A hundred thousand hostile frames: no panic, nothing appended that a strict reader would refuse, and a good client is
//! served all along. `make soak` sends a million; `THALWEG_HOSTILE_FRAMES` says how many.

mod bad;
mod bombs;
mod damage;
mod mutants;
mod strict;

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use thalweg_broker::AllowAll;
use thalweg_protocol::frame::encode_request;
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::{Compressor, ErrorCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use self::mutants::{Damage, Mutant};
use crate::calls::{
    FETCH, PRODUCE, batch, create_topic, fetch_request, list_offset, only, produce, produce_request,
};
use crate::harness::{Client, Harness, Way};
use crate::node_process::peak_memory_kib;
use crate::raw_tcp::RawTcp;
use crate::versions::harmless;

/// How many frames are sent. Unoptimised, everything takes ten times as long.
fn frames() -> usize {
    const FRAMES: usize = if cfg!(debug_assertions) { 16_000 } else { 100_000 };
    let Ok(asked) = std::env::var("THALWEG_HOSTILE_FRAMES") else { return FRAMES };
    asked.parse().expect("THALWEG_HOSTILE_FRAMES is a number")
}

/// How many attack at once: half of them with whatever requests, half with record batches.
const ATTACKERS: usize = 8;

/// A frame is answered, or its connection closed, within this time; only a broken broker takes longer.
const PATIENCE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 120 } else { 20 });

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

/// Sends `frames` mutated frames, on a new connection whenever the broker has closed the old one.
async fn attack(address: SocketAddr, seed: u64, frames: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let seeds = seeds();
    let mut socket: Option<TcpStream> = None;
    for _ in 0..frames {
        let seed = random.usize(..seeds.len());
        // The key and version are left alone most of the time, to get past them.
        let body = damage::mutate(&mut random, &seeds[seed], 8);
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
/// each, 16 MiB of requests, as much again for everything else, the attackers included, and 16 MiB of batches that are
/// gathered before they are written.
const MOST_MEMORY_KIB: usize = 272 << 10;

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
    let start = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(attacked());
    let peak = peak_memory_kib(std::process::id());
    println!("{} frames in {:.1?}, {peak} KiB at the peak", frames(), start.elapsed());
    assert!(peak < MOST_MEMORY_KIB, "{peak} KiB at the peak");
}

async fn attacked() {
    let change = |config: &mut thalweg_broker::BrokerConfig| {
        config.auto_create_topics = false;
        config.request_memory_bytes = 16 << 20;
        config.max_request_bytes = 1 << 20;
        config.partial_request_ms = 500;
    };
    // Before anything else: to make them takes memory, too.
    let bombs = bombs::all();
    let harness = Harness::start_with(Way::Tcp, change, AllowAll).await;
    let address = harness.broker.addresses()[0];
    let good = harness.connect().await;
    create_topic(&good, "good", 1).await;
    create_topic(&good, "untouched", 2).await;
    create_topic(&good, "mutated", ATTACKERS as i32 / 2).await;

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
    let frames = frames() / ATTACKERS;
    let attackers: Vec<_> =
        (0..ATTACKERS / 2).map(|seed| tokio::spawn(attack(address, seed as u64, frames))).collect();
    let with_batches: Vec<_> = (0..ATTACKERS / 2)
        .map(|partition| tokio::spawn(attack_with_batches(address, partition as i32, frames)))
        .collect();
    send_bad_batches(&harness).await;
    bombs::send_side_by_side(address, &bombs).await;
    for attacker in attackers {
        attacker.await.expect("the broker lives");
    }
    let mut fates = Vec::new();
    for attacker in with_batches {
        fates.push(attacker.await.expect("the broker does as it should"));
    }
    is_over.store(true, Ordering::Relaxed);
    let sent = served.await.expect("a good client is served");
    assert!(sent > 10, "only {sent} good requests were served meanwhile");
    assert_eq!(list_offset(&good, "good", -1).await.offset, sent, "nothing else was appended");
    assert_eq!(list_offset(&good, "untouched", -1).await.offset, 0);
    for (partition, fate) in fates.iter().enumerate() {
        check_log(&good, partition as i32, fate).await;
    }
    check_reach(&fates);
    harness.finish().await;
}

/// What became of the batches of one attacker.
#[derive(Default)]
struct Fate {
    /// Of those that were taken, by base offset: a checksum of the records as they were sent.
    taken: BTreeMap<i64, u32>,
    /// Why others were not.
    refused: HashSet<(Damage, ErrorCode)>,
}

/// Where the records of a batch begin.
const RECORDS: usize = 61;

/// Sends `batches` mutants to a partition of its own.
async fn attack_with_batches(address: SocketAddr, partition: i32, batches: usize) -> Fate {
    let mut random = fastrand::Rng::with_seed(1000 + partition as u64);
    let mut compressor = Compressor::new();
    let client = Client(RawTcp::connect(address).await);
    let mut fate = Fate::default();
    for _ in 0..batches {
        let Mutant { bytes, damage } = Mutant::new(&mut random, &mut compressor);
        let bytes = bytes.freeze();
        let request = produce_request("mutated", 1, vec![(partition, bytes.clone())]);
        let answer = timeout(PATIENCE, client.call(request, random.i16(3..=PRODUCE))).await;
        let answer = only(answer.expect("it is answered"));
        match (ErrorCode::from(answer.error_code), strict::read(&bytes)) {
            (ErrorCode::None, Ok(_)) => {
                // What a producer repeats is answered as it was at first.
                fate.taken.entry(answer.base_offset).or_insert_with(|| crc32c::crc32c(&bytes[RECORDS..]));
            }
            (ErrorCode::None, Err(wrong)) => {
                panic!("taken, though wrong in {wrong}; damage to {damage:?}: {bytes:02x?}")
            }
            (code, verdict) => {
                assert!(damage != Damage::None, "{code:?}, though there is nothing wrong with it");
                assert!(
                    !matches!(code, ErrorCode::UnknownServerError),
                    "{damage:?}, {verdict:?}: {bytes:02x?}"
                );
                fate.refused.insert((damage, code));
            }
        }
    }
    fate
}

/// Reads a partition from its beginning to its end as a strict reader does: it has what was taken, and nothing else.
async fn check_log(client: &Client, partition: i32, fate: &Fate) {
    let (mut next, mut found) = (0, BTreeMap::new());
    loop {
        let response = client.call(fetch_request("mutated", &[(partition, next)]), FETCH).await;
        let data = response.responses.into_iter().next().expect("one topic").partitions.remove(0);
        assert_eq!(ErrorCode::from(data.error_code), ErrorCode::None);
        let mut rest = data.records.expect("not null").into_bytes().expect("it can be read");
        if rest.is_empty() {
            break;
        }
        while !rest.is_empty() {
            let length = i32::from_be_bytes(rest[8..12].try_into().expect("four bytes"));
            let batch = rest.split_to(12 + length as usize);
            let read = strict::read(&batch).unwrap_or_else(|wrong| panic!("wrong in {wrong}: {batch:02x?}"));
            assert_eq!(read.base_offset, next, "{batch:02x?}");
            assert_eq!(read.max_timestamp, read.newest, "{batch:02x?}");
            found.insert(next, crc32c::crc32c(&batch[RECORDS..]));
            next += i64::from(read.count);
        }
    }
    assert!(found == fate.taken, "partition {partition} has other batches than were taken");
}

/// Whether the mutants came as far as they were meant to.
fn check_reach(fates: &[Fate]) {
    let taken: usize = fates.iter().map(|fate| fate.taken.len()).sum();
    assert!((frames() / 40..frames() / 3).contains(&taken), "{taken} were taken");
    let refused: HashSet<_> = fates.iter().flat_map(|fate| &fate.refused).copied().collect();
    for expected in [
        (Damage::Number, ErrorCode::InvalidRecord),
        (Damage::Number, ErrorCode::InvalidTimestamp),
        (Damage::Records, ErrorCode::InvalidRecord),
        (Damage::Compressed, ErrorCode::InvalidRecord),
        (Damage::Codec, ErrorCode::InvalidRecord),
        (Damage::Codec, ErrorCode::UnsupportedCompressionType),
        (Damage::Field, ErrorCode::InvalidRecord),
        (Damage::Field, ErrorCode::InvalidTimestamp),
        (Damage::Field, ErrorCode::UnsupportedForMessageFormat),
        (Damage::Count, ErrorCode::InvalidRecord),
        (Damage::Length, ErrorCode::CorruptMessage),
        (Damage::Length, ErrorCode::InvalidRecord),
        (Damage::Checksum, ErrorCode::CorruptMessage),
    ] {
        assert!(refused.contains(&expected), "no {expected:?} among {refused:?}");
    }
}

/// Sends batches whose checksums are right and which are wrong all the same.
async fn send_bad_batches(harness: &Harness) {
    let client = harness.connect().await;
    for (what, batch, expected) in bad::batches() {
        assert!(strict::read(&batch).is_err(), "there is nothing wrong with {what}");
        let request = produce_request("untouched", -1, vec![(0, batch)]);
        let answer = timeout(PATIENCE, client.call(request, PRODUCE)).await.expect("it is answered");
        let answer = only(answer);
        assert_eq!((ErrorCode::from(answer.error_code), answer.base_offset), (expected, -1), "{what}");
    }
}
