//! ShareFetch: acquires records for a member of a share group, and takes what it says of those that it has (KIP-932).
//!
//! `fetch` looks for records and acquires them, or parks until there are some.

mod fetch;

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::share_fetch::{
    FetchTopic, ForgottenTopic, ShareFetchRequest, ShareFetchResponse,
};

use self::fetch::{Fetch, Source, Terms};
use super::RequestContext;
use super::find_coordinator;
use super::share_requests::{SaidOf, acknowledge, leader, open_share, owner, said_of, session_key};
use crate::group::TopicIdPartition;
use crate::server::Answer;
use crate::share::{AcquireMode, Session, SessionKey, SessionStart, SessionTopic, ShareSettings};
use crate::topics::SHARE_GROUP_STATE;

pub(crate) async fn begin(context: RequestContext, request: ShareFetchRequest) -> Answer {
    let key = match session_key(request.group_id.as_ref(), request.member_id.as_ref()) {
        Ok(key) => key,
        Err(code) => return Answer::now(refuse(code)),
    };
    let shares = Arc::clone(context.core.groups.shares());
    let settings = shares.settings_of(&key.group);
    let start = SessionStart::of(request.share_session_epoch);
    let said = said(&request, &settings);
    let (mode, session) = match enter(&context, &request, &key, start, !said.is_empty()) {
        Ok(entered) => entered,
        Err(code) => return Answer::now(refuse(code)),
    };
    let acknowledged = acknowledge(&context, &key, &settings, said).await;
    let wants_records = !request.is_renew_ack && request.max_records > 0 && request.max_bytes > 0;
    let reads = session.filter(|_| wants_records);
    if start == SessionStart::Ends {
        shares.end_session(&key, None);
        context.client.share_sessions(&shares).forget(&key);
    }
    let number = reads.as_ref().map_or(0, Session::number);
    let (sources, refused) = match reads {
        Some(session) => sources(&context, &key, &settings, &session).await,
        None => Default::default(),
    };
    let terms = Terms::of(&request, mode, &settings, &context.core.config);
    let core = Arc::clone(&context.core);
    let fetch = Fetch { core, key, session: number, settings, sources, refused, terms };
    Answer::waits(async move { Arc::new(fetch).answer(acknowledged).await })
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> ShareFetchResponse {
    ShareFetchResponse {
        error_code: code.code(),
        error_message: (code != ErrorCode::None).then(|| ByteString::from_static(code.message())),
        ..Default::default()
    }
}

/// What the request says of records.
fn said(request: &ShareFetchRequest, settings: &ShareSettings) -> Vec<SaidOf> {
    let may_renew = request.is_renew_ack && settings.may_renew;
    let mut said = Vec::new();
    for topic in &request.topics {
        for asked in topic.partitions.iter().filter(|asked| !asked.acknowledgement_batches.is_empty()) {
            let batches = asked.acknowledgement_batches.iter();
            let batches =
                batches.map(|batch| (batch.first_offset, batch.last_offset, &*batch.acknowledge_types));
            said.push(said_of(topic.topic_id, asked.partition_index, batches, may_renew));
        }
    }
    said
}

/// Opens the session, or goes on with it. There is none to read by when it is about to end.
///
/// # Errors
/// INVALID_REQUEST; those of sessions.
fn enter(
    context: &RequestContext,
    request: &ShareFetchRequest,
    key: &SessionKey,
    start: SessionStart,
    says_something: bool,
) -> Result<(AcquireMode, Option<Session>), ErrorCode> {
    let mode = AcquireMode::from_number(request.share_acquire_mode).ok_or(ErrorCode::InvalidRequest)?;
    let wants = [request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records];
    if request.is_renew_ack && wants.iter().any(|wanted| *wanted != 0) {
        // Whoever renews locks fetches nothing (KIP-1222).
        return Err(ErrorCode::InvalidRequest);
    }
    let shares = context.core.groups.shares();
    let (sessions, owner) = (shares.sessions(), owner(context));
    let named = |topic: &FetchTopic| -> SessionTopic {
        (topic.topic_id, topic.partitions.iter().map(|asked| asked.partition_index).collect())
    };
    let added: Vec<SessionTopic> = request.topics.iter().map(named).collect();
    let session = match start {
        // Nothing can have been acquired in a session that begins.
        SessionStart::Opens if says_something => return Err(ErrorCode::InvalidRequest),
        SessionStart::Opens => {
            let connection = context.client.share_sessions(shares);
            let session = sessions.open(key, connection.id(), owner, &added)?;
            connection.note(key);
            Some(session)
        }
        SessionStart::Continues(epoch) => {
            let forgotten = |topic: &ForgottenTopic| (topic.topic_id, topic.partitions.clone());
            let forgotten: Vec<SessionTopic> = request.forgotten_topics_data.iter().map(forgotten).collect();
            Some(sessions.go_on(key, epoch, &owner, &added, &forgotten)?)
        }
        SessionStart::Ends => {
            sessions.check(key, &owner)?;
            None
        }
    };
    Ok((mode, session))
}

/// The partitions that a session reads, and those of them that cannot be read.
async fn sources(
    context: &RequestContext,
    key: &SessionKey,
    settings: &ShareSettings,
    session: &Session,
) -> (Vec<Source>, Vec<(TopicIdPartition, ErrorCode)>) {
    find_coordinator::ensure(context, SHARE_GROUP_STATE).await;
    let (mut sources, mut refused) = (Vec::new(), Vec::new());
    for at in session.read() {
        let leader = match leader(context, at) {
            Ok(leader) => leader,
            Err(code) => {
                refused.push((at, code));
                continue;
            }
        };
        match open_share(context, key, at, settings, &leader).await {
            Ok(held) => sources.push(Source { at, leader, held }),
            Err(code) => refused.push((at, code)),
        }
    }
    (sources, refused)
}
