//! Who waits for which batches.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// Batches fall into generations, which flushes separate: a flush is done when no batch of its generation or
/// an earlier one is outstanding.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// The number of the first generation in `generations`.
    first: u64,
    /// Those that flushes wait for, and then the one that new batches fall into.
    generations: VecDeque<Generation>,
}

#[derive(Debug, Default)]
struct Generation {
    outstanding: usize,
    /// The first of its batches', or of those before if nobody has been told.
    error: Option<Error>,
    waiter: Option<oneshot::Sender<Result<()>>>,
}

impl Flushes {
    /// Counts a batch; returns its generation.
    pub(super) fn add(&mut self) -> u64 {
        if self.generations.is_empty() {
            self.generations.push_back(Generation::default());
        }
        let at = self.generations.len() - 1;
        self.generations[at].outstanding += 1;
        self.first + at as u64
    }

    /// Counts another part of a batch of this generation.
    pub(super) fn add_part(&mut self, generation: u64) {
        self.generations[(generation - self.first) as usize].outstanding += 1;
    }

    /// A record of this generation has failed, though not its batch.
    pub(super) fn note(&mut self, generation: u64, error: &Error) {
        let generation = &mut self.generations[(generation - self.first) as usize];
        generation.error.get_or_insert_with(|| error.clone());
    }

    /// Counts a batch out.
    pub(super) fn done(&mut self, generation: u64, error: Option<&Error>) {
        let at = (generation - self.first) as usize;
        let generation = &mut self.generations[at];
        generation.outstanding -= 1;
        if let (None, Some(error)) = (&generation.error, error) {
            generation.error = Some(error.clone());
        }
        self.answer();
    }

    /// Tells `waiter` when all batches counted so far are done, and the first error since the flush before.
    pub(super) fn flush(&mut self, waiter: oneshot::Sender<Result<()>>) {
        if self.generations.is_empty() {
            self.generations.push_back(Generation::default());
        }
        if let Some(last) = self.generations.back_mut() {
            last.waiter = Some(waiter);
        }
        self.generations.push_back(Generation::default());
        self.answer();
    }

    /// What failed so far is known to whoever wants to know it.
    pub(super) fn forget_error(&mut self) {
        self.generations.iter_mut().for_each(|generation| generation.error = None);
    }

    fn answer(&mut self) {
        while let Some(front) = self.generations.front_mut().filter(|front| front.outstanding == 0) {
            let Some(waiter) = front.waiter.take() else { return };
            let untold = waiter.send(front.error.take().map_or(Ok(()), Err));
            self.generations.pop_front();
            self.first += 1;
            // Nobody waits any more: the next one is told.
            if let (Err(Err(error)), Some(next)) = (untold, self.generations.front_mut()) {
                next.error = Some(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_what_came_before_it_only() {
        let mut flushes = Flushes::default();
        let (first, second) = (flushes.add(), flushes.add());
        let (sender, mut flushed) = oneshot::channel();
        flushes.flush(sender);
        let later = flushes.add();
        flushes.done(second, Some(&Error::Closed));
        assert!(flushed.try_recv().is_err(), "the first batch is outstanding");
        flushes.done(first, None);
        assert!(matches!(flushed.try_recv(), Ok(Err(Error::Closed))));
        let (sender, mut flushed) = oneshot::channel();
        flushes.flush(sender);
        assert!(flushed.try_recv().is_err());
        let latest = flushes.add();
        flushes.done(latest, Some(&Error::Closed));
        flushes.done(later, None);
        assert!(
            matches!(flushed.try_recv(), Ok(Ok(()))),
            "one error was told, the other is of a record sent later"
        );
        let (sender, flushed) = oneshot::channel();
        drop(flushed);
        flushes.flush(sender);
        let (sender, mut flushed) = oneshot::channel();
        flushes.flush(sender);
        assert!(matches!(flushed.try_recv(), Ok(Err(Error::Closed))), "it has not been told yet");
        let (sender, mut flushed) = oneshot::channel();
        flushes.flush(sender);
        assert!(matches!(flushed.try_recv(), Ok(Ok(()))), "nothing is outstanding");
    }
}
