use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;

use super::{Assignment, Assignor, GroupMember, give, ranked};
use crate::error::Error;

/// Each member gets one range of the partitions of each topic, so that topics partitioned alike are read
/// together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range;

impl Assignor for Range {
    fn name(&self) -> &str {
        "range"
    }

    fn assign(
        &self,
        topics: &BTreeMap<ByteString, i32>,
        members: &[GroupMember],
    ) -> Result<BTreeMap<ByteString, Assignment>, Error> {
        let members = ranked(members);
        let mut assignments = BTreeMap::new();
        for (topic, &partitions) in topics {
            let readers: Vec<_> = members.iter().filter(|member| member.topics.contains(topic)).collect();
            let mut next = 0;
            for (at, member) in readers.iter().enumerate() {
                let left = readers.len() - at;
                let share = ((partitions - next) as usize).div_ceil(left);
                for _ in 0..share {
                    give(&mut assignments, member, TopicPartition::new(topic.clone(), next));
                    next += 1;
                }
            }
        }
        Ok(assignments)
    }
}
