//! A task that runs: its queues, its program and its state.

use std::panic::{AssertUnwindSafe, catch_unwind};

use thalweg_protocol::TopicPartition;

use super::log::CommittedInput;
use super::opening::LastCommit;
use crate::error::Error;
use crate::inputs::Inputs;
use crate::output::{Output, OutputTopic};
use crate::program::{CHECKPOINT_LIMIT, Counters, Program, TaskContext, TaskId};
use crate::records::{InputBatch, RecordEntry};
use crate::state::{Checkpoint, TaskState};

/// A task, on the thread that runs it.
pub(crate) struct Task {
    id: TaskId,
    /// The partitions it reads, in the order of the sub-topology's sources; `None` for one that has no such
    /// partition.
    sources: Vec<Option<TopicPartition>>,
    inputs: Inputs,
    program: Box<dyn Program>,
    context: TaskContext,
    state: TaskState,
    /// Per store, its changelog and the records for it that wait to be sent.
    changelogs: Vec<OutputTopic>,
    /// What the next commit will write; becomes the state's when it has.
    next: Checkpoint,
    /// Where each source stood at the last commit; `None` for one that has never been committed.
    committed: Vec<Option<i64>>,
    /// Where each input stood before the program went on.
    positions: Vec<i64>,
    punctuated: bool,
    /// The program left what there is, to wait for another input.
    waiting: bool,
}

/// What a task is put together from.
pub(crate) struct TaskParts {
    pub(crate) id: TaskId,
    /// The partitions it reads, in the order of the sub-topology's sources; `None` for one that has no such
    /// partition.
    pub(crate) sources: Vec<Option<TopicPartition>>,
    /// Where each of them is read from.
    pub(crate) positions: Vec<i64>,
    pub(crate) program: Box<dyn Program>,
    pub(crate) state: TaskState,
    pub(crate) output: Output,
    /// Per store, its changelog.
    pub(crate) changelogs: Vec<OutputTopic>,
    /// How much each store may keep in memory.
    pub(crate) cache_bytes: usize,
}

impl Task {
    /// A task whose state is restored to `last`, with each input at its position.
    pub(crate) fn open(parts: TaskParts, last: &LastCommit) -> Result<Self, Error> {
        let TaskParts { id, sources, positions, mut program, state, output, changelogs, cache_bytes } = parts;
        if last.checkpoint.sequence > 0 {
            program.load(&last.checkpoint.program)?;
        }
        let mut inputs = Inputs::new(&positions);
        for (input, _) in sources.iter().enumerate().filter(|(_, source)| source.is_none()) {
            inputs.set_caught_up(input, true);
        }
        let stores = state.stores(cache_bytes);
        let next = last.checkpoint.clone();
        Ok(Self {
            id,
            sources,
            inputs,
            program,
            context: TaskContext { task: id, stores, output, counters: Counters::default() },
            state,
            changelogs,
            next,
            committed: last.positions.clone(),
            positions,
            punctuated: false,
            waiting: false,
        })
    }

