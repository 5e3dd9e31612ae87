//! What a poll does for the membership besides the classic protocol: taking in what the coordinator assigns (KIP-848),
//! and finding the topics of a pattern.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use thalweg_protocol::TopicPartition;
use tokio::time::Instant;

use super::Consumer;
use super::coordinated::Stage;
use super::fetched::RebalanceEvent;
use super::heartbeat::Signal;
use super::membership::Phase;
use crate::error::Error;

impl Consumer {
    /// Partitions that were revoked by the last poll are given up now, after a commit if commits are automatic.
    pub(super) fn begin_poll_coordinated(&mut self) {
        let Some(member) = &self.coordinated else { return };
        member.polled();
        // An error may have come before the event that tells of a revocation: then it lasts until the poll after.
        if member.stage != Stage::Revoking || !self.rebalanced.is_empty() {
            return self.auto_commit();
        }
        let commit = match self.config.auto_commit_interval_ms {
            Some(_) => self.positions(|_| true),
            None => Vec::new(),
        };
        let commit = (!commit.is_empty()).then(|| self.commit_offsets_later(&commit).boxed());
        self.partitions.retain(|_, state| !state.is_revoked);
        let owned: BTreeSet<TopicPartition> = self.partitions.keys().cloned().collect();
        let metadata = self.cluster.metadata();
        if let Some(member) = &mut self.coordinated {
            member.owns(&owned, &metadata, commit);
        }
    }

    /// Reacts to what the heartbeats have brought.
    pub(super) fn drive_coordinated(&mut self) {
        let Some(member) = &mut self.coordinated else { return };
        if let Some(failure) = member.take_failure() {
            self.errors.push_back(failure);
            return self.lose();
        }
        match member.take_signal() {
            Some(Signal::Fenced) => {
                member.end();
                let group = self.config.group.clone().unwrap_or_default();
                let instance_id = self.config.group_instance_id.clone().unwrap_or_default();
                self.errors.push_back(Error::MemberFenced { group, instance_id });
                return self.lose();
            }
            Some(Signal::Lost) => {
                member.rejoin();
                return self.lose();
            }
            Some(Signal::Rejoin) | None => {}
        }
        let metadata = self.cluster.metadata();
        if let Some((target, has_unknown)) = member.take_target(&metadata) {
            self.take_over(target, has_unknown);
            self.wants_unknown |= has_unknown;
        }
    }

    /// Goes from what the member has to what it is to have, `is_partial` if that is not all known yet. What it has to give
    /// up lasts until the next poll.
    fn take_over(&mut self, target: BTreeSet<TopicPartition>, is_partial: bool) {
        let mut revoked = Vec::new();
        for (partition, state) in &mut self.partitions {
            if !target.contains(partition) {
                state.is_revoked = true;
                revoked.push(partition.clone());
            }
        }
        let added: Vec<TopicPartition> =
            target.iter().filter(|partition| !self.partitions.contains_key(*partition)).cloned().collect();
        if is_partial && added.is_empty() && revoked.is_empty() {
            return;
        }
        self.add_partitions(added.iter().cloned());
        self.hold_topics();
        let metadata = self.cluster.metadata();
        let Some(member) = &mut self.coordinated else { return };
        match revoked.is_empty() {
            true => member.owns(&target, &metadata, None),
            false => {
                member.stage = Stage::Revoking;
                self.rebalanced.push(RebalanceEvent::Revoked(revoked.clone()));
            }
        }
        if !added.is_empty() || revoked.is_empty() {
            self.rebalanced.push(RebalanceEvent::Assigned(added));
        }
    }

    /// Whether metadata must tell of all topics: for a pattern, or for partitions of topics that are only known by id.
    pub(super) fn wants_all_topics(&mut self) -> bool {
        let max_age = Duration::from_millis(self.cluster.config().metadata_max_age_ms);
        let pattern = self.pattern.as_ref();
        let must_match =
            pattern.is_some_and(|(_, matched)| matched.is_none_or(|matched| matched.elapsed() > max_age));
        let may_look = self.looked_for_unknown.is_none_or(|looked| looked.elapsed() > UNKNOWN_PAUSE);
        let must_look = self.wants_unknown && may_look;
        if must_look && !self.is_refreshing {
            self.looked_for_unknown = Some(Instant::now());
            self.wants_unknown = false;
        }
        must_match || must_look
    }

    /// All topics have been looked at: those that match are subscribed to.
    pub(super) fn match_topics(&mut self) {
        let Some((pattern, matched)) = &mut self.pattern else { return };
        let topics: Vec<_> = pattern.topics(&self.cluster.metadata()).into_iter().collect();
        *matched = Some(Instant::now());
        let Some(membership) = &mut self.membership else { return };
        if membership.topics == topics {
            return;
        }
        membership.topics = topics;
        let is_stable = membership.phase == Phase::Stable;
        self.hold_topics();
        if is_stable {
            self.start_rebalance();
        }
    }
}

/// How long a topic that is only known by id is not asked for again.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(100);
