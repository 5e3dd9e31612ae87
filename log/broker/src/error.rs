//! What can go wrong in the broker, and how each error of storage reads on the wire.

use std::fmt;
use std::io;
use std::path::PathBuf;

use bytestring::ByteString;
use thalweg_controller::{ProposeError, Rejection};
use thalweg_protocol::record::{RecordError, RecordErrorKind};
use thalweg_protocol::{ErrorCode, NodeId};

/// Why a broker cannot start, or stopped. Its text tells the causes, too; so they are not its `source()`.
#[derive(thiserror::Error)]
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
        r#source: io::Error,
    },
    /// A setting that makes no sense.
    #[error("the setting {name} is invalid: {reason}")]
    Config {
        /// The field of [`BrokerConfig`](crate::BrokerConfig).
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A setting under the name that Kafka has for it that cannot be set so.
    #[error("the setting {name} is invalid: {reason}")]
    Setting {
        /// The name.
        name: String,
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
        r#source: io::Error,
    },
    /// The cluster's metadata cannot be opened.
    #[error(transparent)]
    Metadata(#[from] thalweg_controller::Error),
    /// The metadata did not take this node in.
    #[error("cannot register with the cluster's metadata: {reason}")]
    Registration {
        /// Why not.
        reason: String,
    },
    /// The data directory is that of another node of the cluster.
    #[error(
        "{path} is the directory of node {found}, not of node {asked}: leave the node's id out, or name another directory"
    )]
    NodeId {
        /// The data directory.
        path: PathBuf,
        /// The node that its metadata names.
        found: NodeId,
        /// The node that was asked for.
        asked: NodeId,
    },
    /// The log cannot be opened, or failed.
    #[error(transparent)]
    Storage(#[from] thalweg_storage::Error),
}

/// As it reads for people: an error that `main` returns is printed with this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a request, or the part of it that concerns one partition, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The protocol's code.
    pub(crate) code: ErrorCode,
    /// What the code alone does not say, for those answers that carry a text.
    pub(crate) message: Option<String>,
    /// The places in their batch of the records at fault, where they can be told from the others.
    pub(crate) record_indexes: Vec<i32>,
}

impl Refusal {
    /// A code with a text that says more.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()), record_indexes: Vec::new() }
    }

    /// The text of an answer: what the code alone does not say, or else what the code is called.
    pub(crate) fn into_text(self) -> ByteString {
        self.message.map_or(ByteString::from_static(self.code.message()), ByteString::from)
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self { code, message: None, record_indexes: Vec::new() }
    }
}

impl From<RecordError> for Refusal {
    fn from(error: RecordError) -> Self {
        Self {
            code: batch_code(&error),
            message: Some(error.to_string()),
            record_indexes: error.record_index().into_iter().collect(),
        }
    }
}

impl From<thalweg_storage::Error> for Refusal {
    fn from(error: thalweg_storage::Error) -> Self {
        let code = storage_code(&error);
        if matches!(code, ErrorCode::KafkaStorageError | ErrorCode::UnknownServerError) {
            tracing::warn!(%error, "storage refused a request");
        }
        let message = Some(error.to_string());
        let record_indexes = match error {
            thalweg_storage::Error::InvalidBatch(error) => error.record_index().into_iter().collect(),
            thalweg_storage::Error::KeylessRecords { indexes } => indexes,
            _ => Vec::new(),
        };
        Self { code, message, record_indexes }
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::new(rejection_code(&rejection), rejection.to_string())
    }
}

impl From<ProposeError> for Refusal {
    fn from(error: ProposeError) -> Self {
        Self::new(propose_code(&error), error.to_string())
    }
}

