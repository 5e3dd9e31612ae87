//! Whatever the order of requests, lost clients, passing time and failing writes, a group keeps its promises.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use bytestring::ByteString;
use proptest::prelude::*;
use thalweg_protocol::ErrorCode;

use crate::coordinator::Now;
use crate::group::classic::{
    Action, AfterStore, ClassicGroup, GroupLimits, GroupState, Join, Leaver, Protocol, Sync, Ticket,
};

const CLIENTS: usize = 4;

/// What happens next; the numbers choose a client, and how much.
#[derive(Clone, Debug)]
enum Step {
    Join {
        client: usize,
        changed: bool,
    },
    Sync {
        client: usize,
    },
    Heartbeat {
        client: usize,
    },
    Leave {
        client: usize,
    },
    /// The client forgets everything: its process was started anew.
    Restart {
        client: usize,
    },
    Pass {
        ms: u64,
    },
    Stored {
        ok: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    prop_oneof![
        5 => (client.clone(), any::<bool>()).prop_map(|(client, changed)| Step::Join { client, changed }),
        5 => client.clone().prop_map(|client| Step::Sync { client }),
        2 => client.clone().prop_map(|client| Step::Heartbeat { client }),
        1 => client.clone().prop_map(|client| Step::Leave { client }),
        1 => client.prop_map(|client| Step::Restart { client }),
        2 => (1u64..8_000).prop_map(|ms| Step::Pass { ms }),
        4 => prop::bool::weighted(0.8).prop_map(|ok| Step::Stored { ok }),
    ]
}

#[derive(Default)]
struct Client {
    member_id: ByteString,
    generation: i32,
    /// Whom it shall assign to, if it leads.
    others: Vec<ByteString>,
}

struct World {
    group: ClassicGroup,
    now: Now,
    clients: Vec<Client>,
    /// Who waits for an answer, and in which generation the request was sent.
    open: BTreeMap<Ticket, (usize, i32)>,
    stores: Vec<AfterStore>,
    next: u64,
    /// Per generation: the protocol, and what the leader assigned.
    protocols: BTreeMap<i32, ByteString>,
    leaders: BTreeMap<i32, BTreeSet<usize>>,
    assigned: BTreeMap<(i32, ByteString), BTreeSet<Bytes>>,
}

impl World {
    fn new(initial_rebalance_delay_ms: u64) -> Self {
        let limits = GroupLimits {
            initial_rebalance_delay_ms,
            min_session_timeout_ms: 1,
            max_session_timeout_ms: 100_000,
            max_members: 100,
        };
        let now = Now { monotonic_ms: 0, wall_ms: 1_000_000 };
        Self {
            group: ClassicGroup::new("g".into(), limits, now),
            now,
            clients: (0..CLIENTS).map(|_| Client::default()).collect(),
            open: BTreeMap::new(),
            stores: Vec::new(),
            next: 0,
            protocols: BTreeMap::new(),
            leaders: BTreeMap::new(),
            assigned: BTreeMap::new(),
        }
    }

    fn ticket(&mut self, client: usize) -> Ticket {
        self.next += 1;
        self.open.insert(Ticket(self.next), (client, self.clients[client].generation));
        Ticket(self.next)
    }

