//! A whole node on one disk that crashes at every operation: the metadata, transactions, group commits, producer ids, and a topic
//! that comes, goes and comes again. Whatever was answered is there after a restart, and nothing else is made up.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;

use bytestring::ByteString;
use futures::FutureExt;
use thalweg_controller::{CreateTopics, DeleteTopics, NewTopic, Rejection, TopicRef};
use thalweg_protocol::record::BatchBuilder;
use thalweg_protocol::{Compression, Compressor, ErrorCode, ProducerId, TopicPartition, Uuid};
use thalweg_storage::testing::{Crash, OperationKind};

use super::driven::{App, commit_of, stable_offset, stable_offset_of};
use crate::coordinator::Shard;
use crate::coordinator::rig::Rig;
use crate::transaction::Outcome;

const TRANSACTIONS: i64 = 3;

/// A group without transactions.
const PLAIN: ByteString = ByteString::from_static("plain");

/// The topic that comes and goes, and the ids that it has one after the other.
const TOPIC: ByteString = ByteString::from_static("d");
const FIRST: Uuid = Uuid([1; 16]);
const SECOND: Uuid = Uuid([2; 16]);
const THIRD: Uuid = Uuid([3; 16]);

/// How far something has come: what was answered, and what was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    answered: i64,
    asked: i64,
}

/// How far the topic has come. What ends with "ing" was asked for and not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    None,
    Creating,
    Created,
    Written,
    Deleting,
    Deleted,
    CreatingAgain,
    CreatedAgain,
}

/// What clients have seen happen.
#[derive(Debug, Default)]
struct Seen {
    /// Transactions that were committed.
    transactions: Progress,
    /// The offset of the group without transactions.
    offset: Progress,
    producer_ids: BTreeSet<ProducerId>,
    topic: Stage,
}

async fn run(rig: &Rig, seen: &mut Seen) -> Result<(), ErrorCode> {
    take_producer_id(rig, seen).await?;
    let mut app = rig.done(App::start(rig)).await?;
    for number in 1..=TRANSACTIONS {
        commit_offset(rig, number, seen).await?;
        // The second transaction is aborted the first time.
        let outcomes: &[_] =
            if number == 2 { &[Outcome::Abort, Outcome::Commit] } else { &[Outcome::Commit] };
        for &outcome in outcomes {
            rig.done(app.write(&number.to_string(), number)).await?;
            if outcome == Outcome::Commit {
                seen.transactions.asked = number;
            }
            rig.done(app.end(outcome)).await?;
            if outcome == Outcome::Commit {
                seen.transactions.answered = number;
            }
        }
        match number {
            1 => create_and_write(rig, seen).await?,
            2 => delete(rig, seen)?,
            _ => {
                seen.topic = Stage::CreatingAgain;
                create(rig, SECOND)?;
                seen.topic = Stage::CreatedAgain;
            }
        }
    }
    take_producer_id(rig, seen).await
}

async fn take_producer_id(rig: &Rig, seen: &mut Seen) -> Result<(), ErrorCode> {
    let producer = rig.done(rig.transactions.idempotent_producer()).await?;
    assert!(seen.producer_ids.insert(producer.id), "{} was given out twice", producer.id);
    Ok(())
}

async fn commit_offset(rig: &Rig, offset: i64, seen: &mut Seen) -> Result<(), ErrorCode> {
    seen.offset.asked = offset;
    let shard = rig.groups.shard(&PLAIN).await?;
    let last = shard.commit(&commit_of(PLAIN, offset, None), || Ok(()))?;
    rig.done(shard.journal().committed(last.expect("one offset is one record"))).await?;
    seen.offset.answered = offset;
    Ok(())
}

fn create(rig: &Rig, id: Uuid) -> Result<(), ErrorCode> {
    let topic = NewTopic {
        name: TOPIC,
        id,
        partitions: 1,
        replication_factor: 1,
        assignment: Vec::new(),
        configs: Default::default(),
    };
    one(rig.propose(CreateTopics { topics: vec![topic], validate_only: false }).ok())
}

fn delete(rig: &Rig, seen: &mut Seen) -> Result<(), ErrorCode> {
    seen.topic = Stage::Deleting;
    one(rig.propose(DeleteTopics { topics: vec![TopicRef::Name(TOPIC)] }).ok())?;
    seen.topic = Stage::Deleted;
    Ok(())
}

