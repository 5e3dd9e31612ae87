//! When history is done: how far the inputs are, and the moment of going live.

use std::collections::BTreeMap;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;

/// Tells history from live data, over all tasks of an instance. Pure: a driver asks it what to do.
///
/// Topics have levels: those that others write are at 0, a repartition topic is above the sources of the
/// sub-topology that writes it. Level by level, it takes the ends of the inputs as the log has them, and
/// waits until everything before them is processed *and committed*; so the ends of a level are only asked
/// for when all that could still be written below is in them. It is live when the last level is done,
/// unless that took so long that the first ends are stale: then it begins again.
pub(crate) struct LiveTracker {
    levels: BTreeMap<ByteString, usize>,
    inputs: BTreeMap<TopicPartition, Input>,
    /// The level whose ends are being waited for.
    level: usize,
    /// When the ends of level 0 were asked for.
    began_at: Option<Duration>,
    /// The ends that are waited for.
    ends: BTreeMap<TopicPartition, i64>,
    /// How old the first ends may be.
    patience: Duration,
    live: bool,
}

#[derive(Clone, Copy)]
struct Input {
    start: i64,
    position: i64,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait for commits.
    Wait,
    /// Ask for the ends of these partitions, and hand them to [`LiveTracker::set_ends`].
    AskEnds(Vec<TopicPartition>),
    /// Everything is processed. Returned once.
    Live,
}

/// How far history is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HistoryProgress {
    /// From 0 to 1.
    pub(crate) fraction: f64,
    /// How many offsets are left.
    pub(crate) left: i64,
}

impl LiveTracker {
    /// `levels` by full topic name; `patience` is how old "now" may be when live is said.
    pub(crate) fn new(levels: BTreeMap<ByteString, usize>, patience: Duration) -> Self {
        Self {
            levels,
            inputs: BTreeMap::new(),
            level: 0,
            began_at: None,
            ends: BTreeMap::new(),
            patience,
            live: false,
        }
    }

    /// A task has begun to read `partition` at `position`.
    pub(crate) fn opened(&mut self, partition: &TopicPartition, position: i64) {
        let input = Input { start: position, position };
        self.inputs.entry(partition.clone()).or_insert(input).position = position;
        self.begin_again();
    }

    /// Another instance reads `partition` now.
    pub(crate) fn closed(&mut self, partition: &TopicPartition) {
        self.inputs.remove(partition);
        self.ends.remove(partition);
    }

    /// Everything of `partition` before `position` is processed and committed.
    pub(crate) fn committed(&mut self, partition: &TopicPartition, position: i64) {
        if let Some(input) = self.inputs.get_mut(partition) {
            input.position = position;
        }
    }

    /// The ends that [`Step::AskEnds`] asked for.
    pub(crate) fn set_ends(&mut self, ends: BTreeMap<TopicPartition, i64>, asked_at: Duration) {
        if self.level == 0 {
            self.began_at = Some(asked_at);
        }
        self.ends = ends;
    }

