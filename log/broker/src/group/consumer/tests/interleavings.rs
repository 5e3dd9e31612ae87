//! Whatever the order of requests, lost answers, passing time, changing topics, failing writes and restarts, a group
//! keeps its promises.

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use proptest::prelude::*;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::records::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartition,
};

use super::super::join::RefusedJoin;
use super::harness::{Harness, LIMITS};
use crate::group::classic::{GroupLimits, Join, JoinAnswer, Protocol, Sync, Ticket};
use crate::group::consumer::{
    Assignment, ConsumerGroup, ConsumerLimits, ConsumerState, GroupEpoch, Heartbeat, HeartbeatAnswer,
    MemberState, TopicIdPartition, by_topic,
};

const CLIENTS: usize = 5;

/// This one has an instance id, and the last speaks the classic protocol.
const STATIC: usize = 3;
const CLASSIC: usize = 4;

const MANY: ConsumerLimits = ConsumerLimits { max_members: 10, ..LIMITS };

const CLASSIC_LIMITS: GroupLimits = GroupLimits {
    initial_rebalance_delay_ms: 0,
    min_session_timeout_ms: 1,
    max_session_timeout_ms: 100_000,
    max_members: 10,
};

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// A heartbeat, or what stands for it; the answer may get lost.
    Beat {
        client: usize,
        arrives: bool,
    },
    /// The client gives up and takes what it was told to.
    Comply {
        client: usize,
    },
    Leave {
        client: usize,
        for_now: bool,
    },
    /// The client forgets everything: its process was started anew.
    Restart {
        client: usize,
    },
    Subscribe {
        client: usize,
        reads: u8,
    },
    Topic {
        which: usize,
        change: u8,
    },
    Pass {
        ms: u64,
    },
    /// The disk is full, or has room again.
    Full {
        is_full: bool,
    },
    /// The coordinator is loaded anew.
    Reload,
}

fn step() -> impl Strategy<Value = Step> {
    let client = || 0..CLIENTS;
    prop_oneof![
        12 => (client(), prop::bool::weighted(0.85))
            .prop_map(|(client, arrives)| Step::Beat { client, arrives }),
        8 => client().prop_map(|client| Step::Comply { client }),
        1 => (client(), any::<bool>()).prop_map(|(client, for_now)| Step::Leave { client, for_now }),
        1 => client().prop_map(|client| Step::Restart { client }),
        1 => (client(), 0u8..8).prop_map(|(client, reads)| Step::Subscribe { client, reads }),
        1 => (0usize..3, 0u8..3).prop_map(|(which, change)| Step::Topic { which, change }),
        2 => (1u64..20_000).prop_map(|ms| Step::Pass { ms }),
        1 => prop::bool::weighted(0.3).prop_map(|is_full| Step::Full { is_full }),
        1 => Just(Step::Reload),
    ]
}

const TOPICS: [&str; 3] = ["t", "t-2", "u"];

#[derive(Clone, Default)]
struct Client {
    member_id: ByteString,
    epoch: i32,
    /// What it works on.
    owned: Assignment,
    /// What it was told to have.
    told: Assignment,
    /// What it reads: a set of topics, or by pattern.
    reads: u8,
    has_changed: bool,
    /// Whether an answer got lost: it says everything again, and takes nothing until it is told again.
    is_unsure: bool,
    /// Of the classic protocol: whether it has to ask for its assignment, and whether it has to join again.
    syncs: bool,
    joins: bool,
}

