//! The assignor of the classic group protocol that shares out tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_client::{Assignment, Assignor, Error, GroupMember};
use thalweg_protocol::TopicPartition;

use super::sticky::{Candidate, assign};
use crate::program::TaskId;
use crate::runtime::Plan;
use crate::state::StateDirectory;

/// Shares out tasks: all partitions of a task go to one member.
///
/// A member tells the leader its instance's id and whose state it has:
///
/// ```text
/// version u8 (1) · process id, 32 bytes · count u16 × { sub-topology u32 · partition i32 }
/// ```
///
/// and the leader tells each member what it has shared out:
///
/// ```text
/// version u8 (1) · fingerprint of the plan u64
/// ```
pub(crate) struct TaskAssignor {
    plan: Arc<Plan>,
    directory: Arc<StateDirectory>,
    /// The last assignment was made by another plan.
    is_foreign: AtomicBool,
}

const VERSION: u8 = 1;
const PROCESS_ID: usize = 32;

impl TaskAssignor {
    pub(crate) fn new(plan: Arc<Plan>, directory: Arc<StateDirectory>) -> Self {
        Self { plan, directory, is_foreign: AtomicBool::new(false) }
    }

    /// Whether the last assignment shares out another plan than this instance's: it dates from before the
    /// topology or the topics changed, or the leader has not been restarted since.
    pub(crate) fn is_foreign(&self) -> bool {
        self.is_foreign.load(Ordering::Acquire)
    }

    fn told(&self) -> Bytes {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.plan.fingerprint().to_be_bytes());
        out.into()
    }

    fn candidate(&self, member: &GroupMember) -> Candidate {
        let told = member.user_data.as_deref().and_then(read_user_data);
        let (process, stored) = told.unwrap_or_default();
        let owned = member.owned.iter().filter_map(|partition| self.plan.task_of(partition)).collect();
        Candidate { member: rank(member), process, owned, stored }
    }
}

/// Orders members so that a restart of a static one changes nothing.
fn rank(member: &GroupMember) -> String {
    match &member.instance_id {
        Some(instance) => format!("{instance} {}", member.id),
        None => format!("~ {}", member.id),
    }
}

impl Assignor for TaskAssignor {
    fn name(&self) -> &str {
        "thalweg-tasks"
    }

    fn user_data(&self, _topics: &[ByteString]) -> Option<Bytes> {
        Some(write_user_data(self.directory.process_id(), &self.directory.tasks()))
    }

    fn assign(
        &self,
        _topics: &BTreeMap<ByteString, i32>,
        members: &[GroupMember],
    ) -> Result<BTreeMap<ByteString, Assignment>, Error> {
        let candidates: Vec<Candidate> = members.iter().map(|member| self.candidate(member)).collect();
        let assigned = assign(&self.plan.tasks(), &candidates);
        let partitions = |member: &GroupMember| -> Vec<TopicPartition> {
            let tasks = assigned.get(&rank(member)).into_iter().flatten();
            tasks.flat_map(|&task| self.plan.sources(task)).flatten().collect()
        };
        let assignment = |member: &GroupMember| {
            (member.id.clone(), Assignment { partitions: partitions(member), user_data: Some(self.told()) })
        };
        Ok(members.iter().map(assignment).collect())
    }

    fn on_assignment(&self, assignment: &Assignment, _generation: i32) {
        let is_own = assignment.user_data.as_ref() == Some(&self.told());
        self.is_foreign.store(!is_own, Ordering::Release);
    }
}

fn write_user_data(process: &str, tasks: &[TaskId]) -> Bytes {
    let mut out = vec![VERSION];
    let mut id = [b'0'; PROCESS_ID];
    for (to, from) in id.iter_mut().zip(process.bytes()) {
        *to = from;
    }
    out.extend_from_slice(&id);
    let count = tasks.len().min(u16::MAX as usize);
    out.extend_from_slice(&(count as u16).to_be_bytes());
    for task in &tasks[..count] {
        out.extend_from_slice(&task.subtopology.to_be_bytes());
        out.extend_from_slice(&task.partition.to_be_bytes());
    }
    out.into()
}

fn read_user_data(bytes: &[u8]) -> Option<(String, BTreeSet<TaskId>)> {
    let (&version, rest) = bytes.split_first()?;
    let (process, rest) = rest.split_first_chunk::<PROCESS_ID>()?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let (tasks, left) = rest.as_chunks::<8>();
    if version != VERSION || !left.is_empty() || tasks.len() != u16::from_be_bytes(*count) as usize {
        return None;
    }
    let task = |bytes: &[u8; 8]| {
        let [a, b, c, d, partition @ ..] = *bytes;
        TaskId { subtopology: u32::from_be_bytes([a, b, c, d]), partition: i32::from_be_bytes(partition) }
    };
    Some((String::from_utf8_lossy(process).into_owned(), tasks.iter().map(task).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_is_read_as_it_is_written() {
        let process = "0123456789abcdef0123456789abcdef";
        let tasks = [TaskId { subtopology: 1, partition: 2 }, TaskId { subtopology: 3, partition: 40_000 }];
        let bytes = write_user_data(process, &tasks);
        assert_eq!(read_user_data(&bytes), Some((process.to_owned(), tasks.into_iter().collect())));
        for cut in 0..bytes.len() {
            assert_eq!(read_user_data(&bytes[..cut]), None, "cut at {cut}");
        }
    }
}
