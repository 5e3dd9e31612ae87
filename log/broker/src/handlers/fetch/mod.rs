//! Fetch: finds what can be read, or parks until there is enough of it.
//!
//! `full` answers a request that names all its partitions. With a fetch session (KIP-227) the broker remembers them, and
//! `incremental` looks only at those that may have something to say.

mod full;
mod incremental;
mod read;

use std::sync::{Arc, Weak};

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::fetch::{FetchRequest, FetchResponse, FetchableTopicResponse};

use super::{FIRST_VERSION_WITH_IDS, RequestContext};
use crate::core::Core;
use crate::fetch_session::{Phase, SessionEpoch, SessionId, TopicKey};
use crate::partition::Partition;
use crate::partitions::HeldTopic;
use crate::server::Answer;

/// The version of Fetch that brought sessions.
const FIRST_VERSION_WITH_SESSIONS: i16 = 7;

pub(crate) fn begin(context: &RequestContext, request: FetchRequest) -> Answer {
    let phase = match context.version {
        ..FIRST_VERSION_WITH_SESSIONS => Phase::Outside { ends: None },
        _ => Phase::of(SessionId(request.session_id), SessionEpoch(request.session_epoch)),
    };
    let end = |id: Option<SessionId>| {
        if let Some(id) = id {
            context.core.fetch_sessions.end(id, &context.client);
        }
    };
    match phase {
        Phase::Outside { ends } => {
            end(ends);
            full::begin(context, request, false)
        }
        Phase::Opens { ends } => {
            end(ends);
            full::begin(context, request, true)
        }
        Phase::Within { id, epoch } => incremental::begin(context, request, id, epoch),
    }
}

/// The answer that refuses every partition in `request`.
pub(crate) fn refuse_partitions(request: &FetchRequest, code: ErrorCode) -> FetchResponse {
    let responses = request.topics.iter().map(|topic| FetchableTopicResponse {
        topic: topic.topic.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(|asked| read::refused(asked.partition, code)).collect(),
    });
    FetchResponse { responses: responses.collect(), ..Default::default() }
}

fn uses_ids(context: &RequestContext) -> bool {
    context.version >= FIRST_VERSION_WITH_IDS
}

/// Looks up the leaders of a session's partitions. They often come topic by topic, so the last topic is remembered.
fn resolver(core: &Core, uses_ids: bool) -> impl FnMut(&TopicKey, i32) -> Result<Weak<Partition>, ErrorCode> {
    let mut last: Option<(TopicKey, Result<Arc<HeldTopic>, ErrorCode>)> = None;
    move |key, partition| {
        let (_, held) = match last.take() {
            Some(same) if same.0 == *key => last.insert(same),
            _ => {
                let held = match uses_ids {
                    true => core.partitions.topic_by_id(key.id),
                    false => core.partitions.topic(&key.name),
                };
                last.insert((key.clone(), held))
            }
        };
        let held = held.as_ref().map_err(|code| *code)?;
        held.leader(partition).map(Arc::downgrade)
    }
}
