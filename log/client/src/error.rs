//! What can go wrong, and what the caller must then do.

use std::fmt;
use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::record::RecordError;
use thalweg_protocol::{ConnectionError, ErrorCode, NodeId, Offset, TopicPartition};

use crate::releases::first_release;

/// What the caller of a failed operation must do: see [`Error::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Try again later: nothing happened, and the cause is expected to pass.
    Retry,
    /// The member has lost its place in the group, or the records it had acquired: drop what came of what was assigned;
    /// the next `poll` joins again.
    Rejoin,
    /// The transaction cannot be committed: abort it, go back to the last committed offsets, and begin again.
    Abort,
    /// A newer instance has taken over this transactional id or group instance id: close.
    Fenced,
    /// It is not known whether the operation took effect: fence (a new producer of the same transactional
    /// id), then read back what was committed. (Records of a queue are delivered again if it did not.)
    Ambiguous,
    /// It would fail again in the same way: the request, the configuration or the data must change.
    GiveUp,
}

/// Why an operation of the client failed. Its text tells the causes, too; so they are not its `source()`.
#[derive(Clone, thiserror::Error)]
pub enum Error {
    /// A broker could not be reached, or went away before it answered.
    #[error("{address}: {source}")]
    Connection {
        /// `host:port` of the broker.
        address: String,
        /// What happened.
        r#source: ConnectionError,
    },
    /// A broker refused.
    #[error("{api} of {subject}: {code}{}", detail(message.as_deref()))]
    Broker {
        /// The request that was refused.
        api: ApiKey,
        /// The broker's reason.
        code: ErrorCode,
        /// What the request was about, such as a topic, partition, group or transactional id.
        subject: String,
        /// What the broker had to add.
        message: Option<ByteString>,
    },
    /// The broker and this client have no version of an API in common, or none that can do what was asked for.
    #[error(
        "{broker} does not offer {api} in a version from {ours_min} to {ours_max}{}{}",
        offers(*theirs),
        wanted(*api)
    )]
    UnsupportedVersion {
        /// `host:port` of the broker.
        broker: String,
        /// The API.
        api: ApiKey,
        /// The lowest version that would do.
        ours_min: i16,
        /// The highest version that would do.
        ours_max: i16,
        /// The lowest and highest version that the broker offers, if it has the API at all.
        theirs: Option<(i16, i16)>,
    },
    /// There is no such topic.
    #[error("topic {topic} does not exist; create it first, or check its name")]
    UnknownTopic {
        /// Its name.
        topic: ByteString,
    },
    /// The topic has no such partition.
    #[error("{partition} does not exist: the topic has {partitions} partition{}, counted from 0", if *partitions == 1 { "" } else { "s" })]
    UnknownPartition {
        /// The partition.
        partition: TopicPartition,
        /// How many the topic has.
        partitions: i32,
    },
    /// The partition has no leader at present: its replicas are down, or an election is going on.
    #[error("{partition} has no leader at present{}", down(offline))]
    NoLeader {
        /// The partition.
        partition: TopicPartition,
        /// The nodes whose replicas of it are down, as far as the cluster says.
        offline: Vec<NodeId>,
    },
    /// The operation did not succeed in its time.
    #[error("{operation} did not succeed within {after_ms} ms{}", last_error(last.as_deref()))]
    TimedOut {
        /// What was tried.
        operation: &'static str,
        /// The time it had, in ms.
        after_ms: u64,
        /// How the last attempt failed.
        last: Option<Arc<Error>>,
    },
    /// The producer's buffer is full. `append` says so; the waiting forms of it wait.
    #[error("the producer's buffer of {limit} bytes is full; wait for room, or raise buffer_memory")]
    BufferFull {
        /// Its limit in bytes.
        limit: usize,
    },
    /// A record can never be sent because of its size.
    #[error("a record of {size} bytes for {topic} is over the limit of {limit}; raise {setting}")]
    RecordTooLarge {
        /// The topic it was meant for.
        topic: ByteString,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
        /// The setting that holds the limit.
        setting: &'static str,
    },
    /// There is neither a committed offset nor a rule where to begin (`offset_reset` is none).
    #[error("{partition} has no offset to begin at; seek, or set offset_reset")]
    NoOffset {
        /// The partition.
        partition: TopicPartition,
    },
    /// The position is not in the log (any more), and there is no rule where to go on (`offset_reset` is
    /// none).
    #[error(
        "offset {offset} of {partition} is not in the log, which begins at {log_start}; seek or set offset_reset"
    )]
    OffsetOutOfRange {
        /// The partition.
        partition: TopicPartition,
        /// The position.
        offset: Offset,
        /// Where the log begins; −1 if that is not known.
        log_start: Offset,
    },
    /// A new leader's log lacks records that were read from the one before (KIP-320), and there is no rule where to go
    /// on (`offset_reset` is none).
    #[error(
        "{partition}: the log was truncated behind what had been read up to {position}{}; seek or set offset_reset",
        divergence(*divergent)
    )]
    LogTruncated {
        /// The partition.
        partition: TopicPartition,
        /// How far it had been read.
        position: Offset,
        /// Where the new leader's log begins to differ, if that can be told.
        divergent: Option<Offset>,
    },
    /// A fetched batch is damaged. What came before it has been returned; to go on without its records, seek to
    /// `next_offset`.
    #[error(
        "{partition}: the batch at offset {offset} is damaged: {source}; seek to {next_offset} to go on behind it"
    )]
    DamagedBatch {
        /// The partition.
        partition: TopicPartition,
        /// The offset of the batch's first record; where even that is damaged, the position that was read at.
        offset: Offset,
        /// The offset behind the batch, as far as the damage lets it be told.
        next_offset: Offset,
        /// What is wrong with it.
        r#source: RecordError,
    },
    /// A batch of which a share consumer has acquired records is damaged. If `poll` says so, it has released them, and they
    /// are delivered again as often as the group's `share.delivery.count.limit` says.
    #[error("{partition}: the batch from offset {offset} to {next_offset} is damaged: {source}")]
    UnreadableRecords {
        /// The partition.
        partition: TopicPartition,
        /// The offset of the batch's first record.
        offset: Offset,
        /// The offset behind the batch, as far as the damage lets it be told.
        next_offset: Offset,
        /// What is wrong with it.
        r#source: RecordError,
    },
    /// A record cannot be encoded, or the batch it fell into.
    #[error("{partition}: a batch cannot be built: {source}")]
    Unencodable {
        /// The partition.
        partition: TopicPartition,
        /// Why.
        r#source: RecordError,
    },
    /// The segment file that an in-process broker answered with cannot be read.
    #[error("{partition}: the segment file cannot be read: {reason}")]
    UnreadableSegment {
        /// The partition.
        partition: TopicPartition,
        /// What the operating system said.
        reason: String,
    },
    /// A newer producer with the same transactional id has taken over.
    #[error("a newer producer with transactional id {transactional_id} has taken over; close this one")]
    ProducerFenced {
        /// The transactional id.
        transactional_id: String,
    },
    /// The open transaction cannot be committed any more.
    #[error("the transaction must be aborted: {source}")]
    TransactionFailed {
        /// What failed first.
        r#source: Arc<Error>,
    },
    /// The record was given up because its transaction was aborted.
    #[error("the record was given up: its transaction was aborted")]
    Aborted,
    /// It is not known whether the transaction was committed or aborted as asked.
    #[error(
        "whether transaction {transactional_id} {} is not known: {source}; fence the producer and read back",
        ended(*commit)
    )]
    OutcomeUnknown {
        /// The transactional id.
        transactional_id: String,
        /// Whether a commit was asked for, or an abort.
        commit: bool,
        /// The last thing that happened.
        r#source: Arc<Error>,
    },
    /// The broker no longer knows how the records that were in flight ended; some may be lost or written.
    #[error("{partition}: the outcome of records in flight is not known: {source}")]
    DeliveryUnknown {
        /// The partition.
        partition: TopicPartition,
        /// The last thing that happened.
        r#source: Arc<Error>,
    },
    /// The member is no longer in its group, or the group is rebalancing.
    #[error("the member must join group {group} again: {reason}")]
    NotInGroup {
        /// The group.
        group: String,
        /// The coordinator's reason.
        reason: ErrorCode,
    },
    /// Another member with the same group instance id has taken over.
    #[error("a newer member of group {group} with instance id {instance_id} has taken over; close this one")]
    MemberFenced {
        /// The group.
        group: String,
        /// The group instance id.
        instance_id: String,
    },
    /// What a share consumer said of records does not count, for they are not its any more: their time was over, their
    /// partition has moved, or the connection that they had come over is gone. They are delivered again, to it or another.
    #[error("{partition}: what was said of records does not count: {source}; they are delivered again")]
    NotAcknowledged {
        /// The partition.
        partition: TopicPartition,
        /// Why.
        r#source: Arc<Error>,
    },
    /// It is not known whether what a share consumer said of records counts: the answer did not come. Those for which it
    /// does not are delivered again.
    #[error(
        "{partition}: whether what was said of records counts is not known: {source}; they may be delivered again"
    )]
    AcknowledgementUnknown {
        /// The partition.
        partition: TopicPartition,
        /// The last thing that happened.
        r#source: Arc<Error>,
    },
    /// An operation that does not fit the state, which is an error of the caller.
    #[error("{operation}: {advice}")]
    Misuse {
        /// What was called.
        operation: &'static str,
        /// What to call instead, or before.
        advice: &'static str,
    },
    /// A setting that cannot be.
    #[error("{setting}: {reason}")]
    Config {
        /// The setting.
        setting: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// An assignor could not assign.
    #[error("assignor {assignor}: {reason}")]
    Assignor {
        /// Its name.
        assignor: String,
        /// Why.
        reason: String,
    },
    /// An answer that no broker may give.
    #[error("{api}: the answer of the broker makes no sense: {reason}")]
    BadAnswer {
        /// The API.
        api: ApiKey,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The producer or consumer has been closed.
    #[error("closed")]
    Closed,
}

/// As it reads for people: an error that `main` returns is printed with this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The result of the client's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What the caller must do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Connection { source, .. } => match source {
                ConnectionError::Unencodable { .. } => ErrorKind::GiveUp,
                _ => ErrorKind::Retry,
            },
            Self::Broker { code, .. } => kind_of(*code),
            Self::NoLeader { .. }
            | Self::TimedOut { .. }
            | Self::BufferFull { .. }
            | Self::UnreadableSegment { .. } => ErrorKind::Retry,
            Self::NotInGroup { .. } | Self::NotAcknowledged { .. } => ErrorKind::Rejoin,
            Self::TransactionFailed { .. } => ErrorKind::Abort,
            Self::ProducerFenced { .. } | Self::MemberFenced { .. } => ErrorKind::Fenced,
            Self::OutcomeUnknown { .. }
            | Self::DeliveryUnknown { .. }
            | Self::AcknowledgementUnknown { .. } => ErrorKind::Ambiguous,
            Self::UnsupportedVersion { .. }
            | Self::UnknownTopic { .. }
            | Self::UnknownPartition { .. }
            | Self::RecordTooLarge { .. }
            | Self::NoOffset { .. }
            | Self::OffsetOutOfRange { .. }
            | Self::LogTruncated { .. }
            | Self::DamagedBatch { .. }
            | Self::UnreadableRecords { .. }
            | Self::Unencodable { .. }
            | Self::Misuse { .. }
            | Self::Config { .. }
            | Self::Assignor { .. }
            | Self::BadAnswer { .. }
            | Self::Aborted
            | Self::Closed => ErrorKind::GiveUp,
        }
    }

    /// The broker's error code, if a broker refused.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Broker { code, .. } => Some(*code),
            Self::TransactionFailed { source }
            | Self::OutcomeUnknown { source, .. }
            | Self::DeliveryUnknown { source, .. }
            | Self::NotAcknowledged { source, .. }
            | Self::AcknowledgementUnknown { source, .. } => source.code(),
            Self::TimedOut { last: Some(last), .. } => last.code(),
            _ => None,
        }
    }
}

