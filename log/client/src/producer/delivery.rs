//! What becomes of a record that was sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::Shared;
use parking_lot::Mutex;
use thalweg_protocol::{Offset, TopicPartition};
use tokio::sync::oneshot;

use super::refusals::Marked;
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

/// A record's fate: the batch that it was written with, and its place in that.
type RecordFate = Result<(BatchAcknowledged, i32)>;

/// What became of the records that went into a batch together.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// They went to the broker together.
    Shared(Result<BatchAcknowledged>),
    /// The batch was taken apart: to each its own, by its place in the batch as it was at first.
    Each(Arc<[RecordFate]>),
}

/// Who waits for a batch on its way.
#[derive(Debug)]
pub(super) enum Waiter {
    /// For the batch as it was filled.
    Whole(oneshot::Sender<Fate>),
    /// For records of a batch that was taken apart: where in that each of these was.
    Part { apart: Arc<Apart>, places: Vec<usize> },
    /// Only for records that fail, which are known by their marks.
    Marked(Marked),
}

/// A batch that was taken apart. Who waits is told when all its records have their fate.
#[derive(Debug)]
pub(super) struct Apart {
    /// Guards what is known of the records' fates so far.
    state: Mutex<Fates>,
}

#[derive(Debug)]
struct Fates {
    all: Vec<Option<RecordFate>>,
    missing: usize,
    waiting: Option<oneshot::Sender<Fate>>,
}

impl Waiter {
    /// Tells what became of the batch.
    pub(super) fn tell(self, outcome: Result<BatchAcknowledged>) {
        match self {
            // Nobody may be waiting, which is fine.
            Self::Whole(sender) => drop(sender.send(Fate::Shared(outcome))),
            Self::Part { apart, places } => {
                let fates = places.into_iter().enumerate().map(|(index, place)| {
                    (place, outcome.clone().map(|acknowledged| (acknowledged, index as i32)))
                });
                apart.settle(fates);
            }
            Self::Marked(marked) => {
                if let Err(error) = outcome {
                    marked.fail(&error);
                }
            }
        }
    }

    /// The same for parts of the batch: each list says which of its `count` records go into a part.
    pub(super) fn split(self, count: usize, parts: &[Vec<usize>]) -> Vec<Self> {
        let (apart, places) = match self {
            Self::Whole(sender) => {
                let fates = Fates { all: vec![None; count], missing: count, waiting: Some(sender) };
                (Arc::new(Apart { state: Mutex::new(fates) }), (0..count).collect())
            }
            Self::Part { apart, places } => (apart, places),
            Self::Marked(marked) => {
                return parts.iter().map(|picked| Self::Marked(marked.pick(picked))).collect();
            }
        };
        let part = |picked: &Vec<usize>| Self::Part {
            apart: Arc::clone(&apart),
            places: picked.iter().filter_map(|at| places.get(*at).copied()).collect(),
        };
        parts.iter().map(part).collect()
    }
}

impl Apart {
    fn settle(&self, fates: impl Iterator<Item = (usize, RecordFate)>) {
        let mut state = self.state.lock();
        let Fates { all, missing, waiting } = &mut *state;
        for (place, fate) in fates {
            if let Some(empty @ None) = all.get_mut(place) {
                *empty = Some(fate);
                *missing -= 1;
            }
        }
        if *missing == 0
            && let Some(waiting) = waiting.take()
        {
            // Nobody may be waiting, which is fine.
            let _ = waiting.send(Fate::Each(std::mem::take(all).into_iter().flatten().collect()));
        }
    }
}

/// Resolves when the record has been written, or will not be. Dropping it changes nothing for the record.
///
/// All records of a batch share one notification.
#[derive(Clone, Debug)]
pub struct Delivery {
    batch: Shared<oneshot::Receiver<Fate>>,
    index: i32,
    timestamp: i64,
}

impl Delivery {
    pub(super) fn new(batch: Shared<oneshot::Receiver<Fate>>, index: i32, timestamp: i64) -> Self {
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
        let fate = ready!(self.batch.poll_unpin(cx)).unwrap_or(Fate::Shared(Err(Error::Closed)));
        let (batch, index) = match fate {
            Fate::Shared(batch) => (batch?, self.index),
            Fate::Each(all) => {
                let own = usize::try_from(self.index).ok().and_then(|index| all.get(index));
                own.cloned().unwrap_or(Err(Error::Closed))?
            }
        };
        Poll::Ready(Ok(Acknowledged {
            offset: batch.base_offset.map(|base| base.plus(i64::from(index))),
            timestamp: batch.append_time.unwrap_or(self.timestamp),
            partition: batch.partition,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::refusals::Refusals;
    use super::*;

    fn acknowledged(base: i64) -> BatchAcknowledged {
        let partition = TopicPartition::new("t", 0);
        BatchAcknowledged { partition, base_offset: Some(Offset(base)), append_time: None }
    }

    #[test]
    fn each_record_of_a_batch_taken_apart_learns_its_own_fate() {
        let (sender, receiver) = oneshot::channel();
        let shared = receiver.shared();
        let deliveries: Vec<Delivery> = (0..6).map(|index| Delivery::new(shared.clone(), index, 0)).collect();
        // Split in halves; record 4, the second of the second half, is then left out.
        let mut halves = Waiter::Whole(sender).split(6, &[vec![0, 1, 2], vec![3, 4, 5]]);
        let (second, first) = (halves.pop().expect("two"), halves.pop().expect("two"));
        let mut parts = second.split(3, &[vec![1], vec![0, 2]]);
        let (rest, bad) = (parts.pop().expect("two"), parts.pop().expect("two"));
        bad.tell(Err(Error::Aborted));
        rest.tell(Ok(acknowledged(70)));
        assert!(deliveries[3].clone().now_or_never().is_none(), "the first half is on its way");
        first.tell(Ok(acknowledged(50)));
        let offsets: Vec<Option<i64>> = deliveries
            .into_iter()
            .map(|delivery| delivery.wait().ok().and_then(|acknowledged| Some(acknowledged.offset?.0)))
            .collect();
        assert_eq!(offsets, [Some(50), Some(51), Some(52), Some(70), None, Some(71)]);
    }

    #[test]
    fn of_marked_records_those_that_fail_are_told() {
        let refusals = Refusals::default();
        let mut marked = Marked::new(refusals.clone());
        (10..16).for_each(|mark| marked.push(mark));
        let mut halves = Waiter::Marked(marked).split(6, &[vec![0, 1, 2], vec![3, 4, 5]]);
        let (second, first) = (halves.pop().expect("two"), halves.pop().expect("two"));
        let mut parts = second.split(3, &[vec![0, 2], vec![1]]);
        let (bad, rest) = (parts.pop().expect("two"), parts.pop().expect("two"));
        first.tell(Ok(acknowledged(50)));
        rest.tell(Ok(acknowledged(70)));
        bad.tell(Err(Error::Aborted));
        assert_eq!(refusals.take().iter().map(|refused| refused.mark).collect::<Vec<_>>(), [14]);
        assert!(refusals.take().is_empty(), "each is told once");
    }
}
