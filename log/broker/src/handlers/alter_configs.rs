//! AlterConfigs and IncrementalAlterConfigs: propose other configs for topics, nodes and groups. Each is answered by
//! itself.

use bytestring::ByteString;
use thalweg_controller::{
    AlterResourceConfigs, AlterTopicConfigs, ConfigChange, ConfigKind, ConfigOp, ConfigResource, NodeConfig,
    Rejection, ResourceConfigChange, TopicConfigChange,
};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::{alter_configs, incremental_alter_configs};

use super::configs::{self, resource};
use super::{RequestContext, node_configs};
use crate::core::propose;
use crate::error::Refusal;
use crate::topic_config::TopicDefaults;

/// What a request wants of one resource.
struct Asked {
    resource_type: i8,
    name: ByteString,
    change: Result<Change, Refusal>,
}

/// A change that is proposed to the controller.
enum Change {
    Topic(TopicConfigChange),
    Resource(ResourceConfigChange),
}

pub(crate) async fn replace(
    context: RequestContext,
    request: alter_configs::AlterConfigsRequest,
) -> alter_configs::AlterConfigsResponse {
    let asked = request.resources.into_iter().map(|resource| {
        let ops = resource.configs.iter().map(|config| ConfigOp {
            key: config.name.to_string(),
            change: match &config.value {
                Some(value) => ConfigChange::Set(value.to_string()),
                None => ConfigChange::Delete,
            },
        });
        let ops = Ok(ops.collect());
        asked(&context, resource.resource_type, resource.resource_name, true, ops)
    });
    let asked = asked.collect();
    let outcomes = propose_all(&context, asked, request.validate_only).await;
    let responses =
        outcomes.into_iter().map(|(asked, refusal)| alter_configs::AlterConfigsResourceResponse {
            error_code: refusal.as_ref().map_or(0, |refusal| refusal.code.code()),
            error_message: refusal.and_then(|refusal| refusal.message).map(ByteString::from),
            resource_type: asked.resource_type,
            resource_name: asked.name,
        });
    alter_configs::AlterConfigsResponse { responses: responses.collect(), ..Default::default() }
}

pub(crate) async fn change(
    context: RequestContext,
    request: incremental_alter_configs::IncrementalAlterConfigsRequest,
) -> incremental_alter_configs::IncrementalAlterConfigsResponse {
    let asked = request.resources.into_iter().map(|resource| {
        let ops = resource.configs.iter().map(config_op).collect();
        asked(&context, resource.resource_type, resource.resource_name, false, ops)
    });
    let asked = asked.collect();
    let outcomes = propose_all(&context, asked, request.validate_only).await;
    let responses = outcomes.into_iter().map(|(asked, refusal)| {
        incremental_alter_configs::AlterConfigsResourceResponse {
            error_code: refusal.as_ref().map_or(0, |refusal| refusal.code.code()),
            error_message: refusal.and_then(|refusal| refusal.message).map(ByteString::from),
            resource_type: asked.resource_type,
            resource_name: asked.name,
        }
    });
    let responses = responses.collect();
    incremental_alter_configs::IncrementalAlterConfigsResponse { responses, ..Default::default() }
}

