//! What can be set on a client, a producer, a consumer and a share consumer: plain data, each field with unit, default and
//! reason.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thalweg_protocol::{Compression, Connect};

/// How a [`Client`](crate::Client) finds the cluster and talks to it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientConfig {
    /// `host:port` of some brokers, from which the others are learnt. Default: `127.0.0.1:9092`. Ignored by a
    /// connector that runs in process.
    pub bootstrap: Vec<String>,
    /// Name shown in the broker's log and quotas. Default: `thalweg`.
    pub client_id: String,
    /// What opens connections; `None` (the default) is TCP.
    #[serde(skip)]
    pub connector: Option<Arc<dyn Connect>>,
    /// Time for opening a connection, in ms. Default: 10 000.
    pub connect_timeout_ms: u64,
    /// Time for an answer, in ms, on top of what the request itself asks the broker to wait. Default: 30 000.
    pub request_timeout_ms: u64,
    /// Time for a whole call with all its retries, in ms. Default: 60 000, as Java's
    /// `default.api.timeout.ms`.
    pub api_timeout_ms: u64,
    /// First pause before a retry, in ms; doubles each time, with ±20 % jitter. Default: 50.
    pub retry_backoff_ms: u64,
    /// Longest pause before a retry, in ms. Default: 1000.
    pub retry_backoff_max_ms: u64,
    /// Metadata older than this, in ms, is refreshed before it is used. Default: 300 000, so that groups and
    /// producers find a topic's new partitions within five minutes.
    pub metadata_max_age_ms: u64,
    /// How long a topic that the cluster does not know is asked for again, in ms: it may just have been
    /// created. Default: 1000.
    pub unknown_topic_wait_ms: u64,
    /// Seed of the jitter; `None` (the default) draws one. Tests set it.
    pub seed: Option<u64>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            bootstrap: vec!["127.0.0.1:9092".to_owned()],
            client_id: "thalweg".to_owned(),
            connector: None,
            connect_timeout_ms: 10_000,
            request_timeout_ms: 30_000,
            api_timeout_ms: 60_000,
            retry_backoff_ms: 50,
            retry_backoff_max_ms: 1_000,
            metadata_max_age_ms: 300_000,
            unknown_topic_wait_ms: 1_000,
            seed: None,
        }
    }
}

impl ClientConfig {
    /// A cluster reached over TCP through these brokers (`host:port`, separated by commas).
    pub fn with_bootstrap(bootstrap: &str) -> Self {
        let bootstrap =
            bootstrap.split(',').map(str::trim).filter(|b| !b.is_empty()).map(str::to_owned).collect();
        Self { bootstrap, ..Self::default() }
    }

    /// A broker reached through `connector`, for example one that is embedded in this process.
    pub fn with_connector(connector: Arc<dyn Connect>) -> Self {
        Self { connector: Some(connector), ..Self::default() }
    }

    /// The same with another client id.
    pub fn client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = client_id.into();
        self
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("bootstrap", &self.bootstrap)
            .field("client_id", &self.client_id)
            .field("connector", &if self.connector.is_some() { "own" } else { "TCP" })
            .finish_non_exhaustive()
    }
}

/// When a record counts as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acks {
    /// The broker does not answer; records may be lost without notice, and offsets are not known.
    None,
    /// The leader has it in its log.
    Leader,
    /// All in-sync replicas have it (and on a durable topic, on disk). Needed for idempotence.
    #[default]
    All,
}

impl Acks {
    /// As it stands in a Produce request.
    pub fn code(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

/// How a [`Producer`](crate::Producer) batches, sends and retries.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ProducerConfig {
    /// When a record counts as written. Default: all.
    pub acks: Acks,
    /// Whether sequence numbers keep retries from duplicating or reordering records (KIP-98). Default: on;
    /// off without effect when `acks` is not all, and always on for a transactional producer.
    pub idempotent: bool,
    /// Makes the producer transactional under this id; a newer producer of the same id fences this one.
    pub transactional_id: Option<String>,
    /// Time after which the broker aborts an open transaction by itself, in ms. Default: 60 000.
    pub transaction_timeout_ms: i32,
    /// How batches are compressed. Default: not at all.
    #[serde(with = "compression_name")]
    pub compression: Compression,
    /// Size of a full batch before compression, in bytes. Default: 128 KiB: large enough that headers and
    /// checksums do not count. A record larger than this gets a batch of its own.
    pub batch_size: usize,
    /// How long a batch that is not full waits for more records, in ms. Default: 5, as Java's since 4.0.
    pub linger_ms: u64,
    /// Bytes of records that may wait or be in flight; appending waits when they are used up. Default: 32
    /// MiB.
    pub buffer_memory: usize,
    /// How long a blocking or async append waits for room or metadata, in ms. Default: 60 000.
    pub max_block_ms: u64,
    /// Largest Produce request, in bytes. Default: 4 MiB. Larger than the broker's limit of a single *batch*
    /// (1 MiB) because a request holds one batch for each of many partitions.
    pub max_request_size: usize,
    /// Requests in flight on one connection; idempotence allows at most 5 (the broker remembers five
    /// batches). Default: 5.
    pub max_in_flight: usize,
    /// Time from the close of a batch until it counts as failed, retries included, in ms. Default: 120 000.
    pub delivery_timeout_ms: u64,
}

impl Default for ProducerConfig {
    fn default() -> Self {
        Self {
            acks: Acks::All,
            idempotent: true,
            transactional_id: None,
            transaction_timeout_ms: 60_000,
            compression: Compression::None,
            batch_size: 128 << 10,
            linger_ms: 5,
            buffer_memory: 32 << 20,
            max_block_ms: 60_000,
            max_request_size: 4 << 20,
            max_in_flight: 5,
            delivery_timeout_ms: 120_000,
        }
    }
}

impl ProducerConfig {
    /// A transactional producer under this id.
    pub fn transactional(id: impl Into<String>) -> Self {
        Self { transactional_id: Some(id.into()), ..Self::default() }
    }

