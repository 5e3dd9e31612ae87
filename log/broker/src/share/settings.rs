//! The settings of a share group.

use thalweg_controller::{GroupConfig, IsolationLevel, ShareOffsetReset};

use crate::config::BrokerConfig;

/// The settings of a share group: what its configs say, or what the node gives to groups that do not set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareSettings {
    /// `share.auto.offset.reset`: where the group begins to read a partition.
    pub(crate) auto_offset_reset: ShareOffsetReset,
    /// `share.isolation.level`: whether only records of committed transactions are delivered.
    pub(crate) reads_committed: bool,
    /// `share.record.lock.duration.ms`: how long a member may have a record.
    pub(crate) record_lock_ms: u64,
    /// `share.delivery.count.limit`: a record that was delivered so often is not delivered again.
    pub(crate) delivery_count_limit: i16,
    /// `share.partition.max.record.locks`: how many records of a partition the group may have before it.
    pub(crate) max_record_locks: u64,
    /// `share.renew.acknowledge.enable`: whether members may renew their locks (KIP-1222).
    pub(crate) may_renew: bool,
    /// `share.heartbeat.interval.ms`.
    pub(crate) heartbeat_interval_ms: i32,
    /// `share.session.timeout.ms`.
    pub(crate) session_timeout_ms: u64,
}

impl ShareSettings {
    /// What these configs of a group say.
    pub(crate) fn of(config: &GroupConfig) -> Self {
        let positive = |value: i32| u64::try_from(value).unwrap_or(0);
        Self {
            auto_offset_reset: config.share_auto_offset_reset,
            reads_committed: config.share_isolation_level == IsolationLevel::ReadCommitted,
            record_lock_ms: positive(config.share_record_lock_duration_ms),
            delivery_count_limit: i16::try_from(config.share_delivery_count_limit).unwrap_or(i16::MAX),
            max_record_locks: positive(config.share_partition_max_record_locks),
            may_renew: config.share_renew_acknowledge_enable,
            heartbeat_interval_ms: config.share_heartbeat_interval_ms,
            session_timeout_ms: positive(config.share_session_timeout_ms),
        }
    }
}

/// What a node gives to share groups that set nothing.
pub(super) fn of_node(config: &BrokerConfig) -> GroupConfig {
    let int = |value: u64| i32::try_from(value).unwrap_or(i32::MAX);
    GroupConfig {
        share_record_lock_duration_ms: int(config.group_share_record_lock_duration_ms),
        share_delivery_count_limit: i32::from(config.group_share_delivery_count_limit),
        share_partition_max_record_locks: int(config.group_share_partition_max_record_locks),
        share_heartbeat_interval_ms: config.group_share_heartbeat_interval_ms,
        share_session_timeout_ms: int(config.group_share_session_timeout_ms),
        ..GroupConfig::default()
    }
}
