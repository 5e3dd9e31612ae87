//! Drives a group and keeps its answers.

use std::collections::HashMap;

use bytes::Bytes;
use thalweg_protocol::ErrorCode;

use crate::coordinator::Now;
use crate::group::classic::{
    Action, AfterStore, ClassicGroup, GroupLimits, GroupMetadata, Join, JoinAnswer, Leaver, Protocol, Sync,
    SyncAnswer, Ticket,
};

/// A JoinGroup in short. `name` is the id the member is given if `id`, its own, is empty.
#[derive(Clone, Copy)]
pub(super) struct JoinSpec {
    pub(super) name: &'static str,
    pub(super) id: &'static str,
    pub(super) instance: Option<&'static str>,
    pub(super) protocol_type: &'static str,
    pub(super) protocols: &'static [(&'static str, &'static str)],
    pub(super) known_id: bool,
    pub(super) can_skip: bool,
    pub(super) session_timeout_ms: i32,
}

impl Default for JoinSpec {
    fn default() -> Self {
        Self {
            name: "",
            id: "",
            instance: None,
            protocol_type: "consumer",
            protocols: &[("range", "topics")],
            known_id: false,
            can_skip: true,
            session_timeout_ms: 10_000,
        }
    }
}

pub(super) struct Harness {
    pub(super) group: ClassicGroup,
    pub(super) now: Now,
    /// Whether writes stay undecided.
    pub(super) hold_stores: bool,
    held: Vec<AfterStore>,
    stored: Vec<GroupMetadata>,
    next_ticket: u64,
    joins: HashMap<Ticket, JoinAnswer>,
    syncs: HashMap<Ticket, SyncAnswer>,
}

const LIMITS: GroupLimits = GroupLimits {
    initial_rebalance_delay_ms: 0,
    min_session_timeout_ms: 6_000,
    max_session_timeout_ms: 1_800_000,
    max_members: 3,
};

impl Harness {
    pub(super) fn new(initial_rebalance_delay_ms: u64) -> Self {
        let now = Now { monotonic_ms: 1_000, wall_ms: 1_700_000_000_000 };
        let limits = GroupLimits { initial_rebalance_delay_ms, ..LIMITS };
        Self::around(ClassicGroup::new("g".into(), limits, now), now)
    }

    pub(super) fn restored(metadata: GroupMetadata, now: Now) -> Self {
        Self::around(ClassicGroup::restore(metadata, LIMITS, now), now)
    }

    fn around(group: ClassicGroup, now: Now) -> Self {
        Self {
            group,
            now,
            hold_stores: false,
            held: Vec::new(),
            stored: Vec::new(),
            next_ticket: 0,
            joins: HashMap::new(),
            syncs: HashMap::new(),
        }
    }

    /// A stable group of generation 1, in which each member has the assignment "for {name}".
    pub(super) fn stable(members: &[JoinSpec]) -> Self {
        let mut h = Self::new(100);
        let tickets: Vec<_> = members.iter().map(|spec| h.join_later(*spec)).collect();
        h.pass(200);
        assert!(tickets.iter().all(|ticket| h.joined(*ticket).is_some()));
        let texts: Vec<_> = members.iter().map(|spec| format!("for {}", spec.name)).collect();
        let assignments: Vec<_> =
            members.iter().zip(&texts).map(|(m, text)| (m.name, text.as_str())).collect();
        let tickets: Vec<_> = members
            .iter()
            .rev()
            .map(|spec| {
                let leads = h.group.leader().is_some_and(|leader| leader == spec.name);
                h.sync_later(spec.name, 1, if leads { &assignments } else { &[] })
            })
            .collect();
        assert!(tickets.iter().all(|ticket| h.synced(*ticket).is_some()));
        h
    }

    /// Calls the group and carries out what it decides.
    pub(super) fn act<R>(&mut self, call: impl FnOnce(&mut ClassicGroup, Now, &mut Vec<Action>) -> R) -> R {
        let mut actions = Vec::new();
        let result = call(&mut self.group, self.now, &mut actions);
        self.carry_out(actions);
        result
    }