    /// Whether batches carry a producer id and sequence numbers.
    pub fn is_idempotent(&self) -> bool {
        self.transactional_id.is_some() || (self.idempotent && self.acks == Acks::All)
    }
}

/// Which records of transactions a consumer sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// All, those of open and aborted transactions too.
    ReadUncommitted,
    /// Only those of committed transactions, and none past the first open one. Default.
    #[default]
    ReadCommitted,
}

impl Isolation {
    /// As it stands in Fetch and ListOffsets requests.
    pub fn code(self) -> i8 {
        match self {
            Self::ReadUncommitted => 0,
            Self::ReadCommitted => 1,
        }
    }
}

/// Where a consumer begins when the group has no offset, or when its offset is no longer in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OffsetReset {
    /// At the first record there is.
    Earliest,
    /// After the last record there is. Default, as Java's.
    #[default]
    Latest,
    /// Nowhere: `poll` fails with [`Error::NoOffset`](crate::Error::NoOffset) and the caller seeks.
    None,
}

/// By which protocol the members of a group share its partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupProtocol {
    /// The members' leader assigns, by an [`Assignor`](crate::Assignor) of theirs. Default: every broker knows it.
    #[default]
    Classic,
    /// The coordinator assigns (KIP-848): members that come and go disturb only those whose partitions move. Needs
    /// Apache Kafka 4.0 or a broker that names ConsumerGroupHeartbeat.
    Consumer,
}

/// How a [`Consumer`](crate::Consumer) reads, and how it takes part in a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerConfig {
    /// The group whose offsets are read and committed, and whose members share what they subscribe to. `None`
    /// (the default): offsets are the caller's own, and `subscribe` is refused.
    pub group: Option<String>,
    /// How the group shares its partitions; all members must agree. Default: classic.
    pub group_protocol: GroupProtocol,
    /// Under [`GroupProtocol::Consumer`], the coordinator's assignor that this member is for, such as `uniform` or
    /// `range`. Default: the coordinator chooses.
    pub remote_assignor: Option<String>,
    /// Keeps the member's assignment over a restart within the session timeout (KIP-345). Default: none.
    pub group_instance_id: Option<String>,
    /// Default: committed only, so that a plain reader never sees what a transaction takes back.
    pub isolation: Isolation,
    /// Default: latest.
    pub offset_reset: OffsetReset,
    /// Commits the positions of what `poll` returned before this often, in ms, and when partitions are
    /// revoked. `None` (the default): only the caller commits.
    pub auto_commit_interval_ms: Option<u64>,
    /// Answer a fetch at the latest after this, in ms. Default: 500.
    pub fetch_max_wait_ms: i32,
    /// Answer a fetch once there are so many bytes. Default: 1.
    pub fetch_min_bytes: i32,
    /// Bytes of one fetch at most (a first batch that is larger comes whole). Default: 16 MiB.
    pub fetch_max_bytes: i32,
    /// Bytes of one partition in one fetch at most. Default: 2 MiB.
    pub max_partition_fetch_bytes: i32,
    /// Without a heartbeat for this long, in ms, the member is taken for dead. Default: 45 000. Under
    /// [`GroupProtocol::Consumer`] the broker decides on this and on the time between heartbeats.
    pub session_timeout_ms: i32,
    /// Time between heartbeats, in ms. Default: 3000; at most a third of the session timeout.
    pub heartbeat_interval_ms: u64,
    /// Without a `poll` for this long, in ms, the member leaves the group; also the time the group waits for
    /// its members in a rebalance. Default: 300 000.
    pub max_poll_interval_ms: u64,
    /// When a partition could not be read for this long, in ms, `poll` says why, and says it again after as long; it is
    /// tried on all the same. Default: none, as with Kafka's clients: a broker may be away for any time.
    pub stall_timeout_ms: Option<u64>,
    /// Rack of the consumer, for reading from the nearest replica (KIP-392). Default: none.
    pub rack: Option<String>,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            group: None,
            group_protocol: GroupProtocol::Classic,
            remote_assignor: None,
            group_instance_id: None,
            isolation: Isolation::ReadCommitted,
            offset_reset: OffsetReset::Latest,
            auto_commit_interval_ms: None,
            fetch_max_wait_ms: 500,
            fetch_min_bytes: 1,
            fetch_max_bytes: 16 << 20,
            max_partition_fetch_bytes: 2 << 20,
            session_timeout_ms: 45_000,
            heartbeat_interval_ms: 3_000,
            max_poll_interval_ms: 300_000,
            stall_timeout_ms: None,
            rack: None,
        }
    }
}

