//! Looks for records that are free, acquires them, and waits for some when there are none.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::messages::Response;
use thalweg_protocol::messages::share_fetch::{
    AcquiredRecords, PartitionData, ShareFetchRequest, ShareFetchResponse, ShareFetchableTopicResponse,
};
use thalweg_protocol::{ErrorCode, LogSlice, Offset, Records, Uuid};
use thalweg_storage::{ReadBound, ReadInfo};
use tokio::time::{Instant, timeout_at};

use crate::config::BrokerConfig;
use crate::core::Core;
use crate::error::Refusal;
use crate::group::TopicIdPartition;
use crate::handlers::share_requests::Acknowledged;
use crate::partition::{Bell, Partition, Place};
use crate::share::{
    AcquireMode, AcquireTerms, Acquired, Found, HeldShare, Look, SessionKey, ShareSettings, find_spans,
};

/// The longest that a member may have the broker wait for records.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// How many times in a row records may be found that nobody can acquire, because others were faster or because they are not
/// for consumers, before the fetch waits to be woken like any other.
const MAX_ROUNDS: usize = 64;

/// What a fetch asks of all its partitions together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    mode: AcquireMode,
    max_records: u64,
    batch_size: u64,
    bound: ReadBound,
    min_bytes: usize,
    max_bytes: usize,
    deadline: Instant,
}

impl Terms {
    pub(super) fn of(
        request: &ShareFetchRequest,
        mode: AcquireMode,
        settings: &ShareSettings,
        config: &BrokerConfig,
    ) -> Self {
        let max_wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)).min(MAX_WAIT);
        let max_bytes = u32::try_from(request.max_bytes).unwrap_or(0).min(config.fetch_max_bytes) as usize;
        Self {
            mode,
            max_records: u64::try_from(request.max_records).unwrap_or(0),
            batch_size: u64::try_from(request.batch_size).unwrap_or(0),
            bound: match settings.reads_committed {
                true => ReadBound::LastStableOffset,
                false => ReadBound::HighWatermark,
            },
            min_bytes: usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes),
            max_bytes,
            deadline: Instant::now() + max_wait,
        }
    }
}

/// A partition that is read.
pub(super) struct Source {
    pub(super) at: TopicIdPartition,
    pub(super) leader: Arc<Partition>,
    pub(super) held: Arc<HeldShare>,
}

/// A fetch with its partitions looked up, the one whose turn it is first.
pub(super) struct Fetch {
    pub(super) core: Arc<Core>,
    pub(super) key: SessionKey,
    /// The number of the session.
    pub(super) session: u64,
    pub(super) settings: ShareSettings,
    pub(super) sources: Vec<Source>,
    /// The partitions that cannot be read.
    pub(super) refused: Vec<(TopicIdPartition, ErrorCode)>,
    pub(super) terms: Terms,
}

/// Batches that were found in a partition.
struct Read<'a> {
    source: &'a Source,
    from: Offset,
    slice: LogSlice,
    found: Found,
}

/// What one look at all partitions found.
#[derive(Default)]
struct Looked<'a> {
    reads: Vec<Read<'a>>,
    bytes: usize,
    refused: Vec<(TopicIdPartition, ErrorCode)>,
}

/// What there is to say of each partition.
type Data = BTreeMap<Uuid, BTreeMap<i32, PartitionData>>;

impl Fetch {
    /// Waits for records, and for what was said of others to be for good; answers then.
    pub(super) async fn answer(self: Arc<Self>, acknowledged: Vec<Acknowledged>) -> Response {
        let mut data = match self.sources.is_empty() {
            true => Data::new(),
            // What becomes of acknowledgements is not kept waiting for records.
            false => Arc::clone(&self).acquire(!acknowledged.is_empty()).await,
        };
        for (at, code) in &self.refused {
            entry(&mut data, *at).error_code = code.code();
        }
        for result in acknowledged {
            let (at, code) = result.settled().await;
            let entry = entry(&mut data, at);
            entry.acknowledge_error_code = code.code();
            entry.acknowledge_error_message =
                (code != ErrorCode::None).then(|| ByteString::from_static(code.message()));
        }
        let topic = |(topic_id, partitions): (Uuid, BTreeMap<i32, PartitionData>)| {
            ShareFetchableTopicResponse { topic_id, partitions: partitions.into_values().collect() }
        };
        ShareFetchResponse {
            acquisition_lock_timeout_ms: i32::try_from(self.settings.record_lock_ms).unwrap_or(i32::MAX),
            responses: data.into_iter().map(topic).collect(),
            ..Default::default()
        }
        .into()
    }