/// The only answer, if there is one: only a disk that has crashed keeps it back.
fn one<T>(answers: Option<Vec<Result<T, Rejection>>>) -> Result<(), ErrorCode> {
    let mut answers = answers.ok_or(ErrorCode::RequestTimedOut)?;
    answers.remove(0).map(drop).map_err(|rejection| panic!("{rejection}"))
}

async fn create_and_write(rig: &Rig, seen: &mut Seen) -> Result<(), ErrorCode> {
    seen.topic = Stage::Creating;
    create(rig, FIRST)?;
    seen.topic = Stage::Created;
    let leader = rig.partitions.leader(&TopicPartition::new(TOPIC, 0))?;
    let mut builder = BatchBuilder::new(Compression::None, None, 64);
    builder.append(1_700_000_000_000, None, Some(b"old"), []).expect("small");
    let batch = builder.finish(&mut Compressor::new(), None);
    let appended = leader.append(&batch, None, true).map_err(|refusal| refusal.code)?;
    rig.done(leader.committed(appended.last_offset)).await?;
    seen.topic = Stage::Written;
    Ok(())
}

/// How often a new instance asks while the transaction before is being ended, which may take a while on a slow machine.
const TRIES: usize = 100;

/// Starts a new instance of the application, as a client does.
async fn take_over(rig: &Rig) -> Result<(), ErrorCode> {
    for _ in 0..TRIES {
        match rig.done(App::start(rig)).await {
            Err(ErrorCode::ConcurrentTransactions) => {}
            other => return other.map(drop),
        }
    }
    Err(ErrorCode::ConcurrentTransactions)
}

/// What is wrong with what is left after a crash, once everything has come to its end.
async fn check(rig: &Rig, seen: &mut Seen) -> Result<(), String> {
    let failed = |what: &'static str| move |error: ErrorCode| format!("{what}: {}", error.name());
    rig.settle().await;
    for _ in 0..2 {
        let given = rig.done(rig.transactions.idempotent_producer()).await;
        let id = given.map_err(failed("no producer id"))?.id;
        if !seen.producer_ids.insert(id) {
            return Err(format!("producer id {id} is given out again"));
        }
    }
    take_over(rig).await.map_err(failed("no new instance"))?;
    rig.settle().await;
    if rig.has_open_transactions() {
        return Err("a transaction hangs".to_owned());
    }
    let offset = stable_offset(rig).await.ok_or("an offset hangs")?;
    let expected: Vec<String> = (1..=offset).map(|number| number.to_string()).collect();
    for partition in [0, 1] {
        let found = rig.read_committed(partition);
        if found != expected {
            return Err(format!("partition {partition} has {found:?}, and the offset is {offset}"));
        }
    }
    let plain = stable_offset_of(rig, &PLAIN).await.ok_or("an offset hangs that is in no transaction")?;
    for (what, Progress { answered, asked }, found) in
        [("transactions", seen.transactions, offset), ("offsets", seen.offset, plain)]
    {
        if !(answered..=asked).contains(&found) {
            return Err(format!(
                "of {what}, {answered} were answered and {asked} asked for, and {found} are there"
            ));
        }
    }
    check_topic(rig, seen.topic)
}

fn check_topic(rig: &Rig, stage: Stage) -> Result<(), String> {
    // The ids that the topic may have, and how many records there may be under the first one.
    let (ids, records): (&[Option<Uuid>], _) = match stage {
        Stage::None | Stage::Deleted => (&[None], 0..=0),
        Stage::Creating => (&[None, Some(FIRST)], 0..=0),
        Stage::Created => (&[Some(FIRST)], 0..=1),
        Stage::Written => (&[Some(FIRST)], 1..=1),
        Stage::Deleting => (&[None, Some(FIRST)], 1..=1),
        Stage::CreatingAgain => (&[None, Some(SECOND)], 0..=0),
        Stage::CreatedAgain => (&[Some(SECOND)], 0..=0),
    };
    let id = rig.topic_id(&TOPIC);
    if !ids.contains(&id) {
        return Err(format!("{stage:?}: the topic has the id {id:?}"));
    }
    if id.is_none() {
        create(rig, THIRD).map_err(|error| format!("the topic cannot be made anew: {}", error.name()))?;
    }
    let leader = rig.partitions.leader(&TopicPartition::new(TOPIC, 0));
    let leader = leader.map_err(|error| format!("{stage:?}: no partition: {}", error.name()))?;
    let found = leader.log().log_end_offset().0;
    let expected = if id == Some(FIRST) { records } else { 0..=0 };
    match expected.contains(&found) {
        true => Ok(()),
        false => Err(format!("{stage:?}: the topic {id:?} has {found} records")),
    }
}

