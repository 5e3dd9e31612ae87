//! What can go wrong in the broker, and how each error of storage reads on the wire.

use std::io;
use std::path::PathBuf;

use thalweg_protocol::ErrorCode;
use thalweg_protocol::record::{RecordError, RecordErrorKind};

/// Why a broker cannot start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A listen address that is none.
    #[error("cannot listen on {address:?}: {reason}; it must be host:port")]
    ListenAddress {
        /// As it was configured.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A listen address that cannot be bound: the port is taken, or the address is not one of this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As it was configured.
        address: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A setting that makes no sense.
    #[error("the setting {name} is invalid: {reason}")]
    Config {
        /// The field of [`BrokerConfig`](crate::BrokerConfig).
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The broker was started outside of a tokio runtime.
    #[error("a broker needs a tokio runtime to run on")]
    NoRuntime,
    /// The data directory cannot be made or read.
    #[error("cannot use the directory {path}: {source}")]
    Directory {
        /// The data directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The log cannot be opened, or failed.
    #[error(transparent)]
    Storage(#[from] thalweg_storage::Error),
}

/// Why a request, or the part of it that concerns one partition, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The protocol's code.
    pub(crate) code: ErrorCode,
    /// What the code alone does not say, for those answers that carry a text.
    pub(crate) message: Option<String>,
    /// The place in its batch of the record at fault, where it is a single one.
    pub(crate) record_index: Option<i32>,
}

impl Refusal {
    /// A code with a text that says more.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()), record_index: None }
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self { code, message: None, record_index: None }
    }
}

impl From<RecordError> for Refusal {
    fn from(error: RecordError) -> Self {
        Self {
            code: batch_code(&error),
            message: Some(error.to_string()),
            record_index: error.record_index(),
        }
    }
}

impl From<thalweg_storage::Error> for Refusal {
    fn from(error: thalweg_storage::Error) -> Self {
        let code = storage_code(&error);
        if matches!(code, ErrorCode::KafkaStorageError | ErrorCode::UnknownServerError) {
            tracing::warn!(%error, "storage refused a request");
        }
        let record_index = match &error {
            thalweg_storage::Error::InvalidBatch(error) => error.record_index(),
            thalweg_storage::Error::KeylessRecord { index } => Some(*index),
            _ => None,
        };
        Self { code, message: Some(error.to_string()), record_index }
    }
}

/// The one mapping from the errors of storage to the codes of the protocol.
///
/// What passes by itself (a full disk, no descriptors left) and what another replica could do (a directory
/// that is offline) is KAFKA_STORAGE_ERROR: the Java client, librdkafka and those built after them refresh
/// their metadata and try again.
pub(crate) fn storage_code(error: &thalweg_storage::Error) -> ErrorCode {
    use thalweg_storage::Error as Storage;
    match error {
        Storage::InvalidBatch(error) => batch_code(error),
        Storage::KeylessRecord { .. } => ErrorCode::InvalidRecord,
        Storage::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        Storage::StaleLeaderEpoch { .. } => ErrorCode::NotLeaderOrFollower,
        Storage::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        Storage::ProducerFenced { .. } => ErrorCode::InvalidProducerEpoch,
        Storage::InvalidTransactionState { .. } => ErrorCode::InvalidTxnState,
        Storage::CoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        Storage::StorageFull { .. }
        | Storage::TooManyOpenFiles { .. }
        | Storage::DirectoryOffline { .. }
        | Storage::Io { .. }
        | Storage::Corrupt { .. } => ErrorCode::KafkaStorageError,
        Storage::LogClosed { .. } | Storage::UnknownLog { .. } => ErrorCode::NotLeaderOrFollower,
        Storage::LogExists { .. } => ErrorCode::TopicAlreadyExists,
        Storage::InvalidTopicName { .. } => ErrorCode::InvalidTopicException,
        Storage::UnexpectedOffset { .. }
        | Storage::DirectoryHeld { .. }
        | Storage::ForeignDirectory { .. }
        | Storage::NewerFormat { .. } => ErrorCode::UnknownServerError,
    }
}

/// Damage on the way is CORRUPT_MESSAGE, which producers retry; what the producer itself got wrong is
/// INVALID_RECORD, which they do not.
fn batch_code(error: &RecordError) -> ErrorCode {
    match error.kind() {
        RecordErrorKind::Corrupt => ErrorCode::CorruptMessage,
        RecordErrorKind::Invalid => ErrorCode::InvalidRecord,
        RecordErrorKind::Timestamp => ErrorCode::InvalidTimestamp,
        RecordErrorKind::TooLarge => ErrorCode::MessageTooLarge,
        RecordErrorKind::UnsupportedCompression => ErrorCode::UnsupportedCompressionType,
        RecordErrorKind::UnsupportedFormat => ErrorCode::UnsupportedForMessageFormat,
    }
}