    /// Acquires records, when there are some.
    async fn acquire(self: Arc<Self>, is_brief: bool) -> Data {
        let parked = Parked { fetch: Arc::clone(&self), bell: Arc::default() };
        let mut rounds = 0;
        loop {
            // Before the look, so that nothing is missed that comes after it.
            parked.register();
            let is_late = is_brief || !self.refused.is_empty() || Instant::now() >= self.terms.deadline;
            let (data, found) = Arc::clone(&self).look_and_take(is_late).await;
            if !data.is_empty() || is_late {
                return data;
            }
            rounds += 1;
            if found && rounds < MAX_ROUNDS {
                continue;
            }
            rounds = 0;
            let _ = timeout_at(self.terms.deadline, parked.bell.heard()).await;
        }
    }

    /// Looks at the partitions, wherever that has to be, and takes what is there. Says as well whether enough was found to take.
    async fn look_and_take(self: Arc<Self>, is_late: bool) -> (Data, bool) {
        if let Some(looked) = self.look(false) {
            return self.take(looked, is_late);
        }
        let fetch = Arc::clone(&self);
        let read = move || {
            let looked = fetch.look(true).unwrap_or_default();
            fetch.take(looked, is_late)
        };
        self.core.cold_reads.run(read).await
    }

    /// Looks for batches with records that may be free. `None` when some of them lie elsewhere than in memory, and nobody
    /// `may_wait` for the disk.
    fn look(&self, may_wait: bool) -> Option<Looked<'_>> {
        let mut looked = Looked::default();
        let mut wanted = self.terms.max_records;
        for source in &self.sources {
            if looked.bytes >= self.terms.max_bytes && looked.bytes > 0 || wanted == 0 {
                // The others have their turn next time.
                break;
            }
            let log = source.leader.log();
            let offsets = || log.log_start_offset()..log.log_end_offset();
            let from = match source.held.look(&self.settings, offsets, self.core.groups.shares().now()) {
                Look::From(from) => from,
                Look::Nothing => continue,
                Look::Gone => {
                    looked.refused.push((source.at, ErrorCode::UnknownTopicOrPartition));
                    continue;
                }
            };
            let read = match self.read(source, from, looked.bytes, may_wait)? {
                Ok(read) => read,
                // Where the log begins has changed, or nothing has been appended for as long as the group is ahead of it.
                Err(Refusal { code: ErrorCode::OffsetOutOfRange, .. }) => continue,
                Err(Refusal { code, .. }) => {
                    looked.refused.push((source.at, code));
                    continue;
                }
            };
            let Some(slice) = read.records else { continue };
            let found = find_spans(&slice, &read.aborted_transactions, from, wanted);
            let found = found.and_then(|found| match found.spans.is_empty() && looked.bytes == 0 {
                // The first batch of a fetch comes whole, however large it is.
                true => Err(io::Error::new(io::ErrorKind::InvalidData, "the first batch is cut")),
                false => Ok(found),
            });
            match found {
                // The next one is too large for what is left of the fetch.
                Ok(found) if found.spans.is_empty() => {}
                Ok(found) => {
                    wanted = wanted.saturating_sub(found.offsets);
                    looked.bytes += found.size_in_bytes();
                    looked.reads.push(Read { source, from, slice, found });
                }
                Err(error) => {
                    tracing::error!(partition = %source.leader.id(), %error, "cannot read batches for a share group");
                    looked.refused.push((source.at, ErrorCode::KafkaStorageError));
                }
            }
        }
        Some(looked)
    }

    /// Reads a partition after so many bytes of others; `None` when that would have to wait for the disk.
    fn read(
        &self,
        source: &Source,
        from: Offset,
        read_so_far: usize,
        may_wait: bool,
    ) -> Option<Result<ReadInfo, Refusal>> {
        let max_bytes = self.terms.max_bytes.saturating_sub(read_so_far) as u32;
        let (bound, at_least_one) = (self.terms.bound, read_so_far == 0);
        match may_wait {
            true => Some(source.leader.read(from, max_bytes, bound, at_least_one)),
            false => source.leader.read_cached(from, max_bytes, bound, at_least_one).transpose(),
        }
    }

    /// Acquires what was found, if it is enough or `is_late`. Says as well whether there was enough.
    fn take(&self, looked: Looked<'_>, is_late: bool) -> (Data, bool) {
        let mut data = Data::new();
        for (at, code) in &looked.refused {
            entry(&mut data, *at).error_code = code.code();
        }
        let is_enough = !looked.reads.is_empty() && looked.bytes >= self.terms.min_bytes;
        if !is_enough && !is_late {
            return (data, false);
        }
        let shares = self.core.groups.shares();
        if !shares.sessions().may_acquire(&self.key, self.session) {
            // It has ended while this waited, or its member has left: nobody would say anything of what is acquired now.
            return (data, false);
        }
        let mut left = self.terms.max_records;
        for read in &looked.reads {
            if left == 0 {
                break;
            }
            let terms = AcquireTerms {
                mode: self.terms.mode,
                max_records: left,
                batch_size: self.terms.batch_size,
                max_locks: self.settings.max_record_locks,
                max_deliveries: self.settings.delivery_count_limit,
                until_ms: shares.now().monotonic_ms + self.settings.record_lock_ms,
            };
            let held = &read.source.held;
            let (acquired, deadline) = held.acquire(&self.key.member, read.from, &read.found.spans, terms);
            if let Some(deadline) = deadline {
                shares.note_deadline(held.key(), deadline);
            }
            let (Some(first), Some(last)) = (acquired.first(), acquired.last()) else { continue };
            shares.tally().acquired(&acquired);
            let taken: u64 = acquired.iter().map(|range| (range.last.0 - range.first.0 + 1) as u64).sum();
            left = left.saturating_sub(taken);
            let part = read.found.part(&read.slice, first.first, last.last);
            let entry = entry(&mut data, read.source.at);
            entry.records = Some(Records::Slice(part));
            entry.acquired_records = acquired.iter().map(range).collect();
        }
        if !data.is_empty() && !shares.sessions().has(&self.key) {
            // It has ended meanwhile, perhaps before all this was there to be given back.
            shares.give_back(&self.key, looked.reads.iter().map(|read| read.source.at));
            return (Data::new(), false);
        }
        (data, is_enough)
    }
}

fn range(acquired: &Acquired) -> AcquiredRecords {
    AcquiredRecords {
        first_offset: acquired.first.0,
        last_offset: acquired.last.0,
        delivery_count: acquired.deliveries,
    }
}

/// What there is to say of a partition, of which nothing has been said yet.
fn entry(data: &mut Data, at: TopicIdPartition) -> &mut PartitionData {
    data.entry(at.topic_id).or_default().entry(at.partition).or_insert_with(|| PartitionData {
        partition_index: at.partition,
        records: Some(Records::Bytes(Bytes::new())),
        ..Default::default()
    })
}

/// A fetch that is registered with its partitions; dropping it takes it out again.
struct Parked {
    fetch: Arc<Fetch>,
    bell: Arc<Bell>,
}

impl Parked {
    fn register(&self) {
        // All of them are looked at each time, whichever rang.
        self.bell.take_rung();
        for source in &self.fetch.sources {
            source.leader.park(&self.bell, Place(0));
            source.held.park(&self.bell, Place(0));
        }
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        for source in &self.fetch.sources {
            source.leader.unpark(&self.bell);
            source.held.unpark(&self.bell);
        }
    }
}
