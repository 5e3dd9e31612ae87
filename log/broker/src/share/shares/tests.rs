//! What the journal of share-partitions keeps, and what it lets go of.

use thalweg_controller::{CreateTopics, NewTopic};
use thalweg_storage::testing::Crash;

use super::*;
use crate::coordinator::rig::Rig;
use crate::coordinator::{JUMPS_MS, Shard};
use crate::share::partition::Span;
use crate::share::{AckBatch, AcquireMode, AcquireTerms, Acquired};

const MEMBER: ByteString = ByteString::from_static("m");
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;

/// So many records are acknowledged one by one: more than a snapshot may lie behind.
const RECORDS: i64 = 21_000;

/// One of so many is given back instead.
const KEPT: i64 = 1_500;

/// A rig with the topic of share groups.
async fn rig() -> Rig {
    let rig = Rig::new().await;
    let topic = NewTopic {
        name: ByteString::from_static(SHARE_GROUP_STATE),
        id: crate::topics::random_id(),
        partitions: 1,
        replication_factor: 1,
        assignment: Vec::new(),
        configs: Default::default(),
    };
    let made = rig.propose(CreateTopics { topics: vec![topic], validate_only: false });
    made.expect("it has an answer").remove(0).expect("the topic is made");
    rig
}

fn key(rig: &Rig, partition: i32) -> ShareKey {
    let topic_id = rig.topic_id("t").expect("the topic is there");
    ShareKey { group: ByteString::from_static("g"), topic_id, partition }
}

/// Acquires what is free from `first` to `last`.
fn acquire(shares: &Shares, held: &HeldShare, first: i64, last: i64) -> Vec<Acquired> {
    let spans = [Span { first: Offset(first), last: Offset(last), is_for_consumers: true }];
    let terms = AcquireTerms {
        mode: AcquireMode::BatchOptimized,
        max_records: u64::MAX,
        batch_size: 1,
        max_locks: u64::MAX,
        max_deliveries: 5,
        until_ms: shares.now().monotonic_ms + 60_000,
    };
    held.acquire(&MEMBER, Offset(first), &spans, terms).0
}

fn say(shares: &Shares, held: &HeldShare, at: i64, what: i8) {
    let batch = AckBatch::new(at, at, &[what], false).expect("it is sound");
    let settings = shares.settings_of(&held.key().group);
    held.acknowledge(&MEMBER, &[batch], &settings, shares.now()).expect("it is taken");
}

#[tokio::test]
async fn the_journal_stays_short_and_says_the_same_after_a_restart() {
    let rig = rig().await;
    let shares = rig.groups.shares();
    let idle = rig.done(shares.find_or_create(&key(&rig, 1), Offset(7))).await.expect("it is made");
    acquire(shares, &idle, 7, 9);
    say(shares, &idle, 8, ACCEPT);
    let busy = rig.done(shares.find_or_create(&key(&rig, 0), Offset(0))).await.expect("it is made");
    for at in 0..RECORDS {
        acquire(shares, &busy, at, at);
        say(shares, &busy, at, if at % KEPT == KEPT - 1 { RELEASE } else { ACCEPT });
    }
    rig.settle().await;
    let shard = shares.shards.loaded().pop().expect("it is loaded");
    let length = |shard: &ShareShard| shard.journal().end().0 - shard.journal().start().0;
    let before = length(&shard);
    assert!(before > RECORDS, "each is a record: {before}");
    // What is idle has its only snapshot at the beginning. It gets another, and with that the rest goes.
    shard.trim();
    assert_eq!(length(&shard), before + 1);
    rig.settle().await;
    shard.trim();
    let after = length(&shard);
    assert!(after <= 1_000, "the last snapshot and what came after it: {after}");
    // It is not done for less.
    say(shares, &idle, 9, RELEASE);
    rig.settle().await;
    shard.trim();
    assert_eq!(length(&shard), after + 1);

    let summaries = [busy.summary(), idle.summary()];
    assert_eq!(summaries.map(|summary| summary.start.0), [KEPT - 1, 7]);
    drop((busy, idle, shard));
    let rig = rig.restart(Crash::Dropped).await;
    let shares = rig.groups.shares();
    let find = async |partition| {
        let found = rig.done(shares.find(&key(&rig, partition))).await;
        found.expect("it can be loaded").expect("it is there")
    };
    let (busy, idle) = (find(0).await, find(1).await);
    for (held, before) in [(&busy, summaries[0]), (&idle, summaries[1])] {
        let after = held.summary();
        assert_eq!((after.start, after.done_count), (before.start, before.done_count));
    }
    let free = |acquired: Vec<Acquired>| -> Vec<(i64, i16)> {
        acquired.iter().map(|range| (range.first.0, range.deliveries)).collect()
    };
    let kept: Vec<(i64, i16)> = (1..=RECORDS / KEPT).map(|count| (count * KEPT - 1, 2)).collect();
    assert_eq!(free(acquire(shares, &busy, KEPT - 1, RECORDS - 1)), kept);
    // The member that had record 7 has gone with the node, so that its delivery does not count.
    assert_eq!(free(acquire(shares, &idle, 7, 9)), [(7, 1), (9, 2)]);
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_ends_no_lock_and_prolongs_none() {
    let rig = rig().await;
    let shares = rig.groups.shares();
    let held = rig.done(shares.find_or_create(&key(&rig, 0), Offset(0))).await.expect("it is made");
    let settings = shares.settings_of(&held.key().group);
    for (at, jump_ms) in (0..).zip(JUMPS_MS) {
        let before = shares.now();
        assert_eq!(acquire(shares, &held, at, at).len(), 1);
        let after = shares.now();
        rig.wall.jump(jump_ms);
        let expire = |monotonic_ms: u64| {
            let now = Now { monotonic_ms, ..shares.now() };
            held.expire(&settings, shares.tally(), now);
            let (acquired, available) = held.in_flight();
            (acquired, available)
        };
        assert_eq!(expire(before.monotonic_ms + 59_999), (1, 0), "{jump_ms}: it has a minute");
        assert_eq!(expire(after.monotonic_ms + 60_000), (0, 1), "{jump_ms}: the minute is over");
        assert_eq!(acquire(shares, &held, at, at)[0].deliveries, 2);
        say(shares, &held, at, ACCEPT);
    }
}
