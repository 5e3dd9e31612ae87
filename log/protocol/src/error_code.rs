//! The error codes of the protocol.

use std::fmt;

/// Whether the same request may succeed later, without anything being changed about it.
#[derive(PartialEq)]
enum Kind {
    Retriable,
    Final,
}

/// Makes the enum and its conversions from one line for each code.
macro_rules! codes {
    ($($variant:ident = $code:literal, $name:ident, $kind:ident, $message:literal;)*) => {
        /// What a response says went wrong.
        ///
        /// Names, numbers and what is retriable are Kafka's (4.4). A code that is not known here, from a newer
        /// broker, survives as [`ErrorCode::Unrecognized`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(
                #[doc = concat!($code, ": ", $message, ".")]
                $variant,
            )*
            /// A code that is not in this list. [`ErrorCode::from`] never makes one of a code that is.
            Unrecognized(i16),
        }

        impl ErrorCode {
            /// Every known code, ascending.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The number on the wire.
            pub fn code(self) -> i16 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Unrecognized(code) => code,
                }
            }

            /// The name in Kafka's documentation.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($name),)*
                    Self::Unrecognized(_) => "UNRECOGNIZED",
                }
            }

            /// What it means, in a few words.
            pub fn message(self) -> &'static str {
                match self {
                    $(Self::$variant => $message,)*
                    Self::Unrecognized(_) => "the broker gave an error code that is not known here",
                }
            }

            fn kind(self) -> Kind {
                match self {
                    $(Self::$variant => Kind::$kind,)*
                    Self::Unrecognized(_) => Kind::Final,
                }
            }
        }

        impl From<i16> for ErrorCode {
            fn from(code: i16) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    code => Self::Unrecognized(code),
                }
            }
        }
    };
}

impl ErrorCode {
    /// Whether this is [`ErrorCode::None`].
    pub fn is_none(self) -> bool {
        self == Self::None
    }

    /// Whether the same request may succeed later, after refreshing metadata or waiting.
    pub fn is_retriable(self) -> bool {
        self.kind() == Kind::Retriable
    }
}

impl From<ErrorCode> for i16 {
    fn from(error: ErrorCode) -> Self {
        error.code()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrecognized(code) => write!(f, "error code {code}: {}", self.message()),
            known => write!(f, "{}: {}", known.name(), known.message()),
        }
    }
}

