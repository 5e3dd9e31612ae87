//! The seam between those who propose commands and what puts them in order.

use std::path::PathBuf;

use thalweg_protocol::NodeId;

use crate::command::{Command, Response};

/// Puts proposed commands in one order, makes them durable and applies them to a
/// [`StateMachine`](crate::StateMachine).
///
/// [`LocalDriver`](crate::LocalDriver) does so for one node; consensus does it for several.
pub trait Driver: Send + Sync + 'static {
    /// Hands over a command. Commands of one thread that this driver accepts keep their order.
    ///
    /// The answer may come before this returns, later, on any thread; it comes once. A response is given only
    /// when the command is durable and applied: the state machine that this driver feeds shows it, and its
    /// observers have been called.
    fn propose(&self, command: Command, done: Done);

    /// Answers what was proposed before, refuses what comes after, and returns when the log is at rest.
    fn close(&self);
}

/// Where the answer to a proposal goes. If it is dropped without an answer, the outcome is unknown, and that
/// is what is answered.
pub struct Done(Option<Answer>);

type Answer = Box<dyn FnOnce(Result<Response, ProposeError>) + Send>;

impl Done {
    /// `answer` is called once.
    pub fn new(answer: impl FnOnce(Result<Response, ProposeError>) + Send + 'static) -> Self {
        Self(Some(Box::new(answer)))
    }

    /// Gives the answer.
    pub fn answer(mut self, result: Result<Response, ProposeError>) {
        if let Some(answer) = self.0.take() {
            answer(result);
        }
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            answer(Err(ProposeError::UnknownOutcome));
        }
    }
}

/// Why a proposal has no response. Unless it says otherwise, the command has not taken effect and never will.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Another node puts commands in order.
    #[error("this node does not lead the cluster's metadata{}", hint(leader))]
    NotLeader {
        /// The one that does, if this is known.
        leader: Option<NodeId>,
    },
    /// The command may have taken effect, or may still do so.
    #[error("it is not known whether the change took effect")]
    UnknownOutcome,
    /// Too many proposals wait.
    #[error("{waiting} changes of the metadata are waiting already")]
    Overloaded {
        /// How many wait.
        waiting: usize,
    },
    /// The command does not fit the log.
    #[error("the change has {bytes} bytes, and may have {limit} at most")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// The disk is full. Proposals are accepted again when it no longer is.
    #[error("no space is left for the metadata log in {}", dir.display())]
    StorageFull {
        /// Where the log is.
        dir: PathBuf,
    },
    /// The log could not be written; it takes nothing more until it is opened anew.
    #[error("the metadata log in {} is offline: {reason}", dir.display())]
    Offline {
        /// Where the log is.
        dir: PathBuf,
        /// What happened.
        reason: String,
    },
    /// The driver has been closed.
    #[error("the metadata is closed: the node is shutting down")]
    Closed,
}

impl ProposeError {
    /// Whether the command may have taken effect nevertheless.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::UnknownOutcome)
    }
}

fn hint(leader: &Option<NodeId>) -> String {
    leader.map_or_else(String::new, |leader| format!("; node {leader} does"))
}