    /// Whether live was said.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    fn begin_again(&mut self) {
        self.level = 0;
        self.began_at = None;
        self.ends.clear();
    }

    /// Decides what to do; `expected` is how many inputs there must be before anything counts.
    pub(crate) fn step(&mut self, now: Duration, expected: usize) -> Step {
        if self.live || self.inputs.len() < expected || self.inputs.is_empty() {
            return Step::Wait;
        }
        let last_level = self.inputs.keys().map(|partition| self.level_of(partition)).max().unwrap_or(0);
        loop {
            if self.level > last_level {
                let is_fresh = self.began_at.is_some_and(|began| now.saturating_sub(began) <= self.patience);
                if is_fresh {
                    self.live = true;
                    return Step::Live;
                }
                self.begin_again();
            }
            let at_level: Vec<TopicPartition> = self.partitions_of(self.level);
            if at_level.iter().any(|partition| !self.ends.contains_key(partition)) {
                return Step::AskEnds(at_level);
            }
            if !at_level.iter().all(|partition| self.is_reached(partition)) {
                return Step::Wait;
            }
            self.level += 1;
            self.ends.retain(|partition, _| !at_level.contains(partition));
        }
    }

    fn level_of(&self, partition: &TopicPartition) -> usize {
        self.levels.get(&partition.topic).copied().unwrap_or(0)
    }

    fn partitions_of(&self, level: usize) -> Vec<TopicPartition> {
        self.inputs.keys().filter(|partition| self.level_of(partition) == level).cloned().collect()
    }

    fn is_reached(&self, partition: &TopicPartition) -> bool {
        let (Some(input), Some(&end)) = (self.inputs.get(partition), self.ends.get(partition)) else {
            return true;
        };
        input.position >= end
    }

    /// How far the inputs of level 0 are; `None` while their ends are not known.
    pub(crate) fn progress(&self, known_ends: &BTreeMap<TopicPartition, i64>) -> Option<HistoryProgress> {
        let (mut done, mut total) = (0, 0);
        for (partition, input) in &self.inputs {
            if self.level_of(partition) == 0 {
                let end = *known_ends.get(partition)?;
                let size = (end - input.start).max(0);
                total += size;
                done += (input.position - input.start).clamp(0, size);
            }
        }
        let fraction = if total == 0 { 1.0 } else { done as f64 / total as f64 };
        Some(HistoryProgress { fraction, left: total - done })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(topic: &str) -> TopicPartition {
        TopicPartition::new(topic, 0)
    }

    fn tracker() -> LiveTracker {
        let levels = BTreeMap::from([("in".into(), 0), ("mid".into(), 1)]);
        LiveTracker::new(levels, Duration::from_millis(100))
    }

    fn ends(topic: &str, end: i64) -> BTreeMap<TopicPartition, i64> {
        BTreeMap::from([(partition(topic), end)])
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn live_is_said_once_when_every_level_has_reached_its_end() {
        let mut tracker = tracker();
        tracker.opened(&partition("in"), 0);
        assert_eq!(tracker.step(at(0), 2), Step::Wait, "an input is missing");
        tracker.opened(&partition("mid"), 0);
        assert_eq!(tracker.step(at(0), 2), Step::AskEnds(vec![partition("in")]));
        tracker.set_ends(ends("in", 10), at(0));
        assert_eq!(tracker.step(at(1), 2), Step::Wait);
        tracker.committed(&partition("in"), 9);
        assert_eq!(tracker.step(at(2), 2), Step::Wait, "one record is missing");
        tracker.committed(&partition("in"), 10);
        assert_eq!(tracker.step(at(3), 2), Step::AskEnds(vec![partition("mid")]));
        tracker.set_ends(ends("mid", 4), at(3));
        assert_eq!(tracker.step(at(4), 2), Step::Wait);
        tracker.committed(&partition("mid"), 4);
        assert_eq!(tracker.step(at(5), 2), Step::Live);
        assert!(tracker.is_live());
        assert_eq!(tracker.step(at(6), 2), Step::Wait, "said once");
    }

    #[test]
    fn stale_ends_are_asked_for_again() {
        let mut tracker = tracker();
        tracker.opened(&partition("in"), 0);
        assert_eq!(tracker.step(at(0), 1), Step::AskEnds(vec![partition("in")]));
        tracker.set_ends(ends("in", 10), at(0));
        tracker.committed(&partition("in"), 10);
        assert_eq!(tracker.step(at(500), 1), Step::AskEnds(vec![partition("in")]));
        tracker.set_ends(ends("in", 25), at(500));
        assert_eq!(tracker.step(at(510), 1), Step::Wait, "more has come meanwhile");
        tracker.committed(&partition("in"), 30);
        assert_eq!(tracker.step(at(520), 1), Step::Live);
    }

    #[test]
    fn a_task_that_arrives_begins_it_again() {
        let mut tracker = tracker();
        tracker.opened(&partition("in"), 0);
        assert_eq!(tracker.step(at(0), 1), Step::AskEnds(vec![partition("in")]));
        tracker.set_ends(ends("in", 0), at(0));
        tracker.opened(&partition("mid"), 3);
        assert_eq!(tracker.step(at(0), 2), Step::AskEnds(vec![partition("in")]));
    }

    #[test]
    fn progress_is_about_what_others_write() {
        let mut tracker = tracker();
        tracker.opened(&partition("in"), 100);
        tracker.opened(&partition("mid"), 0);
        assert_eq!(tracker.progress(&BTreeMap::new()), None);
        tracker.committed(&partition("in"), 150);
        let known = ends("in", 300);
        assert_eq!(tracker.progress(&known), Some(HistoryProgress { fraction: 0.25, left: 150 }));
        tracker.committed(&partition("in"), 320);
        assert_eq!(tracker.progress(&known), Some(HistoryProgress { fraction: 1.0, left: 0 }));
        assert_eq!(tracker.progress(&ends("in", 100)), Some(HistoryProgress { fraction: 1.0, left: 0 }));
    }
}
