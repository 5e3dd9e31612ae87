//! What a fetch reads of one partition.

use std::time::Duration;

use bytes::Bytes;
use thalweg_protocol::messages::fetch::{AbortedTransaction, FetchPartition, FetchRequest, PartitionData};
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, Records};
use thalweg_storage::{ReadBound, ReadInfo};
use tokio::time::Instant;

use crate::config::BrokerConfig;
use crate::error::Refusal;
use crate::partition::Partition;

/// The longest that a consumer may have the broker wait for records.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Where batches are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looking {
    /// Where nobody has to wait for the disk, as is so for whatever was appended or read lately.
    InMemory,
    /// Wherever they are: only on a thread that may wait.
    Anywhere,
}

/// What a fetch asks of all its partitions together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) bound: ReadBound,
    pub(super) min_bytes: usize,
    pub(super) max_bytes: usize,
    pub(super) deadline: Instant,
}

impl Terms {
    pub(super) fn of(request: &FetchRequest, config: &BrokerConfig) -> Self {
        let bound = match request.isolation_level {
            1 => ReadBound::LastStableOffset,
            _ => ReadBound::HighWatermark,
        };
        let max_wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)).min(MAX_WAIT);
        let max_bytes = u32::try_from(request.max_bytes).unwrap_or(0).min(config.fetch_max_bytes) as usize;
        Self {
            bound,
            // There is never more than that, so that nothing else is worth waiting for.
            min_bytes: usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes),
            max_bytes,
            deadline: Instant::now() + max_wait,
        }
    }

    /// Reads a partition after so many bytes of others. Returns as well whether it has records that there was no room for;
    /// `None` when they lie elsewhere.
    pub(super) fn read(
        &self,
        leader: &Partition,
        asked: &FetchPartition,
        read_so_far: usize,
        looking: Looking,
    ) -> Option<(PartitionData, bool)> {
        let index = asked.partition;
        if let Err(code) = leader.check_epoch(LeaderEpoch(asked.current_leader_epoch)) {
            return Some((refused(index, code), false));
        }
        let rest = self.max_bytes.saturating_sub(read_so_far);
        let max_bytes = u32::try_from(asked.partition_max_bytes).unwrap_or(0).min(rest as u32);
        // The first batch found is returned whole, however large it is, so that every consumer gets on (KIP-74).
        let at_least_one = read_so_far == 0;
        let offset = Offset(asked.fetch_offset);
        let read = match looking {
            Looking::InMemory => {
                leader.read_cached(offset, max_bytes, self.bound, at_least_one).transpose()?
            }
            Looking::Anywhere => leader.read(offset, max_bytes, self.bound, at_least_one),
        };
        Some(match read {
            Ok(read) => {
                let has_more = read.records.is_none() && offset < self.end(&read);
                (self.data(index, read), has_more)
            }
            Err(Refusal { code, .. }) => (refused(index, code), false),
        })
    }

    fn end(&self, read: &ReadInfo) -> Offset {
        match self.bound {
            ReadBound::LastStableOffset => read.last_stable_offset,
            _ => read.high_watermark,
        }
    }

    fn data(&self, index: i32, read: ReadInfo) -> PartitionData {
        PartitionData {
            partition_index: index,
            high_watermark: read.high_watermark.0,
            last_stable_offset: read.last_stable_offset.0,
            log_start_offset: read.log_start_offset.0,
            aborted_transactions: (self.bound == ReadBound::LastStableOffset).then(|| {
                let aborted = read.aborted_transactions.iter().map(|aborted| AbortedTransaction {
                    producer_id: aborted.producer_id.0,
                    first_offset: aborted.first_offset.0,
                });
                aborted.collect()
            }),
            records: Some(read.records.map_or_else(empty, Records::Slice)),
            ..Default::default()
        }
    }
}

/// What a partition has to say that cannot be read.
pub(super) fn refused(index: i32, code: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index: index,
        error_code: code.code(),
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        records: Some(empty()),
        ..Default::default()
    }
}

fn empty() -> Records {
    Records::Bytes(Bytes::new())
}
