//! Counters of what a share consumer has done.

/// What a [`ShareConsumer`](crate::ShareConsumer) has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareConsumerMetrics {
    /// Fetches that brokers answered.
    pub fetches: u64,
    /// Fetches without an answer, and partitions of fetches that were refused.
    pub fetch_failures: u64,
    /// Bytes of record batches that `poll` returned, as they are in the log.
    pub bytes: u64,
    /// Records that `poll` returned.
    pub records: u64,
    /// Those of them that were delivered before, to this consumer or another.
    pub redeliveries: u64,
    /// Records of which the broker took what was said: accepted, released, rejected and renewed.
    pub acknowledged: u64,
    /// Records of which what was said does not count, or is not known to.
    pub acknowledge_failures: u64,
    /// How often the group assigned anew.
    pub rebalances: u64,
    /// How often the coordinator had taken the member for dead.
    pub losses: u64,
    /// Share sessions that were opened: one for each broker, and one more after each failure.
    pub sessions: u64,
}