    /// The last two clients are static members, the second one comes back with the id it is given.
    fn join(&mut self, client: usize, changed: bool) {
        let ticket = self.ticket(client);
        let metadata = Bytes::from(format!("{client} {}", if changed { self.next } else { 0 }));
        let request = Join {
            ticket,
            member_id: self.clients[client].member_id.clone(),
            instance_id: (client >= CLIENTS - 2).then(|| ByteString::from(format!("instance-{client}"))),
            client_id: ByteString::new(),
            client_host: ByteString::new(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 15_000,
            protocol_type: "consumer".into(),
            protocols: vec![Protocol { name: "range".into(), metadata }],
            needs_known_id: client == 1,
            can_skip_assignment: client.is_multiple_of(2),
            fresh_member_id: ByteString::from(format!("member-{client}-{}", self.next)),
        };
        let mut actions = Vec::new();
        self.group.join(request, self.now, &mut actions);
        self.carry_out(actions);
    }

    fn sync(&mut self, client: usize) {
        let ticket = self.ticket(client);
        let Client { member_id, generation, others } = &self.clients[client];
        let mut assignments = BTreeMap::new();
        for other in others {
            let part = Bytes::from(format!("{ticket:?} for {other} in {generation}"));
            self.assigned.entry((*generation, other.clone())).or_default().insert(part.clone());
            assignments.insert(other.clone(), part);
        }
        let request = Sync {
            ticket,
            member_id: member_id.clone(),
            instance_id: None,
            generation: *generation,
            protocol_type: None,
            protocol: None,
            assignments,
        };
        let mut actions = Vec::new();
        self.group.sync(request, self.now, &mut actions);
        self.carry_out(actions);
    }

    fn apply(&mut self, step: &Step) {
        let mut actions = Vec::new();
        match *step {
            Step::Join { client, changed } => self.join(client, changed),
            Step::Sync { client } => self.sync(client),
            Step::Heartbeat { client } => {
                let Client { member_id, generation, .. } = &self.clients[client];
                let error = self.group.heartbeat(member_id, None, *generation, self.now);
                if matches!(error, ErrorCode::UnknownMemberId) {
                    self.clients[client] = Client::default();
                }
            }
            Step::Leave { client } => {
                let member_id = std::mem::take(&mut self.clients[client]).member_id;
                self.group.leave(&Leaver { member_id, instance_id: None }, self.now, &mut actions);
            }
            Step::Restart { client } => self.clients[client] = Client::default(),
            Step::Pass { ms } => {
                self.now.monotonic_ms += ms;
                self.now.wall_ms += i64::try_from(ms).expect("short");
                self.group.expire(self.now, &mut actions);
            }
            Step::Stored { ok } => {
                if !self.stores.is_empty() {
                    let then = self.stores.remove(0);
                    let outcome = if ok { Ok(()) } else { Err(ErrorCode::NotCoordinator) };
                    self.group.stored(then, outcome, self.now, &mut actions);
                }
            }
        }
        self.carry_out(actions);
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Join(ticket, answer) => {
                    let (client, _) = self.open.remove(&ticket).expect("every request is answered once");
                    match answer.error {
                        ErrorCode::None => {
                            let protocol = answer.protocol.expect("a generation has a protocol");
                            let known = self.protocols.entry(answer.generation).or_insert(protocol.clone());
                            assert_eq!(*known, protocol, "one protocol per generation");
                            let leads = answer.leader == answer.member_id;
                            if leads {
                                self.leaders.entry(answer.generation).or_default().insert(client);
                            }
                            assert!(leads || answer.members.is_empty(), "only the leader is told");
                            let told = !answer.skip_assignment;
                            self.clients[client] = Client {
                                member_id: answer.member_id,
                                generation: answer.generation,
                                others: answer
                                    .members
                                    .into_iter()
                                    .map(|m| m.member_id)
                                    .filter(|_| told)
                                    .collect(),
                            };
                        }
                        ErrorCode::MemberIdRequired => self.clients[client].member_id = answer.member_id,
                        ErrorCode::UnknownMemberId => self.clients[client] = Client::default(),
                        _ => {}
                    }
                }
                Action::Sync(ticket, answer) => {
                    let (_, generation) = self.open.remove(&ticket).expect("every request is answered once");
                    if answer.error == ErrorCode::None && !answer.assignment.is_empty() {
                        // A static member that came back keeps what its old id was assigned.
                        let given = self
                            .assigned
                            .iter()
                            .any(|((of, _), parts)| *of == generation && parts.contains(&answer.assignment));
                        assert!(given, "{:?} was never assigned in {generation}", answer.assignment);
                    }
                }
                Action::Store { then, .. } => self.stores.push(then),
            }
        }
    }

    fn check(&self) {
        let group = &self.group;
        match group.state() {
            GroupState::Empty => assert!(group.members().is_empty()),
            GroupState::CompletingRebalance | GroupState::Stable => {
                let leader = group.leader().expect("there is a leader");
                assert!(group.members().contains_key(leader), "the leader is a member");
                assert!(group.protocol().is_some());
            }
            GroupState::PreparingRebalance => assert!(group.next_deadline().is_some(), "it ends some day"),
            GroupState::Dead => unreachable!("nobody buries it"),
        }
        if group.state() == GroupState::Stable {
            assert!(group.waiting().is_empty(), "nobody waits in a stable group");
        }
        for leaders in self.leaders.values() {
            assert_eq!(leaders.len(), 1, "one leader per generation");
        }
        let returning = self.stores.iter().filter_map(|then| match then {
            AfterStore::Return { ticket, .. } => Some(*ticket),
            _ => None,
        });
        let waiting: BTreeSet<Ticket> = group.waiting().into_iter().chain(returning).collect();
        assert_eq!(waiting, self.open.keys().copied().collect(), "no request is forgotten");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_group_keeps_its_promises(
        delay_ms in prop_oneof![Just(0u64), Just(3_000)],
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(delay_ms);
        let mut generation = 0;
        for step in &steps {
            world.apply(step);
            world.check();
            prop_assert!(world.group.generation() >= generation, "generations only rise");
            generation = world.group.generation();
        }
        // Left alone, every request is answered and every member given up.
        for _ in 0..200 {
            world.apply(&Step::Stored { ok: true });
            world.apply(&Step::Pass { ms: 5_000 });
            world.check();
        }
        prop_assert!(world.open.is_empty());
        prop_assert!(world.group.is_deserted());
    }
}
