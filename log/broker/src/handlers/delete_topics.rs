//! DeleteTopics: proposes that topics go, with all their records.

use bytestring::ByteString;
use thalweg_controller::{DeleteTopics, TopicRef};
use thalweg_protocol::messages::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use thalweg_protocol::{ErrorCode, Uuid};

use super::RequestContext;
use crate::core::propose_for;
use crate::error::Refusal;

/// The version from which topics are named by id, too.
const FIRST_VERSION_WITH_IDS: i16 = 6;

pub(crate) async fn handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let timeout_ms = request.timeout_ms;
    let asked = asked(&context, request);
    let valid = asked.iter().filter_map(|topic| topic_ref(topic).ok()).collect();
    let proposal = DeleteTopics { topics: valid };
    let mut results = match propose_for(&context.core.controller, proposal, timeout_ms).await {
        Ok(results) => results.into_iter(),
        Err(error) => return refuse_all(&asked, &error.into()),
    };
    let responses = asked.iter().map(|topic| match topic_ref(topic) {
        Ok(_) => match results.next() {
            Some(Ok(deleted)) => DeletableTopicResult {
                name: Some(deleted.name.clone()),
                topic_id: deleted.id,
                ..Default::default()
            },
            Some(Err(rejection)) => refused(topic, &rejection.into()),
            None => refused(topic, &ErrorCode::UnknownServerError.into()),
        },
        Err(refusal) => refused(topic, &refusal),
    });
    DeleteTopicsResponse { responses: responses.collect(), ..Default::default() }
}

/// The answer that refuses every topic in `request`.
pub(crate) fn refuse(
    context: &RequestContext,
    request: DeleteTopicsRequest,
    refusal: &Refusal,
) -> DeleteTopicsResponse {
    refuse_all(&asked(context, request), refusal)
}

fn asked(context: &RequestContext, request: DeleteTopicsRequest) -> Vec<DeleteTopicState> {
    if context.version >= FIRST_VERSION_WITH_IDS {
        return request.topics;
    }
    let names = request.topic_names.into_iter();
    names.map(|name| DeleteTopicState { name: Some(name), topic_id: Uuid::ZERO }).collect()
}

fn topic_ref(asked: &DeleteTopicState) -> Result<TopicRef, Refusal> {
    match (&asked.name, asked.topic_id.is_zero()) {
        (Some(name), true) => Ok(TopicRef::Name(ByteString::from(name.to_string()))),
        (None, false) => Ok(TopicRef::Id(asked.topic_id)),
        (Some(_), false) => Err(Refusal::new(
            ErrorCode::InvalidRequest,
            "a topic is named by its name or by its id, not both",
        )),
        (None, true) => Err(Refusal::new(ErrorCode::InvalidRequest, "a topic has neither a name nor an id")),
    }
}

fn refuse_all(asked: &[DeleteTopicState], refusal: &Refusal) -> DeleteTopicsResponse {
    let responses = asked.iter().map(|topic| refused(topic, refusal));
    DeleteTopicsResponse { responses: responses.collect(), ..Default::default() }
}

fn refused(asked: &DeleteTopicState, refusal: &Refusal) -> DeletableTopicResult {
    DeletableTopicResult {
        name: asked.name.clone(),
        topic_id: asked.topic_id,
        error_code: refusal.code.code(),
        error_message: refusal.message.clone().map(ByteString::from),
    }
}
