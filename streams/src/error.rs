//! What can go wrong, and what the caller must do about it.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use thalweg_protocol::TopicPartition;

use crate::program::TaskId;

/// Why a streams application, or a part of it, cannot go on. Its text tells the causes, too; so they are not its
/// `source()`.
#[derive(thiserror::Error)]
pub enum Error {
    /// The configuration cannot work.
    #[error("{field}: {reason}")]
    Config {
        /// The field at fault.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The topology cannot run.
    #[error("the topology is not valid: {reason}")]
    Topology {
        /// What is wrong with it.
        reason: String,
    },
    /// A topic that the topology reads or writes does not exist.
    #[error("topic {topic} does not exist; {}", match similar {
        Some(name) => format!("did you mean {name}? Topics that are read or written by name are not made: create it first"),
        None => "topics that are read or written by name are not made: create it first (thalweg topic create NAME)".to_owned(),
    })]
    UnknownTopic {
        /// The topic.
        topic: String,
        /// The topic that does exist and is spelt most alike.
        similar: Option<String>,
    },
    /// An internal topic exists but does not fit.
    #[error(
        "the number of partitions of topic {topic} is {found}, and must be {expected}: reset the application or rename it"
    )]
    TopicMismatch {
        /// The topic.
        topic: String,
        /// How many partitions it has.
        found: i32,
        /// How many it would need.
        expected: i32,
    },
    /// A topic of the application is no longer the one that it was started with.
    #[error("topic {topic} {change}")]
    TopicChanged {
        /// The topic.
        topic: String,
        /// What became of it.
        change: TopicChange,
    },
    /// A key or value could not be decoded, and the configuration says to stop then.
    #[error("the record at offset {offset} of {partition} does not decode: {reason}")]
    Undecodable {
        /// Where it lies.
        partition: TopicPartition,
        /// Its offset.
        offset: i64,
        /// Why.
        reason: String,
    },
    /// A key, value or aggregate could not be encoded or read back.
    #[error(transparent)]
    Serde(#[from] crate::serde::SerdeError),
    /// A state store could not be read or written, for a reason that dropping it would not remove.
    #[error("the state of task {task} failed{}: {reason}", if store.is_empty() { String::new() } else { format!(" in store {store}") })]
    State {
        /// The task whose state it is.
        task: TaskId,
        /// The store; empty when it is not one in particular.
        store: String,
        /// What the store said.
        reason: String,
    },
    /// What a state store keeps is not what was written to it. When the task is opened again its state is dropped, and
    /// restored from its changelogs.
    #[error("the state of task {task} is damaged{}: {reason}", if store.is_empty() { String::new() } else { format!(" in store {store}") })]
    StateDamaged {
        /// The task whose state it is.
        task: TaskId,
        /// The store; empty when it is not one in particular.
        store: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A task's state cannot be opened again yet, because a reader of its last opening is not done.
    #[error("the state of task {task} is still being read")]
    StateHeld {
        /// The task whose state it is.
        task: TaskId,
    },
    /// Another instance holds the state directory.
    #[error(
        "{} is in use by a running instance of the application; end that one, or give this one another directory",
        directory.display()
    )]
    StateInUse {
        /// The directory.
        directory: PathBuf,
    },
    /// A file of the state directory could not be read or written.
    #[error("{}: {source}", path.display())]
    StateFile {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        r#source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
    /// The offset metadata of the group was not written by this library.
    #[error("the committed offset metadata of {partition} cannot be read: {reason}")]
    Metadata {
        /// The input partition.
        partition: TopicPartition,
        /// What is wrong with it.
        reason: String,
    },
    /// A changelog ends before the state that was committed.
    #[error(
        "changelog {partition} ends at {end} but the committed state needs it up to {needed}: records were lost"
    )]
    ChangelogLost {
        /// The changelog partition.
        partition: TopicPartition,
        /// Where it ends.
        end: i64,
        /// Up to where it was written when the offsets were committed.
        needed: i64,
    },
    /// A transaction could not be finished: its outcome was a definite abort, or is settled as one.
    #[error("the transaction was aborted: {reason}")]
    Aborted {
        /// Why.
        reason: String,
    },
    /// Whether a transaction was committed is not known; it must be fenced and looked up.
    #[error("the outcome of the transaction is unknown: {reason}")]
    UnknownOutcome {
        /// Why.
        reason: String,
    },
    /// A newer instance has taken over.
    #[error("fenced by a newer instance: {reason}")]
    Fenced {
        /// Why.
        reason: String,
    },
    /// The cluster cannot be reached, or answers that it cannot now.
    #[error("the cluster does not answer: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// The cluster refuses for good.
    #[error("{action} was refused: {reason}")]
    Refused {
        /// What was asked for.
        action: &'static str,
        /// What the cluster said.
        reason: String,
    },
    /// The program failed, or panicked, at some record of a run.
    #[error("task {task} failed while it processed {partition} from offset {from} to {to}: {source}")]
    Processing {
        /// The task.
        task: TaskId,
        /// Where the records lie.
        partition: TopicPartition,
        /// The offset of the first one.
        from: i64,
        /// The offset after the last one.
        to: i64,
        /// What happened.
        r#source: Box<Error>,
    },
    /// The program failed.
    #[error("the program failed: {0}")]
    Program(Box<dyn std::error::Error + Send + Sync>),
    /// A test asked for the task to die at this point.
    #[error("failpoint {name}")]
    Failpoint {
        /// The failpoint's name.
        name: String,
    },
    /// The application has ended because of this.
    #[error("{0}")]
    Stopped(Arc<Error>),
    /// A program or a stream thread ended by a panic.
    #[error("panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
}

