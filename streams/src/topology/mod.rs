//! What an application consists of: sub-topologies, their topics and their stores.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bytestring::ByteString;

use crate::config::StreamsConfig;
use crate::error::Error;
use crate::program::ProgramFactory;
use crate::state::{StoreKind, StoreSpec};

/// A topic that a sub-topology reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// A topic of that name, which must exist.
    Named(ByteString),
    /// The internal topic `<app>-<name>-repartition`, which the application makes: written by one
    /// sub-topology, read by another.
    Repartition(ByteString),
}

impl Topic {
    /// A topic that exists.
    pub fn named(name: impl Into<ByteString>) -> Self {
        Self::Named(name.into())
    }

    /// An internal topic between two sub-topologies.
    pub fn repartition(name: impl Into<ByteString>) -> Self {
        Self::Repartition(name.into())
    }

    /// The topic's full name in the application with this configuration.
    pub(crate) fn full_name(&self, config: &StreamsConfig) -> ByteString {
        match self {
            Self::Named(name) => name.clone(),
            Self::Repartition(name) => config.repartition_topic(name).into(),
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "{name}"),
            Self::Repartition(name) => write!(f, "<app>-{name}-repartition"),
        }
    }
}

/// A part of an application that shares no memory with the others: its tasks read the same partition of
/// each source. A program finds sources, stores and sinks by their index, in the order in which they were
/// added here.
#[derive(Clone)]
pub struct Subtopology {
    pub(crate) sources: Vec<Topic>,
    pub(crate) stores: Vec<StoreSpec>,
    pub(crate) sinks: Vec<Topic>,
    pub(crate) program: Arc<dyn ProgramFactory>,
    description: Vec<String>,
}

impl Subtopology {
    /// A sub-topology whose tasks run what `program` makes.
    pub fn new(program: impl ProgramFactory + 'static) -> Self {
        Self::shared(Arc::new(program))
    }

    pub(crate) fn shared(program: Arc<dyn ProgramFactory>) -> Self {
        Self { sources: vec![], stores: vec![], sinks: vec![], program, description: vec![] }
    }

    /// Adds a topic to read. There are as many tasks as the source with the most partitions has.
    #[must_use]
    pub fn source(mut self, topic: Topic) -> Self {
        self.sources.push(topic);
        self
    }

    /// Adds a store.
    #[must_use]
    pub fn store(mut self, store: StoreSpec) -> Self {
        self.stores.push(store);
        self
    }

    /// Adds a topic to write.
    #[must_use]
    pub fn sink(mut self, topic: Topic) -> Self {
        self.sinks.push(topic);
        self
    }

    /// Adds a line to the printed topology.
    #[must_use]
    pub fn describe(mut self, line: impl Into<String>) -> Self {
        self.description.push(line.into());
        self
    }
}

/// An application's sub-topologies. [`StreamsBuilder`](crate::StreamsBuilder) makes one from the DSL; a
/// front end of its own puts one together from [`Subtopology`]s. `Display` prints it.
#[derive(Clone, Default)]
pub struct Topology {
    pub(crate) subtopologies: Vec<Subtopology>,
}

impl Topology {
    /// A topology without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sub-topology; its tasks are numbered by its place.
    #[must_use]
    pub fn subtopology(mut self, subtopology: Subtopology) -> Self {
        self.subtopologies.push(subtopology);
        self
    }

    /// Checks what can be checked without a cluster.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut readers = BTreeSet::new();
        let mut stores = BTreeSet::new();
        let written: BTreeSet<_> =
            self.subtopologies.iter().flat_map(|subtopology| &subtopology.sinks).collect();
        for (at, subtopology) in self.subtopologies.iter().enumerate() {
            if subtopology.sources.is_empty() {
                return invalid(format!("sub-topology {at} reads no topic"));
            }
            for source in &subtopology.sources {
                if !readers.insert(source) {
                    return invalid(format!("{source} is read twice; read it once and use the stream twice"));
                }
                if matches!(source, Topic::Repartition(_)) && !written.contains(source) {
                    return invalid(format!("{source} is read but nothing writes it"));
                }
            }
            for store in &subtopology.stores {
                check_name(&store.name)?;
                if !stores.insert(&store.name) {
                    return invalid(format!("there are two stores named {}", store.name));
                }
                if let StoreKind::Window { retention_ms } = store.kind
                    && retention_ms <= 0
                {
                    return invalid(format!("store {} keeps windows for {retention_ms} ms", store.name));
                }
            }
        }
        for topic in &written {
            if let Topic::Repartition(name) = topic {
                check_name(name)?;
                if !readers.contains(topic) {
                    return invalid(format!("{topic} is written but nothing reads it"));
                }
            }
        }
        if self.subtopologies.is_empty() {
            return invalid("it is empty".into());
        }
        Ok(())
    }

    /// How many partitions each repartition topic needs, given those of the named topics: as many as the
    /// sub-topology that writes it has tasks; the most, where several do.
    pub(crate) fn repartition_counts(
        &self,
        named: &BTreeMap<ByteString, i32>,
    ) -> Result<BTreeMap<ByteString, i32>, Error> {
        let mut counts: BTreeMap<ByteString, i32> = BTreeMap::new();
        // Each round settles at least one more sub-topology, if the topology has no cycle.
        for _ in 0..=self.subtopologies.len() {
            for subtopology in &self.subtopologies {
                let Some(tasks) = tasks_of(subtopology, named, &counts) else { continue };
                for sink in &subtopology.sinks {
                    if let Topic::Repartition(name) = sink {
                        let count = counts.entry(name.clone()).or_default();
                        *count = tasks.max(*count);
                    }
                }
            }
        }
        match self.subtopologies.iter().all(|subtopology| tasks_of(subtopology, named, &counts).is_some()) {
            true => Ok(counts),
            false => invalid("sub-topologies wait for each other in a circle".into()).map(|()| counts),
        }
    }
}

