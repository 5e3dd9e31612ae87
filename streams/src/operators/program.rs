//! The typed DSL as a program: the operators of a sub-topology in order.

use super::slots::Slots;
use crate::error::Error;
use crate::inputs::{InputRun, Inputs};
use crate::program::{Program, TaskContext};

/// An operator of one task. It takes what lies in its slot and puts results into the slots behind it.
pub(crate) trait Operator: Send {
    /// Processes what waits in the operator's slot (a source: the run).
    fn process(&mut self, slots: &mut Slots, work: &mut Work<'_>) -> Result<(), Error>;

    /// Brings out what was held back for the commit.
    fn before_commit(&mut self, _slots: &mut Slots, _work: &mut Work<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The operator's own stream time, if it has one, to be saved.
    fn stream_time(&self) -> Option<i64> {
        None
    }

    /// Takes up the stream time of the last commit.
    fn set_stream_time(&mut self, _stream_time: i64) {}
}

/// What operators work on: the run that is being processed (none in a commit), and the task.
pub(crate) struct Work<'a> {
    pub(crate) run: Option<&'a InputRun<'a>>,
    pub(crate) task: &'a mut TaskContext,
}

/// The operators of a task, in an order in which each comes after those that feed it.
pub(crate) struct DslProgram {
    /// The operators that decode, one an input, as indexes into `operators`.
    sources: Vec<usize>,
    operators: Vec<Box<dyn Operator>>,
    slots: Slots,
}

impl DslProgram {
    pub(crate) fn new(sources: Vec<usize>, operators: Vec<Box<dyn Operator>>, slots: Slots) -> Self {
        Self { sources, operators, slots }
    }
}

impl Program for DslProgram {
    fn process(&mut self, inputs: &mut Inputs, task: &mut TaskContext) -> Result<(), Error> {
        let Some(run) = inputs.next_by_timestamp() else { return Ok(()) };
        let work = &mut Work { run: Some(&run), task };
        let source = self.sources[run.input()];
        self.operators[source].process(&mut self.slots, work)?;
        for (at, operator) in self.operators.iter_mut().enumerate() {
            if !self.sources.contains(&at) {
                operator.process(&mut self.slots, work)?;
            }
        }
        Ok(())
    }

    fn before_commit(&mut self, task: &mut TaskContext) -> Result<(), Error> {
        let work = &mut Work { run: None, task };
        for (at, operator) in self.operators.iter_mut().enumerate() {
            if !self.sources.contains(&at) {
                // What operators before this one have brought out comes first.
                operator.process(&mut self.slots, work)?;
                operator.before_commit(&mut self.slots, work)?;
            }
        }
        Ok(())
    }

    fn save(&self, checkpoint: &mut Vec<u8>) {
        for stream_time in self.operators.iter().filter_map(|operator| operator.stream_time()) {
            checkpoint.extend_from_slice(&stream_time.to_be_bytes());
        }
    }

    fn load(&mut self, checkpoint: &[u8]) -> Result<(), Error> {
        let (times, rest) = checkpoint.as_chunks::<8>();
        let timed = self.operators.iter_mut().filter(|operator| operator.stream_time().is_some());
        let timed: Vec<_> = timed.collect();
        if !rest.is_empty() || times.len() != timed.len() {
            return Err(Error::Topology {
                reason: format!(
                    "the last commit saved {} stream times but there are {} windowed operators: the \
                     topology has changed; reset the application or give it another id",
                    times.len(),
                    timed.len()
                ),
            });
        }
        for (operator, time) in timed.into_iter().zip(times) {
            operator.set_stream_time(i64::from_be_bytes(*time));
        }
        Ok(())
    }
}
