//! The task that commits offsets, one commit after the other, so that an older one never overtakes a newer.

use std::sync::Arc;

use thalweg_protocol::TopicPartition;
use tokio::sync::{mpsc, oneshot};

use super::group_offsets::commit_offsets;
use super::offsets::{CommittedOffset, GroupMetadata};
use crate::coordinator::Coordinator;
use crate::error::{Error, Result};

struct Commit {
    member: GroupMetadata,
    offsets: Vec<(TopicPartition, CommittedOffset)>,
    done: oneshot::Sender<Result<()>>,
}

/// The line to the task; the task ends with it.
pub(super) struct Committer {
    line: mpsc::UnboundedSender<Commit>,
}

impl Committer {
    pub(super) fn new(coordinator: Arc<Coordinator>) -> Self {
        let (line, mut commits) = mpsc::unbounded_channel::<Commit>();
        tokio::spawn(async move {
            while let Some(commit) = commits.recv().await {
                let committed = commit_offsets(&coordinator, &commit.member, &commit.offsets).await;
                // Nobody may be waiting, which is fine.
                let _ = commit.done.send(committed);
            }
        });
        Self { line }
    }

    /// Commits after all commits before; the future tells how it went, and may be dropped.
    pub(super) fn commit(
        &self,
        member: GroupMetadata,
        offsets: Vec<(TopicPartition, CommittedOffset)>,
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let (done, committed) = oneshot::channel();
        let sent = self.line.send(Commit { member, offsets, done });
        async move {
            sent.map_err(|_| Error::Closed)?;
            committed.await.unwrap_or(Err(Error::Closed))
        }
    }
}