codes! {
    UnknownServerError = -1, UNKNOWN_SERVER_ERROR, Final, "the broker failed in a way it has no code for";
    None = 0, NONE, Final, "no error";
    OffsetOutOfRange = 1, OFFSET_OUT_OF_RANGE, Final, "the offset is outside the partition's log";
    CorruptMessage = 2, CORRUPT_MESSAGE, Retriable, "the record batch is corrupt: its checksum, size or format is wrong";
    UnknownTopicOrPartition = 3, UNKNOWN_TOPIC_OR_PARTITION, Retriable, "the broker has no such topic or partition";
    InvalidFetchSize = 4, INVALID_FETCH_SIZE, Final, "the fetch size is invalid";
    LeaderNotAvailable = 5, LEADER_NOT_AVAILABLE, Retriable, "the partition has no leader at the moment";
    NotLeaderOrFollower = 6, NOT_LEADER_OR_FOLLOWER, Retriable, "the broker neither leads the partition nor follows it";
    RequestTimedOut = 7, REQUEST_TIMED_OUT, Retriable, "the request was not finished within its timeout";
    BrokerNotAvailable = 8, BROKER_NOT_AVAILABLE, Final, "the broker is not available";
    ReplicaNotAvailable = 9, REPLICA_NOT_AVAILABLE, Retriable, "the replica is not on this broker";
    MessageTooLarge = 10, MESSAGE_TOO_LARGE, Final, "the record batch is larger than the topic allows";
    StaleControllerEpoch = 11, STALE_CONTROLLER_EPOCH, Final, "the controller's epoch is out of date";
    OffsetMetadataTooLarge = 12, OFFSET_METADATA_TOO_LARGE, Final, "the metadata of a committed offset is too long";
    NetworkException = 13, NETWORK_EXCEPTION, Retriable, "the connection to the broker failed";
    CoordinatorLoadInProgress = 14, COORDINATOR_LOAD_IN_PROGRESS, Retriable, "the coordinator is still loading its state";
    CoordinatorNotAvailable = 15, COORDINATOR_NOT_AVAILABLE, Retriable, "there is no coordinator at the moment";
    NotCoordinator = 16, NOT_COORDINATOR, Retriable, "the broker is not the coordinator";
    InvalidTopicException = 17, INVALID_TOPIC_EXCEPTION, Final, "the topic's name is invalid, or the topic is not for clients";
    RecordListTooLarge = 18, RECORD_LIST_TOO_LARGE, Final, "the request's record batches are larger than a segment";
    NotEnoughReplicas = 19, NOT_ENOUGH_REPLICAS, Retriable, "fewer replicas are in sync than min.insync.replicas asks for";
    NotEnoughReplicasAfterAppend = 20, NOT_ENOUGH_REPLICAS_AFTER_APPEND, Retriable, "the batch was appended, but then fewer replicas were in sync than min.insync.replicas asks for";
    InvalidRequiredAcks = 21, INVALID_REQUIRED_ACKS, Final, "acks must be 0, 1 or -1";
    IllegalGeneration = 22, ILLEGAL_GENERATION, Final, "the group has moved on to another generation";
    InconsistentGroupProtocol = 23, INCONSISTENT_GROUP_PROTOCOL, Final, "the member shares no assignment protocol with the group, or has another protocol type";
    InvalidGroupId = 24, INVALID_GROUP_ID, Final, "the group id is invalid";
    UnknownMemberId = 25, UNKNOWN_MEMBER_ID, Final, "the group has no such member";
    InvalidSessionTimeout = 26, INVALID_SESSION_TIMEOUT, Final, "the session timeout is outside what the broker allows";
    RebalanceInProgress = 27, REBALANCE_IN_PROGRESS, Final, "the group is rebalancing; join it again";
    InvalidCommitOffsetSize = 28, INVALID_COMMIT_OFFSET_SIZE, Final, "the offsets to commit are larger than a record may be";
    TopicAuthorizationFailed = 29, TOPIC_AUTHORIZATION_FAILED, Final, "not authorized for the topic";
    GroupAuthorizationFailed = 30, GROUP_AUTHORIZATION_FAILED, Final, "not authorized for the group";
    ClusterAuthorizationFailed = 31, CLUSTER_AUTHORIZATION_FAILED, Final, "not authorized for the cluster";
    InvalidTimestamp = 32, INVALID_TIMESTAMP, Final, "the record's timestamp is outside what the topic allows";
    UnsupportedSaslMechanism = 33, UNSUPPORTED_SASL_MECHANISM, Final, "the broker does not offer this SASL mechanism";
    IllegalSaslState = 34, ILLEGAL_SASL_STATE, Final, "the request does not fit the state of the authentication";
    UnsupportedVersion = 35, UNSUPPORTED_VERSION, Final, "the broker does not know this version of the API";
    TopicAlreadyExists = 36, TOPIC_ALREADY_EXISTS, Final, "a topic of this name exists already";
    InvalidPartitions = 37, INVALID_PARTITIONS, Final, "the number of partitions is invalid";
    InvalidReplicationFactor = 38, INVALID_REPLICATION_FACTOR, Final, "the replication factor is below 1 or above the number of brokers";
    InvalidReplicaAssignment = 39, INVALID_REPLICA_ASSIGNMENT, Final, "the assignment of replicas is invalid";
    InvalidConfig = 40, INVALID_CONFIG, Final, "the configuration is invalid";
    NotController = 41, NOT_CONTROLLER, Retriable, "the node is not the controller";
    InvalidRequest = 42, INVALID_REQUEST, Final, "the request contradicts itself or breaks the protocol";
    UnsupportedForMessageFormat = 43, UNSUPPORTED_FOR_MESSAGE_FORMAT, Final, "the log's message format has no room for this";
    PolicyViolation = 44, POLICY_VIOLATION, Final, "a policy of the cluster refuses the request";
    OutOfOrderSequenceNumber = 45, OUT_OF_ORDER_SEQUENCE_NUMBER, Final, "the sequence number does not follow the producer's last one";
    DuplicateSequenceNumber = 46, DUPLICATE_SEQUENCE_NUMBER, Final, "the batch was appended before";
    InvalidProducerEpoch = 47, INVALID_PRODUCER_EPOCH, Final, "the producer's epoch is out of date";
    InvalidTxnState = 48, INVALID_TXN_STATE, Final, "the transaction is not in a state for this";
    InvalidProducerIdMapping = 49, INVALID_PRODUCER_ID_MAPPING, Final, "the producer id is not the one of this transactional id";
    InvalidTransactionTimeout = 50, INVALID_TRANSACTION_TIMEOUT, Final, "the transaction timeout is above transaction.max.timeout.ms";
    ConcurrentTransactions = 51, CONCURRENT_TRANSACTIONS, Retriable, "another change of this transaction is under way";
    TransactionCoordinatorFenced = 52, TRANSACTION_COORDINATOR_FENCED, Final, "a newer transaction coordinator has taken over";
    TransactionalIdAuthorizationFailed = 53, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Final, "not authorized for the transactional id";
    SecurityDisabled = 54, SECURITY_DISABLED, Final, "security features are switched off";
    OperationNotAttempted = 55, OPERATION_NOT_ATTEMPTED, Final, "not attempted, since another part of the request failed";
    KafkaStorageError = 56, KAFKA_STORAGE_ERROR, Retriable, "the broker cannot read or write its disk";
    LogDirNotFound = 57, LOG_DIR_NOT_FOUND, Final, "the broker has no such log directory";
    SaslAuthenticationFailed = 58, SASL_AUTHENTICATION_FAILED, Final, "authentication failed";
    UnknownProducerId = 59, UNKNOWN_PRODUCER_ID, Final, "the partition no longer remembers this producer";
    ReassignmentInProgress = 60, REASSIGNMENT_IN_PROGRESS, Final, "the partition is being reassigned";
    DelegationTokenAuthDisabled = 61, DELEGATION_TOKEN_AUTH_DISABLED, Final, "delegation tokens are switched off";
    DelegationTokenNotFound = 62, DELEGATION_TOKEN_NOT_FOUND, Final, "there is no such delegation token";
    DelegationTokenOwnerMismatch = 63, DELEGATION_TOKEN_OWNER_MISMATCH, Final, "only the token's owner or a renewer may do this";
    DelegationTokenRequestNotAllowed = 64, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, Final, "delegation tokens need an authenticated, encrypted connection";
    DelegationTokenAuthorizationFailed = 65, DELEGATION_TOKEN_AUTHORIZATION_FAILED, Final, "not authorized for the delegation token";
    DelegationTokenExpired = 66, DELEGATION_TOKEN_EXPIRED, Final, "the delegation token has expired";
    InvalidPrincipalType = 67, INVALID_PRINCIPAL_TYPE, Final, "the type of principal is unknown";
    NonEmptyGroup = 68, NON_EMPTY_GROUP, Final, "the group still has members";
    GroupIdNotFound = 69, GROUP_ID_NOT_FOUND, Final, "there is no such group";
    FetchSessionIdNotFound = 70, FETCH_SESSION_ID_NOT_FOUND, Retriable, "the broker has no such fetch session";
    InvalidFetchSessionEpoch = 71, INVALID_FETCH_SESSION_EPOCH, Retriable, "the fetch session is at another epoch";
    ListenerNotFound = 72, LISTENER_NOT_FOUND, Retriable, "the broker has no listener of this name";
    TopicDeletionDisabled = 73, TOPIC_DELETION_DISABLED, Final, "topics cannot be deleted on this cluster";
    FencedLeaderEpoch = 74, FENCED_LEADER_EPOCH, Retriable, "the request's leader epoch is older than the broker's";
    UnknownLeaderEpoch = 75, UNKNOWN_LEADER_EPOCH, Retriable, "the request's leader epoch is newer than the broker's";
    UnsupportedCompressionType = 76, UNSUPPORTED_COMPRESSION_TYPE, Final, "the broker or the client does not know this compression";
    StaleBrokerEpoch = 77, STALE_BROKER_EPOCH, Final, "the broker's epoch is out of date";
    OffsetNotAvailable = 78, OFFSET_NOT_AVAILABLE, Retriable, "the leader does not know its high watermark yet";
    MemberIdRequired = 79, MEMBER_ID_REQUIRED, Final, "the member must join again with the id it was given";
    PreferredLeaderNotAvailable = 80, PREFERRED_LEADER_NOT_AVAILABLE, Retriable, "the preferred leader is not available";
    GroupMaxSizeReached = 81, GROUP_MAX_SIZE_REACHED, Final, "the group has as many members as it may have";
    FencedInstanceId = 82, FENCED_INSTANCE_ID, Final, "another member has taken over this group.instance.id";
    EligibleLeadersNotAvailable = 83, ELIGIBLE_LEADERS_NOT_AVAILABLE, Retriable, "no replica that may lead is available";
    ElectionNotNeeded = 84, ELECTION_NOT_NEEDED, Retriable, "the partition has the leader it should have";
    NoReassignmentInProgress = 85, NO_REASSIGNMENT_IN_PROGRESS, Final, "the partition is not being reassigned";
    GroupSubscribedToTopic = 86, GROUP_SUBSCRIBED_TO_TOPIC, Final, "the group subscribes to the topic";
    InvalidRecord = 87, INVALID_RECORD, Final, "the broker refused a record";
    UnstableOffsetCommit = 88, UNSTABLE_OFFSET_COMMIT, Retriable, "an open transaction has not decided about offsets yet";
    ThrottlingQuotaExceeded = 89, THROTTLING_QUOTA_EXCEEDED, Retriable, "a quota is exceeded";
    ProducerFenced = 90, PRODUCER_FENCED, Final, "a newer instance has taken over this transactional id";
    ResourceNotFound = 91, RESOURCE_NOT_FOUND, Final, "there is no such resource";
    DuplicateResource = 92, DUPLICATE_RESOURCE, Final, "the resource is named twice";
    UnacceptableCredential = 93, UNACCEPTABLE_CREDENTIAL, Final, "the credential is not acceptable";
    InconsistentVoterSet = 94, INCONSISTENT_VOTER_SET, Final, "the sets of voters differ";
    InvalidUpdateVersion = 95, INVALID_UPDATE_VERSION, Final, "the version that the update is based on is not the current one";
    FeatureUpdateFailed = 96, FEATURE_UPDATE_FAILED, Final, "the features could not be updated";
    PrincipalDeserializationFailure = 97, PRINCIPAL_DESERIALIZATION_FAILURE, Final, "the forwarded principal could not be read";
    SnapshotNotFound = 98, SNAPSHOT_NOT_FOUND, Final, "there is no such snapshot";
    PositionOutOfRange = 99, POSITION_OUT_OF_RANGE, Final, "the position is beyond the end of the snapshot";
    UnknownTopicId = 100, UNKNOWN_TOPIC_ID, Retriable, "the broker has no topic of this id";
    DuplicateBrokerRegistration = 101, DUPLICATE_BROKER_REGISTRATION, Final, "a broker of this id is registered already";
    BrokerIdNotRegistered = 102, BROKER_ID_NOT_REGISTERED, Final, "no broker of this id is registered";
    InconsistentTopicId = 103, INCONSISTENT_TOPIC_ID, Retriable, "the topic has another id than the request says";
    InconsistentClusterId = 104, INCONSISTENT_CLUSTER_ID, Final, "the cluster has another id than the request says";
    TransactionalIdNotFound = 105, TRANSACTIONAL_ID_NOT_FOUND, Final, "there is no such transactional id";
    FetchSessionTopicIdError = 106, FETCH_SESSION_TOPIC_ID_ERROR, Retriable, "the fetch session mixes topic ids and topic names";
    IneligibleReplica = 107, INELIGIBLE_REPLICA, Final, "the replica may not become in-sync";
    NewLeaderElected = 108, NEW_LEADER_ELECTED, Final, "the change elected another leader";
    OffsetMovedToTieredStorage = 109, OFFSET_MOVED_TO_TIERED_STORAGE, Final, "the records have moved to tiered storage";
    FencedMemberEpoch = 110, FENCED_MEMBER_EPOCH, Final, "the member's epoch is out of date";
    UnreleasedInstanceId = 111, UNRELEASED_INSTANCE_ID, Final, "another member still holds this group.instance.id";
    UnsupportedAssignor = 112, UNSUPPORTED_ASSIGNOR, Final, "the group's coordinator does not have this assignor";
    StaleMemberEpoch = 113, STALE_MEMBER_EPOCH, Final, "the member's epoch has changed; ask for it again";
    MismatchedEndpointType = 114, MISMATCHED_ENDPOINT_TYPE, Final, "the request came to the wrong kind of node";
    UnsupportedEndpointType = 115, UNSUPPORTED_ENDPOINT_TYPE, Final, "this kind of endpoint is not supported";
    UnknownControllerId = 116, UNKNOWN_CONTROLLER_ID, Final, "there is no controller of this id";
    UnknownSubscriptionId = 117, UNKNOWN_SUBSCRIPTION_ID, Final, "the telemetry subscription is unknown";
    TelemetryTooLarge = 118, TELEMETRY_TOO_LARGE, Final, "the telemetry is larger than the broker takes";
    InvalidRegistration = 119, INVALID_REGISTRATION, Final, "the registration of the node is invalid";
    TransactionAbortable = 120, TRANSACTION_ABORTABLE, Final, "the transaction has failed and must be aborted";
    InvalidRecordState = 121, INVALID_RECORD_STATE, Final, "the record is not in a state for this acknowledgement";
    ShareSessionNotFound = 122, SHARE_SESSION_NOT_FOUND, Retriable, "the broker has no such share session";
    InvalidShareSessionEpoch = 123, INVALID_SHARE_SESSION_EPOCH, Retriable, "the share session is at another epoch";
    FencedStateEpoch = 124, FENCED_STATE_EPOCH, Final, "the state's epoch is out of date";
    InvalidVoterKey = 125, INVALID_VOTER_KEY, Final, "the voter's key does not match";
    DuplicateVoter = 126, DUPLICATE_VOTER, Final, "the voter is in the set already";
    VoterNotFound = 127, VOTER_NOT_FOUND, Final, "the voter is not in the set";
    InvalidRegularExpression = 128, INVALID_REGULAR_EXPRESSION, Final, "the regular expression is invalid";
    RebootstrapRequired = 129, REBOOTSTRAP_REQUIRED, Final, "the client must start again from its bootstrap servers";
    StreamsInvalidTopology = 130, STREAMS_INVALID_TOPOLOGY, Final, "the topology is invalid";
    StreamsInvalidTopologyEpoch = 131, STREAMS_INVALID_TOPOLOGY_EPOCH, Final, "the topology's epoch is invalid";
    StreamsTopologyFenced = 132, STREAMS_TOPOLOGY_FENCED, Final, "another topology has taken over";
    ShareSessionLimitReached = 133, SHARE_SESSION_LIMIT_REACHED, Retriable, "the broker has as many share sessions as it may have";
    GroupDeletionFailed = 134, GROUP_DELETION_FAILED, Final, "the group could not be deleted";
    StreamsTopologyDescriptionUpdateFailed = 135, STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, Final, "the description of the topology could not be stored";
    ControllerIdNotRegistered = 136, CONTROLLER_ID_NOT_REGISTERED, Final, "no controller of this id is registered";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_wire() {
        for code in i16::MIN..=i16::MAX {
            assert_eq!(ErrorCode::from(code).code(), code);
        }
        assert_eq!(ErrorCode::ALL.len(), 138);
        assert!(ErrorCode::ALL.iter().all(|&error| ErrorCode::from(error.code()) == error));
    }

    #[test]
    fn names_and_kinds_are_kafkas() {
        assert_eq!(ErrorCode::from(6), ErrorCode::NotLeaderOrFollower);
        assert_eq!(ErrorCode::NotLeaderOrFollower.name(), "NOT_LEADER_OR_FOLLOWER");
        assert!(ErrorCode::NotLeaderOrFollower.is_retriable());
        assert!(!ErrorCode::OutOfOrderSequenceNumber.is_retriable());
        assert!(ErrorCode::from(0).is_none());
        assert_eq!(
            ErrorCode::Unrecognized(999).to_string(),
            "error code 999: the broker gave an error code that is not known here"
        );
    }
}
