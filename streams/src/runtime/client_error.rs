//! What the client's errors mean for a stream thread.

use thalweg_client::ErrorKind;
use thalweg_protocol::ErrorCode;

use crate::error::Error;

/// Translates an error of `action` by what must be done about it.
pub(crate) fn translate(action: &'static str) -> impl Fn(thalweg_client::Error) -> Error {
    move |error| {
        let reason = format!("{action}: {error}");
        match error.kind() {
            ErrorKind::Retry => Error::Unavailable { reason },
            ErrorKind::Rejoin | ErrorKind::Abort => Error::Aborted { reason },
            ErrorKind::Fenced => Error::Fenced { reason },
            ErrorKind::Ambiguous => Error::UnknownOutcome { reason },
            ErrorKind::GiveUp if error.code() == Some(ErrorCode::MessageTooLarge) => {
                Error::Refused { action, reason: format!("{error}; raise the topic's max.message.bytes") }
            }
            ErrorKind::GiveUp => Error::Refused { action, reason: error.to_string() },
        }
    }
}
