//! Watches the inputs until they are live, and tells how far they are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thalweg_client::{Isolation, ListedOffset, OffsetSpec};
use thalweg_protocol::TopicPartition;

use super::events::Event;
use super::live::{HistoryProgress, Step};
use super::shared::Shared;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// After which time a transaction counts as one that stays open.
const OPEN_TRANSACTION: Duration = Duration::from_millis(500);

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// Runs until live is said or the application closes.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut known_ends = BTreeMap::new();
    let mut pace = Pace::default();
    let mut told = Duration::ZERO;
    while !shared.is_closing() {
        let now = shared.now();
        let step = match shared.assigned() {
            None | Some(0) => Step::Wait,
            Some(expected) => shared.with_live(|live| live.step(now, expected)),
        };
        match step {
            Step::Live => {
                shared.events.send(Event::Live);
                return;
            }
            Step::AskEnds(partitions) => match ask(&shared, &partitions).await {
                Ok(ends) => {
                    let is_history = partitions.iter().all(|at| !shared.plan.is_repartition(&at.topic));
                    if is_history {
                        known_ends.extend(ends.clone());
                    }
                    shared.with_live(|live| live.set_ends(ends, now));
                    continue;
                }
                Err(error) => tracing::warn!(%error, "the ends of the inputs are not known yet"),
            },
            Step::Wait => {}
        }
        if now.saturating_sub(told) >= TELL_EVERY
            && let Some(progress) = shared.with_live(|live| live.progress(&known_ends))
        {
            told = now;
            let eta = pace.eta(now, &progress);
            let HistoryProgress { fraction, left } = progress;
            shared.events.send(Event::Replaying { fraction, left, eta });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The ends before which everything has to be processed. The markers of a transaction follow its commit a
/// moment later, so what is written but not yet stable is waited for; only not for long, because a
/// transaction may stay open.
async fn ask(
    shared: &Shared,
    partitions: &[TopicPartition],
) -> Result<BTreeMap<TopicPartition, i64>, thalweg_client::Error> {
    let began = shared.now();
    let written = ends(shared, partitions, Isolation::ReadUncommitted).await?;
    loop {
        let stable = ends(shared, partitions, Isolation::ReadCommitted).await?;
        let is_stable = |(partition, end): (&TopicPartition, &i64)| {
            stable.get(partition).is_some_and(|stable| stable >= end)
        };
        if written.iter().all(is_stable) {
            return Ok(written);
        }
        if shared.now() - began > OPEN_TRANSACTION || shared.is_closing() {
            let before = |(partition, end): (TopicPartition, i64)| {
                let stable = stable.get(&partition).copied().unwrap_or(end);
                (partition, end.min(stable))
            };
            return Ok(written.into_iter().map(before).collect());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn ends(
    shared: &Shared,
    partitions: &[TopicPartition],
    isolation: Isolation,
) -> Result<BTreeMap<TopicPartition, i64>, thalweg_client::Error> {
    let wanted: Vec<_> = partitions.iter().map(|partition| (partition.clone(), OffsetSpec::Latest)).collect();
    let listed = shared.client.admin().list_offsets(&wanted, isolation).await?;
    let known = |(partition, listed): (_, ListedOffset)| Some((partition, listed.offset?.0));
    Ok(listed.into_iter().filter_map(known).collect())
}

/// How fast history shrinks.
#[derive(Default)]
struct Pace {
    first: Option<(Duration, i64)>,
}

impl Pace {
    /// When nothing will be left, at the pace since the first look.
    fn eta(&mut self, now: Duration, progress: &HistoryProgress) -> Option<Duration> {
        let (began, left_then) = *self.first.get_or_insert((now, progress.left));
        let (took, done) = (now.checked_sub(began)?, left_then - progress.left);
        if done <= 0 || took.is_zero() {
            return None;
        }
        Some(took.mul_f64(progress.left as f64 / done as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eta_goes_by_the_pace_so_far() {
        let mut pace = Pace::default();
        let progress = |left| HistoryProgress { fraction: 0.0, left };
        assert_eq!(pace.eta(Duration::from_secs(1), &progress(1000)), None);
        assert_eq!(pace.eta(Duration::from_secs(2), &progress(1000)), None);
        assert_eq!(pace.eta(Duration::from_secs(3), &progress(800)), Some(Duration::from_secs(8)));
    }
}
