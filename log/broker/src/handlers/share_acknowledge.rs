//! ShareAcknowledge: says what became of records that a share group's member has acquired (KIP-932).

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_protocol::messages::share_acknowledge::{
    PartitionData, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareAcknowledgeTopicResponse,
};
use thalweg_protocol::{ErrorCode, Uuid};

use super::RequestContext;
use super::share_requests::{acknowledge, owner, said_of, session_key};
use crate::server::Answer;
use crate::share::{SessionKey, SessionStart};

pub(crate) async fn begin(context: RequestContext, request: ShareAcknowledgeRequest) -> Answer {
    let session = match enter(&context, &request) {
        Ok(session) => session,
        Err(code) => return Answer::now(refuse(code)),
    };
    let shares = context.core.groups.shares();
    let settings = shares.settings_of(&session.group);
    let may_renew = request.is_renew_ack && settings.may_renew;
    let mut said = Vec::new();
    for topic in &request.topics {
        for asked in &topic.partitions {
            let batches = asked.acknowledgement_batches.iter();
            let batches =
                batches.map(|batch| (batch.first_offset, batch.last_offset, &*batch.acknowledge_types));
            said.push(said_of(topic.topic_id, asked.partition_index, batches, may_renew));
        }
    }
    let results = acknowledge(&context, &session, &settings, said).await;
    if SessionStart::of(request.share_session_epoch) == SessionStart::Ends {
        shares.end_session(&session, None);
        context.client.share_sessions(shares).forget(&session);
    }
    let lock_ms = i32::try_from(settings.record_lock_ms).unwrap_or(i32::MAX);
    Answer::waits(async move {
        let mut topics: BTreeMap<Uuid, Vec<PartitionData>> = BTreeMap::new();
        for result in results {
            let (at, code) = result.settled().await;
            topics.entry(at.topic_id).or_default().push(PartitionData {
                partition_index: at.partition,
                error_code: code.code(),
                error_message: message(code),
                ..Default::default()
            });
        }
        let topic = |(topic_id, partitions)| ShareAcknowledgeTopicResponse { topic_id, partitions };
        ShareAcknowledgeResponse {
            acquisition_lock_timeout_ms: lock_ms,
            responses: topics.into_iter().map(topic).collect(),
            ..Default::default()
        }
        .into()
    })
}

/// Goes on with the session, or looks whether there is one to end.
fn enter(context: &RequestContext, request: &ShareAcknowledgeRequest) -> Result<SessionKey, ErrorCode> {
    let session = session_key(request.group_id.as_ref(), request.member_id.as_ref())?;
    let (sessions, owner) = (context.core.groups.shares().sessions(), owner(context));
    match SessionStart::of(request.share_session_epoch) {
        // Nothing can have been acquired in a session that begins.
        SessionStart::Opens => return Err(ErrorCode::InvalidShareSessionEpoch),
        SessionStart::Ends => sessions.check(&session, &owner)?,
        SessionStart::Continues(epoch) => {
            sessions.go_on(&session, epoch, &owner, &[], &[])?;
        }
    }
    Ok(session)
}

/// The answer that refuses a request.
pub(crate) fn refuse(code: ErrorCode) -> ShareAcknowledgeResponse {
    ShareAcknowledgeResponse { error_code: code.code(), error_message: message(code), ..Default::default() }
}

fn message(code: ErrorCode) -> Option<ByteString> {
    (code != ErrorCode::None).then(|| ByteString::from_static(code.message()))
}
