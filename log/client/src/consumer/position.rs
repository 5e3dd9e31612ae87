//! Where a consumer is in a partition.

use std::time::Duration;

use thalweg_protocol::{LeaderEpoch, NodeId, Offset};
use tokio::time::Instant;

use super::fetched::{FetchedBatches, Progress};
use super::offsets::OffsetSpec;
use crate::error::Error;

/// How a position is found that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// What the group has committed, else by the rule of the configuration.
    Committed,
    /// In the log.
    Log(OffsetSpec),
}

/// Where the next record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    At(Offset),
    /// To be found out.
    Wanted(Search),
    /// Cannot be found out, or cannot be read: the caller has been told and must seek.
    Halted,
}

/// A partition that a consumer reads.
#[derive(Debug)]
pub(super) struct PartitionState {
    pub(super) position: Position,
    /// The leader epoch of the last record that was returned.
    pub(super) leader_epoch: LeaderEpoch,
    /// The epoch of the newest leader that is known to have what was read.
    pub(super) validated: LeaderEpoch,
    /// Changes with each seek, so that what was asked for before it is recognised when it comes.
    pub(super) version: u64,
    pub(super) is_paused: bool,
    /// Nothing is fetched at or behind this offset.
    pub(super) stop_at: Option<Offset>,
    /// Taken away at the next poll.
    pub(super) is_revoked: bool,
    /// In a fetch or search that is under way.
    pub(super) is_asked: bool,
    /// What was fetched and not returned yet, with the leader epoch of its last batch.
    pub(super) buffered: Option<(FetchedBatches, LeaderEpoch)>,
    pub(super) known: Option<Known>,
    /// Not asked for before then, after a failure.
    pub(super) not_before: Option<Instant>,
    pub(super) failures: u32,
    /// Why it cannot be read, since an attempt failed and until one succeeds.
    pub(super) stall: Option<Stall>,
    /// A follower to read from (KIP-392).
    pub(super) preferred: Option<NodeId>,
}

/// Why a partition cannot be read at present.
#[derive(Debug)]
pub(super) struct Stall {
    /// When the first attempt failed.
    pub(super) since: Instant,
    /// When the caller was told last; at first, when it began.
    pub(super) told: Instant,
    /// How the newest attempt failed.
    pub(super) error: Error,
}

impl Stall {
    /// When the caller is to be told, if it is so after `limit`.
    pub(super) fn due(&self, limit: Duration) -> Instant {
        self.told + limit
    }
}

/// What the last fetch said of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) log_start: Offset,
    pub(super) high_watermark: Offset,
    pub(super) last_stable_offset: Offset,
    pub(super) end: Offset,
}

impl PartitionState {
    pub(super) fn new(version: u64) -> Self {
        Self {
            position: Position::Wanted(Search::Committed),
            leader_epoch: LeaderEpoch::UNKNOWN,
            validated: LeaderEpoch::UNKNOWN,
            version,
            is_paused: false,
            stop_at: None,
            is_revoked: false,
            is_asked: false,
            buffered: None,
            known: None,
            not_before: None,
            failures: 0,
            stall: None,
            preferred: None,
        }
    }

    /// Goes on elsewhere.
    pub(super) fn move_to(&mut self, position: Position, version: u64) {
        self.position = position;
        self.leader_epoch = LeaderEpoch::UNKNOWN;
        self.version = version;
        self.is_asked = false;
        self.buffered = None;
        self.not_before = None;
        self.failures = 0;
        self.stall = None;
    }

    /// An attempt to read it failed, and will be made again.
    pub(super) fn failed(&mut self, error: Error, now: Instant) {
        match &mut self.stall {
            Some(stall) => stall.error = error,
            None => self.stall = Some(Stall { since: now, told: now, error }),
        }
    }

    /// An attempt to read it succeeded, whether or not there was anything.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.stall = None;
    }

    /// The offset to fetch from, if there is anything to fetch now.
    pub(super) fn fetchable(&self, now: Instant) -> Option<Offset> {
        let is_idle = !self.is_paused && !self.is_revoked && !self.is_asked && self.buffered.is_none();
        match self.position {
            Position::At(offset) if is_idle && self.is_due(now) => {
                self.stop_at.is_none_or(|stop| offset < stop).then_some(offset)
            }
            _ => None,
        }
    }

    /// How to find the position, if it has to be found now.
    pub(super) fn searchable(&self, now: Instant) -> Option<Search> {
        match self.position {
            Position::Wanted(search) if !self.is_asked && !self.is_revoked && self.is_due(now) => {
                Some(search)
            }
            _ => None,
        }
    }

    /// Whether the leader of this epoch has to be asked first whether it has what was read.
    pub(super) fn must_validate(&self, leader_epoch: LeaderEpoch) -> bool {
        self.leader_epoch > LeaderEpoch::UNKNOWN && leader_epoch > self.validated
    }

    /// Whether a leader can be asked about the position now.
    pub(super) fn can_validate(&self, now: Instant) -> bool {
        let is_idle = !self.is_paused && !self.is_revoked && !self.is_asked && self.buffered.is_none();
        matches!(self.position, Position::At(_)) && is_idle && self.is_due(now)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| time <= now)
    }

    /// What can be returned; the position moves past it.
    pub(super) fn take(&mut self) -> Option<FetchedBatches> {
        if self.is_paused || self.is_revoked {
            return None;
        }
        let (fetched, leader_epoch) = self.buffered.take()?;
        self.position = Position::At(fetched.next_offset);
        self.leader_epoch = leader_epoch;
        Some(fetched)
    }

    pub(super) fn offset(&self) -> Option<Offset> {
        match self.position {
            Position::At(offset) => Some(offset),
            Position::Wanted(_) | Position::Halted => None,
        }
    }

    pub(super) fn progress(&self) -> Option<Progress> {
        let (position, known) = (self.offset()?, self.known?);
        Some(Progress {
            position,
            fetched: self.buffered.as_ref().map_or(position, |(fetched, _)| fetched.next_offset),
            log_start: known.log_start,
            high_watermark: known.high_watermark,
            last_stable_offset: known.last_stable_offset,
            end: known.end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_fetched_behind_the_bound() {
        let mut state = PartitionState::new(0);
        state.stop_at = Some(Offset(10));
        for (position, fetchable) in [(9, Some(Offset(9))), (10, None), (11, None)] {
            state.position = Position::At(Offset(position));
            assert_eq!(state.fetchable(Instant::now()), fetchable);
        }
        state.stop_at = None;
        assert_eq!(state.fetchable(Instant::now()), Some(Offset(11)));
    }
}
