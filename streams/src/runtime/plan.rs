//! A topology on the partitions of its topics: which tasks there are, and what each works with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;

use super::opening::LastCommit;
use super::task::{Task, TaskParts};
use super::topic_watch::TopicUse;
use crate::config::StreamsConfig;
use crate::error::Error;
use crate::output::{DEAD_LETTER_BATCH_BYTES, Output, OutputTopic};
use crate::program::TaskId;
use crate::state::{StoreSpec, TaskState};
use crate::topology::{Subtopology, Topic, Topology};

/// A checked topology whose topics' partitions are known.
pub(crate) struct Plan {
    config: Arc<StreamsConfig>,
    topology: Topology,
    /// Partition counts by full name, of all topics but changelogs.
    partitions: BTreeMap<ByteString, i32>,
}

/// A topic that the application makes for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InternalTopic {
    pub(crate) name: ByteString,
    pub(crate) partitions: i32,
    pub(crate) configs: BTreeMap<String, String>,
    /// Another number of partitions than this one would be wrong.
    pub(crate) exact: bool,
}

impl Plan {
    /// The topics that must exist: their partitions are asked for before the plan can be made.
    pub(crate) fn named_topics(topology: &Topology) -> BTreeSet<ByteString> {
        let topics = |subtopology: &Subtopology| [subtopology.sources.clone(), subtopology.sinks.clone()];
        let named = |topic| match topic {
            Topic::Named(name) => Some(name),
            Topic::Repartition(_) => None,
        };
        topology.subtopologies.iter().flat_map(topics).flatten().filter_map(named).collect()
    }

    /// Lays the topology over topics with these partition counts.
    pub(crate) fn new(
        config: Arc<StreamsConfig>,
        topology: Topology,
        named: &BTreeMap<ByteString, i32>,
    ) -> Result<Self, Error> {
        config.check()?;
        topology.check()?;
        let mut partitions = named.clone();
        for (name, count) in topology.repartition_counts(named)? {
            partitions.insert(config.repartition_topic(&name).into(), count);
        }
        let dead_letters = topology.subtopologies.iter().flat_map(|subtopology| &subtopology.sources);
        let dead_letters = dead_letters.filter_map(|topic| partitions.get(&topic.full_name(&config)));
        let dead_letters = dead_letters.copied().max().unwrap_or(1);
        partitions.insert(config.dead_letter_topic().into(), dead_letters);
        Ok(Self { config, topology, partitions })
    }

    pub(crate) fn config(&self) -> &Arc<StreamsConfig> {
        &self.config
    }

    fn subtopology(&self, task: TaskId) -> &Subtopology {
        &self.topology.subtopologies[task.subtopology as usize]
    }

    fn count(&self, topic: &Topic) -> i32 {
        self.partitions.get(&topic.full_name(&self.config)).copied().unwrap_or(0)
    }

    fn task_count(&self, subtopology: &Subtopology) -> i32 {
        subtopology.sources.iter().map(|topic| self.count(topic)).max().unwrap_or(0)
    }

