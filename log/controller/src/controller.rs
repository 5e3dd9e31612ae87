//! The handle by which a node reads the cluster's metadata and proposes changes.

use std::sync::{Arc, mpsc};

use crate::command::Proposal;
use crate::driver::{Done, Driver, ProposeError};
use crate::state::ClusterState;
use crate::state_machine::{StateMachine, Subscription};

/// The handle by which a node reads the cluster's metadata and proposes changes. Copies are the same
/// controller.
#[derive(Clone)]
pub struct Controller {
    machine: Arc<StateMachine>,
    driver: Arc<dyn Driver>,
}

impl Controller {
    /// `driver` applies to `machine` what it has put in order.
    pub fn new(machine: Arc<StateMachine>, driver: impl Driver) -> Self {
        Self { machine, driver: Arc::new(driver) }
    }

    /// The metadata as it stands on this node. Takes no lock.
    pub fn state(&self) -> Arc<ClusterState> {
        self.machine.state()
    }

    /// Proposes a command and waits for the answer. Async code uses [`propose_then`](Self::propose_then).
    ///
    /// The response comes when the command is durable and applied here: [`state`](Self::state) shows its
    /// effect. A command that was not accepted is answered by a [`Rejection`](crate::Rejection) inside the
    /// response.
    pub fn propose<P: Proposal>(&self, proposal: P) -> Result<P::Response, ProposeError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.propose_then(proposal, move |result| {
            // Nobody hangs up: the receiver below waits.
            let _ = sender.send(result);
        });
        receiver.recv().unwrap_or(Err(ProposeError::UnknownOutcome))
    }

    /// Proposes a command and has `done` called with the answer, once, perhaps before this returns, perhaps
    /// on the thread that applies commands: it must not wait for another proposal.
    pub fn propose_then<P: Proposal>(
        &self,
        proposal: P,
        done: impl FnOnce(Result<P::Response, ProposeError>) + Send + 'static,
    ) {
        let done = Done::new(move |result| {
            done(result.map(|response| {
                P::response(response).expect("a driver answers a command with the response to that command")
            }));
        });
        self.driver.propose(proposal.into(), done);
    }

    /// Has `observer` called after each change; see [`StateMachine::subscribe`].
    pub fn subscribe(
        &self,
        observer: impl FnMut(&Arc<ClusterState>, &Arc<ClusterState>) + Send + 'static,
    ) -> Subscription {
        self.machine.subscribe(observer)
    }

    /// Answers what was proposed before, refuses what comes after, and returns when the log is at rest.
    pub fn close(&self) {
        self.driver.close();
    }
}
