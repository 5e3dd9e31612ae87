//! Runs a topology in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::{TopicPartition, partition_for_key};

use super::memory_log::{MemoryLog, NextEnd, WrittenRecord};
use crate::config::{Guarantee, StateKind, StreamsConfig};
use crate::error::Error;
use crate::program::{Counters, TaskId};
use crate::runtime::{LastCommit, Opening, Plan, Task, TransactionLog, commit, compare, replays};
use crate::state::{MemoryBackend, StoreView, TaskState};
use crate::topology::Topology;

/// Runs a topology in memory, on topics with any number of partitions: the same tasks, stores and commit as
/// in earnest, without a broker, a thread or a clock. It can crash.
///
/// Nothing runs by itself: [`run`](Self::run) processes what is there and commits.
///
/// ```
/// use thalweg_streams::{BigEndian, Grouped, StreamsBuilder, Text, testing::TestDriver};
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream::<String, String>("words", Text, Text)
///     .group_by(Grouped::new("by-word", Text, Text), |record| record.value.clone())
///     .count("counts")
///     .to_stream()
///     .to("out", Text, BigEndian);
/// let mut driver = TestDriver::new(builder.build()?, &[("words", 2), ("out", 1)])?;
/// for word in ["a", "b", "a"] {
///     driver.produce("words", None, Some(word.as_bytes()), 0)?;
/// }
/// driver.run()?;
/// assert_eq!(driver.records("out").len(), 2);
/// # Ok::<(), thalweg_streams::Error>(())
/// ```
pub struct TestDriver {
    plan: Plan,
    log: MemoryLog,
    tasks: BTreeMap<TaskId, Task>,
    backends: BTreeMap<TaskId, Arc<MemoryBackend>>,
    dropped: Vec<TaskId>,
    now_ms: i64,
    turn: i32,
}

/// What a crash leaves of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateAfterCrash {
    /// All that was written to the stores.
    Kept,
    /// Nothing: the disk is gone, or the tasks move to another machine.
    Lost,
}

/// How many records of one input are enqueued at once.
const BATCH: i64 = 100;

impl TestDriver {
    /// A driver over these topics, given with their partition counts. Internal topics are made.
    ///
    /// # Errors
    /// When the topology cannot run, or a topic it names is missing.
    pub fn new(topology: Topology, topics: &[(&str, i32)]) -> Result<Self, Error> {
        let mut config = StreamsConfig::new("test", "unused");
        config.state = StateKind::Memory;
        Self::with_config(topology, topics, config)
    }