fn detail(message: Option<&str>) -> String {
    message.map(|message| format!(" ({message})")).unwrap_or_default()
}

fn offers(theirs: Option<(i16, i16)>) -> String {
    match theirs {
        Some((min, max)) => format!(", only from {min} to {max}"),
        None => " or any other".to_owned(),
    }
}

/// Which broker would do instead.
fn wanted(api: ApiKey) -> String {
    match first_release(api) {
        Some(release) => {
            format!("; Apache Kafka has {api} since {release}: ask a broker that does, or do without")
        }
        None => String::new(),
    }
}

fn last_error(last: Option<&Error>) -> String {
    last.map(|last| format!("; last: {last}")).unwrap_or_default()
}

fn down(offline: &[NodeId]) -> String {
    match offline {
        [] => String::new(),
        [node] => format!(": node {node} is down, or cannot open its log; what that node logs says why"),
        nodes => {
            let nodes = nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!(": nodes {nodes} are down, or cannot open its log; what they log says why")
        }
    }
}

fn divergence(divergent: Option<Offset>) -> String {
    divergent.map(|offset| format!(": it differs from offset {offset} on")).unwrap_or_default()
}

fn ended(commit: bool) -> &'static str {
    if commit { "was committed" } else { "was aborted" }
}

/// What a broker's refusal asks of the caller.
fn kind_of(code: ErrorCode) -> ErrorKind {
    match code {
        ErrorCode::UnknownMemberId
        | ErrorCode::IllegalGeneration
        | ErrorCode::RebalanceInProgress
        | ErrorCode::StaleMemberEpoch
        | ErrorCode::FencedMemberEpoch => ErrorKind::Rejoin,
        ErrorCode::ProducerFenced
        | ErrorCode::InvalidProducerEpoch
        | ErrorCode::InvalidProducerIdMapping
        | ErrorCode::FencedInstanceId
        | ErrorCode::TransactionCoordinatorFenced => ErrorKind::Fenced,
        ErrorCode::TransactionAbortable => ErrorKind::Abort,
        ErrorCode::UnknownServerError => ErrorKind::Ambiguous,
        code if code.is_retriable() => ErrorKind::Retry,
        _ => ErrorKind::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: ErrorCode) -> Error {
        Error::Broker { api: ApiKey::Produce, code, subject: "topic t".to_owned(), message: None }
    }

    #[test]
    fn an_error_says_what_to_do() {
        for (code, kind) in [
            (ErrorCode::NotLeaderOrFollower, ErrorKind::Retry),
            (ErrorCode::IllegalGeneration, ErrorKind::Rejoin),
            (ErrorCode::ProducerFenced, ErrorKind::Fenced),
            (ErrorCode::TransactionAbortable, ErrorKind::Abort),
            (ErrorCode::UnknownServerError, ErrorKind::Ambiguous),
            (ErrorCode::MessageTooLarge, ErrorKind::GiveUp),
        ] {
            assert_eq!(refused(code).kind(), kind, "{code}");
        }
        let failed = Error::TransactionFailed { source: Arc::new(refused(ErrorCode::MessageTooLarge)) };
        assert_eq!((failed.kind(), failed.code()), (ErrorKind::Abort, Some(ErrorCode::MessageTooLarge)));
    }

    #[test]
    fn a_timeout_tells_the_last_failure() {
        let last = Some(Arc::new(refused(ErrorCode::NotLeaderOrFollower)));
        let error = Error::TimedOut { operation: "sending", after_ms: 5, last };
        let text = error.to_string();
        assert!(
            text.starts_with("sending did not succeed within 5 ms; last: Produce of topic t: NOT_LEADER"),
            "{text}"
        );
    }
}
