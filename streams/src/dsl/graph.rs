//! The graph that the DSL's calls build, and how it becomes a topology.

use std::sync::Arc;

use super::Data;
use crate::error::Error;
use crate::operators::{DslProgram, Operator, Slots};
use crate::program::{Program, ProgramFactory, TaskId};
use crate::state::StoreSpec;
use crate::topology::{Subtopology, Topic, Topology};

/// The index of a node; a node's parents have lower ones.
pub(super) type NodeId = usize;

/// Nodes in the order in which they were made.
#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
}

struct Node {
    description: String,
    parents: Vec<NodeId>,
    source: Option<Topic>,
    sink: Option<Topic>,
    store: Option<StoreSpec>,
    add_slot: fn(&mut Slots),
    make: Box<Make>,
}

/// Makes a node's operator for a task.
type Make = dyn Fn(&Wiring) -> Box<dyn Operator> + Send + Sync;

/// Where an operator of a task finds what it works with.
pub(super) struct Wiring {
    /// Its own slot.
    pub(super) input: usize,
    /// The slots behind it.
    pub(super) outputs: Vec<usize>,
    /// The index of its store among the task's, if it has one.
    pub(super) store: usize,
    /// The index of its sink among the task's, if it has one.
    pub(super) sink: usize,
}

/// What a node touches beside records.
#[derive(Default)]
pub(super) struct Touches {
    pub(super) source: Option<Topic>,
    pub(super) sink: Option<Topic>,
    pub(super) store: Option<StoreSpec>,
}

impl Graph {
    /// Adds a node whose slot holds records of `K` and `V`.
    pub(super) fn add<K: Data, V: Data>(
        &mut self,
        description: impl Into<String>,
        parents: &[NodeId],
        touches: Touches,
        make: impl Fn(&Wiring) -> Box<dyn Operator> + Send + Sync + 'static,
    ) -> NodeId {
        self.nodes.push(Node {
            description: description.into(),
            parents: parents.to_vec(),
            source: touches.source,
            sink: touches.sink,
            store: touches.store,
            add_slot: Slots::push::<K, V>,
            make: Box::new(make),
        });
        self.nodes.len() - 1
    }

    /// Splits the graph into what is connected without a topic between.
    pub(super) fn into_topology(self) -> Result<Topology, Error> {
        let mut part_of: Vec<usize> = (0..self.nodes.len()).collect();
        for (id, node) in self.nodes.iter().enumerate() {
            for &parent in &node.parents {
                let (from, to) = (part_of[id].max(part_of[parent]), part_of[id].min(part_of[parent]));
                part_of.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
            }
        }
        let nodes = Arc::new(self.nodes);
        let mut topology = Topology::new();
        for part in 0..nodes.len() {
            let members: Vec<NodeId> = (0..nodes.len()).filter(|&id| part_of[id] == part).collect();
            if !members.is_empty() {
                topology = topology.subtopology(describe(&nodes, members));
            }
        }
        topology.check()?;
        Ok(topology)
    }
}

fn describe(nodes: &Arc<Vec<Node>>, members: Vec<NodeId>) -> Subtopology {
    let mut subtopology = Subtopology::new(DslFactory { nodes: Arc::clone(nodes), members: members.clone() });
    for node in members.iter().map(|&id| &nodes[id]) {
        if let Some(topic) = &node.source {
            subtopology = subtopology.source(topic.clone());
        } else if node.sink.is_none() {
            subtopology = subtopology.describe(&node.description);
        }
        if let Some(store) = &node.store {
            subtopology = subtopology.store(store.clone());
        }
        if let Some(topic) = &node.sink
            && !subtopology.sinks.contains(topic)
        {
            subtopology = subtopology.sink(topic.clone());
        }
    }
    subtopology
}

/// Makes the operators of a task of one sub-topology.
struct DslFactory {
    nodes: Arc<Vec<Node>>,
    members: Vec<NodeId>,
}

impl ProgramFactory for DslFactory {
    fn create(&self, _task: TaskId) -> Box<dyn Program> {
        let (mut slots, mut operators, mut sources) = (Slots::default(), Vec::new(), Vec::new());
        let mut stores = 0;
        let mut sinks: Vec<&Topic> = Vec::new();
        for (at, &id) in self.members.iter().enumerate() {
            let node = &self.nodes[id];
            (node.add_slot)(&mut slots);
            let behind = |(_, child): &(usize, &NodeId)| self.nodes[**child].parents.contains(&id);
            let outputs = self.members.iter().enumerate().filter(behind).map(|(at, _)| at).collect();
            let sink = node.sink.as_ref().map_or(0, |topic| {
                sinks.iter().position(|known| *known == topic).unwrap_or_else(|| {
                    sinks.push(topic);
                    sinks.len() - 1
                })
            });
            operators.push((node.make)(&Wiring { input: at, outputs, store: stores, sink }));
            stores += usize::from(node.store.is_some());
            if node.source.is_some() {
                sources.push(at);
            }
        }
        Box::new(DslProgram::new(sources, operators, slots))
    }
}
