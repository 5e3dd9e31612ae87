//! DescribeConfigs: every config of topics and nodes, with where its value comes from.

use bytestring::ByteString;
use thalweg_controller::TopicConfig;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResponse,
    DescribeConfigsResult, DescribeConfigsSynonym,
};

use super::configs::{self, ShownConfig, source};
use super::{RequestContext, node_configs};
use crate::error::Refusal;

/// The kinds of resources that have configs, by the numbers of the protocol.
mod resource {
    pub(super) const TOPIC: i8 = 2;
    pub(super) const NODE: i8 = 4;
    pub(super) const CLIENT_METRICS: i8 = 16;
}

pub(crate) fn handle(context: &RequestContext, request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
    answer(request, |asked| match asked.resource_type {
        resource::TOPIC => of_topic(context, request, &asked.resource_name),
        resource::NODE => of_node(context, request, &asked.resource_name),
        // Nobody has subscribed to any.
        resource::CLIENT_METRICS => Ok(Vec::new()),
        other => {
            Err(Refusal::new(ErrorCode::InvalidRequest, format!("resources of type {other} have no configs")))
        }
    })
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: &DescribeConfigsRequest, code: ErrorCode) -> DescribeConfigsResponse {
    answer(request, |_| Err(code.into()))
}

fn answer(
    request: &DescribeConfigsRequest,
    describe: impl Fn(&DescribeConfigsResource) -> Result<Vec<DescribeConfigsResourceResult>, Refusal>,
) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|asked| {
        let mut result = DescribeConfigsResult {
            resource_type: asked.resource_type,
            resource_name: asked.resource_name.clone(),
            ..Default::default()
        };
        match describe(asked) {
            Ok(mut configs) => {
                if let Some(wanted) = &asked.configuration_keys {
                    configs.retain(|config| wanted.contains(&config.name));
                }
                result.configs = configs;
            }
            Err(refusal) => {
                result.error_code = refusal.code.code();
                result.error_message = refusal.message.map(ByteString::from);
            }
        }
        result
    });
    DescribeConfigsResponse { results: results.collect(), ..Default::default() }
}

fn of_topic(
    context: &RequestContext,
    request: &DescribeConfigsRequest,
    name: &str,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let state = context.core.controller.state();
    let topic = state.topic(name).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let defaults = &context.core.topic_defaults;
    let configs = configs::of_topic(defaults, topic).map(|config| {
        let node_value = defaults.get(config.definition.name);
        show(request, config, node_value)
    });
    Ok(configs.collect())
}

/// A node's configs are its settings and the defaults that it gives to topics, under the names that Kafka's brokers have.
/// The empty name stands for what all nodes have been given while they run, which is nothing.
fn of_node(
    context: &RequestContext,
    request: &DescribeConfigsRequest,
    name: &str,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if *name != *context.core.node.to_string() {
        return Err(Refusal::new(ErrorCode::InvalidRequest, format!("this is node {}", context.core.node)));
    }
    let configs = TopicConfig::definitions().iter().filter_map(|definition| {
        let set = context.core.topic_defaults.get(definition.name);
        let config = ShownConfig {
            definition,
            value: set.map_or_else(|| definition.default_value(), str::to_owned),
            source: if set.is_some() { source::NODE } else { source::DEFAULT },
        };
        let mut shown = show(request, config, set);
        shown.name = ByteString::from_static(definition.node_wide?);
        shown.read_only = true;
        Some(shown)
    });
    Ok(node_configs::describe(&context.core, request).into_iter().chain(configs).collect())
}

fn show(
    request: &DescribeConfigsRequest,
    config: ShownConfig,
    node_value: Option<&str>,
) -> DescribeConfigsResourceResult {
    let ShownConfig { definition, value, source } = config;
    let node_wide = definition.node_wide.unwrap_or(definition.name);
    let mut synonyms = Vec::new();
    if request.include_synonyms {
        let mut synonym = |name: &'static str, value: &str, source| {
            let (name, value) = (ByteString::from_static(name), Some(value.into()));
            synonyms.push(DescribeConfigsSynonym { name, value, source });
        };
        if source == source::TOPIC {
            synonym(definition.name, &value, source::TOPIC);
        }
        if let Some(value) = node_value {
            synonym(node_wide, value, source::NODE);
        }
        synonym(node_wide, &definition.default_value(), source::DEFAULT);
    }
    DescribeConfigsResourceResult {
        name: ByteString::from_static(definition.name),
        value: Some(value.into()),
        read_only: false,
        config_source: source,
        is_sensitive: false,
        synonyms,
        config_type: configs::kind_number(definition.kind),
        documentation: request
            .include_documentation
            .then(|| ByteString::from_static(definition.documentation())),
    }
}
