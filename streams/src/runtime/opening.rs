//! What has to happen before a task can run: its state and the log are compared.

use thalweg_protocol::TopicPartition;

use super::log::CommittedInput;
use crate::error::Error;
use crate::state::Checkpoint;

/// Where the last commit left a task, as the log knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastCommit {
    /// Per input, the offset of the next record; `None` for one that has never been committed.
    pub(crate) positions: Vec<Option<i64>>,
    /// The checkpoint from the offsets' metadata.
    pub(crate) checkpoint: Checkpoint,
}

impl LastCommit {
    /// Reads it from what is committed for the task's inputs.
    pub(crate) fn read(committed: &[Option<CommittedInput>]) -> Result<Self, Error> {
        let mut last = Self::default();
        for input in committed {
            last.positions.push(input.as_ref().map(|input| input.offset));
            let Some(input) = input else { continue };
            let checkpoint = Checkpoint::from_metadata(&input.metadata)
                .map_err(|reason| Error::Metadata { partition: input.partition.clone(), reason })?;
            // All inputs of a task are committed together; one that was added later lags behind.
            if checkpoint.sequence > last.checkpoint.sequence {
                last.checkpoint = checkpoint;
            }
        }
        Ok(last)
    }
}

/// What to do with the state that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It is what the last commit left.
    Current,
    /// It is an earlier commit's: a crash came before the last write, or lost it, or the task comes from
    /// elsewhere. The changelogs are replayed from where they are in it.
    Behind,
    /// It claims a commit that the log knows nothing of. No crash does that: the offsets were reset, or the
    /// directory belongs to another application. It must be dropped, and restored from the changelogs.
    Ahead,
}

/// Compares the state's checkpoint with the log's.
pub(crate) fn compare(state: &Checkpoint, log: &Checkpoint) -> Opening {
    match state.sequence.cmp(&log.sequence) {
        std::cmp::Ordering::Equal => Opening::Current,
        std::cmp::Ordering::Less => Opening::Behind,
        std::cmp::Ordering::Greater => Opening::Ahead,
    }
}

/// A stretch of a changelog to be replayed into a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replay {
    /// The index of the store.
    pub(crate) store: usize,
    /// The changelog.
    pub(crate) partition: TopicPartition,
    /// The first offset to read.
    pub(crate) from: i64,
    /// The offset to stop before; `None`: the end of the log, where it stands.
    pub(crate) to: Option<i64>,
}

/// The stretches between `state` and `log`, given the stores' names and changelogs. Under exactly-once the
/// log's checkpoint says where to stop: what follows belongs to no committed transaction. Without
/// transactions everything counts.
pub(crate) fn replays(
    stores: &[(String, TopicPartition)],
    state: &Checkpoint,
    log: &Checkpoint,
    exactly_once: bool,
) -> Vec<Replay> {
    let replay = |(store, (name, partition)): (usize, &(String, TopicPartition))| {
        let from = state.changelog(name);
        let to = exactly_once.then(|| log.changelog(name));
        (to.is_none_or(|to| from < to)).then(|| Replay { store, partition: partition.clone(), from, to })
    };
    stores.iter().enumerate().filter_map(replay).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(sequence: u64, counts: i64) -> Checkpoint {
        Checkpoint { sequence, changelogs: vec![("counts".into(), counts)], ..Checkpoint::default() }
    }

    fn input(topic: &str, offset: i64, checkpoint: &Checkpoint) -> Option<CommittedInput> {
        let metadata = checkpoint.to_metadata();
        Some(CommittedInput { partition: TopicPartition::new(topic, 0), offset, metadata })
    }

    #[test]
    fn the_last_commit_is_the_newest_checkpoint_among_the_inputs() {
        let read =
            LastCommit::read(&[input("a", 10, &checkpoint(3, 70)), None, input("c", 5, &checkpoint(2, 60))]);
        let expected = LastCommit { positions: vec![Some(10), None, Some(5)], checkpoint: checkpoint(3, 70) };
        assert_eq!(read.expect("readable"), expected);
        let foreign =
            CommittedInput { partition: TopicPartition::new("a", 0), offset: 1, metadata: "by hand".into() };
        assert!(matches!(LastCommit::read(&[Some(foreign)]), Err(Error::Metadata { .. })));
    }

    #[test]
    fn state_behind_is_replayed_and_never_dropped() {
        let stores = [("counts".to_owned(), TopicPartition::new("app-counts-changelog", 0))];
        let (old, new) = (checkpoint(3, 70), checkpoint(5, 90));
        assert_eq!(compare(&old, &new), Opening::Behind);
        assert_eq!(compare(&new, &new), Opening::Current);
        assert_eq!(compare(&new, &old), Opening::Ahead);
        let tail = Replay { store: 0, partition: stores[0].1.clone(), from: 70, to: Some(90) };
        let all = Replay { to: None, ..tail.clone() };
        assert_eq!(replays(&stores, &old, &new, true), [tail]);
        assert_eq!(replays(&stores, &old, &new, false), [all]);
        assert_eq!(replays(&stores, &new, &new, true), []);
    }
}
