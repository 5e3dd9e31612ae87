//! Fetch: finds what can be read, or parks until there is enough of it.
//!
//! A fetch session would spare the client from naming its partitions each time (KIP-227). Answering with
//! session id 0 declines one, and the client names all of them again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use thalweg_protocol::messages::Response;
use thalweg_protocol::messages::fetch::{
    AbortedTransaction, FetchPartition, FetchRequest, FetchResponse, FetchableTopicResponse, PartitionData,
};
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, Records};
use thalweg_storage::ReadBound;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::RequestContext;
use crate::disk_threads::DiskThreads;
use crate::error::Refusal;
use crate::partition::Partition;
use crate::partitions::HeldTopic;
use crate::server::Answer;

/// The longest that a consumer may have the broker wait for records.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The session epoch of a fetch that opens a session.
const OPENS_SESSION: i32 = 0;

/// The session epoch of a fetch outside of any session.
const OUTSIDE_SESSION: i32 = -1;

pub(crate) fn begin(context: &RequestContext, request: FetchRequest) -> Answer {
    if request.session_id != 0 && !matches!(request.session_epoch, OPENS_SESSION | OUTSIDE_SESSION) {
        let error_code = ErrorCode::FetchSessionIdNotFound.code();
        return Answer::now(FetchResponse { error_code, ..Default::default() });
    }
    let fetch = Fetch::new(context, request);
    match fetch.attempt(Looking::InMemory) {
        Some(attempt) if fetch.is_satisfied(&attempt) || Instant::now() >= fetch.deadline => {
            Answer::now(attempt.response)
        }
        _ => Answer::Waits(Box::pin(Arc::new(fetch).wait())),
    }
}

/// The answer that refuses every partition in `request`.
pub(crate) fn refuse_partitions(request: &FetchRequest, code: ErrorCode) -> FetchResponse {
    let responses = request.topics.iter().map(|topic| FetchableTopicResponse {
        topic: topic.topic.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(|asked| refused(asked.partition, code)).collect(),
    });
    FetchResponse { responses: responses.collect(), ..Default::default() }
}

/// Where batches are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looking {
    /// Where nobody has to wait for the disk, as is so for whatever was appended or read lately.
    InMemory,
    /// Wherever they are: only on a thread that may wait.
    Anywhere,
}

/// A fetch with its partitions looked up.
struct Fetch {
    request: FetchRequest,
    cold_reads: DiskThreads,
    /// By the index of the topic and of the partition in the request.
    leaders: Vec<Vec<Result<Arc<Partition>, ErrorCode>>>,
    bound: ReadBound,
    min_bytes: usize,
    max_bytes: usize,
    deadline: Instant,
    /// Which of all partitions is read first, so that the later ones get their turn when `max_bytes` does not
    /// reach for all.
    first: usize,
}

/// What one look at all partitions found.
struct Attempt {
    response: FetchResponse,
    bytes: usize,
    has_error: bool,
}

