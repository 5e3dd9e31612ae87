//! The coordinator on a disk that syncs when it is told to.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition, Uuid};
use thalweg_storage::testing::Crash;

use crate::coordinator::rig::Rig;
use crate::coordinator::{JUMPS_MS, Shard};
use crate::group::{Commit, CommitPartition, CommitTopic};
use crate::topics::CONSUMER_OFFSETS;
use crate::transaction::{
    EndTransaction, InitProducerId, Outcome, Producer, TransactionCoordinator, TransactionVersion,
};

const ID: ByteString = ByteString::from_static("tx");
const GROUP: ByteString = ByteString::from_static("g");
const WEEK_MS: i64 = 7 * 24 * 3_600_000;

/// One transactional producer and its consumer group.
#[derive(Clone, Copy)]
pub(super) struct App<'a> {
    pub(super) rig: &'a Rig,
    pub(super) identity: Identity,
}

/// What an application keeps over a restart of the broker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    producer: Producer,
    version: TransactionVersion,
    /// The next sequence number on each partition.
    sequence: i32,
}

impl<'a> App<'a> {
    pub(super) async fn start(rig: &'a Rig) -> Result<Self, ErrorCode> {
        Self::start_by(rig, TransactionVersion::EpochBump).await
    }

    /// An application that plays by these rules.
    pub(super) async fn start_by(rig: &'a Rig, version: TransactionVersion) -> Result<Self, ErrorCode> {
        Ok(Self::new(rig, patiently(rig, || init(rig, None)).await?, version))
    }

    fn new(rig: &'a Rig, producer: Producer, version: TransactionVersion) -> Self {
        Self { rig, identity: Identity { producer, version, sequence: 0 } }
    }

    /// Writes `value` to both partitions and `offset` for the group; nobody waits in between.
    pub(super) async fn write(&self, value: &str, offset: i64) -> Result<(), ErrorCode> {
        let writes = [self.append(0, value), self.append(1, value)];
        let (written, committed) =
            futures::join!(futures::future::join_all(writes), self.commit_offset(offset));
        written.into_iter().collect::<Result<Vec<_>, _>>()?;
        committed
    }

    async fn append(&self, partition: i32, value: &str) -> Result<(), ErrorCode> {
        let id = TopicPartition::new("t", partition);
        // As the handlers do: one by one and explicitly, or by the write where the transaction is not open yet.
        if self.identity.version == TransactionVersion::Classic {
            self.add(&id).await?;
            let shard = self.rig.transactions.shard(&ID).await?;
            self.rig
                .leader("t", partition)
                .begin_verification(self.identity.producer.id, self.identity.producer.epoch);
            TransactionCoordinator::verify(&shard, &ID, self.identity.producer, &id)?;
        } else {
            let leader = self.rig.leader("t", partition);
            if leader.begin_verification(self.identity.producer.id, self.identity.producer.epoch).is_some() {
                self.add(&id).await?;
            }
        }
        self.rig.append(partition, self.identity.producer, self.identity.sequence, value).await
    }

    async fn add(&self, partition: &TopicPartition) -> Result<(), ErrorCode> {
        let Identity { producer, version, .. } = self.identity;
        let (id, partitions) = (ID, BTreeSet::from([partition.clone()]));
        let add = || self.rig.transactions.add_partitions(&id, producer, &partitions, version);
        patiently(self.rig, add).await
    }

    async fn commit_offset(&self, offset: i64) -> Result<(), ErrorCode> {
        let offsets = TopicPartition::new(CONSUMER_OFFSETS, 0);
        self.add(&offsets).await?;
        let shard = self.rig.transactions.shard(&ID).await?;
        let groups = self.rig.groups.shard(&GROUP).await?;
        let verify = || TransactionCoordinator::verify(&shard, &ID, self.identity.producer, &offsets);
        match groups.commit(&commit(offset, Some(self.identity.producer)), verify)? {
            Some(last) => groups.journal().committed(last).await,
            None => Ok(()),
        }
    }

