//! AlterConfigs and IncrementalAlterConfigs: propose other configs for topics. Each topic is answered by
//! itself.

use bytestring::ByteString;
use thalweg_controller::{AlterTopicConfigs, ConfigChange, ConfigOp, TopicConfigChange};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::{alter_configs, incremental_alter_configs};

use super::{RequestContext, node_configs};
use crate::core::propose;
use crate::error::Refusal;

/// The kinds of resources, by the numbers of the protocol.
mod resource {
    pub(super) const TOPIC: i8 = 2;
    pub(super) const NODE: i8 = 4;
}

/// What a request wants of one resource.
struct Asked {
    resource_type: i8,
    name: ByteString,
    change: Result<TopicConfigChange, Refusal>,
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
        asked(resource.resource_type, resource.resource_name, true, ops)
    });
    let outcomes = propose_all(&context, asked.collect(), request.validate_only).await;
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
        asked(resource.resource_type, resource.resource_name, false, ops)
    });
    let outcomes = propose_all(&context, asked.collect(), request.validate_only).await;
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

fn asked(resource_type: i8, name: ByteString, replace: bool, ops: Result<Vec<ConfigOp>, Refusal>) -> Asked {
    let change = match resource_type {
        resource::TOPIC => ops.map(|ops| TopicConfigChange { name: name.to_string().into(), replace, ops }),
        resource::NODE => ops.and_then(|ops| Err(unchangeable(&ops))),
        other => {
            let reason = format!("resources of type {other} have no configs that can be changed");
            Err(Refusal::new(ErrorCode::InvalidRequest, reason))
        }
    };
    Asked { resource_type, name, change }
}

/// Why the settings of a node are not changed.
fn unchangeable(ops: &[ConfigOp]) -> Refusal {
    let keys = || ops.iter().map(|op| op.key.as_str());
    if let Some(key) = keys().find(|key| !node_configs::is_known(key)) {
        return Refusal::new(ErrorCode::InvalidConfig, format!("nodes have no config '{key}'"));
    }
    let names = keys().collect::<Vec<_>>().join(", ");
    let reason =
        "cannot be changed while a node runs: change it in the settings that the node is started with";
    Refusal::new(ErrorCode::InvalidRequest, format!("{names} {reason}"))
}

async fn propose_all(
    context: &RequestContext,
    asked: Vec<Asked>,
    validate_only: bool,
) -> Vec<(Asked, Option<Refusal>)> {
    let topics = asked.iter().filter_map(|asked| asked.change.clone().ok()).collect();
    let answer = propose(&context.core.controller, AlterTopicConfigs { topics, validate_only }).await;
    let mut results = answer.map(Vec::into_iter).map_err(Refusal::from);
    let outcomes = asked.into_iter().map(|asked| {
        let refusal = match (&asked.change, &mut results) {
            (Err(refusal), _) => Some(refusal.clone()),
            (Ok(_), Err(refusal)) => Some(refusal.clone()),
            (Ok(_), Ok(results)) => match results.next() {
                Some(Ok(_)) => None,
                Some(Err(rejection)) => Some(rejection.into()),
                None => Some(ErrorCode::UnknownServerError.into()),
            },
        };
        (asked, refusal)
    });
    outcomes.collect()
}
