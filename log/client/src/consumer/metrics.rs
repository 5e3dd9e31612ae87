//! Counters of what a consumer has done.

/// What a [`Consumer`](crate::Consumer) has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerMetrics {
    /// Fetches that brokers answered.
    pub fetches: u64,
    /// Fetches without an answer, and partitions of fetches that were refused.
    pub fetch_failures: u64,
    /// Bytes of record batches that `poll` returned, as they are in the log.
    pub bytes: u64,
    /// Records that these batches claim to hold.
    pub records: u64,
    /// How often the group assigned anew.
    pub rebalances: u64,
    /// How often partitions were lost to other members before they were given up.
    pub losses: u64,
    /// How often a position was no longer in a log.
    pub resets: u64,
    /// How often a log turned out to be cut behind what had been read of it (KIP-320).
    pub truncations: u64,
}
