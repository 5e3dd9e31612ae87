//! When history is done: how far the inputs are, and the moment of going live.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_protocol::TopicPartition;

/// Tells history from live data, over all inputs of the application, whoever reads them. Pure: a driver asks
/// it what to do.
///
/// Inputs have levels: those that only others write are at 0, a topic that a sub-topology writes is above the
/// sources of that. Level by level, it takes the ends of the inputs as the log has them, and waits until
/// everything before them is processed *and committed*; so the ends of a level are only asked for when all
/// that could still be written below is in them. It is live when the last level is done, unless that took so
/// long that the first ends are stale: then it begins again.
pub(crate) struct LiveTracker {
    inputs: BTreeMap<TopicPartition, Input>,
    /// The level whose ends are being waited for.
    level: usize,
    last_level: usize,
    /// When the first ends were asked for.
    began_at: Option<Duration>,
    /// The ends that are waited for, once they are known.
    ends: Option<BTreeMap<TopicPartition, i64>>,
    /// How old the first ends may be.
    patience: Duration,
    live: bool,
}

#[derive(Clone, Copy)]
struct Input {
    level: usize,
    /// Where it was when it was first known.
    start: Option<i64>,
    /// What the group has committed, as far as this instance has heard.
    committed: Option<i64>,
    /// The thread of this instance that reads it.
    reader: Option<usize>,
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
    /// `inputs` with their levels; `patience` is how old "now" may be when live is said.
    pub(crate) fn new(inputs: impl IntoIterator<Item = (TopicPartition, usize)>, patience: Duration) -> Self {
        let input =
            |(partition, level)| (partition, Input { level, start: None, committed: None, reader: None });
        let inputs: BTreeMap<_, _> = inputs.into_iter().map(input).collect();
        Self {
            last_level: inputs.values().map(|input| input.level).max().unwrap_or(0),
            inputs,
            level: 0,
            began_at: None,
            ends: None,
            patience,
            live: false,
        }
    }

    /// A task of this instance's `thread` has begun to read `partition` at `position`.
    pub(crate) fn opened(&mut self, thread: usize, partition: &TopicPartition, position: i64) {
        if let Some(input) = self.inputs.get_mut(partition) {
            input.reader = Some(thread);
            input.note(position);
        }
    }

    /// `thread` does not read `partition` any more. It may be late to say so: another thread may read it.
    pub(crate) fn closed(&mut self, thread: usize, partition: &TopicPartition) {
        if let Some(input) = self.inputs.get_mut(partition)
            && input.reader == Some(thread)
        {
            input.reader = None;
        }
    }

    /// Everything of `partition` before `position` is processed and committed, says the thread that reads it.
    pub(crate) fn committed(&mut self, thread: usize, partition: &TopicPartition, position: i64) {
        if let Some(input) = self.inputs.get_mut(partition)
            && input.reader == Some(thread)
        {
            input.note(position);
        }
    }

    /// The inputs that no thread of this instance reads: what is committed of them must be asked for.
    pub(crate) fn read_elsewhere(&self) -> Vec<TopicPartition> {
        let elsewhere = self.inputs.iter().filter(|(_, input)| input.reader.is_none());
        elsewhere.map(|(partition, _)| partition.clone()).collect()
    }

    /// What the group has committed of an input that another instance reads.
    pub(crate) fn committed_elsewhere(&mut self, partition: &TopicPartition, position: i64) {
        if let Some(input) = self.inputs.get_mut(partition)
            && input.reader.is_none()
        {
            input.note(position);
        }
    }

    /// The ends that [`Step::AskEnds`] asked for.
    pub(crate) fn set_ends(&mut self, ends: BTreeMap<TopicPartition, i64>, asked_at: Duration) {
        self.began_at.get_or_insert(asked_at);
        self.ends = Some(ends);
    }

