//! CreateTopics: proposes new topics.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_controller::{CreateTopics, ManualPartition, NewTopic, Topic};
use thalweg_protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse,
};
use thalweg_protocol::{ErrorCode, NodeId};

use super::{RequestContext, configs};
use crate::core::propose_for;
use crate::error::Refusal;
use crate::topics;

pub(crate) async fn handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse {
    let timeout_ms = request.timeout_ms;
    let new_topics = request.topics.iter().map(|topic| new_topic(&context, topic)).collect();
    let proposal = CreateTopics { topics: new_topics, validate_only: request.validate_only };
    let results = match propose_for(&context.core.controller, proposal, timeout_ms).await {
        Ok(results) => results,
        Err(error) => return refuse(&request, &error.into()),
    };
    let answers = request.topics.iter().zip(results).map(|(asked, result)| match result {
        Ok(topic) => created(&context, &topic),
        Err(rejection) => refused(asked, &rejection.into()),
    });
    CreateTopicsResponse { topics: answers.collect(), ..Default::default() }
}

/// The answer that refuses every topic in `request`.
pub(crate) fn refuse(request: &CreateTopicsRequest, refusal: &Refusal) -> CreateTopicsResponse {
    let topics = request.topics.iter().map(|asked| refused(asked, refusal));
    CreateTopicsResponse { topics: topics.collect(), ..Default::default() }
}

fn new_topic(context: &RequestContext, asked: &CreatableTopic) -> NewTopic {
    let has_assignment = !asked.assignments.is_empty();
    let configs: BTreeMap<String, String> = asked
        .configs
        .iter()
        .filter_map(|config| Some((config.name.to_string(), config.value.as_ref()?.to_string())))
        .collect();
    let assignment = asked.assignments.iter().map(|partition| ManualPartition {
        partition: partition.partition_index,
        replicas: partition.broker_ids.iter().map(|&id| NodeId(id)).collect(),
    });
    NewTopic {
        // The name outlives the request in the metadata; its frame should not.
        name: ByteString::from(asked.name.to_string()),
        id: topics::random_id(),
        partitions: match asked.num_partitions {
            -1 if !has_assignment => context.core.config.default_partitions,
            count => count,
        },
        replication_factor: asked.replication_factor,
        assignment: assignment.collect(),
        configs,
    }
}

fn created(context: &RequestContext, topic: &Topic) -> CreatableTopicResult {
    let defaults = context.core.partitions.topic_defaults();
    let configs = configs::of_topic(&defaults, topic).map(|config| CreatableTopicConfigs {
        name: ByteString::from_static(config.definition.name),
        value: Some(config.value.into()),
        read_only: false,
        config_source: config.source,
        is_sensitive: false,
    });
    CreatableTopicResult {
        name: topic.name.clone(),
        topic_id: topic.id,
        num_partitions: topic.partitions.len() as i32,
        replication_factor: topic.replication_factor() as i16,
        configs: Some(configs.collect()),
        ..Default::default()
    }
}

fn refused(asked: &CreatableTopic, refusal: &Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name: asked.name.clone(),
        error_code: refusal.code.code(),
        error_message: refusal.message.clone().map(ByteString::from),
        topic_config_error_code: ErrorCode::None.code(),
        ..Default::default()
    }
}