/// How many tasks a sub-topology has; `None` while the partitions of a source are not known.
fn tasks_of(
    subtopology: &Subtopology,
    named: &BTreeMap<ByteString, i32>,
    repartition: &BTreeMap<ByteString, i32>,
) -> Option<i32> {
    let partitions = |source: &Topic| match source {
        Topic::Named(name) => named.get(name).copied(),
        Topic::Repartition(name) => repartition.get(name).copied(),
    };
    let counts: Option<Vec<_>> = subtopology.sources.iter().map(partitions).collect();
    counts?.into_iter().max()
}

fn invalid(reason: String) -> Result<(), Error> {
    Err(Error::Topology { reason })
}

fn check_name(name: &str) -> Result<(), Error> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > 100 || !name.chars().all(legal) {
        return invalid(format!("{name:?} is not 1 to 100 letters, digits, dots, underscores or dashes"));
    }
    Ok(())
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, subtopology) in self.subtopologies.iter().enumerate() {
            writeln!(f, "sub-topology {at}")?;
            for source in &subtopology.sources {
                writeln!(f, "  reads   {source}")?;
            }
            for line in &subtopology.description {
                writeln!(f, "          {line}")?;
            }
            for store in &subtopology.stores {
                match store.kind {
                    StoreKind::KeyValue => writeln!(f, "  keeps   {}", store.name)?,
                    StoreKind::Window { retention_ms } => {
                        writeln!(f, "  keeps   {} (windows, {retention_ms} ms)", store.name)?;
                    }
                }
            }
            for sink in &subtopology.sinks {
                writeln!(f, "  writes  {sink}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Inputs;
    use crate::program::{Program, TaskContext, TaskId};

    struct Idle;

    impl Program for Idle {
        fn process(&mut self, _inputs: &mut Inputs, _task: &mut TaskContext) -> Result<(), Error> {
            Ok(())
        }
    }

    fn part(sources: &[Topic], stores: &[&str], sinks: &[Topic]) -> Subtopology {
        let mut part = Subtopology::new(|_: TaskId| -> Box<dyn Program> { Box::new(Idle) });
        for topic in sources {
            part = part.source(topic.clone());
        }
        for store in stores {
            part = part.store(StoreSpec::key_value(*store));
        }
        for topic in sinks {
            part = part.sink(topic.clone());
        }
        part
    }

    #[test]
    fn what_cannot_run_is_refused() {
        let (a, r) = (Topic::named("a"), Topic::repartition("r"));
        let cases = [
            (vec![], "empty"),
            (vec![part(&[], &[], &[])], "reads no topic"),
            (vec![part(std::slice::from_ref(&a), &["s", "s"], &[])], "two stores named s"),
            (vec![part(std::slice::from_ref(&a), &["s/t"], &[])], "letters, digits"),
            (
                vec![part(std::slice::from_ref(&a), &[], &[]), part(std::slice::from_ref(&a), &[], &[])],
                "read twice",
            ),
            (vec![part(std::slice::from_ref(&r), &[], &[])], "nothing writes it"),
            (vec![part(std::slice::from_ref(&a), &[], std::slice::from_ref(&r))], "nothing reads it"),
        ];
        for (subtopologies, expected) in cases {
            let error = Topology { subtopologies }.check().expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn repartition_topics_have_as_many_partitions_as_their_writers_tasks() {
        let (a, b) = (Topic::named("a"), Topic::named("b"));
        let (r, s) = (Topic::repartition("r"), Topic::repartition("s"));
        let topology = Topology::new()
            .subtopology(part(std::slice::from_ref(&s), &[], &[]))
            .subtopology(part(std::slice::from_ref(&r), &["counts"], std::slice::from_ref(&s)))
            .subtopology(part(&[a, b], &[], std::slice::from_ref(&r)));
        topology.check().expect("valid");
        let named = BTreeMap::from([("a".into(), 2), ("b".into(), 4)]);
        let counts = topology.repartition_counts(&named).expect("no circle");
        assert_eq!(counts, BTreeMap::from([("r".into(), 4), ("s".into(), 4)]));
        assert!(
            topology.to_string().contains("sub-topology 1\n  reads   <app>-r-repartition\n  keeps   counts")
        );

        let circle =
            Topology::new().subtopology(part(std::slice::from_ref(&r), &[], std::slice::from_ref(&r)));
        assert!(circle.repartition_counts(&named).is_err());
    }
}
