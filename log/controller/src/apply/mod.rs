//! The one place where the cluster's metadata changes: pure, deterministic, without I/O, clock or randomness.
//!
//! Every node applies the same commands in the same order and must come to the same state, also years later
//! from an old log. What a command is answered and what it does is therefore as fixed as the format it is
//! written in: another rule needs another metadata version.

mod configs;
mod features;
mod nodes;
mod partitions;
mod quotas;
mod topics;

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use thalweg_protocol::Offset;

use crate::command::{Command, Response};
use crate::state::ClusterState;
use crate::topic::{Partition, Topic};

/// Carries out the command that stands at `offset` of the log, or says why not.
///
/// # Panics
///
/// If `offset` is not the one after the last: then log and state do not belong together.
pub fn apply(state: &mut ClusterState, offset: Offset, command: &Command) -> Response {
    assert_eq!(offset.0, state.offset.0 + 1, "commands are applied in the order of the log, each once");
    let response = if command.is_validate_only() {
        carry_out(&mut state.clone(), offset, command)
    } else {
        carry_out(state, offset, command)
    };
    state.offset = offset;
    response
}

fn carry_out(state: &mut ClusterState, offset: Offset, command: &Command) -> Response {
    match command {
        Command::CreateTopics(command) => Response::CreateTopics(topics::create(state, command)),
        Command::DeleteTopics(command) => Response::DeleteTopics(topics::delete(state, command)),
        Command::CreatePartitions(command) => {
            Response::CreatePartitions(topics::add_partitions(state, command))
        }
        Command::AlterTopicConfigs(command) => Response::AlterTopicConfigs(configs::alter(state, command)),
        Command::RegisterNode(command) => Response::RegisterNode(nodes::register(state, offset, command)),
        Command::UnregisterNode(command) => Response::UnregisterNode(nodes::unregister(state, command)),
        Command::FenceNode(command) => Response::FenceNode(nodes::fence(state, command)),
        Command::ChangeIsr(command) => Response::ChangeIsr(partitions::change_isr(state, command)),
        Command::ElectLeaders(command) => Response::ElectLeaders(partitions::elect_leaders(state, command)),
        Command::AllocateProducerIds(command) => {
            Response::AllocateProducerIds(nodes::allocate_producer_ids(state, command))
        }
        Command::AlterClientQuotas(command) => Response::AlterClientQuotas(quotas::alter(state, command)),
        Command::AlterResourceConfigs(command) => {
            Response::AlterResourceConfigs(configs::alter_resources(state, command))
        }
        Command::UpdateFeatures(command) => Response::UpdateFeatures(features::update(state, command)),
    }
}

/// Gives every partition for which `change` says so its new form.
fn change_partitions(
    state: &mut ClusterState,
    change: impl Fn(&ClusterState, &Topic, &Partition) -> Option<Partition>,
) {
    let mut changed: Vec<Topic> = Vec::new();
    for topic in state.topics() {
        let mut copy: Option<Topic> = None;
        for (at, partition) in topic.partitions.iter().enumerate() {
            if let Some(next) = change(state, topic, partition) {
                let copy = copy.get_or_insert_with(|| Topic::clone(topic));
                copy.partitions[at] = Arc::new(next);
            }
        }
        changed.extend(copy);
    }
    for topic in changed {
        state.put_topic(topic);
    }
}

/// The elements that occur more than once.
fn repeated<T: Hash + Eq + Copy>(elements: impl Iterator<Item = T>) -> HashSet<T> {
    let mut seen = HashSet::new();
    elements.filter(|element| !seen.insert(*element)).collect()
}
