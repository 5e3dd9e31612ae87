//! What can be set about the controller.

use serde::{Deserialize, Serialize};

/// What can be set about the controller's local log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalConfig {
    /// Bytes of log after which a snapshot is written and the log begins anew. Default 4 MiB: some ten
    /// thousand commands, replayed in well under a second. A log is also left to grow as large as its last
    /// snapshot, so that the cost of snapshots stays in proportion.
    pub snapshot_after_bytes: u64,
    /// Proposals that may wait for the log. Default 10,000; beyond that they are refused, not queued.
    pub max_waiting_proposals: usize,
    /// Bytes that the proposals that wait may have in all. Default 32 MiB.
    pub max_waiting_bytes: usize,
    /// Bytes that one command may have in the log. Default 8 MiB: a manual assignment of 10,000 partitions
    /// takes less than 1 MiB.
    pub max_command_bytes: usize,
}

impl Default for LocalConfig {
    fn default() -> Self {
        Self {
            snapshot_after_bytes: 4 << 20,
            max_waiting_proposals: 10_000,
            max_waiting_bytes: 32 << 20,
            max_command_bytes: 8 << 20,
        }
    }
}
