//! Random histories of several instances of one producer, delayed requests, crashes of the coordinator and
//! passing time, judged by what each instance may do.

use std::collections::BTreeSet;

use proptest::prelude::*;
use thalweg_protocol::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition};

use crate::coordinator::Now;
use crate::transaction::end::EndTransaction;
use crate::transaction::init_producer_id::InitProducerId;
use crate::transaction::partitions::add_partitions;
use crate::transaction::state::{
    Decision, Outcome, Producer, Transaction, TransactionState, TransactionVersion,
};

const INSTANCES: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    /// An instance starts, or recovers with what it has if `keeps`.
    Init {
        instance: usize,
        keeps: bool,
    },
    Add {
        instance: usize,
    },
    End {
        instance: usize,
        commit: bool,
    },
    /// An earlier EndTxn of any instance arrives again.
    Delayed {
        which: usize,
    },
    /// The markers of the prepared transaction are committed.
    Complete,
    /// The coordinator starts anew from what it has written.
    Crash,
    Pass {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let instance = 0..INSTANCES;
    prop_oneof![
        2 => (instance.clone(), any::<bool>()).prop_map(|(instance, keeps)| Step::Init { instance, keeps }),
        5 => instance.clone().prop_map(|instance| Step::Add { instance }),
        4 => (instance, any::<bool>()).prop_map(|(instance, commit)| Step::End { instance, commit }),
        2 => (0usize..64).prop_map(|which| Step::Delayed { which }),
        5 => Just(Step::Complete),
        1 => Just(Step::Crash),
        1 => (1u64..40_000).prop_map(|ms| Step::Pass { ms }),
    ]
}

struct World {
    current: Option<Transaction>,
    now: Now,
    next_id: i64,
    version: TransactionVersion,
    /// What each instance believes to be. One whose request is refused gives up.
    instances: Vec<Option<Producer>>,
    /// Which instances have an EndTxn under way: they do nothing but send it again, or start anew.
    ending: Vec<bool>,
    ends: Vec<EndTransaction>,
    /// Counts the transactions that have been opened, and which instance opened the last one.
    opened: u64,
    opener: usize,
    /// By which EndTxn, of which transaction, each was decided.
    decided: BTreeSet<u64>,
    sent_in: Vec<u64>,
}

impl World {
    fn new(version: TransactionVersion, first_epoch: i16) -> Self {
        let now = Now { monotonic_ms: 0, wall_ms: 1_000_000 };
        let current = (first_epoch > 0).then(|| {
            let mut transaction = Transaction::new(ProducerId(1), 30_000, now);
            transaction.producer.epoch = ProducerEpoch(first_epoch);
            transaction
        });
        Self {
            current,
            now,
            next_id: 10,
            version,
            instances: vec![None; INSTANCES],
            ending: vec![false; INSTANCES],
            ends: Vec::new(),
            opened: 0,
            opener: 0,
            decided: BTreeSet::new(),
            sent_in: Vec::new(),
        }
    }

