//! The broker's settings: plain data, read from a file or built in code.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that can be set on a broker. Every field has a default, so `BrokerConfig { data_dir,
/// ..Default::default() }` is a whole configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BrokerConfig {
    /// The directory that holds the log and the metadata. It belongs to one running broker at a time.
    pub data_dir: PathBuf,
    /// The node's id, not negative. Default the one that the directory knows; 1 for a new one: a cluster counts its
    /// nodes from there, and clients take 0 for unset here and there.
    pub node_id: Option<i32>,
    /// Where to listen, each `host:port`; `localhost` means both 127.0.0.1 and ::1. Port 0 lets the system
    /// choose. Default none: an embedded broker needs no socket.
    pub listen: Vec<String>,
    /// The `host:port` that clients are told to connect to. Default: the first of `listen`, with the port it
    /// really got.
    pub advertised: Option<String>,
    /// Where metrics and health are told over HTTP, `host:port`, on this machine only: `/metrics` for Prometheus,
    /// `/health/live` and `/health/ready`. Default none.
    pub metrics_listen: Option<String>,
    /// A request that takes this many ms or longer is told of in the log, with where its time went; 0 tells of none.
    /// Waiting for what a fetch asks for or a group's other members does not count. Default 1 s.
    pub slow_request_ms: u64,
    /// Partitions of a topic that is created without saying how many. Default 1, as Kafka's.
    pub default_partitions: i32,
    /// Whether a topic is created when a producer or consumer first asks for it. Default true, as Kafka's.
    pub auto_create_topics: bool,
    /// The largest request in bytes. Default 100 MiB, as Kafka's `socket.request.max.bytes`.
    pub max_request_bytes: u32,
    /// Bytes of requests that may be in memory at once; sockets are not read above it. Default 256 MiB: two of
    /// the largest requests and some.
    pub request_memory_bytes: usize,
    /// Files of segments that are open at once; others are closed when they have not been used lately, and opened again when they
    /// are needed. Default 16,384, and never more than a quarter of the descriptors that the process may have. Files that
    /// are being written to stay open, so that there may be more.
    pub max_open_files: usize,
    /// Connections at once. Default 16,384: each costs a file descriptor and a few KiB. Never more than five eighths of the
    /// descriptors that the process may have: the logs need the others.
    pub max_connections: usize,
    /// Connections at once from one address. Default 12,288: behind a proxy or on localhost many share one. Never more than
    /// three quarters of those that there may be in all, so that one address does not keep out the others.
    pub max_connections_per_address: usize,
    /// Requests of one connection that may wait for their answers at once. Default 64: an idempotent producer
    /// sends five per broker, a consumer one.
    pub max_in_flight_requests: usize,
    /// After how many ms without a request a connection is closed. Default 10 minutes, as Kafka's
    /// `connections.max.idle.ms`.
    pub idle_connection_ms: u64,
    /// How many ms a request that has begun to arrive may take to arrive whole. Default 30 s: a half-sent
    /// frame holds request memory.
    pub partial_request_ms: u64,
    /// The most bytes of records in one answer to a fetch, whatever the client asks for; a first batch larger
    /// than that is still sent whole. Default 55 MiB, as Kafka's `fetch.max.bytes`.
    pub fetch_max_bytes: u32,
    /// Fetch sessions at once; a client that gets none names its partitions in each fetch. Default 1,000, as Kafka's
    /// `max.incremental.fetch.session.cache.slots`.
    pub fetch_sessions: usize,
    /// Partitions of all fetch sessions together. Default 262,144, which take about 100 MiB (Kafka has no such limit).
    pub fetch_session_partitions: usize,
    /// How many ms a fetch session has to be unused before it makes way for another. Default 2 minutes, which
    /// is fixed in Kafka.
    pub fetch_session_min_idle_ms: u64,
    /// Threads that sync files. Default 4: a round syncs its files in parallel, and more does not help one
    /// disk.
    pub sync_threads: usize,
    /// How many files of 32 MiB the journal of sync rounds may have; 0 for none. Default 4. With it a round over
    /// partitions that have little each is one write to disk and not a sync of each. The first two are made when there
    /// have been 100 such syncs within a second.
    pub journal_files: usize,
    /// Threads that read ahead what is not in the page cache. Default 4.
    pub read_threads: usize,
    /// How often retention looks at each log, in ms. Default 5 minutes, as Kafka's
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval_ms: u64,
    /// How often the cleaner looks for compacted logs that are dirty enough, in ms. Default 15 s, as Kafka's
    /// `log.cleaner.backoff.ms`.
    pub cleaner_check_interval_ms: u64,
    /// The most memory in bytes that the cleaner takes for the keys of a log. Default 128 MiB, as Kafka's
    /// `log.cleaner.dedupe.buffer.size`: 4.2 million keys at a time. It takes no more than the log needs, and
    /// gives it back after each round.
    pub cleaner_memory_bytes: usize,
    /// The most bytes that the cleaner reads and writes in a second. Default 128 MiB, a fraction of what a solid-state
    /// disk does (Kafka's `log.cleaner.io.max.bytes.per.second` is unlimited).
    pub cleaner_io_bytes_per_second: u64,
    /// Configs of topics that do not set them themselves, by name (`retention.ms`, …). Default none: then each
    /// config has the default that Kafka gives it.
    pub topic_defaults: BTreeMap<String, String>,
    /// Partitions of `__consumer_offsets`, once it is made; it cannot be changed afterwards. Default 4: they only
    /// spread coordinators over nodes, and each costs a log that is opened at every start (Kafka has 50).
    pub offsets_topic_partitions: i32,
    /// Partitions of `__transaction_state`, likewise. Default 4.
    pub transaction_topic_partitions: i32,
    /// How long an empty group waits for more members before its first rebalance, in ms. Default 0: a group
    /// that starts with one process is live at once, and each further member costs a rebalance (Kafka waits 3 s).
    pub group_initial_rebalance_delay_ms: u64,
    /// The shortest session timeout in ms that a group's member may ask for. Default 6 s, as Kafka's.
    pub group_min_session_timeout_ms: i32,
    /// The longest session timeout in ms that a group's member may ask for. Default 30 minutes, as Kafka's.
    pub group_max_session_timeout_ms: i32,
    /// The most members of one group. Default 10,000: each rebalance sends the leader all of them.
    pub group_max_size: usize,
    /// How often members of groups of the consumer protocol (KIP-848) send heartbeats, in ms. Default 5 s, as Kafka's
    /// `group.consumer.heartbeat.interval.ms`.
    pub group_consumer_heartbeat_interval_ms: i32,
    /// After how long without a heartbeat such a member is given up, in ms. Default 45 s, as Kafka's
    /// `group.consumer.session.timeout.ms`.
    pub group_consumer_session_timeout_ms: u64,
    /// The most members of one such group. Default 10,000: each change of the members computes all assignments anew.
    pub group_consumer_max_size: usize,
    /// Which groups with members may change from one protocol to the other. Default both ways, as Kafka's
    /// `group.consumer.migration.policy`. Groups without members may always.
    pub group_consumer_migration_policy: GroupMigrationPolicy,
    /// How often members of share groups (KIP-932) send heartbeats, in ms. Default 5 s, as Kafka's
    /// `group.share.heartbeat.interval.ms`.
    pub group_share_heartbeat_interval_ms: i32,
    /// After how long without a heartbeat such a member is given up, in ms. Default 45 s, as Kafka's
    /// `group.share.session.timeout.ms`.
    pub group_share_session_timeout_ms: u64,
    /// The most members of one share group. Default 200, as Kafka's `group.share.max.size`.
    pub group_share_max_size: usize,
    /// How long in ms a member of a share group may have a record before it is delivered to another. Default 30 s, as
    /// Kafka's `group.share.record.lock.duration.ms`.
    pub group_share_record_lock_duration_ms: u64,
    /// How often a record is delivered to a share group at most; then it is given up. Default 5, as Kafka's
    /// `group.share.delivery.count.limit`.
    pub group_share_delivery_count_limit: i16,
    /// How many records of one partition a share group may have before it that it is not done with. Default 2,000, as Kafka's
    /// `group.share.partition.max.record.locks`.
    pub group_share_partition_max_record_locks: u64,
    /// Sessions of members of share groups at once. Default 2,000, as Kafka's `group.share.max.share.sessions`.
    pub group_share_max_share_sessions: usize,
    /// Partitions of `__share_group_state`, once it is made; it cannot be changed afterwards. Default 4.
    pub share_state_topic_partitions: i32,
    /// The longest metadata of a committed offset in bytes. Default 4,096, as Kafka's.
    pub offset_metadata_max_bytes: usize,
    /// How long in ms the offsets of a group without members are kept. Default 7 days, as Kafka's.
    pub offsets_retention_ms: i64,
    /// The longest transaction timeout in ms that a producer may ask for. Default 15 minutes, as Kafka's
    /// `transaction.max.timeout.ms`.
    pub transaction_max_timeout_ms: i32,
    /// How long in ms a transactional id is remembered without being used. Default 7 days, as Kafka's.
    pub transactional_id_expiration_ms: i64,
    /// Sends the requests and responses of in-process connections through bytes and back. Default false; tests
    /// turn it on to show that it makes no difference.
    pub in_process_through_bytes: bool,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("thalweg-data"),
            node_id: None,
            listen: Vec::new(),
            advertised: None,
            metrics_listen: None,
            slow_request_ms: 1_000,
            default_partitions: 1,
            auto_create_topics: true,
            max_request_bytes: 100 << 20,
            request_memory_bytes: 256 << 20,
            max_open_files: 16_384,
            max_connections: 16_384,
            max_connections_per_address: 12_288,
            max_in_flight_requests: 64,
            idle_connection_ms: 600_000,
            partial_request_ms: 30_000,
            fetch_max_bytes: 55 << 20,
            fetch_sessions: 1000,
            fetch_session_partitions: 262_144,
            fetch_session_min_idle_ms: 120_000,
            sync_threads: 4,
            journal_files: 4,
            read_threads: 4,
            retention_check_interval_ms: 300_000,
            cleaner_check_interval_ms: 15_000,
            cleaner_memory_bytes: 128 << 20,
            cleaner_io_bytes_per_second: 128 << 20,
            topic_defaults: BTreeMap::new(),
            offsets_topic_partitions: 4,
            transaction_topic_partitions: 4,
            group_initial_rebalance_delay_ms: 0,
            group_min_session_timeout_ms: 6_000,
            group_max_session_timeout_ms: 1_800_000,
            group_max_size: 10_000,
            group_consumer_heartbeat_interval_ms: 5_000,
            group_consumer_session_timeout_ms: 45_000,
            group_consumer_max_size: 10_000,
            group_consumer_migration_policy: GroupMigrationPolicy::Bidirectional,
            group_share_heartbeat_interval_ms: 5_000,
            group_share_session_timeout_ms: 45_000,
            group_share_max_size: 200,
            group_share_record_lock_duration_ms: 30_000,
            group_share_delivery_count_limit: 5,
            group_share_partition_max_record_locks: 2_000,
            group_share_max_share_sessions: 2_000,
            share_state_topic_partitions: 4,
            offset_metadata_max_bytes: 4_096,
            offsets_retention_ms: 7 * 24 * 3_600_000,
            transaction_max_timeout_ms: 900_000,
            transactional_id_expiration_ms: 7 * 24 * 3_600_000,
            in_process_through_bytes: false,
        }
    }
}

/// Which groups with members may change from one protocol to the other (KIP-848).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupMigrationPolicy {
    /// None.
    Disabled,
    /// Classic groups of consumers, when a member of the consumer protocol joins.
    Upgrade,
    /// Groups of the consumer protocol, when the last member that speaks it has gone.
    Downgrade,
    /// Both.
    Bidirectional,
}

impl GroupMigrationPolicy {
    pub(crate) const ALL: [Self; 4] = [Self::Disabled, Self::Upgrade, Self::Downgrade, Self::Bidirectional];

    /// As it is written.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Bidirectional => "bidirectional",
        }
    }

    /// Whether classic groups may become groups of the consumer protocol.
    pub(crate) fn allows_upgrade(self) -> bool {
        matches!(self, Self::Upgrade | Self::Bidirectional)
    }

    /// Whether groups of the consumer protocol may become classic ones.
    pub(crate) fn allows_downgrade(self) -> bool {
        matches!(self, Self::Downgrade | Self::Bidirectional)
    }
}