    /// The partitions it reads, with their inputs' indexes.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (usize, &TopicPartition)> {
        self.sources.iter().enumerate().filter_map(|(input, source)| Some((input, source.as_ref()?)))
    }

    pub(crate) fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Says whether everything that is stable in the log of `input` has been fetched.
    pub(crate) fn set_caught_up(&mut self, input: usize, caught_up: bool) {
        self.waiting &= self.inputs.is_caught_up(input) == caught_up;
        self.inputs.set_caught_up(input, caught_up);
    }

    /// An index allocation to decode the next batch into.
    pub(crate) fn spare_entries(&mut self) -> Vec<RecordEntry> {
        self.inputs.spare_entries()
    }

    pub(crate) fn state(&self) -> &TaskState {
        &self.state
    }

    /// What was found to be damaged in its state: by its program, or by a reader from outside.
    pub(crate) fn damage(&self) -> Option<Error> {
        self.state.damage()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.context.counters
    }

    pub(crate) fn output(&self) -> &Output {
        &self.context.output
    }

    pub(crate) fn enqueue(&mut self, input: usize, batch: InputBatch) {
        self.waiting = false;
        self.inputs.enqueue(input, batch);
    }

    /// Lets the program take records; returns how many it took.
    pub(crate) fn process(&mut self) -> Result<u64, Error> {
        let before = self.inputs.taken();
        self.positions.clear();
        self.positions.extend((0..self.inputs.len()).map(|input| self.inputs.position(input)));
        let process = || self.program.process(&mut self.inputs, &mut self.context);
        // After a panic nothing is done with the task but to close it.
        match catch_unwind(AssertUnwindSafe(process)) {
            Ok(processed) => processed.map_err(|error| self.locate(error))?,
            Err(panic) => return Err(self.locate(Error::panicked(&*panic))),
        }
        let taken = self.inputs.taken() - before;
        self.waiting = taken == 0;
        Ok(taken)
    }

    /// Says at which records the program failed, unless the error says it already.
    fn locate(&self, error: Error) -> Error {
        if !matches!(error, Error::Serde(_) | Error::Program(_) | Error::Panicked { .. }) {
            return error;
        }
        let moved = self.sources().find(|(input, _)| self.inputs.position(*input) != self.positions[*input]);
        match moved {
            None => error,
            Some((input, partition)) => Error::Processing {
                task: self.id,
                partition: partition.clone(),
                from: self.positions[input],
                to: self.inputs.position(input),
                source: Box::new(error),
            },
        }
    }

    pub(crate) fn next_punctuation(&self) -> Option<i64> {
        self.program.next_punctuation()
    }

    pub(crate) fn punctuate(&mut self, now_ms: i64) -> Result<(), Error> {
        if self.program.next_punctuation().is_some_and(|at| at <= now_ms) {
            self.punctuated = true;
            self.program.punctuate(now_ms, &mut self.context)?;
        }
        Ok(())
    }

    /// Whether there are records that the program has not declined.
    pub(crate) fn can_process(&self) -> bool {
        self.inputs.has_records() && !self.waiting
    }

    /// Whether there is anything to commit. Markers and aborted records count, so that the group is not seen
    /// to lag behind them; and so does where a source begins, so that it does not begin anew after a crash.
    pub(crate) fn has_work(&self) -> bool {
        let positions = self.sources().map(|(input, _)| Some(self.inputs.position(input)));
        self.punctuated || !positions.eq(self.committed.iter().copied())
    }

    /// About how much memory the uncommitted state takes.
    pub(crate) fn uncommitted_bytes(&self) -> usize {
        self.context.stores.iter().map(|store| store.uncommitted_bytes()).sum()
    }

    /// The buffers of results and dead letters.
    pub(crate) fn output_topics(&mut self) -> impl Iterator<Item = &mut OutputTopic> {
        self.context.output.topics_mut()
    }

    /// Brings out what the program held back.
    pub(crate) fn before_commit(&mut self) -> Result<(), Error> {
        self.program.before_commit(&mut self.context)
    }

    /// The changelogs of the stores that changed, with the last value of every changed key.
    pub(crate) fn changelog_records(&mut self) -> impl Iterator<Item = &mut OutputTopic> {
        let partition = self.id.partition as usize;
        for (store, changelog) in self.context.stores.iter().zip(&mut self.changelogs) {
            let buffer = &mut changelog.partitions[partition];
            buffer.clear();
            for (key, timestamp, value) in store.changed() {
                buffer.push(timestamp, Some(key), value, []);
            }
        }
        self.changelogs.iter_mut().filter(move |changelog| !changelog.partitions[partition].is_empty())
    }

    /// The names of the stores that changed, and the partition that each changelog is written to.
    pub(crate) fn changed_stores(&self) -> Vec<(String, TopicPartition)> {
        let stores = self.context.stores.iter().zip(&self.changelogs);
        stores
            .filter(|(store, _)| store.changed_len() > 0)
            .map(|(store, changelog)| {
                let partition = TopicPartition::new(changelog.topic.clone(), self.id.partition);
                (store.spec().name.clone(), partition)
            })
            .collect()
    }

    /// Notes how far a changelog is written.
    pub(crate) fn set_changelog_end(&mut self, store: &str, end: i64) {
        self.next.set_changelog(store, end);
    }

    /// The offsets of this commit, with its checkpoint as metadata.
    pub(crate) fn offsets(&mut self) -> Result<Vec<CommittedInput>, Error> {
        self.next.sequence = self.state.checkpoint().sequence + 1;
        self.next.program.clear();
        self.program.save(&mut self.next.program);
        if self.next.program.len() > CHECKPOINT_LIMIT {
            return Err(Error::Topology {
                reason: format!(
                    "the program of task {} saves {} bytes; {CHECKPOINT_LIMIT} are the limit, because they \
                     travel with the committed offsets",
                    self.id,
                    self.next.program.len()
                ),
            });
        }
        let metadata = self.next.to_metadata();
        let input = |(input, partition): (usize, &TopicPartition)| CommittedInput {
            partition: partition.clone(),
            offset: self.inputs.position(input),
            metadata: metadata.clone(),
        };
        Ok(self.sources().map(input).collect())
    }

    /// The number of the commit that is under way.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next.sequence
    }

    /// Writes changes, positions and checkpoint to the store.
    pub(crate) fn write_state(&mut self) -> Result<(), Error> {
        self.next.sequence = self.state.checkpoint().sequence + 1;
        let position = |(input, partition): (usize, &TopicPartition)| {
            (partition.topic.to_string(), self.inputs.position(input))
        };
        self.next.inputs = self.sources().map(position).collect();
        self.state.commit(&mut self.context.stores, self.next.clone())?;
        self.committed = self.sources().map(|(input, _)| Some(self.inputs.position(input))).collect();
        self.punctuated = false;
        Ok(())
    }
}
