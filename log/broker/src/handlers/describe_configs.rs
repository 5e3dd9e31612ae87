//! DescribeConfigs: every config of topics, nodes and groups, with where its value comes from.

use bytestring::ByteString;
use thalweg_controller::{ConfigDefinition, ConfigResource, GroupConfig, TopicConfig};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResponse,
    DescribeConfigsResult,
};

use super::configs::{self, ConfigEntry, ShownConfig, resource, source};
use super::{RequestContext, node_configs};
use crate::error::Refusal;
use crate::node_setting::NodeSetting;
use crate::topic_config::TopicDefaults;

pub(crate) fn handle(context: &RequestContext, request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
    answer(request, |asked| match asked.resource_type {
        resource::TOPIC => of_topic(context, request, &asked.resource_name),
        resource::NODE => of_node(context, request, &asked.resource_name),
        resource::GROUP => of_group(context, request, &asked.resource_name),
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
    let defaults = context.core.partitions.topic_defaults();
    let configs = configs::of_topic(&defaults, topic).map(|config| {
        let ShownConfig { definition, value, source } = config;
        let mut synonyms = node_synonyms(&defaults, definition);
        if source == source::TOPIC {
            synonyms.insert(0, (definition.name, value.clone(), source::TOPIC));
        }
        let entry = ConfigEntry {
            name: definition.name,
            kind: configs::kind_number(definition.kind),
            documentation: definition.documentation(),
            value,
            read_only: false,
            synonyms,
        };
        entry.show(request)
    });
    Ok(configs.collect())
}

/// What a node has for a config of topics, under the name that it has there.
fn node_synonyms(
    defaults: &TopicDefaults,
    definition: &'static ConfigDefinition,
) -> Vec<(&'static str, String, i8)> {
    let name = definition.node_wide.unwrap_or(definition.name);
    let given = configs::given(&defaults.layers(definition.name));
    let given = given.map(|(value, source)| (name, value.to_owned(), source));
    given.chain([(name, definition.default_value(), source::DEFAULT)]).collect()
}

/// A node's configs are its settings and the defaults that it gives to topics, under the names that Kafka's brokers have.
/// The empty name stands for what all nodes have been given while they run.
fn of_node(
    context: &RequestContext,
    request: &DescribeConfigsRequest,
    name: &str,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    node_configs::check_name(&context.core, name)?;
    let defaults = context.core.partitions.topic_defaults();
    let configs = TopicConfig::definitions().iter().filter_map(|definition| {
        let name = definition.node_wide?;
        let synonyms = node_synonyms(&defaults, definition);
        let value = synonyms.first().map(|(_, value, _)| value.clone()).unwrap_or_default();
        let (kind, documentation) = (configs::kind_number(definition.kind), definition.documentation());
        Some(ConfigEntry { name, kind, documentation, value, read_only: false, synonyms })
    });
    let entries = node_configs::all(&context.core).into_iter().chain(configs);
    if !name.is_empty() {
        return Ok(entries.map(|entry| entry.show(request)).collect());
    }
    // Of what all nodes have been given nothing else is shown, as Kafka does.
    let given_to_all = entries.filter_map(|mut entry| {
        entry.synonyms.retain(|&(_, _, source)| source == source::OF_ALL_NODES);
        entry.value = entry.synonyms.first().map(|(_, value, _)| value.clone())?;
        Some(entry.show(request))
    });
    Ok(given_to_all.collect())
}

/// A group need not exist to have configs.
fn of_group(
    context: &RequestContext,
    request: &DescribeConfigsRequest,
    name: &ByteString,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    if name.is_empty() {
        return Err(Refusal::new(ErrorCode::InvalidRequest, "the group has no name"));
    }
    let state = context.core.controller.state();
    let set = state.configs_of(&ConfigResource::Group(name.clone()));
    let configs = GroupConfig::definitions().iter().map(|definition| {
        let set = set.and_then(|set| set.get(definition.name));
        let mut synonyms: Vec<_> =
            set.map(|value| (definition.name, value.clone(), source::GROUP)).into_iter().collect();
        match definition.node_wide.and_then(NodeSetting::find) {
            Some(setting) => synonyms.extend(node_configs::synonyms(&context.core, setting)),
            None => {
                let name = definition.node_wide.unwrap_or(definition.name);
                synonyms.push((name, definition.default_value(), source::DEFAULT));
            }
        }
        let value = synonyms.first().map(|(_, value, _)| value.clone()).unwrap_or_default();
        let entry = ConfigEntry {
            name: definition.name,
            kind: configs::kind_number(definition.kind),
            documentation: definition.documentation(),
            value,
            read_only: false,
            synonyms,
        };
        entry.show(request)
    });
    Ok(configs.collect())
}