/// As it reads for people: an error that `main` returns is printed with this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What became of a topic while the application ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicChange {
    /// It is gone.
    Deleted,
    /// It was deleted and there is a new one of that name.
    Recreated,
    /// It has another number of partitions.
    Partitions {
        /// How many the application was started with.
        before: i32,
        /// How many there are now.
        now: i32,
    },
}

impl fmt::Display for TopicChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted => f.write_str(
                "was deleted while the application ran; what was committed before is safe: create the topic \
                 again and start the application anew",
            ),
            Self::Recreated => f.write_str(
                "was deleted and created again while the application ran; offsets that were committed mean \
                 other records now: reset the application, or give it another id, and start it anew",
            ),
            Self::Partitions { before, now } => write!(
                f,
                "has {now} partitions but had {before} when the application started, so that a key's records \
                 go elsewhere now; start the application anew, under another id if it keeps state by key"
            ),
        }
    }
}

/// What the caller must do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Drop what is not committed, reopen the tasks from their last commit, and go on.
    Reopen,
    /// Give up: going on needs a person.
    Fatal,
}

impl Error {
    /// What the caller must do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Aborted { .. }
            | Self::UnknownOutcome { .. }
            | Self::Fenced { .. }
            | Self::StateDamaged { .. }
            | Self::StateHeld { .. }
            | Self::Unavailable { .. } => ErrorKind::Reopen,
            Self::Processing { source, .. } => source.kind(),
            _ => ErrorKind::Fatal,
        }
    }

    /// What a panic said.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::Panicked { message: message.unwrap_or_else(|| "without a message".into()) }
    }

    /// Wraps what a program of one's own failed with.
    pub fn program(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Program(source.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_returns_is_printed_as_a_sentence() {
        let disk = std::io::Error::other("disk full");
        let cases = [
            Error::StateFile { path: PathBuf::from("state"), source: disk },
            Error::Stopped(Arc::new(Error::program("no such carrier"))),
            Error::UnknownTopic { topic: "flights".to_owned(), similar: None },
        ];
        for error in cases {
            assert_eq!(format!("{error:?}"), error.to_string());
            assert!(std::error::Error::source(&error).is_none(), "{error}");
        }
    }
}