    /// Whether live was said.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    fn begin_again(&mut self) {
        self.level = 0;
        self.began_at = None;
        self.ends = None;
    }

    /// Decides what to do; `assigned` is how many inputs this instance has to read, once that is settled:
    /// before it reads them all, nothing counts.
    pub(crate) fn step(&mut self, now: Duration, assigned: Option<usize>) -> Step {
        let read_here = self.inputs.values().filter(|input| input.reader.is_some()).count();
        if self.live || assigned.is_none_or(|assigned| read_here < assigned) {
            return Step::Wait;
        }
        while self.level <= self.last_level {
            match &self.ends {
                None => {
                    let partitions = self.partitions_of(self.level);
                    if !partitions.is_empty() {
                        return Step::AskEnds(partitions);
                    }
                }
                Some(ends) if ends.iter().any(|(partition, end)| !self.is_reached(partition, *end)) => {
                    return Step::Wait;
                }
                Some(_) => {}
            }
            self.level += 1;
            self.ends = None;
        }
        if self.began_at.is_some_and(|began| now.saturating_sub(began) <= self.patience) {
            self.live = true;
            return Step::Live;
        }
        self.begin_again();
        Step::Wait
    }

    fn partitions_of(&self, level: usize) -> Vec<TopicPartition> {
        let at_level = self.inputs.iter().filter(|(_, input)| input.level == level);
        at_level.map(|(partition, _)| partition.clone()).collect()
    }

    fn is_reached(&self, partition: &TopicPartition, end: i64) -> bool {
        let committed = self.inputs.get(partition).and_then(|input| input.committed);
        committed.unwrap_or(0) >= end
    }

    /// How far the inputs of level 0 are; `None` while their ends, or where they began, are not known.
    pub(crate) fn progress(&self, known_ends: &BTreeMap<TopicPartition, i64>) -> Option<HistoryProgress> {
        let (mut done, mut total) = (0, 0);
        for (partition, input) in self.inputs.iter().filter(|(_, input)| input.level == 0) {
            let (start, committed) = (input.start?, input.committed?);
            let size = (*known_ends.get(partition)? - start).max(0);
            total += size;
            done += (committed - start).clamp(0, size);
        }
        let fraction = if total == 0 { 1.0 } else { done as f64 / total as f64 };
        Some(HistoryProgress { fraction, left: total - done })
    }
}

