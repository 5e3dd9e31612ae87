//! A driver that does as it is told, in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_protocol::{NodeId, Offset, Uuid};

use crate::command::{Command, Response};
use crate::controller::Controller;
use crate::driver::{Done, Driver, ProposeError};
use crate::state::ClusterState;
use crate::state_machine::{Entry, StateMachine};

/// What a [`ScriptedDriver`] does with a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Applies and answers it.
    Apply,
    /// Says that another node leads.
    NotLeader(Option<NodeId>),
    /// Loses it.
    Lose,
    /// Applies it, and loses the answer.
    ApplyAndLoseAnswer,
    /// Applies and answers it when it is [told to](ScriptedDriver::release).
    Late,
}

/// A driver that does as it is told, and applies what it is told nothing about. It keeps the metadata in memory, beyond the
/// life of its controllers. Copies are the same driver.
#[derive(Clone)]
pub struct ScriptedDriver(Arc<Shared>);

struct Shared {
    machine: Arc<StateMachine>,
    /// Guards what is to come, and is held while a command is applied: they are applied one by one.
    script: Mutex<VecDeque<Act>>,
    /// Guards what waits, in the order in which it came.
    late: Mutex<Vec<(Command, Done)>>,
}

impl ScriptedDriver {
    /// One with the empty metadata of `cluster` and no script.
    pub fn new(cluster: Uuid) -> Self {
        let machine = Arc::new(StateMachine::new(ClusterState::new(cluster)));
        Self(Arc::new(Shared { machine, script: Mutex::default(), late: Mutex::default() }))
    }

    /// A controller on this driver.
    pub fn controller(&self) -> Controller {
        Controller::new(Arc::clone(&self.0.machine), self.clone())
    }

    /// The next proposals are treated so, each by one of `acts`.
    pub fn then(&self, acts: impl IntoIterator<Item = Act>) {
        locked(&self.0.script).extend(acts);
    }

    /// How many of the acts are still to come.
    pub fn acts_left(&self) -> usize {
        locked(&self.0.script).len()
    }

    /// How many proposals wait to be released.
    pub fn waiting(&self) -> usize {
        locked(&self.0.late).len()
    }

    /// Applies and answers what was late, in the order in which it came.
    pub fn release(&self) {
        let late = std::mem::take(&mut *locked(&self.0.late));
        for (command, done) in late {
            let response = self.apply(&locked(&self.0.script), command);
            done.answer(Ok(response));
        }
    }

    /// The guard says that no other command is applied meanwhile.
    fn apply(&self, _script: &MutexGuard<'_, VecDeque<Act>>, command: Command) -> Response {
        let machine = &self.0.machine;
        let offset = Some(Offset(machine.state().offset().0 + 1));
        let mut responses = machine.apply(&[Entry { offset, command }]);
        responses.pop().expect("a response for each entry")
    }
}

impl Driver for ScriptedDriver {
    fn propose(&self, command: Command, done: Done) {
        let mut script = locked(&self.0.script);
        let answer = match script.pop_front().unwrap_or(Act::Apply) {
            Act::Apply => Ok(self.apply(&script, command)),
            Act::NotLeader(leader) => Err(ProposeError::NotLeader { leader }),
            Act::Lose => Err(ProposeError::UnknownOutcome),
            Act::ApplyAndLoseAnswer => {
                self.apply(&script, command);
                Err(ProposeError::UnknownOutcome)
            }
            Act::Late => return locked(&self.0.late).push((command, done)),
        };
        // Whoever is answered may propose something else.
        drop(script);
        match answer {
            Err(ProposeError::UnknownOutcome) => drop(done),
            answer => done.answer(answer),
        }
    }

    /// What waits is lost.
    fn close(&self) {
        locked(&self.0.late).clear();
    }
}

/// A test that has failed with the lock held has said so already.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