    /// Takes a decision to its end, fresh ids included; `None` where it waits.
    fn settle<A: Copy>(
        &mut self,
        decide: impl Fn(Option<&Transaction>, Option<ProducerId>, Now) -> Result<Decision<A>, ErrorCode>,
    ) -> Option<Result<A, ErrorCode>> {
        let mut fresh = None;
        loop {
            match decide(self.current.as_ref(), fresh, self.now) {
                Ok(Decision::NeedsProducerId) => {
                    assert!(fresh.is_none(), "one fresh id is enough");
                    self.next_id += 1;
                    fresh = Some(ProducerId(self.next_id));
                }
                Ok(Decision::Answer(answer)) => return Some(Ok(answer)),
                Ok(Decision::Change { next, answer }) => {
                    self.replace(next);
                    return Some(Ok(answer));
                }
                Ok(Decision::EndFirst { next }) => {
                    assert_eq!(next.state, TransactionState::PrepareAbort, "nobody else's commit");
                    self.replace(next);
                    return None;
                }
                Ok(Decision::Wait) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn replace(&mut self, next: Transaction) {
        if let Some(current) = &self.current {
            let is_newer = next.producer.id.0 > current.producer.id.0;
            let is_same = next.producer.id == current.producer.id;
            assert!(
                is_newer || (is_same && next.producer.epoch >= current.producer.epoch),
                "epochs only rise"
            );
            let legal = match next.state {
                TransactionState::Empty => {
                    !current.state.is_prepared() && current.state != TransactionState::Ongoing
                }
                TransactionState::Ongoing => !current.state.is_prepared(),
                TransactionState::PrepareCommit | TransactionState::PrepareAbort => {
                    current.state == TransactionState::Ongoing
                }
                TransactionState::CompleteCommit => current.state == TransactionState::PrepareCommit,
                TransactionState::CompleteAbort => {
                    matches!(current.state, TransactionState::PrepareAbort | TransactionState::Empty)
                        || current.state.is_complete()
                }
            };
            assert!(legal, "{:?} does not follow {:?}", next.state, current.state);
        }
        assert!(!next.state.is_complete() || next.partitions.is_empty());
        assert!(next.deadline.is_some() == (next.state == TransactionState::Ongoing));
        self.current = Some(next);
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Init { instance, keeps } => {
                let given = self.instances[instance].filter(|_| keeps);
                let request = InitProducerId { timeout_ms: 30_000, given };
                let answer = self.settle(|current, fresh, now| request.decide(current, fresh, now));
                if !keeps {
                    self.instances[instance] = None;
                    self.ending[instance] = false;
                }
                match answer {
                    Some(Ok(producer)) => {
                        self.ending[instance] = false;
                        let taken = self
                            .instances
                            .iter()
                            .enumerate()
                            .any(|(at, other)| at != instance && *other == Some(producer));
                        assert!(!taken, "two instances are {producer:?}");
                        self.instances[instance] = Some(producer);
                    }
                    Some(Err(error)) => {
                        assert!(given.is_some(), "a new instance is always taken, not {error:?}");
                        self.instances[instance] = None;
                    }
                    None => {}
                }
            }
            Step::Add { instance } => {
                let Some(producer) = self.instances[instance].filter(|_| !self.ending[instance]) else {
                    return;
                };
                let version = self.version;
                let partitions = BTreeSet::from([TopicPartition::new("t", instance as i32)]);
                let before = self.current.as_ref().map(|t| t.state);
                let answer = self
                    .settle(|current, _, now| add_partitions(current, producer, &partitions, version, now));
                if matches!(answer, Some(Err(_))) {
                    self.instances[instance] = None;
                }
                if answer == Some(Ok(())) {
                    assert_eq!(self.current.as_ref().map(|t| t.producer), Some(producer));
                    if before != Some(TransactionState::Ongoing) {
                        self.opened += 1;
                    }
                    self.opener = instance;
                }
            }
            Step::End { instance, commit } => {
                let Some(producer) = self.instances[instance] else { return };
                let outcome = if commit { Outcome::Commit } else { Outcome::Abort };
                let request = EndTransaction { producer, outcome, version: self.version };
                self.ends.push(request);
                self.sent_in.push(self.opened);
                let answer = self.end(request, self.opened);
                self.ending[instance] = answer.is_none();
                match answer {
                    Some(Ok(next)) => self.instances[instance] = Some(next),
                    Some(Err(_)) => self.instances[instance] = None,
                    None => {}
                }
            }
            Step::Delayed { which } => {
                if !self.ends.is_empty() {
                    let which = which % self.ends.len();
                    self.end(self.ends[which], self.sent_in[which]);
                }
            }
            Step::Complete => {
                if let Some(current) = self.current.clone().filter(|current| current.state.is_prepared()) {
                    self.replace(current.complete(self.now));
                }
            }
            Step::Crash => {
                if let Some(current) = &mut self.current {
                    current.last_epoch = ProducerEpoch::NONE;
                    current.deadline = None;
                    current.resume(self.now);
                }
            }
            Step::Pass { ms } => {
                self.now.monotonic_ms += ms;
                self.now.wall_ms += i64::try_from(ms).expect("short");
                self.expire();
            }
        }
    }

    fn expire(&mut self) {
        let Some(current) = self.current.clone() else { return };
        self.next_id += 1;
        match current.expire(Some(ProducerId(self.next_id)), self.now) {
            Some(Decision::EndFirst { next }) => self.replace(next),
            Some(other) => panic!("{other:?}"),
            None => assert!(current.deadline.is_none_or(|deadline| deadline > self.now.monotonic_ms)),
        }
    }

    fn end(&mut self, request: EndTransaction, sent_in: u64) -> Option<Result<Producer, ErrorCode>> {
        let before = self.current.clone();
        let answer = self.settle(|current, fresh, now| request.decide(current, fresh, now));
        let (Some(before), Some(after)) = (before, self.current.as_ref()) else { return answer };
        if before.state == TransactionState::Ongoing && after.state.is_prepared() {
            assert_eq!(after.outcome(), request.outcome);
            assert_eq!(before.producer, request.producer, "only the current producer ends a transaction");
            assert!(self.decided.insert(self.opened), "each transaction is decided once");
            if self.version == TransactionVersion::EpochBump {
                assert_eq!(sent_in, self.opened, "a delayed EndTxn does not end a later transaction");
                assert!(after.producer.epoch > before.producer.epoch, "every end bumps the epoch");
            }
        }
        if let Some(Ok(next)) = answer {
            let successor = Producer { id: after.next_producer_id, epoch: ProducerEpoch(0) };
            assert!(next == after.producer || next == successor, "the answer is who comes next");
        }
        answer
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_transactional_id_keeps_its_promises(
        bumps in any::<bool>(),
        first_epoch in prop_oneof![Just(0i16), Just(i16::MAX - 4), Just(i16::MAX - 1)],
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let version = if bumps { TransactionVersion::EpochBump } else { TransactionVersion::Classic };
        let mut world = World::new(version, first_epoch);
        for step in &steps {
            world.apply(step);
        }
        // Left alone, whatever is open ends.
        world.apply(&Step::Pass { ms: 40_000 });
        world.apply(&Step::Complete);
        let state = world.current.as_ref().map(|current| current.state);
        prop_assert!(state.is_none_or(|state| state == TransactionState::Empty || state.is_complete()));
    }
}
