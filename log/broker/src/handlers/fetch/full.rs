//! A fetch that names all its partitions.

use std::sync::Arc;

use thalweg_protocol::messages::Response;
use thalweg_protocol::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchableTopicResponse, PartitionData,
};
use thalweg_protocol::{ErrorCode, Records};
use tokio::time::{Instant, timeout_at};

use super::read::{Looking, Terms, refused};
use super::{resolver, uses_ids};
use crate::fetch_session::{Session, SessionId, SessionState};
use crate::handlers::RequestContext;
use crate::partition::{Bell, Partition, Place};
use crate::partitions::HeldTopic;
use crate::server::Answer;

/// `opens` says whether the client asks for a fetch session.
pub(super) fn begin(context: &RequestContext, request: FetchRequest, opens: bool) -> Answer {
    let fetch = Fetch::new(context, request, opens);
    match fetch.attempt(Looking::InMemory) {
        Some(attempt) if fetch.is_satisfied(&attempt) || Instant::now() >= fetch.terms.deadline => {
            Answer::Now(fetch.answer(attempt))
        }
        _ => Answer::waits(Arc::new(fetch).wait()),
    }
}

/// A fetch with its partitions looked up.
struct Fetch {
    request: FetchRequest,
    context: RequestContext,
    opens: bool,
    /// By the index of the topic and of the partition in the request.
    leaders: Vec<Vec<Result<Arc<Partition>, ErrorCode>>>,
    terms: Terms,
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
    fn new(context: &RequestContext, request: FetchRequest, opens: bool) -> Self {
        let mut leaders = Vec::with_capacity(request.topics.len());
        let mut count = 0;
        for topic in &request.topics {
            let held = context.named_topic(&topic.topic, topic.topic_id);
            count += topic.partitions.len();
            leaders.push(topic.partitions.iter().map(|asked| find(&held, asked)).collect());
        }
        Self {
            leaders,
            terms: Terms::of(&request, &context.core.config),
            context: context.clone(),
            opens,
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
        let attempt = self.context.core.cold_reads.run(read).await;
        attempt.expect("nothing is too far away for a thread that waits")
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
                Ok(leader) => self.terms.read(leader, asked, attempt.bytes, looking)?.0,
                Err(code) => refused(asked.partition, *code),
            };
            attempt.bytes += data.records.as_ref().map_or(0, Records::len);
            attempt.has_error |= data.error_code != 0;
            attempt.response.responses[topic].partitions[partition] = data;
        }
        Some(attempt)
    }

    fn is_satisfied(&self, attempt: &Attempt) -> bool {
        attempt.has_error || attempt.bytes >= self.terms.min_bytes || self.leaders.is_empty()
    }

    async fn wait(self: Arc<Self>) -> Response {
        let parked = Parked { fetch: &self, bell: Arc::default() };
        loop {
            parked.register();
            let attempt = self.read().await;
            if self.is_satisfied(&attempt) {
                return self.answer(attempt);
            }
            if timeout_at(self.terms.deadline, parked.bell.heard()).await.is_err() {
                return self.answer(self.read().await);
            }
        }
    }

    /// The answer that says what an attempt has found. If the client asks for a session, and there is room, it opens one.
    fn answer(&self, attempt: Attempt) -> Response {
        let mut response = attempt.response;
        if self.opens {
            response.session_id = self.open_session(&response).unwrap_or(SessionId::NONE).0;
        }
        response.into()
    }

    fn open_session(&self, response: &FetchResponse) -> Option<SessionId> {
        let (core, uses_ids) = (&self.context.core, uses_ids(&self.context));
        let partitions = self.leaders.iter().map(Vec::len).sum();
        core.fetch_sessions.open(&self.context.client, partitions, Instant::now(), || {
            let changes_seen = core.partitions.changes();
            let (topics, isolation_level) = (&self.request.topics, self.request.isolation_level);
            let resolve = resolver(core, uses_ids);
            let session = Session::open(uses_ids, isolation_level, topics, response, resolve);
            SessionState { session, changes_seen }
        })
    }
}

/// A fetch that is registered with its partitions; dropping it takes it out again.
struct Parked<'a> {
    fetch: &'a Fetch,
    bell: Arc<Bell>,
}

impl Parked<'_> {
    fn partitions(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.fetch.leaders.iter().flatten().filter_map(|leader| leader.as_ref().ok())
    }

    fn register(&self) {
        // All of them are read each time, whichever rang.
        self.bell.take_rung();
        for partition in self.partitions() {
            partition.park(&self.bell, Place(0));
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