impl Input {
    fn note(&mut self, position: i64) {
        self.start.get_or_insert(position);
        self.committed = Some(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(topic: &str) -> TopicPartition {
        TopicPartition::new(topic, 0)
    }

    fn tracker() -> LiveTracker {
        let inputs = [(partition("in"), 0), (partition("mid"), 1)];
        LiveTracker::new(inputs, Duration::from_millis(100))
    }

    fn ends(topic: &str, end: i64) -> BTreeMap<TopicPartition, i64> {
        BTreeMap::from([(partition(topic), end)])
    }

    fn ask(topic: &str) -> Step {
        Step::AskEnds(vec![partition(topic)])
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn live_is_said_once_when_every_level_has_reached_its_end() {
        let mut tracker = tracker();
        assert_eq!(tracker.step(at(0), None), Step::Wait, "nothing is assigned yet");
        tracker.opened(0, &partition("in"), 0);
        assert_eq!(tracker.step(at(0), Some(2)), Step::Wait, "an input is missing");
        tracker.opened(0, &partition("mid"), 0);
        assert_eq!(tracker.step(at(0), Some(2)), ask("in"));
        tracker.set_ends(ends("in", 10), at(0));
        assert_eq!(tracker.step(at(1), Some(2)), Step::Wait);
        tracker.committed(0, &partition("in"), 9);
        assert_eq!(tracker.step(at(2), Some(2)), Step::Wait, "one record is missing");
        tracker.committed(0, &partition("in"), 10);
        assert_eq!(tracker.step(at(3), Some(2)), ask("mid"));
        tracker.set_ends(ends("mid", 4), at(3));
        assert_eq!(tracker.step(at(4), Some(2)), Step::Wait);
        tracker.committed(0, &partition("mid"), 4);
        assert_eq!(tracker.step(at(5), Some(2)), Step::Live);
        assert!(tracker.is_live());
        assert_eq!(tracker.step(at(6), Some(2)), Step::Wait, "said once");
    }

    #[test]
    fn stale_ends_are_asked_for_again() {
        let mut tracker = tracker();
        tracker.opened(0, &partition("in"), 0);
        tracker.opened(0, &partition("mid"), 0);
        assert_eq!(tracker.step(at(0), Some(2)), ask("in"));
        tracker.set_ends(ends("in", 10), at(0));
        tracker.committed(0, &partition("in"), 10);
        assert_eq!(tracker.step(at(90), Some(2)), ask("mid"));
        tracker.set_ends(ends("mid", 0), at(90));
        assert_eq!(tracker.step(at(101), Some(2)), Step::Wait, "the first ends are stale");
        assert_eq!(tracker.step(at(102), Some(2)), ask("in"));
        tracker.set_ends(ends("in", 25), at(102));
        assert_eq!(tracker.step(at(103), Some(2)), Step::Wait, "more has come meanwhile");
        tracker.committed(0, &partition("in"), 30);
        assert_eq!(tracker.step(at(104), Some(2)), ask("mid"));
        tracker.set_ends(ends("mid", 0), at(104));
        assert_eq!(tracker.step(at(105), Some(2)), Step::Live);
    }

    #[test]
    fn what_another_instance_reads_is_waited_for() {
        let mut tracker = tracker();
        assert_eq!(tracker.step(at(0), Some(0)), ask("in"), "this one reads nothing, which is settled");
        tracker.set_ends(ends("in", 10), at(0));
        assert_eq!(tracker.step(at(1), Some(0)), Step::Wait);
        assert_eq!(tracker.read_elsewhere(), [partition("in"), partition("mid")]);
        tracker.committed_elsewhere(&partition("in"), 9);
        assert_eq!(tracker.step(at(2), Some(0)), Step::Wait, "one record is missing");
        // The partition moves here, where it goes on.
        tracker.opened(1, &partition("in"), 9);
        assert_eq!(tracker.read_elsewhere(), [partition("mid")]);
        tracker.committed_elsewhere(&partition("in"), 10);
        assert_eq!(tracker.step(at(3), Some(1)), Step::Wait, "whoever reads it here knows better");
        tracker.committed(1, &partition("in"), 10);
        assert_eq!(tracker.step(at(4), Some(1)), ask("mid"));
        tracker.set_ends(ends("mid", 0), at(4));
        assert_eq!(
            tracker.step(at(5), Some(1)),
            Step::Live,
            "nothing is in the middle, and nobody has committed it"
        );
    }

    #[test]
    fn a_thread_that_is_late_takes_nothing_away() {
        let mut tracker = tracker();
        tracker.opened(0, &partition("in"), 0);
        tracker.opened(1, &partition("in"), 5);
        tracker.closed(0, &partition("in"));
        tracker.committed(0, &partition("in"), 3);
        assert_eq!(tracker.read_elsewhere(), [partition("mid")]);
        tracker.set_ends(ends("in", 5), at(0));
        assert_eq!(tracker.step(at(0), Some(1)), ask("mid"));
        tracker.closed(1, &partition("in"));
        assert_eq!(tracker.step(at(0), Some(1)), Step::Wait, "it has to be opened again");
    }

    #[test]
    fn topics_in_a_circle_have_no_first_level() {
        let inputs = [(partition("a"), 1), (partition("b"), 2)];
        let mut tracker = LiveTracker::new(inputs, Duration::from_millis(100));
        assert_eq!(tracker.step(at(0), Some(0)), ask("a"));
        tracker.set_ends(ends("a", 0), at(0));
        assert_eq!(tracker.step(at(0), Some(0)), ask("b"));
        tracker.set_ends(ends("b", 0), at(0));
        assert_eq!(tracker.step(at(0), Some(0)), Step::Live);
    }

    #[test]
    fn progress_is_about_what_others_write() {
        let mut tracker = tracker();
        tracker.opened(0, &partition("in"), 100);
        tracker.opened(0, &partition("mid"), 0);
        assert_eq!(tracker.progress(&BTreeMap::new()), None);
        tracker.committed(0, &partition("in"), 150);
        let known = ends("in", 300);
        assert_eq!(tracker.progress(&known), Some(HistoryProgress { fraction: 0.25, left: 150 }));
        tracker.committed(0, &partition("in"), 320);
        assert_eq!(tracker.progress(&known), Some(HistoryProgress { fraction: 1.0, left: 0 }));
        assert_eq!(tracker.progress(&ends("in", 100)), Some(HistoryProgress { fraction: 1.0, left: 0 }));
    }
}
