//! What becomes of a record that was sent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::Shared;
use thalweg_protocol::{Offset, TopicPartition};
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// Where a record went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The partition.
    pub partition: TopicPartition,
    /// The record's offset; `None` with acks = none, and when the broker only knew that it has the record
    /// already.
    pub offset: Option<Offset>,
    /// The record's timestamp in the log, in ms since 1970: its own, or the broker's on a topic with
    /// log-append time.
    pub timestamp: i64,
}

/// What the broker said about a batch, the same for all its records.
#[derive(Clone, Debug)]
pub(super) struct BatchAcknowledged {
    pub(super) partition: TopicPartition,
    pub(super) base_offset: Option<Offset>,
    pub(super) append_time: Option<i64>,
}

pub(super) type BatchResult = Result<BatchAcknowledged>;

/// Resolves when the record has been written, or will not be. Dropping it changes nothing for the record.
///
/// All records of a batch share one notification.
#[derive(Clone, Debug)]
pub struct Delivery {
    batch: Shared<oneshot::Receiver<BatchResult>>,
    index: i32,
    timestamp: i64,
}

impl Delivery {
    pub(super) fn new(batch: Shared<oneshot::Receiver<BatchResult>>, index: i32, timestamp: i64) -> Self {
        Self { batch, index, timestamp }
    }

    /// Blocks the thread until the record has been written, or will not be.
    ///
    /// Not for use within a runtime's task: it would hold up the thread that has to make progress.
    ///
    /// # Errors
    /// Why the record was not written.
    pub fn wait(self) -> Result<Acknowledged> {
        futures::executor::block_on(self)
    }
}

impl Future for Delivery {
    type Output = Result<Acknowledged>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(self.batch.poll_unpin(cx));
        let batch = outcome.unwrap_or(Err(Error::Closed))?;
        Poll::Ready(Ok(Acknowledged {
            offset: batch.base_offset.map(|base| base.plus(i64::from(self.index))),
            timestamp: batch.append_time.unwrap_or(self.timestamp),
            partition: batch.partition,
        }))
    }
}