/// The operations of KIP-339 by their numbers.
fn config_op(config: &incremental_alter_configs::AlterableConfig) -> Result<ConfigOp, Refusal> {
    let value = || config.value.as_ref().map(ToString::to_string);
    let change = match (config.config_operation, value()) {
        (0, Some(value)) => ConfigChange::Set(value),
        (1, _) => ConfigChange::Delete,
        (2, Some(value)) => ConfigChange::Append(value),
        (3, Some(value)) => ConfigChange::Subtract(value),
        (0 | 2 | 3, None) => {
            let message = format!("the config '{}' has no value", config.name);
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
        (other, _) => {
            return Err(Refusal::new(ErrorCode::InvalidRequest, format!("there is no operation {other}")));
        }
    };
    Ok(ConfigOp { key: config.name.to_string(), change })
}

fn asked(
    context: &RequestContext,
    resource_type: i8,
    name: ByteString,
    replace: bool,
    ops: Result<Vec<ConfigOp>, Refusal>,
) -> Asked {
    let change = ops.and_then(|ops| match resource_type {
        resource::TOPIC => {
            Ok(Change::Topic(TopicConfigChange { name: name.to_string().into(), replace, ops }))
        }
        resource::NODE => of_node(context, &name, replace, ops).map(Change::Resource),
        resource::GROUP => {
            let resource = ConfigResource::Group(name.to_string().into());
            Ok(Change::Resource(ResourceConfigChange { resource, replace, ops }))
        }
        other => {
            let reason = format!("resources of type {other} have no configs that can be changed");
            Err(Refusal::new(ErrorCode::InvalidRequest, reason))
        }
    });
    Asked { resource_type, name, change }
}

fn of_node(
    context: &RequestContext,
    name: &str,
    replace: bool,
    mut ops: Vec<ConfigOp>,
) -> Result<ResourceConfigChange, Refusal> {
    node_configs::check_name(&context.core, name)?;
    let fixed: Vec<_> = ops.iter().map(|op| &*op.key).filter(|key| node_configs::is_fixed(key)).collect();
    if !fixed.is_empty() {
        let reason =
            "cannot be changed while a node runs: change it in the settings that the node is started with";
        return Err(Refusal::new(ErrorCode::InvalidRequest, format!("{} {reason}", fixed.join(", "))));
    }
    let resource = match name {
        "" => ConfigResource::AllNodes,
        _ => ConfigResource::Node(context.core.node),
    };
    let state = context.core.controller.state();
    let set = state.configs_of(&resource).filter(|_| !replace);
    let defaults = context.core.partitions.topic_defaults();
    for op in &mut ops {
        if !set.is_some_and(|set| set.contains_key(&op.key)) {
            begin_list(&defaults, op);
        }
    }
    Ok(ResourceConfigChange { resource, replace, ops })
}

/// What is added to or taken from a list that has not been set while the node runs begins with what the node was started
/// with, of which the controller does not know.
fn begin_list(defaults: &TopicDefaults, op: &mut ConfigOp) {
    let Some(definition) = NodeConfig::topic_default(&op.key) else { return };
    if !matches!(definition.kind, ConfigKind::List(_)) {
        return;
    }
    let now = configs::given(&defaults.layers(definition.name)).next();
    let now = now.map_or_else(|| definition.default_value(), |(value, _)| value.to_owned());
    let mut list: Vec<&str> = elements(&now).collect();
    match &op.change {
        ConfigChange::Append(more) => {
            for element in elements(more) {
                if !list.contains(&element) {
                    list.push(element);
                }
            }
        }
        ConfigChange::Subtract(less) => list.retain(|element| !elements(less).any(|other| other == *element)),
        ConfigChange::Set(_) | ConfigChange::Delete => return,
    }
    op.change = ConfigChange::Set(list.join(","));
}

fn elements(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|element| !element.is_empty())
}

async fn propose_all(
    context: &RequestContext,
    asked: Vec<Asked>,
    validate_only: bool,
) -> Vec<(Asked, Option<Refusal>)> {
    let (mut topics, mut resources) = (Vec::new(), Vec::new());
    for asked in &asked {
        match &asked.change {
            Ok(Change::Topic(change)) => topics.push(change.clone()),
            Ok(Change::Resource(change)) => resources.push(change.clone()),
            Err(_) => {}
        }
    }
    let controller = &context.core.controller;
    // What asks for nothing is not written.
    let mut of_topics = match topics.is_empty() {
        true => Ok(Vec::new().into_iter()),
        false => propose(controller, AlterTopicConfigs { topics, validate_only }).await.map(outcomes),
    };
    let mut of_resources = match resources.is_empty() {
        true => Ok(Vec::new().into_iter()),
        false => propose(controller, AlterResourceConfigs { resources, validate_only }).await.map(outcomes),
    };
    let outcomes = asked.into_iter().map(|asked| {
        let results = match &asked.change {
            Err(refusal) => {
                let refusal = refusal.clone();
                return (asked, Some(refusal));
            }
            Ok(Change::Topic(_)) => &mut of_topics,
            Ok(Change::Resource(_)) => &mut of_resources,
        };
        let refusal = match results {
            Ok(results) => results.next().unwrap_or_else(|| Some(ErrorCode::UnknownServerError.into())),
            Err(error) => Some(error.clone().into()),
        };
        (asked, refusal)
    });
    outcomes.collect()
}

/// Why each change was refused; `None` for those that were made.
fn outcomes<T>(results: Vec<Result<T, Rejection>>) -> std::vec::IntoIter<Option<Refusal>> {
    let outcomes: Vec<_> = results.into_iter().map(|result| result.err().map(Refusal::from)).collect();
    outcomes.into_iter()
}
