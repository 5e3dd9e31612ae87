//! The task that commits offsets, one commit after the other, so that an older one never overtakes a newer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use thalweg_protocol::{ErrorCode, TopicPartition};
use tokio::sync::{Notify, oneshot};

use super::group_offsets::commit_offsets;
use super::join::Identity;
use super::offsets::{CommittedOffset, GroupMetadata};
use crate::coordinator::Coordinator;
use crate::error::{Error, Result};

/// The line to the task; the task ends with it, when everything in it has been committed.
pub(super) struct Committer {
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    /// Guards the commits that wait.
    state: Mutex<LineState>,
    /// Tells the task that there is something to do.
    has_changed: Notify,
}

#[derive(Default)]
struct LineState {
    waiting: VecDeque<Commit>,
    is_closed: bool,
}

struct Commit {
    member: GroupMetadata,
    /// Where the member's epoch stands at any time, where it may rise while the member keeps its partitions (KIP-848).
    identity: Option<Arc<Identity>>,
    offsets: Vec<(TopicPartition, CommittedOffset)>,
    done: oneshot::Sender<Result<()>>,
}

impl Committer {
    pub(super) fn new(coordinator: Arc<Coordinator>) -> Self {
        let line = Arc::new(Line::default());
        tokio::spawn(run(Arc::clone(&line), coordinator));
        Self { line }
    }

    /// Commits after all commits before; the future tells how it went, and may be dropped. Of commits in a row whose
    /// futures were dropped only the newest offsets wait, so that the line holds little more than the callers do.
    pub(super) fn commit(
        &self,
        member: GroupMetadata,
        identity: Option<Arc<Identity>>,
        offsets: Vec<(TopicPartition, CommittedOffset)>,
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let (done, committed) = oneshot::channel();
        self.line.state.lock().push(Commit { member, identity, offsets, done });
        self.line.has_changed.notify_one();
        async move { committed.await.unwrap_or(Err(Error::Closed)) }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.line.state.lock().is_closed = true;
        self.line.has_changed.notify_one();
    }
}

async fn run(line: Arc<Line>, coordinator: Arc<Coordinator>) {
    loop {
        let (next, is_closed) = {
            let mut state = line.state.lock();
            (state.waiting.pop_front(), state.is_closed)
        };
        match next {
            Some(commit) => {
                let committed = commit_as_member(&coordinator, &commit).await;
                // Nobody may be waiting, which is fine.
                let _ = commit.done.send(committed);
            }
            None if is_closed => return,
            None => line.has_changed.notified().await,
        }
    }
}

/// Commits; as long as only the member's epoch is out of date, again under the newer one.
async fn commit_as_member(coordinator: &Coordinator, commit: &Commit) -> Result<()> {
    let mut member = commit.member.clone();
    let mut retry = coordinator.cluster().retry("committing offsets");
    loop {
        let error = match commit_offsets(coordinator, &member, &commit.offsets).await {
            Err(error @ Error::NotInGroup { reason: ErrorCode::StaleMemberEpoch, .. }) => error,
            committed => return committed,
        };
        let newest = commit.identity.as_ref().map(|identity| identity.metadata());
        match newest.filter(|newest| newest.member_id == member.member_id && newest.generation >= 0) {
            // The next heartbeat's answer may be on its way.
            Some(newest) => member = newest,
            None => return Err(error),
        }
        retry.pause(error).await?;
    }
}

impl LineState {
    fn push(&mut self, commit: Commit) {
        if let Some(newer) = self.waiting.pop_back() {
            let older = self.waiting.back_mut().filter(|older| {
                older.member == newer.member && older.done.is_closed() && newer.done.is_closed()
            });
            match older {
                Some(older) => older.take_over(newer),
                None => self.waiting.push_back(newer),
            }
        }
        self.waiting.push_back(commit);
    }
}

impl Commit {
    fn take_over(&mut self, newer: Self) {
        let mut offsets: BTreeMap<_, _> = self.offsets.drain(..).collect();
        offsets.extend(newer.offsets);
        self.offsets = offsets.into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::Offset;

    use super::*;

    fn waiting(state: &LineState) -> Vec<Vec<(i32, i64)>> {
        let offsets = |commit: &Commit| {
            let offset = |(partition, offset): &(TopicPartition, CommittedOffset)| {
                (partition.partition, offset.offset.0)
            };
            commit.offsets.iter().map(offset).collect()
        };
        state.waiting.iter().map(offsets).collect()
    }

    #[test]
    fn commits_that_nobody_waits_for_become_one_and_the_others_keep_their_place() {
        let mut state = LineState::default();
        let push = |state: &mut LineState, generation: i32, partition: i32, offset: i64| {
            let (done, committed) = oneshot::channel();
            let member = GroupMetadata { generation, ..GroupMetadata::without_membership("group") };
            let offsets =
                vec![(TopicPartition::new("topic", partition), CommittedOffset::new(Offset(offset)))];
            state.push(Commit { member, identity: None, offsets, done });
            committed
        };
        for offset in 0..1_000 {
            drop(push(&mut state, 1, (offset % 2) as i32, offset));
        }
        assert_eq!(waiting(&state), [vec![(0, 998), (1, 997)], vec![(1, 999)]]);
        let awaited = push(&mut state, 1, 0, 5);
        for offset in 0..10 {
            drop(push(&mut state, 1, 0, offset));
        }
        assert_eq!(waiting(&state), [vec![(0, 998), (1, 999)], vec![(0, 5)], vec![(0, 8)], vec![(0, 9)]]);
        drop(push(&mut state, 2, 0, 20));
        drop(push(&mut state, 2, 0, 21));
        let last = [vec![(0, 5)], vec![(0, 9)], vec![(0, 20)], vec![(0, 21)]];
        assert_eq!(waiting(&state)[1..], last, "another generation's stay apart");
        drop(awaited);
    }
}