    /// The same with a configuration of one's own; what is about threads, memory and time does not matter.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_config(
        topology: Topology,
        topics: &[(&str, i32)],
        config: StreamsConfig,
    ) -> Result<Self, Error> {
        let mut log = MemoryLog::default();
        for &(topic, partitions) in topics {
            log.create(&ByteString::from(topic), partitions);
        }
        let counts = log.partition_counts();
        for topic in Plan::named_topics(&topology) {
            if !counts.contains_key(&topic) {
                return Err(Error::UnknownTopic { topic: topic.to_string(), similar: None });
            }
        }
        let plan = Plan::new(Arc::new(config), topology, &counts)?;
        for topic in plan.internal_topics() {
            log.create(&topic.name, topic.partitions);
        }
        let mut driver = Self {
            plan,
            log,
            tasks: BTreeMap::new(),
            backends: BTreeMap::new(),
            dropped: Vec::new(),
            now_ms: 0,
            turn: 0,
        };
        driver.open()?;
        Ok(driver)
    }

    /// Appends a record to a topic, to the partition that its key chooses; without a key, to each in turn.
    ///
    /// # Errors
    /// When there is no such topic.
    pub fn produce(
        &mut self,
        topic: &str,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp: i64,
    ) -> Result<(), Error> {
        let partitions = self.log.partition_counts().get(topic).copied().unwrap_or(1);
        let partition = match key {
            Some(key) => partition_for_key(key, partitions),
            None => {
                self.turn += 1;
                self.turn % partitions
            }
        };
        self.produce_to(topic, partition, key, value, timestamp)
    }

    /// Appends a record to a partition.
    ///
    /// # Errors
    /// When there is no such topic or partition.
    pub fn produce_to(
        &mut self,
        topic: &str,
        partition: i32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp: i64,
    ) -> Result<(), Error> {
        let record = WrittenRecord {
            partition,
            offset: -1,
            timestamp,
            key: key.map(<[u8]>::to_vec),
            value: value.map(<[u8]>::to_vec),
            headers: Vec::new(),
        };
        self.log.produce(&TopicPartition::new(topic, partition), record)
    }

    /// Processes and commits until nothing is left, through all sub-topologies.
    ///
    /// # Errors
    /// What a program or the commit failed with. After a failpoint or an abort, [`crash`](Self::crash) opens
    /// the tasks again.
    pub fn run(&mut self) -> Result<(), Error> {
        while self.round()? > 0 {}
        Ok(())
    }

    /// Processes at most a hundred records of each input, and commits; returns how many were processed.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn round(&mut self) -> Result<u64, Error> {
        let mut processed = 0;
        for task in self.tasks.values_mut() {
            let sources: Vec<_> = task.sources().map(|(input, source)| (input, source.clone())).collect();
            for (input, source) in sources {
                let from = task.inputs().position(input);
                let batch = self.log.read(&source, from, from + BATCH);
                let caught_up = batch.next_offset() >= self.log.last_stable_offset(&source);
                if batch.next_offset() > from && task.inputs().queued(input) == 0 {
                    task.enqueue(input, batch);
                }
                task.set_caught_up(input, caught_up);
            }
            loop {
                let taken = task.process()?;
                processed += taken;
                if taken == 0 {
                    break;
                }
            }
            task.punctuate(self.now_ms)?;
        }
        let mut working: Vec<_> = self.tasks.values_mut().filter(|task| task.has_work()).collect();
        if !working.is_empty() {
            commit(&mut working, &mut self.log, &self.plan.config().test_hooks)?;
        }
        Ok(processed)
    }

    /// Moves the wall clock on; the next [`run`](Self::run) calls the punctuators that are due.
    pub fn advance_wall_clock(&mut self, by_ms: i64) {
        self.now_ms += by_ms;
    }

    /// Chooses how the next commit's transaction ends.
    pub fn next_end(&mut self, end: NextEnd) {
        self.log.next_end = end;
    }

    /// Drops everything that is in memory only, as `kill -9` would, and starts again.
    ///
    /// # Errors
    /// When the tasks cannot be opened.
    pub fn crash(&mut self, state: StateAfterCrash) -> Result<(), Error> {
        self.tasks.clear();
        if state == StateAfterCrash::Lost {
            self.backends.clear();
        }
        self.log.fence()?;
        self.open()
    }

    fn open(&mut self) -> Result<(), Error> {
        for id in self.plan.tasks() {
            let sources = self.plan.sources(id);
            let existing: Vec<_> = sources.iter().flatten().cloned().collect();
            let last = LastCommit::read(&self.log.committed(&existing)?)?;
            let mut state = self.open_state(id)?;
            if compare(state.checkpoint(), &last.checkpoint) == Opening::Ahead {
                self.dropped.push(id);
                self.backends.remove(&id);
                state = self.open_state(id)?;
            }
            if compare(state.checkpoint(), &last.checkpoint) == Opening::Behind {
                let exactly_once = self.plan.config().guarantee == Guarantee::ExactlyOnce;
                let changelogs = self.plan.changelogs(id);
                for replay in replays(&changelogs, state.checkpoint(), &last.checkpoint, exactly_once) {
                    let to = replay.to.unwrap_or(i64::MAX);
                    let batch = self.log.read(&replay.partition, replay.from, to);
                    state.restore(replay.store, batch.iter(), batch.next_offset())?;
                }
                state.restored(last.checkpoint.clone())?;
            }
            let mut committed = last.positions.iter();
            let position = |source: &Option<TopicPartition>| match source {
                Some(_) => committed.next().copied().flatten().unwrap_or(0),
                None => 0,
            };
            let positions = sources.iter().map(position).collect();
            self.tasks.insert(id, self.plan.open(id, positions, state, &last)?);
        }
        Ok(())
    }

    fn open_state(&mut self, id: TaskId) -> Result<TaskState, Error> {
        let backend = Arc::clone(self.backends.entry(id).or_default());
        TaskState::open(id, backend, self.plan.stores(id))
    }

    /// The committed records of a topic, partition by partition.
    pub fn records(&self, topic: &str) -> Vec<WrittenRecord> {
        self.log.records(topic)
    }

    /// A store as the last commit left it.
    pub fn store(&self, name: &str) -> StoreView {
        let views = self.tasks.values().flat_map(|task| task.state().views());
        StoreView::new(views.filter(|(store, _)| *store == name).map(|(_, part)| part).collect())
    }

    /// What the programs have counted, over all tasks, since they were opened.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for counters in self.tasks.values().map(Task::counters) {
            sum.late += counters.late;
            sum.without_key += counters.without_key;
        }
        sum
    }

    /// The tasks whose state had to be dropped because it was ahead of the log: never, unless the commit is
    /// broken.
    pub fn dropped_states(&self) -> &[TaskId] {
        &self.dropped
    }
}
