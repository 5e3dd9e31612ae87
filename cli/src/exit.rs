//! Exit codes: what a script can tell apart.

use std::fmt;

/// How the program ends; the discriminant is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Whoever read the output has had enough, as `head` does.
    Done = 0,
    /// Something failed that has no code of its own.
    Failed = 1,
    /// The command line, the SQL or the input is wrong.
    Usage = 2,
    /// The topic, file or other thing named does not exist.
    NotFound = 3,
    /// No broker answers.
    Unreachable = 4,
    /// The port, the directory or the name is taken.
    Taken = 5,
    /// The cluster works, but not as it should.
    Unhealthy = 10,
}

/// An error with an exit code of its own.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error that ends the program with `exit`; `message` says what, why and what next.
pub fn failure(exit: Exit, message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Failure { exit, message: message.into() })
}

/// An error with its causes, each once: many say themselves what caused them.
pub fn told(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut text, cause| {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
        text
    })
}

/// The exit code that fits an error.
pub fn of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.exit;
        }
        if let Some(error) = cause.downcast_ref::<thalweg_client::Error>() {
            return of_client(error);
        }
        if let Some(error) = cause.downcast_ref::<thalweg_connectors::Error>() {
            return of_file(error);
        }
        if let Some(error) = cause.downcast_ref::<thalweg_sql::Error>()
            && let Some(exit) = of_sql(error)
        {
            return exit;
        }
        let not_found = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        if cause.downcast_ref::<std::io::Error>().is_some_and(not_found)
            || cause.downcast_ref::<thalweg_broker::Error>().and_then(io_cause).is_some_and(not_found)
        {
            return Exit::NotFound;
        }
    }
    Exit::Failed
}

/// What the operating system said, if that kept a broker from starting.
fn io_cause(error: &thalweg_broker::Error) -> Option<&std::io::Error> {
    use thalweg_broker::Error;
    match error {
        Error::Directory { source, .. } | Error::Storage(thalweg_storage::Error::Io { source, .. }) => {
            Some(source)
        }
        _ => None,
    }
}

fn of_client(error: &thalweg_client::Error) -> Exit {
    use thalweg_client::Error;
    use thalweg_protocol::{ConnectionError, ErrorCode};
    match error {
        Error::UnknownTopic { .. } | Error::UnknownPartition { .. } => Exit::NotFound,
        // What was asked for fits into no request: a name that is too long, say.
        Error::Connection { source: ConnectionError::Unencodable { .. }, .. } | Error::Config { .. } => {
            Exit::Usage
        }
        Error::Connection { .. } | Error::TimedOut { .. } => Exit::Unreachable,
        _ => match error.code() {
            Some(ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId) => Exit::NotFound,
            Some(ErrorCode::TopicAlreadyExists) => Exit::Taken,
            Some(
                ErrorCode::InvalidTopicException
                | ErrorCode::InvalidPartitions
                | ErrorCode::InvalidReplicationFactor
                | ErrorCode::InvalidConfig
                | ErrorCode::PolicyViolation,
            ) => Exit::Usage,
            _ => Exit::Failed,
        },
    }
}

/// `None` where the error's source says more.
fn of_sql(error: &thalweg_sql::Error) -> Option<Exit> {
    use thalweg_sql::Error;
    match error {
        Error::Syntax { .. }
        | Error::Plan { .. }
        | Error::Definition { .. }
        | Error::Unsupported { .. }
        | Error::UnknownFormat { .. }
        | Error::Compressed { .. } => Some(Exit::Usage),
        Error::UnknownTable { .. } | Error::UnknownFile { .. } | Error::NoFiles { .. } => {
            Some(Exit::NotFound)
        }
        Error::NotEmpty { .. } => Some(Exit::Taken),
        Error::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Some(Exit::NotFound),
        Error::Client(error) => Some(of_client(error)),
        Error::Connector(error) => Some(of_file(error)),
        _ => None,
    }
}

fn of_file(error: &thalweg_connectors::Error) -> Exit {
    use thalweg_connectors::Error;
    match error {
        Error::Option { .. } | Error::UnknownColumn { .. } | Error::Line { .. } => Exit::Usage,
        Error::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Exit::NotFound,
        Error::File { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => Exit::Taken,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that an error tells its cause once, however it is printed, and its exit code.
    fn check<E: std::error::Error + Send + Sync + 'static>(error: E, said: &str, exit: Exit) {
        let text = error.to_string();
        assert!(text.contains(said), "{text}");
        assert_eq!(format!("{error:?}"), text);
        let error = anyhow::Error::new(error);
        assert_eq!(format!("{error:#}"), text);
        assert_eq!(told(&error), text);
        assert_eq!(of(&error.context("more")), exit, "{text}");
    }

    #[test]
    fn errors_tell_their_causes_once_in_every_form() {
        use std::io::{Error as Io, ErrorKind};
        let nowhere = || Io::from(ErrorKind::NotFound);
        let (path, address) = (std::path::PathBuf::from("p"), "h:1".to_owned());
        let unencodable = thalweg_protocol::ConnectionError::Unencodable { reason: "too long".to_owned() };
        check(
            thalweg_client::Error::Connection { address: address.clone(), source: unencodable },
            "too long",
            Exit::Usage,
        );
        let silent = thalweg_protocol::ConnectionError::TimedOut { timeout_ms: 5 };
        let silent = thalweg_client::Error::Connection { address, source: silent };
        check(silent.clone(), "5 ms", Exit::Unreachable);
        check(thalweg_sql::Error::Client(silent), "5 ms", Exit::Unreachable);
        check(
            thalweg_sql::Error::File { path: path.clone(), source: nowhere() },
            "not found",
            Exit::NotFound,
        );
        check(
            thalweg_connectors::Error::File { action: "open", path: path.clone(), source: nowhere() },
            "cannot open p: ",
            Exit::NotFound,
        );
        check(thalweg_broker::Error::Directory { path, source: nowhere() }, "not found", Exit::NotFound);
    }

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let disk = || std::io::Error::other("disk full");
        let cases = [
            (anyhow::Error::new(disk()), "disk full"),
            (anyhow::Error::new(disk()).context("cannot write"), "cannot write: disk full"),
            (anyhow::Error::new(disk()).context("cannot write: disk full"), "cannot write: disk full"),
            (anyhow::Error::new(disk()).context("a").context("b"), "b: a: disk full"),
        ];
        for (error, expected) in cases {
            assert_eq!(told(&error), expected);
        }
    }
}
