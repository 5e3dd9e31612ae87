//! Produce requests that wait for the high watermark.

use std::collections::VecDeque;

use parking_lot::Mutex;
use thalweg_protocol::Offset;
use tokio::sync::oneshot;

/// Who waits for the high watermark to reach which offset.
#[derive(Debug, Default)]
pub(crate) struct PendingProduce {
    /// Guards the waiters, by the offset they wait for, lowest first.
    waiting: Mutex<VecDeque<(Offset, oneshot::Sender<()>)>>,
}

impl PendingProduce {
    /// Joins the queue. The receiver resolves once the high watermark has reached `offset`, or when the
    /// partition gives up; whoever waits looks again then.
    pub(crate) fn register(&self, offset: Offset) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        // Appends come in order, so the place is almost always the end.
        let at = waiting.iter().rposition(|&(other, _)| other <= offset).map_or(0, |before| before + 1);
        waiting.insert(at, (offset, sender));
        receiver
    }

    /// Wakes everyone who waits for `high_watermark` or less.
    pub(crate) fn release(&self, high_watermark: Offset) {
        let mut waiting = self.waiting.lock();
        while let Some(&(offset, _)) = waiting.front()
            && offset <= high_watermark
        {
            if let Some((_, sender)) = waiting.pop_front() {
                // Whoever has timed out meanwhile is not there any more.
                let _ = sender.send(());
            }
        }
    }

    /// Wakes everyone, since nothing will come any more.
    pub(crate) fn give_up(&self) {
        self.waiting.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_released_in_the_order_of_their_offsets() {
        let pending = PendingProduce::default();
        let mut late = pending.register(Offset(20));
        let mut early = pending.register(Offset(10));
        pending.release(Offset(9));
        assert!(early.try_recv().is_err());
        pending.release(Offset(10));
        assert!(early.try_recv().is_ok());
        assert!(late.try_recv().is_err());
        pending.give_up();
        assert!(matches!(late.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    }
}