    /// Ends the transaction, and goes on as whoever the answer says.
    pub(super) async fn end(&mut self, outcome: Outcome) -> Result<(), ErrorCode> {
        let Identity { producer, version, .. } = self.identity;
        let next = patiently(self.rig, || end_by(self.rig, producer, outcome, version)).await?;
        self.identity.sequence = if next == self.identity.producer { self.identity.sequence + 1 } else { 0 };
        self.identity.producer = next;
        Ok(())
    }
}

/// Tries again, as clients do, until the transaction before has come to its end: on a busy machine that takes longer than a
/// coordinator waits, and on a disk that has failed it never does.
async fn patiently<T, F: Future<Output = Result<T, ErrorCode>>>(
    rig: &Rig,
    attempt: impl Fn() -> F,
) -> Result<T, ErrorCode> {
    loop {
        match attempt().await {
            Err(ErrorCode::ConcurrentTransactions) if !rig.is_offline() => {}
            other => return other,
        }
    }
}

async fn init(rig: &Rig, given: Option<Producer>) -> Result<Producer, ErrorCode> {
    let shard = rig.transactions.shard(&ID).await?;
    let request = InitProducerId { timeout_ms: 60_000, given };
    let decided = rig.transactions.init_producer_id(&shard, &ID, request).await?;
    shard.journal().committed(decided.rests_on).await?;
    Ok(decided.answer)
}

async fn end(rig: &Rig, producer: Producer, outcome: Outcome) -> Result<Producer, ErrorCode> {
    end_by(rig, producer, outcome, TransactionVersion::EpochBump).await
}

async fn end_by(
    rig: &Rig,
    producer: Producer,
    outcome: Outcome,
    version: TransactionVersion,
) -> Result<Producer, ErrorCode> {
    let shard = rig.transactions.shard(&ID).await?;
    let request = EndTransaction { producer, outcome, version };
    let decided = rig.transactions.end(&shard, &ID, request).await?;
    shard.journal().committed(decided.rests_on).await?;
    Ok(decided.answer)
}

fn commit(offset: i64, producer: Option<Producer>) -> Commit {
    commit_of(GROUP, offset, producer)
}

/// A commit for a group, in the transaction of `producer` if there is one.
pub(super) fn commit_of(group: ByteString, offset: i64, producer: Option<Producer>) -> Commit {
    let partition = CommitPartition {
        partition: 0,
        offset: Offset(offset),
        leader_epoch: LeaderEpoch(-1),
        metadata: ByteString::new(),
    };
    Commit {
        group,
        member_id: ByteString::new(),
        instance_id: None,
        generation: -1,
        knows_epochs: true,
        retention_ms: None,
        topics: vec![CommitTopic { name: "t".into(), id: Uuid::ZERO, partitions: vec![partition] }],
        producer,
    }
}

/// What the group is told: `None` while a transaction that may change it is open.
pub(super) async fn stable_offset(rig: &Rig) -> Option<i64> {
    stable_offset_of(rig, &GROUP).await
}

pub(super) async fn stable_offset_of(rig: &Rig, group: &str) -> Option<i64> {
    let shard = rig.groups.shard(group).await.expect("this node coordinates");
    let fetched =
        shard.fetch(group, (None, -1), Some(&[("t".into(), vec![0])]), true).expect("anybody may know");
    match &fetched.topics[0].1[0].committed {
        Ok(Some(committed)) => Some(committed.offset.0),
        Ok(None) => Some(0),
        Err(ErrorCode::UnstableOffsetCommit) => None,
        Err(other) => panic!("{}", other.name()),
    }
}

