//! A fetch within a session: it looks at the partitions that may have something to say, and answers with those that do.

use std::sync::{Arc, Weak};

use thalweg_protocol::messages::Response;
use thalweg_protocol::messages::fetch::{FetchRequest, FetchResponse, FetchableTopicResponse};
use thalweg_protocol::{ErrorCode, Records};
use tokio::time::{Instant, timeout_at};

use super::read::{Looking, Terms, refused};
use super::{resolver, uses_ids};
use crate::core::Core;
use crate::fetch_session::{Found, Look, OpenSession, SessionEpoch, SessionId};
use crate::handlers::RequestContext;
use crate::partition::Partition;
use crate::server::Answer;

pub(super) fn begin(
    context: &RequestContext,
    request: FetchRequest,
    id: SessionId,
    epoch: SessionEpoch,
) -> Answer {
    let core = &context.core;
    let Some(session) = core.fetch_sessions.take_up(id, &context.client, Instant::now()) else {
        return Answer::now(fail(ErrorCode::FetchSessionIdNotFound));
    };
    let epoch = match update(context, &request, &session, epoch) {
        Ok(Some(epoch)) => epoch,
        Ok(None) => {
            // A session that reads nothing is over.
            core.fetch_sessions.end(id, &context.client);
            return Answer::now(FetchResponse::default());
        }
        Err(code) => {
            if code == ErrorCode::FetchSessionIdNotFound {
                core.fetch_sessions.end(id, &context.client);
            }
            return Answer::now(fail(code));
        }
    };
    let terms = Terms::of(&request, &core.config);
    let fetch = Fetch { core: Arc::clone(core), id, session, epoch, terms };
    let Some(looks) = fetch.looks() else { return Answer::now(fail(ErrorCode::InvalidFetchSessionEpoch)) };
    match fetch.attempt(&looks, Looking::InMemory) {
        Some(attempt) => match fetch.settle(attempt) {
            Outcome::Answer(response) => Answer::now(response),
            Outcome::Wait => Answer::waits(Arc::new(fetch).wait()),
        },
        None => Answer::waits(Arc::new(fetch).wait()),
    }
}

/// Takes over what the request says of the session's partitions. Returns the epoch of the fetch; `None` when no partition is
/// left.
///
/// # Errors
/// Those of [`crate::fetch_session::Session::begin`]; FETCH_SESSION_ID_NOT_FOUND when there is no room for so many
/// partitions: the client opens another session then, or goes on without.
fn update(
    context: &RequestContext,
    request: &FetchRequest,
    open: &OpenSession,
    epoch: SessionEpoch,
) -> Result<Option<SessionEpoch>, ErrorCode> {
    let uses_ids = uses_ids(context);
    let mut state = open.lock();
    let epoch = state.session.begin(epoch, uses_ids, request.isolation_level)?;
    if !open.grow(state.session.count_new(&request.topics)) {
        return Err(ErrorCode::FetchSessionIdNotFound);
    }
    let resolve = resolver(&context.core, uses_ids);
    let gone = state.session.update(&request.topics, &request.forgotten_topics_data, resolve);
    let left = state.session.len();
    open.resized(left);
    drop(state);
    for partition in gone.iter().filter_map(Weak::upgrade) {
        partition.unpark(&open.bell);
    }
    Ok((left > 0).then_some(epoch))
}

fn fail(code: ErrorCode) -> FetchResponse {
    FetchResponse { error_code: code.code(), ..Default::default() }
}

struct Fetch {
    core: Arc<Core>,
    id: SessionId,
    session: Arc<OpenSession>,
    /// Once the session has another one, this fetch is over.
    epoch: SessionEpoch,
    terms: Terms,
}

/// What one look at the partitions in the queue found, in its order.
struct Attempt {
    found: Vec<Found>,
    bytes: usize,
    has_error: bool,
}

enum Outcome {
    Answer(FetchResponse),
    Wait,
}

impl Fetch {
    /// What there is to look at; `None` when the session has gone on without this fetch.
    fn looks(&self) -> Option<Vec<Look<Weak<Partition>>>> {
        let mut state = self.session.lock();
        if state.session.epoch() != self.epoch {
            return None;
        }
        let changes = self.core.partitions.changes();
        if state.changes_seen != changes {
            let uses_ids = state.session.uses_ids();
            state.session.resolve_again(resolver(&self.core, uses_ids));
            state.changes_seen = changes;
        }
        state.session.rung(self.session.bell.take_rung());
        Some(state.session.looks())
    }

    /// Looks at partitions until there are bytes enough. `None` when batches of some lie elsewhere.
    fn attempt(&self, looks: &[Look<Weak<Partition>>], looking: Looking) -> Option<Attempt> {
        let mut attempt = Attempt { found: Vec::with_capacity(looks.len()), bytes: 0, has_error: false };
        for Look { place, asked, leader } in looks {
            if attempt.bytes >= self.terms.max_bytes && attempt.bytes > 0 {
                // The others keep their places, and are the first next time.
                break;
            }
            // One that has gone meanwhile is looked up again next time.
            let gone = ErrorCode::NotLeaderOrFollower;
            let leader = leader.as_ref().map_err(|code| *code);
            let (data, has_more) = match leader.and_then(|leader| leader.upgrade().ok_or(gone)) {
                Ok(leader) => {
                    // Before the look, so that nothing is missed that comes after it.
                    leader.park(&self.session.bell, *place);
                    self.terms.read(&leader, asked, attempt.bytes, looking)?
                }
                Err(code) => (refused(asked.partition, code), false),
            };
            attempt.bytes += data.records.as_ref().map_or(0, Records::len);
            attempt.has_error |= data.error_code != 0;
            attempt.found.push(Found { place: *place, data, has_more });
        }
        Some(attempt)
    }

    /// Answers if there is enough, or no more time.
    fn settle(&self, attempt: Attempt) -> Outcome {
        let is_enough = attempt.has_error || attempt.bytes >= self.terms.min_bytes;
        let is_sent = is_enough || Instant::now() >= self.terms.deadline;
        let mut state = self.session.lock();
        if state.session.epoch() != self.epoch {
            return Outcome::Answer(self.overtaken());
        }
        let responses = state.session.settle(attempt.found, is_sent);
        match is_sent {
            true => Outcome::Answer(self.response(responses)),
            false => Outcome::Wait,
        }
    }

    fn response(&self, responses: Vec<FetchableTopicResponse>) -> FetchResponse {
        FetchResponse { session_id: self.id.0, responses, ..Default::default() }
    }

    /// The session has gone on with another fetch, which waits for the same bell.
    fn overtaken(&self) -> FetchResponse {
        self.session.bell.wake_another();
        fail(ErrorCode::InvalidFetchSessionEpoch)
    }

    async fn wait(self: Arc<Self>) -> Response {
        loop {
            let Some(looks) = self.looks() else { return self.overtaken().into() };
            if let Outcome::Answer(response) = self.settle(self.read(looks).await) {
                return response.into();
            }
            // Whether it rang or the time is up, the next look tells.
            let _ = timeout_at(self.terms.deadline, self.session.bell.heard()).await;
        }
    }

    /// Looks at the partitions, wherever that has to be.
    async fn read(self: &Arc<Self>, looks: Vec<Look<Weak<Partition>>>) -> Attempt {
        if let Some(attempt) = self.attempt(&looks, Looking::InMemory) {
            return attempt;
        }
        let fetch = Arc::clone(self);
        let read = move || fetch.attempt(&looks, Looking::Anywhere);
        self.core.cold_reads.run(read).await.expect("nothing is too far away for a thread that waits")
    }
}