impl Fetch {
    fn new(context: &RequestContext, request: FetchRequest) -> Self {
        let mut leaders = Vec::with_capacity(request.topics.len());
        let mut count = 0;
        for topic in &request.topics {
            let held = context.named_topic(&topic.topic, topic.topic_id);
            count += topic.partitions.len();
            leaders.push(topic.partitions.iter().map(|asked| find(&held, asked)).collect());
        }
        let bound = match request.isolation_level {
            1 => ReadBound::LastStableOffset,
            _ => ReadBound::HighWatermark,
        };
        let max_wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)).min(MAX_WAIT);
        let max_bytes =
            u32::try_from(request.max_bytes).unwrap_or(0).min(context.core.config.fetch_max_bytes) as usize;
        Self {
            leaders,
            cold_reads: context.core.cold_reads.clone(),
            bound,
            // There is never more than that, so that nothing else is worth waiting for.
            min_bytes: usize::try_from(request.min_bytes).unwrap_or(0).min(max_bytes),
            max_bytes,
            deadline: Instant::now() + max_wait,
            first: context.client.next_turn() % count.max(1),
            request,
        }
    }

    /// The positions of all partitions in the request, the one whose turn it is first.
    fn turns(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let positions = || {
            let topics = self.leaders.iter().enumerate();
            topics.flat_map(|(topic, leaders)| (0..leaders.len()).map(move |partition| (topic, partition)))
        };
        positions().skip(self.first).chain(positions().take(self.first))
    }

    /// Looks at all partitions, wherever that has to be.
    async fn read(self: &Arc<Self>) -> Attempt {
        if let Some(attempt) = self.attempt(Looking::InMemory) {
            return attempt;
        }
        let fetch = Arc::clone(self);
        let read = move || fetch.attempt(Looking::Anywhere);
        self.cold_reads.run(read).await.expect("nothing is too far away for a thread that waits")
    }

    /// `None` when batches of some partition lie elsewhere.
    fn attempt(&self, looking: Looking) -> Option<Attempt> {
        let responses = self.request.topics.iter().map(|topic| FetchableTopicResponse {
            topic: topic.topic.clone(),
            topic_id: topic.topic_id,
            partitions: vec![PartitionData::default(); topic.partitions.len()],
        });
        let response = FetchResponse { responses: responses.collect(), ..Default::default() };
        let mut attempt = Attempt { response, bytes: 0, has_error: false };
        for (topic, partition) in self.turns() {
            let asked = &self.request.topics[topic].partitions[partition];
            let data = match &self.leaders[topic][partition] {
                Ok(leader) => self.read_partition(leader, asked, attempt.bytes, looking)?,
                Err(code) => refused(asked.partition, *code),
            };
            attempt.bytes += data.records.as_ref().map_or(0, Records::len);
            attempt.has_error |= data.error_code != 0;
            attempt.response.responses[topic].partitions[partition] = data;
        }
        Some(attempt)
    }

    fn read_partition(
        &self,
        leader: &Partition,
        asked: &FetchPartition,
        read_so_far: usize,
        looking: Looking,
    ) -> Option<PartitionData> {
        let index = asked.partition;
        if let Err(code) = leader.check_epoch(LeaderEpoch(asked.current_leader_epoch)) {
            return Some(refused(index, code));
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
            Ok(read) => PartitionData {
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
            },
            Err(Refusal { code, .. }) => refused(index, code),
        })
    }

    fn is_satisfied(&self, attempt: &Attempt) -> bool {
        attempt.has_error || attempt.bytes >= self.min_bytes || self.leaders.is_empty()
    }

    async fn wait(self: Arc<Self>) -> Response {
        let parked = Parked { fetch: &self, bell: Arc::new(Notify::new()) };
        loop {
            parked.register();
            let attempt = self.read().await;
            if self.is_satisfied(&attempt) {
                return attempt.response.into();
            }
            if timeout_at(self.deadline, parked.bell.notified()).await.is_err() {
                return self.read().await.response.into();
            }
        }
    }
}

/// A fetch that is registered with its partitions; dropping it takes it out again.
struct Parked<'a> {
    fetch: &'a Fetch,
    bell: Arc<Notify>,
}

impl Parked<'_> {
    fn partitions(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.fetch.leaders.iter().flatten().filter_map(|leader| leader.as_ref().ok())
    }

    fn register(&self) {
        for partition in self.partitions() {
            partition.park(&self.bell);
        }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        for partition in self.partitions() {
            partition.unpark(&self.bell);
        }
    }
}

fn find(
    topic: &Result<Arc<HeldTopic>, ErrorCode>,
    asked: &FetchPartition,
) -> Result<Arc<Partition>, ErrorCode> {
    match topic {
        Ok(topic) => topic.leader(asked.partition).cloned(),
        Err(code) => Err(*code),
    }
}

fn refused(index: i32, code: ErrorCode) -> PartitionData {
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