#[tokio::test]
async fn a_commit_costs_two_rounds_of_syncs_and_its_markers_one_more() {
    let rig = Rig::new().await;
    let mut app = rig.done(App::start(&rig)).await.expect("the id is new");
    let (written, rounds) = rig.rounds(app.write("one", 1)).await;
    assert_eq!((written, rounds), (Ok(()), 1), "outputs, offsets and the partitions in one round");
    assert_eq!(stable_offset(&rig).await, None);
    let (ended, rounds) = rig.rounds(app.end(Outcome::Commit)).await;
    assert_eq!((ended, rounds), (Ok(()), 1), "PREPARE in another");
    assert_eq!(rig.read_committed(0), [""; 0], "it is decided, but the markers are not committed yet");

    let (written, rounds) = rig.rounds(app.write("two", 2)).await;
    assert_eq!((written, rounds), (Ok(()), 2), "the next one waits for the markers, then writes");
    assert_eq!((rig.read_committed(0), rig.read_committed(1)), (vec!["one".into()], vec!["one".into()]));
    rig.done(app.end(Outcome::Abort)).await.expect("aborted");
    rig.settle().await;
    assert_eq!(rig.read_committed(0), ["one"]);
    assert_eq!(stable_offset(&rig).await, Some(1));
    assert!(!rig.has_open_transactions());
}

#[tokio::test]
async fn the_end_of_a_transaction_is_only_told_when_it_lasts() {
    let rig = Rig::new().await;
    let app = rig.done(App::start(&rig)).await.expect("the id is new");
    rig.done(app.write("one", 1)).await.expect("written");
    let shard = rig.transactions.shard(&ID).await.expect("loaded");
    let request = EndTransaction {
        producer: app.identity.producer,
        outcome: Outcome::Commit,
        version: TransactionVersion::EpochBump,
    };
    let decided = rig.transactions.end(&shard, &ID, request).await.expect("decided");
    assert!(!shard.journal().is_committed(decided.rests_on));
    let markers = || rig.leader("t", 0).log().log_end_offset();
    assert_eq!(markers(), Offset(1), "no marker before PREPARE lasts");

    // The power goes before it does: the transaction is open as before, and can be ended otherwise.
    let producer = app.identity.producer;
    drop(shard);
    let rig = rig.restart(Crash::Dropped).await;
    rig.settle().await;
    assert_eq!((rig.read_committed(0), stable_offset(&rig).await), (vec![], None));
    rig.done(end(&rig, producer, Outcome::Abort)).await.expect("nothing was decided");
    rig.settle().await;
    assert_eq!((rig.read_committed(0), stable_offset(&rig).await), (vec![], Some(0)));
}

#[tokio::test]
async fn markers_and_completion_follow_from_prepare_after_a_crash() {
    for (outcome, offset) in [(Outcome::Commit, 1), (Outcome::Abort, 0)] {
        // After how many more rounds the power goes: before the markers last, before COMPLETE does, after.
        for rounds in 0..3 {
            let rig = Rig::new().await;
            let mut app = rig.done(App::start(&rig)).await.expect("the id is new");
            rig.done(app.write("one", 1)).await.expect("written");
            rig.done(app.end(outcome)).await.expect("decided");
            for _ in 0..rounds {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                rig.sync();
            }
            let producer = app.identity.producer;
            let rig = rig.restart(Crash::Dropped).await;
            rig.settle().await;
            assert_eq!(stable_offset(&rig).await, Some(offset), "{outcome:?} after {rounds}");
            assert_eq!(rig.read_committed(0).len() as i64, offset, "{outcome:?} after {rounds}");
            assert!(!rig.has_open_transactions());
            // Whoever has not got the answer gets it again; whoever has goes on.
            let again = rig.done(end(&rig, producer.before(), outcome)).await;
            assert_eq!(again, Ok(producer));
            let app = App::new(&rig, producer, TransactionVersion::EpochBump);
            rig.done(app.write("two", 2)).await.expect("the producer goes on");
        }
    }
}

