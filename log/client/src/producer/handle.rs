//! The line from a producer's handles to its sender.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::batch::{Batch, Hold};
use super::core::Core;
use super::sender::Message;
use crate::error::{Error, Result};

/// Shared by all handles of a producer; when the last is gone, the sender ends. The line holds no more than
/// the producer's memory does.
#[derive(Clone)]
pub(super) struct Handle {
    core: Arc<Core>,
    to_sender: mpsc::UnboundedSender<Message>,
}

impl Handle {
    pub(super) fn new(core: Arc<Core>, to_sender: mpsc::UnboundedSender<Message>) -> Self {
        Self { core, to_sender }
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    /// The sender lives as long as the runtime does.
    pub(super) fn tell(&self, message: Message) -> Result<()> {
        self.to_sender.send(message).map_err(|_| Error::Closed)
    }

    pub(super) fn hand_over(&self, batch: Batch) {
        let reserved = batch.reserved;
        if self.tell(Message::Batch(Box::new(batch))).is_err() {
            self.core.memory.give_back(reserved);
        }
    }

    /// Hands over what fills in the accumulator.
    pub(super) fn hand_over_accumulated(&self) {
        let hand_over = |batch| self.hand_over(batch);
        self.core.accumulator.close_opened(Instant::now(), Hold::Nothing, &self.core.memory, hand_over);
    }

    /// Waits until everything that was handed over is written.
    pub(super) async fn flush(&self) -> Result<()> {
        self.hand_over_accumulated();
        let (done, flushed) = oneshot::channel();
        self.tell(Message::Flush(done))?;
        flushed.await.unwrap_or(Err(Error::Closed))
    }

    /// Gives up what is not in flight, and waits for what is.
    pub(super) async fn abandon(&self) -> Result<()> {
        self.hand_over_accumulated();
        let (done, abandoned) = oneshot::channel();
        self.tell(Message::Abandon(done))?;
        abandoned.await.map_err(|_| Error::Closed)
    }
}