    /// All tasks, in order.
    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        let tasks = |(at, subtopology): (usize, &Subtopology)| {
            let subtopology_at = at as u32;
            (0..self.task_count(subtopology))
                .map(move |partition| TaskId { subtopology: subtopology_at, partition })
        };
        self.topology.subtopologies.iter().enumerate().flat_map(tasks).collect()
    }

    /// The topics to subscribe to.
    pub(crate) fn source_topics(&self) -> BTreeSet<ByteString> {
        let sources = self.topology.subtopologies.iter().flat_map(|subtopology| &subtopology.sources);
        sources.map(|topic| topic.full_name(&self.config)).collect()
    }

    /// Whether only the application writes this topic, for another of its sub-topologies.
    pub(crate) fn is_repartition(&self, topic: &ByteString) -> bool {
        let mut sources = self.topology.subtopologies.iter().flat_map(|subtopology| &subtopology.sources);
        sources
            .any(|source| matches!(source, Topic::Repartition(_)) && source.full_name(&self.config) == *topic)
    }

    /// All partitions that tasks read, each with how far it is from the topics that only others write: those
    /// are at 0, a topic that a sub-topology writes is one above the sources of that.
    pub(crate) fn inputs(&self) -> Vec<(TopicPartition, usize)> {
        let levels = self.levels();
        let partitions = self.tasks().into_iter().flat_map(|task| self.sources(task)).flatten();
        let level = |partition: &TopicPartition| levels.get(&partition.topic).copied().unwrap_or(0);
        partitions.map(|partition| (partition.clone(), level(&partition))).collect()
    }

    /// A number that is another one when the tasks are others, or read other partitions: FNV-1a over their names.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for task in self.tasks() {
            for source in self.sources(task).into_iter().flatten() {
                for byte in format!("{task} {source}\n").bytes() {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
            }
        }
        hash
    }

    fn levels(&self) -> BTreeMap<ByteString, usize> {
        let names = |topics: &[Topic]| -> Vec<ByteString> {
            topics.iter().map(|topic| topic.full_name(&self.config)).collect()
        };
        let mut levels: BTreeMap<ByteString, usize> =
            self.source_topics().into_iter().map(|topic| (topic, 0)).collect();
        // Each round settles at least one more sub-topology, unless named topics form a circle: then there is
        // no right answer, and any will do.
        for _ in &self.topology.subtopologies {
            for subtopology in &self.topology.subtopologies {
                let sources = names(&subtopology.sources);
                let level =
                    sources.iter().filter_map(|topic| levels.get(topic)).max().map_or(0, |max| max + 1);
                for sink in names(&subtopology.sinks) {
                    levels.entry(sink).and_modify(|known| *known = level.max(*known));
                }
            }
        }
        levels
    }

    /// The partitions that a task reads, in the order of its sub-topology's sources; `None` for a source
    /// that has fewer partitions than there are tasks.
    pub(crate) fn sources(&self, task: TaskId) -> Vec<Option<TopicPartition>> {
        let source = |topic: &Topic| {
            let exists = self.count(topic) > task.partition;
            exists.then(|| TopicPartition::new(topic.full_name(&self.config), task.partition))
        };
        self.subtopology(task).sources.iter().map(source).collect()
    }

    /// The task that reads a partition.
    pub(crate) fn task_of(&self, partition: &TopicPartition) -> Option<TaskId> {
        let reads = |subtopology: &Subtopology| {
            subtopology.sources.iter().any(|topic| topic.full_name(&self.config) == partition.topic)
        };
        let subtopology = self.topology.subtopologies.iter().position(reads)?;
        Some(TaskId { subtopology: subtopology as u32, partition: partition.partition })
    }

    pub(crate) fn stores(&self, task: TaskId) -> &[StoreSpec] {
        &self.subtopology(task).stores
    }

    /// The name and the changelog of each store of a task.
    pub(crate) fn changelogs(&self, task: TaskId) -> Vec<(String, TopicPartition)> {
        let changelog = |store: &StoreSpec| {
            let topic = self.config.changelog_topic(&store.name);
            (store.name.clone(), TopicPartition::new(topic, task.partition))
        };
        self.subtopology(task).stores.iter().map(changelog).collect()
    }

    /// All topics of the application, each with what it is used for.
    pub(crate) fn topics(&self) -> Vec<(ByteString, TopicUse)> {
        let mut topics = BTreeMap::from([(self.config.dead_letter_topic().into(), TopicUse::Writes)]);
        for subtopology in &self.topology.subtopologies {
            let sinks = subtopology.sinks.iter().map(|sink| sink.full_name(&self.config));
            topics.extend(sinks.map(|sink| (sink, TopicUse::Writes)));
        }
        // What is written and read, too, must stay as it is.
        for subtopology in &self.topology.subtopologies {
            let changelogs = subtopology.stores.iter().map(|store| self.config.changelog_topic(&store.name));
            topics.extend(changelogs.map(|changelog| (changelog.into(), TopicUse::Keeps)));
            let sources = subtopology.sources.iter().map(|source| source.full_name(&self.config));
            topics.extend(sources.map(|source| (source, TopicUse::Keeps)));
        }
        topics.into_iter().collect()
    }

    /// The topics that the application makes for itself.
    pub(crate) fn internal_topics(&self) -> Vec<InternalTopic> {
        let mut topics = Vec::new();
        for subtopology in &self.topology.subtopologies {
            for store in &subtopology.stores {
                topics.push(InternalTopic {
                    name: self.config.changelog_topic(&store.name).into(),
                    partitions: self.task_count(subtopology),
                    // Windows too are only compacted: retention would go by their records' own time, and
                    // history that is replayed is old from the start.
                    // The segment that is written to is not compacted: Kafka Streams' have 50 MiB, too.
                    configs: pairs(&[
                        ("cleanup.policy", "compact"),
                        ("retention.ms", "-1"),
                        ("segment.bytes", "52428800"),
                    ]),
                    exact: true,
                });
            }
            for source in &subtopology.sources {
                if let Topic::Repartition(_) = source {
                    topics.push(InternalTopic {
                        name: source.full_name(&self.config),
                        partitions: self.count(source),
                        configs: pairs(&[("cleanup.policy", "delete"), ("retention.ms", "-1")]),
                        exact: true,
                    });
                }
            }
        }
        let name: ByteString = self.config.dead_letter_topic().into();
        topics.push(InternalTopic {
            partitions: self.partitions.get(&name).copied().unwrap_or(1),
            name,
            // A record that fits into its topic fits here with its reason.
            configs: pairs(&[
                ("retention.ms", "-1"),
                ("max.message.bytes", &DEAD_LETTER_BATCH_BYTES.to_string()),
            ]),
            exact: false,
        });
        topics
    }

    /// Corrects the partition count of a topic that exists already and need not have another.
    pub(crate) fn set_partitions(&mut self, topic: &ByteString, partitions: i32) {
        self.partitions.insert(topic.clone(), partitions);
    }

    /// How much each store of each task may keep at hand: its share of half of the memory for state, as if all
    /// tasks ran here. An arena's offsets end far above a gigabyte.
    fn cache_bytes(&self) -> usize {
        let stores = |subtopology: &Subtopology| {
            subtopology.stores.len() * self.task_count(subtopology).max(0) as usize
        };
        let stores: usize = self.topology.subtopologies.iter().map(stores).sum();
        (self.config.state_memory_bytes / 2 / stores.max(1)).min(1 << 30)
    }

    fn output(&self, task: TaskId) -> Output {
        let topic = |name: ByteString| {
            let partitions = self.partitions.get(&name).copied().unwrap_or(1);
            OutputTopic::new(name, partitions)
        };
        let sinks = self.subtopology(task).sinks.iter();
        Output::new(
            sinks.map(|sink| topic(sink.full_name(&self.config))).collect(),
            topic(self.config.dead_letter_topic().into()),
            self.config.undecodable,
            self.sources(task),
            task.partition,
        )
    }

    /// Makes the task, with its state restored to `last` and its inputs at `positions`.
    pub(crate) fn open(
        &self,
        id: TaskId,
        positions: Vec<i64>,
        state: TaskState,
        last: &LastCommit,
    ) -> Result<Task, Error> {
        let count = self.task_count(self.subtopology(id));
        let changelogs = self.changelogs(id).into_iter();
        Task::open(
            TaskParts {
                id,
                sources: self.sources(id),
                positions,
                program: self.subtopology(id).program.create(id),
                state,
                output: self.output(id),
                changelogs: changelogs.map(|(_, log)| OutputTopic::new(log.topic, count)).collect(),
                cache_bytes: self.cache_bytes(),
            },
            last,
        )
    }
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}