/// The one mapping from the refusals of the controller to the codes of the protocol.
pub(crate) fn rejection_code(rejection: &Rejection) -> ErrorCode {
    match rejection {
        Rejection::InvalidTopicName { .. } | Rejection::TopicNameCollides { .. } => {
            ErrorCode::InvalidTopicException
        }
        Rejection::TopicAlreadyExists { .. } => ErrorCode::TopicAlreadyExists,
        Rejection::UnusableTopicId { .. }
        | Rejection::DuplicateTopic { .. }
        | Rejection::CountsBesideAssignment
        | Rejection::DuplicateConfig { .. }
        | Rejection::InvalidNodeId { .. }
        | Rejection::NotLeader { .. }
        | Rejection::InvalidIsr { .. } => ErrorCode::InvalidRequest,
        Rejection::UnknownTopic { .. } | Rejection::UnknownPartition { .. } => {
            ErrorCode::UnknownTopicOrPartition
        }
        Rejection::UnknownTopicId { .. } => ErrorCode::UnknownTopicId,
        Rejection::InvalidPartitionCount { .. } | Rejection::NotMorePartitions { .. } => {
            ErrorCode::InvalidPartitions
        }
        Rejection::TooManyPartitionsInRequest | Rejection::TooManyPartitions { .. } => {
            ErrorCode::PolicyViolation
        }
        Rejection::InvalidReplicationFactor { .. } | Rejection::NotEnoughNodes { .. } => {
            ErrorCode::InvalidReplicationFactor
        }
        Rejection::InvalidReplicaAssignment { .. } => ErrorCode::InvalidReplicaAssignment,
        Rejection::InvalidConfig { .. } => ErrorCode::InvalidConfig,
        Rejection::NodeIdTaken { .. } => ErrorCode::DuplicateBrokerRegistration,
        Rejection::UnknownNode { .. } => ErrorCode::BrokerIdNotRegistered,
        Rejection::NodeHoldsReplicas { .. }
        | Rejection::InvalidQuotaEntity { .. }
        | Rejection::InvalidQuota { .. }
        | Rejection::InvalidConfigResource { .. } => ErrorCode::InvalidRequest,
        Rejection::TooManyQuotaEntities | Rejection::TooManyConfigResources => ErrorCode::PolicyViolation,
        Rejection::InvalidFeatureUpdate { .. } => ErrorCode::InvalidUpdateVersion,
        Rejection::StaleNodeEpoch { .. } => ErrorCode::StaleBrokerEpoch,
        Rejection::LeaderEpochDiffers { epoch, current } if epoch > current => ErrorCode::NotController,
        Rejection::LeaderEpochDiffers { .. } => ErrorCode::FencedLeaderEpoch,
        Rejection::PartitionEpochDiffers { epoch, current } if epoch > current => ErrorCode::NotController,
        Rejection::PartitionEpochDiffers { .. } => ErrorCode::InvalidUpdateVersion,
        Rejection::IneligibleReplica { .. } => ErrorCode::IneligibleReplica,
        Rejection::ElectionNotNeeded { .. } => ErrorCode::ElectionNotNeeded,
        Rejection::PreferredLeaderNotAvailable { .. } => ErrorCode::PreferredLeaderNotAvailable,
        Rejection::NoLiveReplica => ErrorCode::EligibleLeadersNotAvailable,
        Rejection::Exhausted { .. } => ErrorCode::UnknownServerError,
    }
}

/// What a client is told when the metadata gave no answer: all but a command that is too large can be tried
/// again.
fn propose_code(error: &ProposeError) -> ErrorCode {
    match error {
        ProposeError::NotLeader { .. } => ErrorCode::NotController,
        ProposeError::UnknownOutcome | ProposeError::Overloaded { .. } | ProposeError::Closed => {
            ErrorCode::RequestTimedOut
        }
        ProposeError::StorageFull { .. } | ProposeError::Offline { .. } => ErrorCode::KafkaStorageError,
        ProposeError::TooLarge { .. } => ErrorCode::InvalidRequest,
    }
}

/// The one mapping from the errors of storage to the codes of the protocol.
///
/// What passes by itself (a full or read-only disk, no descriptors left) and what another replica could do (a directory
/// that is offline) is KAFKA_STORAGE_ERROR: the Java client, librdkafka and those built after them refresh
/// their metadata and try again.
pub(crate) fn storage_code(error: &thalweg_storage::Error) -> ErrorCode {
    use thalweg_storage::Error as Storage;
    match error {
        Storage::InvalidBatch(error) => batch_code(error),
        Storage::KeylessRecords { .. } => ErrorCode::InvalidRecord,
        Storage::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        Storage::StaleLeaderEpoch { .. } => ErrorCode::NotLeaderOrFollower,
        Storage::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        Storage::ProducerFenced { .. } => ErrorCode::InvalidProducerEpoch,
        Storage::InvalidTransactionState { .. } => ErrorCode::InvalidTxnState,
        Storage::CoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        Storage::StorageFull { .. }
        | Storage::ReadOnly { .. }
        | Storage::TooManyOpenFiles { .. }
        | Storage::DirectoryOffline { .. }
        | Storage::Io { .. }
        | Storage::Corrupt { .. }
        | Storage::Vanished { .. } => ErrorCode::KafkaStorageError,
        Storage::LogClosed { .. } | Storage::UnknownLog { .. } => ErrorCode::NotLeaderOrFollower,
        Storage::LogExists { .. } => ErrorCode::TopicAlreadyExists,
        Storage::InvalidTopicName { .. } => ErrorCode::InvalidTopicException,
        Storage::UnexpectedOffset { .. }
        | Storage::DirectoryHeld { .. }
        | Storage::NotADataDirectory { .. }
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