struct World {
    h: Harness,
    clients: Vec<Client>,
    born: u32,
    /// The greatest epoch of each member that has been seen.
    epochs: BTreeMap<ByteString, GroupEpoch>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            h: Harness::with_limits(&[("t", 4), ("u", 3)], MANY),
            clients: vec![Client::default(); CLIENTS],
            born: 0,
            epochs: BTreeMap::new(),
        };
        (0..CLIENTS).for_each(|client| world.restart(client));
        world
    }

    fn restart(&mut self, client: usize) {
        self.born += 1;
        let reads = self.clients[client].reads;
        let member_id = match client {
            CLASSIC => ByteString::new(),
            _ => ByteString::from(format!("client-{client}-{}", self.born)),
        };
        self.clients[client] = Client { member_id, reads, joins: true, ..Client::default() };
    }

    fn instance(client: usize) -> Option<ByteString> {
        (client == STATIC).then(|| ByteString::from_static("instance"))
    }

    /// The topics that `reads` stands for.
    fn topics(reads: u8) -> BTreeSet<ByteString> {
        let chosen = (0..3).filter(|at| reads & (1 << at) != 0 || reads == 0);
        chosen.map(|at: usize| ByteString::from_static(TOPICS[at])).collect()
    }

    fn heartbeat(&self, client: usize) -> Heartbeat {
        let Client { member_id, epoch, owned, told, reads, has_changed, is_unsure, .. } =
            &self.clients[client];
        let joins = *epoch == 0;
        let says_all = joins || *has_changed || *is_unsure;
        // On the way from what it has to what it was told it says nothing of either.
        let says_what_it_has = owned == told || *is_unsure;
        // 7 stands for the pattern of the two that begin alike.
        let by_pattern = *reads == 7;
        Heartbeat {
            member_id: member_id.clone(),
            epoch: GroupEpoch(*epoch),
            instance_id: Self::instance(client),
            rack_id: None,
            client_id: "client".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout_ms: (joins || *is_unsure).then_some(30_000),
            topics: says_all.then(|| if by_pattern { BTreeSet::new() } else { Self::topics(*reads) }),
            regex: says_all.then(|| if by_pattern { "t.*".into() } else { ByteString::new() }),
            assignor: (client == 0).then(|| "range".into()),
            owned: if joins { Some(Assignment::new()) } else { says_what_it_has.then(|| owned.clone()) },
        }
    }

    fn beat(&mut self, client: usize, arrives: bool) {
        if client == CLASSIC {
            return self.beat_classic(arrives);
        }
        let request = self.heartbeat(client);
        request.check().expect("clients know what they say");
        let answer =
            self.h.take(|group, topics, now, changes| group.heartbeat(&request, topics, now, changes));
        if !arrives {
            let client = &mut self.clients[client];
            client.is_unsure = true;
            client.told = client.owned.clone();
            return;
        }
        match answer {
            Ok(answer) => self.answered(client, answer),
            Err(refusal) => match refusal.code {
                // It gives everything up and joins again under its id.
                ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch => {
                    let Client { member_id, reads, .. } = self.clients[client].clone();
                    self.clients[client] = Client { member_id, reads, ..Client::default() };
                }
                ErrorCode::FencedInstanceId => self.restart(client),
                ErrorCode::UnreleasedInstanceId
                | ErrorCode::CoordinatorNotAvailable
                | ErrorCode::GroupMaxSizeReached => {}
                other => panic!("client {client} gets {other:?}"),
            },
        }
    }

    fn answered(&mut self, client: usize, answer: HeartbeatAnswer) {
        let client = &mut self.clients[client];
        client.epoch = answer.epoch.0;
        (client.has_changed, client.is_unsure) = (false, false);
        if let Some(told) = answer.assignment {
            client.told = told;
        }
    }

    /// The member of the classic protocol joins, asks for its assignment, or sends a heartbeat.
    fn beat_classic(&mut self, arrives: bool) {
        let Client { member_id, epoch, owned, reads, syncs, joins, .. } = self.clients[CLASSIC].clone();
        if joins {
            let answer = self.join_classic(&member_id, &owned, reads);
            if arrives {
                self.joined_classic(answer);
            }
        } else if syncs {
            let request = Sync {
                ticket: Ticket(0),
                member_id,
                instance_id: None,
                generation: epoch,
                protocol_type: None,
                protocol: None,
                assignments: BTreeMap::new(),
            };
            let answer = self.h.group.sync_classic(&request, &self.h.topics(), self.h.now);
            match answer.error {
                ErrorCode::None if arrives => self.synced_classic(answer.assignment),
                ErrorCode::None => {}
                _ if arrives => self.failed_classic(answer.error),
                _ => {}
            }
        } else {
            let error = self.h.group.heartbeat_classic(&member_id, None, epoch, self.h.now);
            if error != ErrorCode::None && arrives {
                self.failed_classic(error);
            }
        }
    }

    fn join_classic(&mut self, member_id: &ByteString, owned: &Assignment, reads: u8) -> JoinAnswer {
        let topics = self.h.topics();
        let named = |partitions: &Assignment| {
            let named = by_topic(partitions.iter().copied()).filter_map(|(id, partitions)| {
                Some(TopicPartition { topic: topics.name(id)?.clone(), partitions })
            });
            named.collect()
        };
        let subscription = ConsumerProtocolSubscription {
            topics: Self::topics(reads).into_iter().collect(),
            owned_partitions: named(owned),
            ..Default::default()
        };
        let metadata = subscription.to_bytes(3).expect("short");
        self.born += 1;
        let request = Join {
            ticket: Ticket(0),
            member_id: member_id.clone(),
            instance_id: None,
            client_id: "client".into(),
            client_host: "/127.0.0.1".into(),
            session_timeout_ms: 20_000,
            rebalance_timeout_ms: 30_000,
            protocol_type: "consumer".into(),
            protocols: vec![Protocol { name: "cooperative-sticky".into(), metadata }],
            needs_known_id: true,
            can_skip_assignment: true,
            fresh_member_id: ByteString::from(format!("classic-{}", self.born)),
        };
        let taken = self.h.take(|group, topics, now, changes| {
            group.join_classic(&request, CLASSIC_LIMITS, topics, now, changes)
        });
        taken.unwrap_or_else(|refused| JoinAnswer::error(refused.code, refused.member_id))
    }

    fn joined_classic(&mut self, answer: JoinAnswer) {
        let client = &mut self.clients[CLASSIC];
        match answer.error {
            ErrorCode::None => {
                client.member_id = answer.member_id;
                client.epoch = answer.generation;
                (client.joins, client.syncs) = (false, true);
            }
            ErrorCode::MemberIdRequired => client.member_id = answer.member_id,
            ErrorCode::UnknownMemberId => self.restart(CLASSIC),
            ErrorCode::CoordinatorNotAvailable | ErrorCode::GroupMaxSizeReached => {}
            other => panic!("the join gets {other:?}"),
        }
    }

    fn synced_classic(&mut self, assignment: bytes::Bytes) {
        let topics = self.h.topics();
        let told = ConsumerProtocolAssignment::from_bytes(assignment).expect("it can be read");
        let client = &mut self.clients[CLASSIC];
        client.told = super::super::join::owned_partitions(&told.assigned_partitions, &topics);
        client.syncs = false;
        // What it gives up, it says by joining again.
        client.joins = !client.owned.is_subset(&client.told);
        client.owned = client.told.clone();
    }

    fn failed_classic(&mut self, error: ErrorCode) {
        let client = &mut self.clients[CLASSIC];
        match error {
            ErrorCode::RebalanceInProgress => (client.joins, client.syncs) = (true, false),
            ErrorCode::UnknownMemberId => self.restart(CLASSIC),
            ErrorCode::IllegalGeneration => {
                (client.joins, client.syncs) = (true, false);
                client.owned.clear();
            }
            other => panic!("the member of the classic protocol gets {other:?}"),
        }
    }

    fn leave(&mut self, client: usize, for_now: bool) {
        if client == CLASSIC || self.clients[client].epoch == 0 {
            return;
        }
        let for_now = for_now && client == STATIC;
        let epoch = if for_now { GroupEpoch::LEFT_FOR_NOW } else { GroupEpoch::LEAVING };
        let request = Heartbeat { epoch, ..self.heartbeat(client) };
        let _ = self.h.take(|group, topics, now, changes| group.heartbeat(&request, topics, now, changes));
        self.restart(client);
    }

    fn change_topic(&mut self, which: usize, change: u8) {
        let name = TOPICS[which];
        let known = self.h.topics().topic(name);
        match (change, known) {
            (0, Some(_)) => {
                // Clients stop working on what is gone: there is nothing to fetch.
                self.h.delete(name);
                let topics = self.h.topics();
                for client in &mut self.clients {
                    client.owned.retain(|partition| topics.name(partition.topic_id).is_some());
                }
            }
            (1, Some((_, count))) if count < 8 => self.h.grow(name, count + 2),
            (_, None) => self.h.create(name, 2),
            _ => {}
        }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Beat { client, arrives } => self.beat(client, arrives),
            Step::Comply { client } if client != CLASSIC => {
                let client = &mut self.clients[client];
                client.owned = client.told.clone();
            }
            Step::Comply { .. } => {}
            Step::Leave { client, for_now } => self.leave(client, for_now),
            Step::Restart { client } => self.restart(client),
            Step::Subscribe { client, reads } => {
                let client = &mut self.clients[client];
                (client.reads, client.has_changed, client.joins) = (reads, true, true);
            }
            Step::Topic { which, change } => self.change_topic(which, change),
            Step::Pass { ms } => {
                self.h.now.monotonic_ms += ms;
                self.h.now.wall_ms += i64::try_from(ms).expect("short");
                let _ = self.h.take(|group, topics, now, changes| {
                    Ok::<_, ErrorCode>(group.expire(topics, now, changes))
                });
            }
            Step::Full { is_full } => self.h.is_full = is_full,
            Step::Reload => {
                self.h.check_replay();
                let image = self.h.replayed();
                self.h.group = ConsumerGroup::restore("g".into(), image, MANY, self.h.now);
            }
        }
        self.check();
    }

    /// Whether a client is who the coordinator takes its member for, and knows of its partitions: one that has been given
    /// up stops working when its next heartbeat is answered.
    fn is_current(&self, client: &Client) -> bool {
        let current = self.h.group.image().current(&client.member_id);
        self.h.group.image().member(&client.member_id).is_some()
            && current.is_some_and(|current| {
                let epochs = [current.epoch.0, current.previous_epoch.0];
                client.epoch > 0 && epochs.contains(&client.epoch)
            })
    }

    fn check(&mut self) {
        let image = self.h.group.image();
        let mut given = BTreeSet::new();
        for (id, current) in image.members().keys().filter_map(|id| Some((id, image.current(id)?))) {
            for partition in current.assigned.keys().chain(current.revoking.keys()) {
                assert!(given.insert(*partition), "{partition:?} is given to two members");
                assert_eq!(image.owner(*partition), Some(id));
            }
            assert_eq!(
                current.state == MemberState::UnrevokedPartitions,
                !current.revoking.is_empty(),
                "{id}: {current:?}"
            );
            assert!(current.epoch <= image.epoch(), "{id} is ahead of its group");
            let seen = self.epochs.entry(id.clone()).or_default();
            let is_told = current.epoch > GroupEpoch::JOINING;
            assert!(
                !is_told || current.epoch >= *seen,
                "{id} goes back from {seen:?} to {:?}",
                current.epoch
            );
            *seen = (*seen).max(current.epoch);
        }
        let mut working: BTreeMap<TopicIdPartition, usize> = BTreeMap::new();
        for (at, client) in self.clients.iter().enumerate().filter(|(_, client)| self.is_current(client)) {
            for partition in &client.owned {
                let other = working.insert(*partition, at);
                assert_eq!(other, None, "client {at} and another work on {partition:?}");
            }
        }
    }

    /// Left alone, everybody gets what it shall and everything is assigned.
    fn calm_down(&mut self) {
        self.h.check_replay();
        self.h.is_full = false;
        for _ in 0..40 {
            for client in 0..CLIENTS {
                self.apply(&Step::Beat { client, arrives: true });
                self.apply(&Step::Comply { client });
            }
            self.apply(&Step::Pass { ms: 3_000 });
        }
        let image = self.h.group.image();
        assert_eq!(self.h.group.state(), ConsumerState::Stable, "{image:?}");
        let topics = self.h.topics();
        let read: BTreeSet<_> = self.h.group.subscribed_topics().into_iter().cloned().collect();
        let all = read
            .iter()
            .filter_map(|name| topics.topic(name))
            .flat_map(|(id, count)| (0..count).map(move |at| TopicIdPartition::new(id, at)));
        let all: BTreeSet<_> = all.collect();
        let owned: BTreeSet<_> =
            self.clients.iter().flat_map(|client| client.owned.iter().copied()).collect();
        assert_eq!(owned, all, "all that is read is worked on");
    }
}

impl From<ErrorCode> for RefusedJoin {
    fn from(code: ErrorCode) -> Self {
        Self { code, member_id: ByteString::new() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_group_keeps_its_promises(steps in prop::collection::vec(step(), 1..150)) {
        let mut world = World::new();
        for step in &steps {
            world.apply(step);
        }
        world.calm_down();
    }
}
