//! Changing the configs of topics, nodes and groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::repeated;
use crate::command::{
    AlterResourceConfigs, AlterTopicConfigs, ConfigChange, ResourceConfigChange, Results, TopicConfigChange,
};
use crate::limits;
use crate::rejection::Rejection;
use crate::state::ClusterState;
use crate::topic::Topic;
use crate::topic_config::{ConfigDefinition, ConfigError, ConfigKind, TopicConfig, elements};

pub(super) fn alter(state: &mut ClusterState, command: &AlterTopicConfigs) -> Results<Arc<Topic>> {
    let repeated = repeated(command.topics.iter().map(|topic| &topic.name));
    let mut alter = |change: &TopicConfigChange| {
        if repeated.contains(&change.name) {
            return Err(Rejection::DuplicateTopic { topic: change.name.to_string() });
        }
        alter_topic(state, change)
    };
    command.topics.iter().map(&mut alter).collect()
}

fn alter_topic(state: &mut ClusterState, change: &TopicConfigChange) -> Result<Arc<Topic>, Rejection> {
    let topic =
        state.topic(&change.name).ok_or_else(|| Rejection::UnknownTopic { name: change.name.clone() })?;
    if let Some(key) = repeated(change.ops.iter().map(|op| &op.key)).into_iter().min() {
        return Err(Rejection::DuplicateConfig { key: key.clone() });
    }
    check_known(state, change.ops.iter().map(|op| &op.key))?;
    let mut overrides = if change.replace { BTreeMap::new() } else { topic.overrides.clone() };
    for op in &change.ops {
        let definition = TopicConfig::definition(&op.key);
        if definition.is_none() && !matches!(op.change, ConfigChange::Set(_)) {
            return Err(TopicConfig::unknown(&op.key).into());
        }
        change_one(&mut overrides, definition, topic.config.get(&op.key), &op.key, &op.change)?;
    }
    let (name, id) = (topic.name.clone(), topic.id);
    let altered = Topic::new(name, id, topic.partitions.clone(), overrides)?;
    Ok(state.put_topic(altered))
}

pub(super) fn alter_resources(state: &mut ClusterState, command: &AlterResourceConfigs) -> Results<()> {
    let repeated = repeated(command.resources.iter().map(|change| &change.resource));
    let mut alter = |change: &ResourceConfigChange| {
        if repeated.contains(&change.resource) {
            return Err(Rejection::InvalidConfigResource {
                reason: "it occurs more than once in the request",
            });
        }
        alter_resource(state, change)
    };
    command.resources.iter().map(&mut alter).collect()
}

fn alter_resource(state: &mut ClusterState, change: &ResourceConfigChange) -> Result<(), Rejection> {
    let resource = &change.resource;
    resource.check_name()?;
    if let Some(key) = repeated(change.ops.iter().map(|op| &op.key)).into_iter().min() {
        return Err(Rejection::DuplicateConfig { key: key.clone() });
    }
    let before = state.configs_of(resource);
    let mut configs = match before {
        Some(before) if !change.replace => before.clone(),
        _ => BTreeMap::new(),
    };
    for op in &change.ops {
        if !resource.is_known(&op.key) && !matches!(op.change, ConfigChange::Set(_)) {
            resource.check(&BTreeMap::from([(op.key.clone(), String::new())]))?;
        }
        let definition = resource.definition(&op.key);
        let default = definition.map(ConfigDefinition::default_value);
        change_one(&mut configs, definition, default, &op.key, &op.change)?;
    }
    resource.check(&configs)?;
    if before.is_none() && !configs.is_empty() && state.resource_configs.len() >= limits::MAX_CONFIG_RESOURCES
    {
        return Err(Rejection::TooManyConfigResources);
    }
    let all = Arc::make_mut(&mut state.resource_configs);
    if configs.is_empty() {
        all.remove(resource);
    } else {
        all.insert(resource.clone(), configs);
    }
    Ok(())
}

/// Refuses the configs that came with newer rules than those that the cluster goes by.
pub(super) fn check_known<'a>(
    state: &ClusterState,
    mut keys: impl Iterator<Item = &'a String>,
) -> Result<(), Rejection> {
    let is_newer = |key: &&String| {
        TopicConfig::definition(key).is_some_and(|definition| definition.since() > state.metadata_version)
    };
    keys.find(is_newer).map_or(Ok(()), |key| Err(TopicConfig::unknown(key).into()))
}

/// Changes one config of those that are set. `now` is what it is, set or not.
fn change_one(
    overrides: &mut BTreeMap<String, String>,
    definition: Option<&ConfigDefinition>,
    now: Option<String>,
    key: &str,
    change: &ConfigChange,
) -> Result<(), Rejection> {
    match change {
        ConfigChange::Set(value) => {
            overrides.insert(key.to_owned(), value.clone());
        }
        ConfigChange::Delete => {
            overrides.remove(key);
        }
        ConfigChange::Append(value) => {
            let mut list = list(overrides, definition, now, key)?;
            for element in elements(value) {
                if !list.iter().any(|existing| existing == element) {
                    list.push(element.to_owned());
                }
            }
            overrides.insert(key.to_owned(), list.join(","));
        }
        ConfigChange::Subtract(value) => {
            let mut list = list(overrides, definition, now, key)?;
            list.retain(|existing| !elements(value).any(|element| element == existing));
            overrides.insert(key.to_owned(), list.join(","));
        }
    }
    Ok(())
}

/// The elements that a list has: those it was set to, or those of its default.
fn list(
    overrides: &BTreeMap<String, String>,
    definition: Option<&ConfigDefinition>,
    now: Option<String>,
    key: &str,
) -> Result<Vec<String>, Rejection> {
    if !definition.is_some_and(|definition| matches!(definition.kind, ConfigKind::List(_))) {
        let reason =
            "it is not a list: it can be set and deleted, not appended to or subtracted from".to_owned();
        return Err(Rejection::InvalidConfig { key: key.to_owned(), reason });
    }
    let current = overrides.get(key).cloned().or(now).unwrap_or_default();
    Ok(elements(&current).map(str::to_owned).collect())
}

impl From<ConfigError> for Rejection {
    fn from(ConfigError { key, reason }: ConfigError) -> Self {
        Self::InvalidConfig { key, reason }
    }
}
