//! Until when members must be heard of. Nothing of it is written: it begins anew when a group is loaded.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;

use super::{Change, Changes, ConsumerGroup, GroupEpoch, MemberState};
use crate::coordinator::Now;
use crate::group::topic_image::TopicImage;

/// When a member is given up again whose end could not be written, in ms.
const RETRY_MS: u64 = 1_000;

/// The deadlines of the members, in monotonic ms.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    members: BTreeMap<ByteString, MemberDeadlines>,
    /// Member ids that were given to members of the classic protocol and have not joined yet, with when they lapse.
    pending: BTreeMap<ByteString, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct MemberDeadlines {
    session: Option<u64>,
    /// By when partitions must be given up, and in which epoch that was asked for.
    revocation: Option<(GroupEpoch, u64)>,
    /// By when a member of the classic protocol must have joined again.
    join: Option<u64>,
    /// By when a member of the classic protocol must have asked for its assignment.
    sync: Option<u64>,
}

impl MemberDeadlines {
    fn all(&self) -> impl Iterator<Item = u64> {
        let revocation = self.revocation.map(|(_, at)| at);
        [self.session, revocation, self.join, self.sync].into_iter().flatten()
    }
}

impl ConsumerGroup {
    fn deadlines_of(&mut self, member_id: &ByteString) -> &mut MemberDeadlines {
        self.deadlines.members.entry(member_id.clone()).or_default()
    }

    /// Gives a member's session another full timeout.
    pub(super) fn renew_session(&mut self, member_id: &ByteString, now: Now) {
        let Some(member) = self.image.member(member_id) else { return };
        let timeout_ms = match &member.classic {
            Some(classic) => u64::try_from(classic.session_timeout_ms).unwrap_or(0),
            None => self.limits.session_timeout_ms,
        };
        self.deadlines_of(member_id).session = Some(now.monotonic_ms + timeout_ms);
    }

    /// Sets by when a member must have given up what it has been told to. One of the classic protocol has its deadline for
    /// joining again.
    pub(super) fn watch_revocation(&mut self, member_id: &ByteString, now: Now) {
        let Some(member) = self.image.member(member_id) else { return };
        let timeout_ms = u64::try_from(member.rebalance_timeout_ms).unwrap_or(0);
        let speaks_classic = member.classic.is_some();
        let revoking = self
            .image
            .current(member_id)
            .filter(|current| current.state == MemberState::UnrevokedPartitions && !speaks_classic);
        let revocation = revoking.map(|current| (current.epoch, now.monotonic_ms + timeout_ms));
        self.deadlines_of(member_id).revocation = revocation;
    }

    /// Sets by when a member of the classic protocol must have joined again, unless that is set.
    pub(super) fn await_join(&mut self, member_id: &ByteString, timeout_ms: u64, now: Now) {
        self.deadlines_of(member_id).join.get_or_insert(now.monotonic_ms + timeout_ms);
    }

    /// A member of the classic protocol has joined again, and must ask for its assignment next.
    pub(super) fn await_sync(&mut self, member_id: &ByteString, timeout_ms: u64, now: Now) {
        let deadlines = self.deadlines_of(member_id);
        (deadlines.join, deadlines.sync) = (None, Some(now.monotonic_ms + timeout_ms));
    }

    /// A member of the classic protocol has asked for its assignment.
    pub(super) fn has_synced(&mut self, member_id: &ByteString) {
        self.deadlines_of(member_id).sync = None;
    }

    /// Forgets the deadlines of a member.
    pub(super) fn forget_deadlines(&mut self, member_id: &str) {
        self.deadlines.members.remove(member_id);
    }