#[tokio::test]
async fn a_transaction_whose_beginning_was_lost_is_aborted_and_its_producer_fenced() {
    let rig = Rig::new().await;
    let app = rig.done(App::start(&rig)).await.expect("the id is new");
    let partitions = BTreeSet::from([TopicPartition::new("t", 0)]);
    let version = TransactionVersion::EpochBump;
    let leader = rig.leader("t", 0);
    leader.begin_verification(app.identity.producer.id, app.identity.producer.epoch);
    rig.transactions.add_partitions(&ID, app.identity.producer, &partitions, version).await.expect("added");
    let batch = crate::coordinator::rig::batch(app.identity.producer, 0, "one");
    let guard = leader.begin_verification(app.identity.producer.id, app.identity.producer.epoch);
    leader.append(&batch, guard, true).expect("appended");
    // The power goes in the middle of a round: the data lasts, what the coordinator wrote does not.
    leader.log().sync().expect("the disk works");
    let producer = app.identity.producer;
    drop((leader, app));
    let rig = rig.restart(Crash::Dropped).await;
    assert!(rig.has_open_transactions());
    rig.settle().await;
    assert!(!rig.has_open_transactions(), "nothing keeps the last stable offset back");
    assert_eq!(rig.read_committed(0), [""; 0]);
    let committed = rig.done(end(&rig, producer, Outcome::Commit)).await;
    assert_eq!(committed, Err(ErrorCode::ProducerFenced), "it believes that the data is there");
    let app = App::new(&rig, producer, TransactionVersion::EpochBump);
    assert_eq!(rig.done(app.write("two", 2)).await, Err(ErrorCode::ProducerFenced));
}

#[tokio::test]
async fn a_new_instance_ends_what_the_old_one_left_and_fences_it() {
    let rig = Rig::new().await;
    let mut old = rig.done(App::start(&rig)).await.expect("the id is new");
    rig.done(old.write("one", 1)).await.expect("written");
    let mut new = rig.done(App::start(&rig)).await.expect("taken over, without a retry");
    assert_eq!((stable_offset(&rig).await, rig.read_committed(0)), (Some(0), vec![]));
    rig.done(new.write("two", 2)).await.expect("written");
    assert_eq!(rig.done(old.write("three", 3)).await, Err(ErrorCode::ProducerFenced));
    assert_eq!(rig.done(old.end(Outcome::Commit)).await, Err(ErrorCode::ProducerFenced));
    let zombie = rig.done(init(&rig, Some(old.identity.producer))).await;
    assert_eq!(zombie, Err(ErrorCode::ProducerFenced), "and the open transaction is not touched");
    rig.done(new.end(Outcome::Commit)).await.expect("committed");
    rig.settle().await;
    assert_eq!((stable_offset(&rig).await, rig.read_committed(1)), (Some(2), vec!["two".into()]));
}

#[tokio::test]
async fn a_transaction_waits_for_the_one_before_only_so_long() {
    let rig = Rig::new().await;
    let mut app = rig.done(App::start(&rig)).await.expect("the id is new");
    rig.done(app.write("one", 1)).await.expect("written");
    rig.done(app.end(Outcome::Commit)).await.expect("decided");
    // No more syncs: the markers are never committed.
    let partitions = BTreeSet::from([TopicPartition::new("t", 0)]);
    let version = TransactionVersion::EpochBump;
    let refused = rig.transactions.add_partitions(&ID, app.identity.producer, &partitions, version).await;
    assert_eq!(refused, Err(ErrorCode::ConcurrentTransactions));
}

#[tokio::test]
async fn offsets_that_are_not_committed_yet_are_not_told() {
    let rig = Rig::new().await;
    let shard = rig.groups.shard(&GROUP).await.expect("this node coordinates");
    let last = shard.commit(&commit(7, None), || Ok(())).expect("anybody may").expect("a record");
    let fetched = shard.fetch(&GROUP, (None, -1), None, false).expect("anybody may know");
    assert_eq!(fetched.rests_on, Some(last));
    assert!(!shard.journal().is_committed(last));
    let (committed, rounds) = rig.rounds(shard.journal().committed(last)).await;
    assert_eq!((committed, rounds), (Ok(()), 1));
    drop(shard);
    let rig = rig.restart(Crash::Dropped).await;
    assert_eq!(stable_offset(&rig).await, Some(7));
    let shard = Arc::clone(&rig.groups).shard(&GROUP).await.expect("this node coordinates");
    assert_eq!(shard.delete(&GROUP).map(|_| ()), Ok(()));
    assert_eq!(shard.delete(&GROUP).map(|_| ()), Err(ErrorCode::GroupIdNotFound));
}