/// Crashes at the `at`th operation, and says what is wrong after the restart. A sync can be left out before that.
async fn crashed(at: usize, crash: Crash, left_out: Option<usize>) -> Result<(), String> {
    let rig = Rig::whole().await;
    let before = rig.filesystem.performed().len();
    rig.filesystem.crash_at(before + at);
    if let Some(sync) = left_out {
        rig.filesystem.ignore_sync(before + sync);
    }
    let mut seen = Seen::default();
    // Where it ends is in what was seen.
    let _ = run(&rig, &mut seen).await;
    let rig = rig.restart(crash).await;
    check(&rig, &mut seen).await.map_err(|wrong| format!("{crash:?} at {at}: {wrong}"))
}

/// What is done to the disk when nothing fails: each operation, and what it is done to.
async fn operations() -> Vec<(OperationKind, String)> {
    let rig = Rig::whole().await;
    let before = rig.filesystem.performed().len();
    let mut seen = Seen::default();
    run(&rig, &mut seen).await.expect("nothing fails");
    assert_eq!((seen.transactions.answered, seen.offset.answered), (TRANSACTIONS, TRANSACTIONS));
    assert_eq!((seen.topic, seen.producer_ids.len()), (Stage::CreatedAgain, 2));
    let performed = rig.filesystem.performed().split_off(before);
    check(&rig, &mut seen).await.expect("nothing is wrong");
    let needed = performed.into_iter().map(|done| match done.was_needed {
        true => (done.kind, done.path.display().to_string()),
        false => (done.kind, String::new()),
    });
    needed.collect()
}

/// Crashes at every operation, or at every `step`th.
async fn sweep(step: usize, crash: impl Fn(usize) -> Crash) {
    let operations = operations().await.len();
    assert!(operations > 100, "the sweep is too short: {operations} operations");
    for at in (0..operations).step_by(step) {
        if let Err(wrong) = crashed(at, crash(at), None).await {
            panic!("{wrong}");
        }
    }
}

#[tokio::test]
async fn nothing_answered_is_lost_when_the_process_is_killed() {
    sweep(5, |_| Crash::Kept).await;
}

#[tokio::test]
async fn nothing_answered_is_lost_when_the_power_goes() {
    sweep(1, |_| Crash::Dropped).await;
}

#[tokio::test]
async fn nothing_answered_is_lost_when_the_power_goes_and_leaves_anything() {
    sweep(2, |at| Crash::Torn(at as u64)).await;
}

/// How many operations after a sync that was left out it is looked for what it has cost.
const SOON: usize = 16;

#[tokio::test]
async fn a_sync_that_is_left_out_is_noticed() {
    let operations = operations().await;
    for kept in ["metadata/", "__consumer_offsets-0/", "__transaction_state-0/", "t-0/", "d-0/"] {
        let is_sync = |(kind, path): &(OperationKind, String)| {
            *kind == OperationKind::Sync && path.starts_with(kept) && path.ends_with(".log")
        };
        let syncs: Vec<_> = operations.iter().enumerate().filter(|(_, done)| is_sync(done)).collect();
        assert!(!syncs.is_empty(), "{kept} is synced: {operations:?}");
        let mut noticed = None;
        // The metadata has a thread of its own, whose marks come sooner or later than they did before: the same sync may be one
        // operation on.
        let places = syncs.iter().flat_map(|(at, _)| [*at, at + 1, at.saturating_sub(1)]);
        'all: for at in places {
            for later in 1..=SOON {
                let crashed = AssertUnwindSafe(crashed(at + later, Crash::Dropped, Some(at)));
                // It may be such that the node does not even start.
                if let Some(wrong) =
                    crashed.catch_unwind().await.map_or(Some("a panic".to_owned()), Result::err)
                {
                    noticed = Some(wrong);
                    break 'all;
                }
            }
        }
        assert!(noticed.is_some(), "nobody missed the syncs of {kept}");
    }
}