impl ConsumerConfig {
    /// A member of `group`.
    pub fn group(group: impl Into<String>) -> Self {
        Self { group: Some(group.into()), ..Self::default() }
    }
}

/// What becomes of records of which the consumer has said nothing when it polls again (KIP-932).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AcknowledgementMode {
    /// They count as accepted. Default, as Java's.
    #[default]
    Implicit,
    /// That is an error of the caller, who has to say something of each.
    Explicit,
}

/// How exactly a fetch of a share consumer keeps to [`ShareConsumerConfig::max_poll_records`] (KIP-1206).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AcquireMode {
    /// Batches are acquired whole, so that there may be more. Default: the broker has the least to keep in mind.
    #[default]
    BatchOptimized,
    /// There are never more, and `poll` asks one broker at a time: for records that take long. Needs Apache Kafka 4.2 or
    /// a broker that offers version 2 of ShareFetch.
    RecordLimit,
}

impl AcquireMode {
    /// As it stands in ShareFetch requests.
    pub fn code(self) -> i8 {
        match self {
            Self::BatchOptimized => 0,
            Self::RecordLimit => 1,
        }
    }
}

/// How a [`ShareConsumer`](crate::ShareConsumer) takes part in a share group (KIP-932). Where the group begins to read, how long
/// a record stays with a member, how often it is delivered and whether records of open transactions are, are configs of
/// the group: `share.auto.offset.reset`, `share.record.lock.duration.ms`, `share.delivery.count.limit` and
/// `share.isolation.level`, set by [`Admin::alter_configs`](crate::Admin::alter_configs).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareConsumerConfig {
    /// The share group. Required; no group of consumers may have the same name.
    pub group: String,
    /// What becomes of records of which nothing was said. Default: they count as accepted.
    pub acknowledgement: AcknowledgementMode,
    /// Whether there may be more records than asked for. Default: there may, as batches are acquired whole.
    pub acquire_mode: AcquireMode,
    /// Records of one fetch at most, as far as `acquire_mode` says. Default: 500, as Java's `max.poll.records`.
    pub max_poll_records: i32,
    /// Answer a fetch at the latest after this, in ms, and when the `poll` that it is for would end. Default: 500.
    pub fetch_max_wait_ms: i32,
    /// Answer a fetch once there are so many bytes. Default: 1.
    pub fetch_min_bytes: i32,
    /// Bytes of one fetch at most (a first batch that is larger comes whole). Default: 16 MiB.
    pub fetch_max_bytes: i32,
    /// Without a `poll` for this long, in ms, the member leaves the group, which gives back what it has. Default:
    /// 300 000.
    pub max_poll_interval_ms: u64,
    /// Rack of the consumer, for the coordinator's assignor. Default: none.
    pub rack: Option<String>,
}

impl Default for ShareConsumerConfig {
    fn default() -> Self {
        Self {
            group: String::new(),
            acknowledgement: AcknowledgementMode::Implicit,
            acquire_mode: AcquireMode::BatchOptimized,
            max_poll_records: 500,
            fetch_max_wait_ms: 500,
            fetch_min_bytes: 1,
            fetch_max_bytes: 16 << 20,
            max_poll_interval_ms: 300_000,
            rack: None,
        }
    }
}

impl ShareConsumerConfig {
    /// A member of `group`.
    pub fn group(group: impl Into<String>) -> Self {
        Self { group: group.into(), ..Self::default() }
    }

    /// The same, which has to say something of each record.
    pub fn explicit(self) -> Self {
        Self { acknowledgement: AcknowledgementMode::Explicit, ..self }
    }
}

/// Writes [`Compression`] as the name that Kafka's configurations use.
mod compression_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use thalweg_protocol::Compression;

    const NAMES: [(&str, Compression); 5] = [
        ("none", Compression::None),
        ("gzip", Compression::Gzip),
        ("snappy", Compression::Snappy),
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
    ];

    pub(super) fn serialize<S: Serializer>(value: &Compression, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(NAMES[*value as usize].0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Compression, D::Error> {
        let name = String::deserialize(from)?;
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value).ok_or_else(|| {
            D::Error::custom(format!("compression {name:?} is not one of none, gzip, snappy, lz4, zstd"))
        })
    }
}
