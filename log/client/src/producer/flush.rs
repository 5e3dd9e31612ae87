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
    first_error: Option<Error>,
}

#[derive(Debug, Default)]
struct Generation {
    outstanding: usize,
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

    /// Counts a batch out.
    pub(super) fn done(&mut self, generation: u64, error: Option<&Error>) {
        if let (None, Some(error)) = (&self.first_error, error) {
            self.first_error = Some(error.clone());
        }
        let at = (generation - self.first) as usize;
        self.generations[at].outstanding -= 1;
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
        self.first_error = None;
    }

    fn answer(&mut self) {
        while let Some(front) = self.generations.front_mut().filter(|front| front.outstanding == 0) {
            let Some(waiter) = front.waiter.take() else { return };
            // Nobody may be waiting any more, which is fine.
            let _ = waiter.send(self.first_error.take().map_or(Ok(()), Err));
            self.generations.pop_front();
            self.first += 1;
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
        flushes.done(later, None);
        assert!(matches!(flushed.try_recv(), Ok(Ok(()))), "the error was told once");
        let (sender, mut flushed) = oneshot::channel();
        flushes.flush(sender);
        assert!(matches!(flushed.try_recv(), Ok(Ok(()))), "nothing is outstanding");
    }
}