#[tokio::test]
async fn a_transactional_id_that_nobody_uses_is_forgotten() {
    let rig = Rig::new().await;
    let mut app = rig.done(App::start(&rig)).await.expect("the id is new");
    rig.done(app.write("one", 1)).await.expect("written");
    let shard = rig.transactions.shard(&ID).await.expect("loaded");
    rig.wall.advance(WEEK_MS);
    assert_eq!(shard.forget_expired(WEEK_MS), Ok(()));
    assert!(shard.look(&ID, |current| current.is_some()), "not while its transaction is open");
    rig.done(app.end(Outcome::Commit)).await.expect("committed");
    rig.settle().await;
    rig.wall.advance(WEEK_MS);
    assert_eq!(shard.forget_expired(WEEK_MS), Ok(()));
    assert!(shard.look(&ID, |current| current.is_none()));
    rig.settle().await;
    drop(shard);
    let producer = app.identity.producer;
    let rig = rig.restart(Crash::Dropped).await;
    let app = App::new(&rig, producer, TransactionVersion::EpochBump);
    let refused = rig.done(app.write("two", 2)).await;
    assert_eq!(refused, Err(ErrorCode::InvalidProducerIdMapping));
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_forgets_no_transactional_id() {
    for jump_ms in JUMPS_MS {
        let rig = Rig::new().await;
        rig.done(App::start(&rig)).await.expect("the id is new");
        let shard = rig.transactions.shard(&ID).await.expect("loaded");
        let is_kept = || {
            shard.forget_expired(WEEK_MS).expect("it can be written");
            shard.look(&ID, |current| current.is_some())
        };
        rig.wall.jump(jump_ms);
        rig.wall.advance(WEEK_MS - 1);
        assert!(is_kept(), "{jump_ms}: not quite a week");
        rig.wall.jump(-jump_ms);
        assert!(is_kept(), "{jump_ms}: nor when the clock is set right");
        rig.wall.advance(1);
        assert!(!is_kept(), "{jump_ms}: a week is over");
    }
}

#[tokio::test]
async fn a_transactional_id_has_one_deadline_however_many_transactions_it_has() {
    let rig = Rig::new().await;
    let mut app = rig.done(App::start(&rig)).await.expect("the id is new");
    for offset in 0..20 {
        rig.done(app.write("x", offset)).await.expect("written");
        rig.done(app.end(Outcome::Commit)).await.expect("committed");
    }
    let shard = rig.transactions.shard(&ID).await.expect("loaded");
    assert_eq!(shard.noted_deadlines(), 1);
    assert_eq!(shard.pop_due(), None);
}

#[tokio::test]
async fn a_transaction_that_nobody_knows_of_is_aborted_and_a_disk_that_takes_its_time_is_not_waited_for() {
    let rig = Rig::new().await;
    let stranger = Producer { id: ProducerId(77), epoch: ProducerEpoch(0) };
    for partition in [0, 1] {
        let leader = rig.leader("t", partition);
        let guard = leader.begin_verification(stranger.id, stranger.epoch);
        leader.append(&crate::coordinator::rig::batch(stranger, 0, "lost"), guard, true).expect("appended");
        leader.log().sync().expect("the disk works");
    }
    // It starts, although nothing is synced meanwhile.
    let rig = rig.restart(Crash::Dropped).await;
    let ends = [0, 1].map(|partition| rig.leader("t", partition).log().log_end_offset());
    assert_eq!(ends, [Offset(2), Offset(2)], "the markers are in the log");
    assert!(rig.has_open_transactions());
    rig.settle().await;
    assert!(!rig.has_open_transactions());
    assert_eq!((rig.read_committed(0), rig.read_committed(1)), (vec![], vec![]));
}