    /// Calls the group and returns what it decides.
    pub(super) fn actions_of(
        &mut self,
        call: impl FnOnce(&mut ClassicGroup, Now, &mut Vec<Action>),
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        call(&mut self.group, self.now, &mut actions);
        actions
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Join(ticket, answer) => {
                    assert!(self.joins.insert(ticket, answer).is_none(), "{ticket:?} is answered twice");
                }
                Action::Sync(ticket, answer) => {
                    assert!(self.syncs.insert(ticket, answer).is_none(), "{ticket:?} is answered twice");
                }
                Action::Store { metadata, then } => {
                    self.stored.push(metadata);
                    self.held.push(then);
                }
            }
        }
        if !self.hold_stores {
            self.release_stores(Ok(()));
        }
    }

    pub(super) fn release_stores(&mut self, outcome: Result<(), ErrorCode>) {
        for then in std::mem::take(&mut self.held) {
            self.act(|group, now, actions| group.stored(then, outcome, now, actions));
        }
    }

    pub(super) fn last_stored(&self) -> &GroupMetadata {
        self.stored.last().expect("something has been stored")
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    pub(super) fn join_request(&mut self, spec: JoinSpec) -> Join {
        let protocol = |&(name, metadata): &(&'static str, &'static str)| Protocol {
            name: name.into(),
            metadata: Bytes::from_static(metadata.as_bytes()),
        };
        Join {
            ticket: self.ticket(),
            member_id: spec.id.into(),
            instance_id: spec.instance.map(Into::into),
            client_id: "client".into(),
            client_host: "/127.0.0.1".into(),
            session_timeout_ms: spec.session_timeout_ms,
            rebalance_timeout_ms: 60_000,
            protocol_type: spec.protocol_type.into(),
            protocols: spec.protocols.iter().map(protocol).collect(),
            needs_known_id: spec.known_id,
            can_skip_assignment: spec.can_skip,
            fresh_member_id: spec.name.into(),
        }
    }

    pub(super) fn join_later(&mut self, spec: JoinSpec) -> Ticket {
        let request = self.join_request(spec);
        let ticket = request.ticket;
        self.act(|group, now, actions| group.join(request, now, actions));
        ticket
    }

    pub(super) fn joined(&self, ticket: Ticket) -> Option<JoinAnswer> {
        self.joins.get(&ticket).cloned()
    }

    pub(super) fn join(&mut self, spec: JoinSpec) -> Option<JoinAnswer> {
        let ticket = self.join_later(spec);
        self.joined(ticket)
    }

    pub(super) fn sync_request(
        &mut self,
        member: &'static str,
        generation: i32,
        assignments: &[(&'static str, &str)],
    ) -> Sync {
        Sync {
            ticket: self.ticket(),
            member_id: member.into(),
            instance_id: None,
            generation,
            protocol_type: None,
            protocol: None,
            assignments: assignments
                .iter()
                .map(|(member, text)| ((*member).into(), Bytes::copy_from_slice(text.as_bytes())))
                .collect(),
        }
    }

    pub(super) fn sync_later(
        &mut self,
        member: &'static str,
        generation: i32,
        assignments: &[(&'static str, &str)],
    ) -> Ticket {
        let request = self.sync_request(member, generation, assignments);
        let ticket = request.ticket;
        self.act(|group, now, actions| group.sync(request, now, actions));
        ticket
    }

    pub(super) fn synced(&self, ticket: Ticket) -> Option<SyncAnswer> {
        self.syncs.get(&ticket).cloned()
    }

    pub(super) fn sync(
        &mut self,
        member: &'static str,
        generation: i32,
        assignments: &[(&'static str, &str)],
    ) -> Option<SyncAnswer> {
        let ticket = self.sync_later(member, generation, assignments);
        self.synced(ticket)
    }

    pub(super) fn heartbeat(&mut self, member: &str, generation: i32) -> ErrorCode {
        self.group.heartbeat(member, None, generation, self.now)
    }

    pub(super) fn leave(&mut self, leaver: &Leaver) -> ErrorCode {
        self.act(|group, now, actions| group.leave(leaver, now, actions))
    }

    pub(super) fn has_member(&self, id: &str) -> bool {
        self.group.members().contains_key(id)
    }

    /// Lets time pass, stopping at each deadline on the way.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now.monotonic_ms + ms;
        while let Some(deadline) = self.group.next_deadline().filter(|deadline| *deadline <= end) {
            self.now.wall_ms += i64::try_from(deadline - self.now.monotonic_ms).expect("short");
            self.now.monotonic_ms = deadline;
            self.act(ClassicGroup::expire);
        }
        self.now.wall_ms += i64::try_from(end - self.now.monotonic_ms).expect("short");
        self.now.monotonic_ms = end;
    }
}
