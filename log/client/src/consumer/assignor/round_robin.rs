use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;

use super::{Assignment, Assignor, GroupMember, give, ranked};
use crate::error::Error;

/// Deals out all partitions of all topics in turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl Assignor for RoundRobin {
    fn name(&self) -> &str {
        "roundrobin"
    }

    fn assign(
        &self,
        topics: &BTreeMap<ByteString, i32>,
        members: &[GroupMember],
    ) -> Result<BTreeMap<ByteString, Assignment>, Error> {
        let members = ranked(members);
        let mut assignments = BTreeMap::new();
        let mut turn = 0;
        for (topic, &partitions) in topics {
            for partition in 0..partitions {
                let in_turn = (turn..turn + members.len()).map(|at| at % members.len());
                let Some(chosen) = in_turn.into_iter().find(|&at| members[at].topics.contains(topic)) else {
                    break;
                };
                give(&mut assignments, members[chosen], TopicPartition::new(topic.clone(), partition));
                turn = chosen + 1;
            }
        }
        Ok(assignments)
    }
}
