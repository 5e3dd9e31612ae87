//! Finding out whether what was read is still in the log after another leader took over (KIP-320).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thalweg_protocol::{LeaderEpoch, Offset, TopicPartition};
use tokio::time::Instant;

use super::Consumer;
use super::drive::Event;
use super::position::{PartitionState, Position, Search};
use crate::by_leader::{EpochEnd, epoch_ends};
use crate::config::OffsetReset;
use crate::error::{Error, Result};

/// A partition whose leader was asked, under which version of its state and as leader of which epoch.
pub(super) struct Questioned {
    partition: TopicPartition,
    version: u64,
    leader_epoch: LeaderEpoch,
}

/// What the end of the epoch that a position was read in says of the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The log still has what was read.
    Whole,
    /// The log was cut there and has gone on differently.
    Cut { at: Offset, epoch: LeaderEpoch },
    /// The log has nothing of that epoch or an earlier one.
    Gone,
}

fn judge(position: Offset, end: EpochEnd) -> Verdict {
    match end {
        EpochEnd { end: Some(end), .. } if end >= position => Verdict::Whole,
        EpochEnd { end: Some(at), epoch } => Verdict::Cut { at, epoch },
        EpochEnd { end: None, .. } => Verdict::Gone,
    }
}

impl Consumer {
    /// Asks the leaders that are new about the epochs of what was read before.
    pub(super) fn validate(&mut self, now: Instant) {
        if self.is_validating {
            return;
        }
        let metadata = self.cluster.metadata();
        let (mut questioned, mut epochs) = (Vec::new(), BTreeMap::new());
        for (partition, state) in &mut self.partitions {
            let Some((_, leader_epoch)) = metadata.leader(partition) else { continue };
            if !state.must_validate(leader_epoch) || !state.can_validate(now) {
                continue;
            }
            state.is_asked = true;
            epochs.insert(partition.clone(), state.leader_epoch);
            questioned.push(Questioned {
                partition: partition.clone(),
                version: state.version,
                leader_epoch,
            });
        }
        if questioned.is_empty() {
            return;
        }
        self.is_validating = true;
        let cluster = Arc::clone(&self.cluster);
        self.events.push(Box::pin(async move {
            let ends = epoch_ends(&cluster, epochs).await;
            Event::Validated(questioned, ends)
        }));
    }

    pub(super) fn on_validated(
        &mut self,
        questioned: Vec<Questioned>,
        mut ends: BTreeMap<TopicPartition, Result<EpochEnd>>,
    ) {
        self.is_validating = false;
        let reset = self.config.offset_reset;
        let pause = Duration::from_millis(self.cluster.config().retry_backoff_max_ms);
        for asked in questioned {
            let state = self.partitions.get_mut(&asked.partition);
            let Some(state) = state.filter(|state| state.version == asked.version) else { continue };
            state.is_asked = false;
            match ends.remove(&asked.partition) {
                // A broker that cannot be asked cannot tell of a cut either.
                Some(Err(Error::UnsupportedVersion { .. })) => state.validated = asked.leader_epoch,
                Some(Ok(end)) => {
                    self.next_version += 1;
                    let told = conclude(state, &asked, end, reset, self.next_version);
                    self.metrics.truncations += u64::from(state.version == self.next_version);
                    self.errors.extend(told);
                }
                failed => {
                    let now = Instant::now();
                    if let Some(Err(error)) = failed {
                        state.failed(error, now);
                    }
                    state.not_before = Some(now + pause);
                }
            }
        }
    }
}

/// Goes on where the log was cut, or looks for another position, or (without a rule for that) says so.
fn conclude(
    state: &mut PartitionState,
    asked: &Questioned,
    end: EpochEnd,
    reset: OffsetReset,
    version: u64,
) -> Option<Error> {
    let position = state.offset()?;
    let (partition, divergent) = match judge(position, end) {
        Verdict::Whole => {
            state.validated = asked.leader_epoch;
            state.stall = None;
            return None;
        }
        Verdict::Cut { at, epoch } => {
            tracing::warn!(partition = %asked.partition, %position, cut_at = %at, "the log was truncated");
            if reset != OffsetReset::None {
                state.move_to(Position::At(at), version);
                state.leader_epoch = epoch;
                state.validated = asked.leader_epoch;
                return None;
            }
            (asked.partition.clone(), Some(at))
        }
        Verdict::Gone => (asked.partition.clone(), None),
    };
    if let Some(spec) = reset.spec() {
        state.move_to(Position::Wanted(Search::Log(spec)), version);
        return None;
    }
    state.move_to(Position::Halted, version);
    Some(Error::LogTruncated { partition, position, divergent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_behind_the_end_of_its_epoch_was_cut_off() {
        let end =
            |end: i64, epoch| EpochEnd { end: (end >= 0).then_some(Offset(end)), epoch: LeaderEpoch(epoch) };
        for (position, end, verdict) in [
            (10, end(10, 3), Verdict::Whole),
            (10, end(12, 3), Verdict::Whole),
            (10, end(7, 2), Verdict::Cut { at: Offset(7), epoch: LeaderEpoch(2) }),
            (0, end(-1, -1), Verdict::Gone),
        ] {
            assert_eq!(judge(Offset(position), end), verdict, "{position} {end:?}");
        }
    }
}
