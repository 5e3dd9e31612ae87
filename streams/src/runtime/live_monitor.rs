//! Watches the inputs until they are live, and tells how far they are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_client::{Isolation, ListedOffset, OffsetSpec, Result};
use thalweg_protocol::TopicPartition;

use super::events::Event;
use super::live::{HistoryProgress, Step};
use super::shared::Shared;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// After which time a transaction of others counts as one that stays open.
const OPEN_TRANSACTION: Duration = Duration::from_millis(500);

/// How often it asks what other instances have committed.
const ASK_ELSEWHERE_EVERY: Duration = Duration::from_millis(100);

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// Runs until live is said or the application closes.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut monitor = Monitor { shared, asked: None, known_ends: BTreeMap::new(), pace: Pace::default() };
    let (mut told, mut asked_elsewhere) = (Duration::ZERO, Duration::ZERO);
    while !monitor.shared.is_closing() {
        let now = monitor.shared.now();
        match monitor.look(now).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the ends of the inputs are not known yet"),
        }
        if now.saturating_sub(asked_elsewhere) >= ASK_ELSEWHERE_EVERY {
            asked_elsewhere = now;
            if let Err(error) = monitor.ask_elsewhere().await {
                tracing::warn!(%error, "what other instances have committed is not known yet");
            }
        }
        if now.saturating_sub(told) >= TELL_EVERY && monitor.tell(now) {
            told = now;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

struct Monitor {
    shared: Arc<Shared>,
    /// The ends that were asked for, until they are settled.
    asked: Option<Asked>,
    /// The ends as they were last known.
    known_ends: BTreeMap<TopicPartition, i64>,
    pace: Pace,
}

/// What was written when the ends were asked for.
struct Asked {
    at: Duration,
    written: BTreeMap<TopicPartition, i64>,
}

impl Monitor {
    /// Takes the steps that can be taken now; returns whether live was said.
    async fn look(&mut self, now: Duration) -> Result<bool> {
        loop {
            let assigned = self.shared.assigned();
            match self.shared.with_live(|live| live.step(now, assigned)) {
                Step::Wait => return Ok(false),
                Step::Live => {
                    self.shared.events.send(Event::Live);
                    return Ok(true);
                }
                Step::AskEnds(partitions) => {
                    let Some(ends) = self.ask(&partitions, now).await? else { return Ok(false) };
                    self.known_ends.extend(ends.clone());
                    let asked_at = self.asked.take().map_or(now, |asked| asked.at);
                    self.shared.with_live(|live| live.set_ends(ends, asked_at));
                }
            }
        }
    }

    /// The ends before which everything has to be processed, once they are settled.
    async fn ask(
        &mut self,
        partitions: &[TopicPartition],
        now: Duration,
    ) -> Result<Option<BTreeMap<TopicPartition, i64>>> {
        if self.asked.is_none() {
            let written = ends(&self.shared, partitions, Isolation::ReadUncommitted).await?;
            self.asked = Some(Asked { at: now, written });
        }
        let stable = ends(&self.shared, partitions, Isolation::ReadCommitted).await?;
        let Some(asked) = &self.asked else { return Ok(None) };
        let may_stay_open = |topic: &ByteString| !self.shared.plan.is_repartition(topic);
        Ok(settle(&asked.written, &stable, now - asked.at > OPEN_TRANSACTION, may_stay_open))
    }

    /// Finds out how far the inputs are that other instances read.
    async fn ask_elsewhere(&self) -> Result<()> {
        let partitions = match self.shared.assigned() {
            Some(_) => self.shared.with_live(|live| live.read_elsewhere()),
            None => Vec::new(),
        };
        if partitions.is_empty() {
            return Ok(());
        }
        let group = &self.shared.config().application_id;
        let admin = self.shared.client.admin();
        // What is pending is not committed yet; what was before is enough to know.
        let committed = admin.committed_offsets(group, Some(&partitions), false).await?;
        self.shared.with_live(|live| {
            for (partition, committed) in &committed {
                live.committed_elsewhere(partition, committed.offset.0);
            }
        });
        Ok(())
    }

    /// Tells how far history is, if that is known.
    fn tell(&mut self, now: Duration) -> bool {
        let progress = self.shared.with_live(|live| live.progress(&self.known_ends));
        let Some(progress) = progress else { return false };
        let eta = self.pace.eta(now, &progress);
        let HistoryProgress { fraction, left } = progress;
        self.shared.events.send(Event::Replaying { fraction, left, eta });
        true
    }
}

/// The ends that have to be reached when this much was `written` and this is `stable` a moment later. The
/// markers of a transaction follow its commit, so what was written but is not stable yet is waited for
/// (`None`). In a topic of others a transaction may stay open: there, what is stable must do when it has
/// `taken_long`. The application's own transactions end by themselves, and hold what was below.
fn settle(
    written: &BTreeMap<TopicPartition, i64>,
    stable: &BTreeMap<TopicPartition, i64>,
    taken_long: bool,
    may_stay_open: impl Fn(&ByteString) -> bool,
) -> Option<BTreeMap<TopicPartition, i64>> {
    let end = |(partition, &written): (&TopicPartition, &i64)| {
        let stable = *stable.get(partition)?;
        let is_settled = stable >= written || (taken_long && may_stay_open(&partition.topic));
        is_settled.then(|| (partition.clone(), written.min(stable)))
    };
    written.iter().map(end).collect()
}

async fn ends(
    shared: &Shared,
    partitions: &[TopicPartition],
    isolation: Isolation,
) -> Result<BTreeMap<TopicPartition, i64>> {
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
    fn what_is_written_but_not_stable_is_waited_for() {
        let ends = |own, others| {
            let at = |topic: &str| TopicPartition::new(topic, 0);
            BTreeMap::from([(at("own"), own), (at("others"), others)])
        };
        let settled =
            |stable, taken_long| settle(&ends(10, 10), &stable, taken_long, |topic| &**topic == "others");
        assert_eq!(settled(ends(10, 10), false), Some(ends(10, 10)));
        assert_eq!(settled(ends(12, 15), false), Some(ends(10, 10)), "what has come since does not count");
        assert_eq!(settled(ends(10, 7), false), None);
        assert_eq!(settled(ends(10, 7), true), Some(ends(10, 7)));
        assert_eq!(settled(ends(7, 10), true), None, "its own transactions end");
    }

    #[test]
    fn the_eta_goes_by_the_pace_so_far() {
        let mut pace = Pace::default();
        let progress = |left| HistoryProgress { fraction: 0.0, left };
        assert_eq!(pace.eta(Duration::from_secs(1), &progress(1000)), None);
        assert_eq!(pace.eta(Duration::from_secs(2), &progress(1000)), None);
        assert_eq!(pace.eta(Duration::from_secs(3), &progress(800)), Some(Duration::from_secs(8)));
    }
}
