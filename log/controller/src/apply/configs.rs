//! Changing the configs of topics.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::repeated;
use crate::command::{AlterTopicConfigs, ConfigChange, Results, TopicConfigChange};
use crate::rejection::Rejection;
use crate::state::ClusterState;
use crate::topic::Topic;
use crate::topic_config::{ConfigError, ConfigKind, TopicConfig, elements};

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
        change_one(&mut overrides, &topic.config, &op.key, &op.change)?;
    }
    let (name, id) = (topic.name.clone(), topic.id);
    let altered = Topic::new(name, id, topic.partitions.clone(), overrides)?;
    Ok(state.put_topic(altered))
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

fn change_one(
    overrides: &mut BTreeMap<String, String>,
    config: &TopicConfig,
    key: &str,
    change: &ConfigChange,
) -> Result<(), Rejection> {
    match change {
        ConfigChange::Set(value) => {
            overrides.insert(key.to_owned(), value.clone());
        }
        ConfigChange::Delete => {
            TopicConfig::definition(key).ok_or_else(|| TopicConfig::unknown(key))?;
            overrides.remove(key);
        }
        ConfigChange::Append(value) => {
            let mut list = list(overrides, config, key)?;
            for element in elements(value) {
                if !list.iter().any(|existing| existing == element) {
                    list.push(element.to_owned());
                }
            }
            overrides.insert(key.to_owned(), list.join(","));
        }
        ConfigChange::Subtract(value) => {
            let mut list = list(overrides, config, key)?;
            list.retain(|existing| !elements(value).any(|element| element == existing));
            overrides.insert(key.to_owned(), list.join(","));
        }
    }
    Ok(())
}

/// The elements that a list has: those it was set to, or those of its default.
fn list(
    overrides: &BTreeMap<String, String>,
    config: &TopicConfig,
    key: &str,
) -> Result<Vec<String>, Rejection> {
    let definition = TopicConfig::definition(key).ok_or_else(|| TopicConfig::unknown(key))?;
    if !matches!(definition.kind, ConfigKind::List(_)) {
        let reason =
            "it is not a list: it can be set and deleted, not appended to or subtracted from".to_owned();
        return Err(Rejection::InvalidConfig { key: key.to_owned(), reason });
    }
    let current = overrides.get(key).cloned().or_else(|| config.get(key)).unwrap_or_default();
    Ok(elements(&current).map(str::to_owned).collect())
}

impl From<ConfigError> for Rejection {
    fn from(ConfigError { key, reason }: ConfigError) -> Self {
        Self::InvalidConfig { key, reason }
    }
}