    /// The next moment in monotonic ms at which [`ConsumerGroup::expire`] has something to do, if nothing else happens
    /// before.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let members = self.deadlines.members.values().flat_map(MemberDeadlines::all);
        members.chain(self.deadlines.pending.values().copied()).min()
    }

    /// The next deadline of a member, in monotonic ms.
    pub(crate) fn deadline_of(&self, member_id: &str) -> Option<u64> {
        self.deadlines.members.get(member_id)?.all().min()
    }

    /// Gives out an id that lapses if nobody joins with it.
    pub(super) fn await_id(&mut self, member_id: &ByteString, timeout_ms: u64, now: Now) {
        self.deadlines.pending.insert(member_id.clone(), now.monotonic_ms + timeout_ms);
    }

    /// Whether an id has been given out and nobody has joined with it.
    pub(super) fn is_pending(&self, member_id: &str) -> bool {
        self.deadlines.pending.contains_key(member_id)
    }

    /// How many ids have been given out that nobody has joined with.
    pub(super) fn pending_count(&self) -> usize {
        self.deadlines.pending.len()
    }

    /// Somebody has joined with the id.
    pub(super) fn has_joined(&mut self, member_id: &str) {
        self.deadlines.pending.remove(member_id);
    }

    /// Takes out whoever has let a deadline pass. Returns whom.
    pub(crate) fn expire(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) -> Vec<ByteString> {
        self.deadlines.pending.retain(|_, lapses| *lapses > now.monotonic_ms);
        let is_late = |(id, deadlines): (&ByteString, &MemberDeadlines)| {
            let late = deadlines.all().any(|at| at <= now.monotonic_ms);
            late.then(|| id.clone())
        };
        let late: Vec<ByteString> = self.deadlines.members.iter().filter_map(is_late).collect();
        let mut given_up = Vec::new();
        for id in late {
            if self.image.member(&id).is_none() {
                self.forget_deadlines(&id);
            } else if self.is_given_up(&id, now) {
                self.remove_member(&id, changes);
                let retry =
                    MemberDeadlines { session: Some(now.monotonic_ms + RETRY_MS), ..Default::default() };
                *self.deadlines_of(&id) = retry;
                given_up.push(id);
            }
        }
        if !given_up.is_empty() {
            self.bump_after_removal(topics, now, changes);
        }
        given_up
    }

    /// Whether one of the deadlines that have passed still counts; the others are dropped.
    fn is_given_up(&mut self, member_id: &ByteString, now: Now) -> bool {
        let current = self.image.current(member_id).cloned().unwrap_or_default();
        let deadlines = self.deadlines_of(member_id);
        if let Some((epoch, at)) = deadlines.revocation
            && at <= now.monotonic_ms
            && (current.state != MemberState::UnrevokedPartitions || current.epoch != epoch)
        {
            deadlines.revocation = None;
        }
        deadlines.all().any(|at| at <= now.monotonic_ms)
    }

    /// Takes a member out; the caller sees to the epoch.
    pub(super) fn remove_member(&mut self, member_id: &ByteString, changes: &mut Changes) {
        if self.image.current(member_id).is_some() {
            self.put(changes, Change::Current(member_id.clone(), None));
        }
        if self.image.target(member_id).is_some() {
            self.put(changes, Change::Target(member_id.clone(), None));
        }
        self.put(changes, Change::Member(member_id.clone(), None));
    }

    /// Starts the next epoch after members have been taken out.
    pub(super) fn bump_after_removal(&mut self, topics: &TopicImage, now: Now, changes: &mut Changes) {
        if self.is_empty() {
            self.empty_since_ms = now.wall_ms;
        }
        self.forget_unused_regexes(changes);
        self.bump_epoch(topics, changes);
    }

    /// A code for requests of members of the classic protocol in a group that has moved on.
    pub(super) fn must_rejoin(&mut self, member_id: &ByteString, now: Now) -> ErrorCode {
        let timeout_ms = self.image.member(member_id).map_or(0, |member| member.rebalance_timeout_ms);
        self.await_join(member_id, u64::try_from(timeout_ms).unwrap_or(0), now);
        ErrorCode::RebalanceInProgress
    }
}
