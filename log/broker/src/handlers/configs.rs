//! The configs of a topic as answers show them.

use thalweg_controller::{ConfigDefinition, ConfigKind, Topic, TopicConfig};

use crate::topic_config::TopicDefaults;

/// Where a value comes from, by the numbers of the protocol.
pub(super) mod source {
    /// It is set for the topic.
    pub(crate) const TOPIC: i8 = 1;
    /// The node's configuration says so.
    pub(crate) const NODE: i8 = 4;
    /// It is the default.
    pub(crate) const DEFAULT: i8 = 5;
}

/// One config of a topic.
pub(super) struct ShownConfig {
    pub(super) definition: &'static ConfigDefinition,
    pub(super) value: String,
    pub(super) source: i8,
}

/// All configs of `topic`, with what applies to it on a node with these `defaults`.
pub(super) fn of_topic<'a>(
    defaults: &'a TopicDefaults,
    topic: &'a Topic,
) -> impl Iterator<Item = ShownConfig> + 'a {
    let config = defaults.resolve(topic);
    TopicConfig::definitions().iter().map(move |definition| ShownConfig {
        definition,
        value: config.get(definition.name).unwrap_or_default(),
        source: if topic.overrides.contains_key(definition.name) {
            source::TOPIC
        } else if defaults.get(definition.name).is_some() {
            source::NODE
        } else {
            source::DEFAULT
        },
    })
}

/// The type of a config's values, by the numbers of the protocol.
pub(super) fn kind_number(kind: ConfigKind) -> i8 {
    match kind {
        ConfigKind::Boolean => 1,
        ConfigKind::String(_) => 2,
        ConfigKind::Int => 3,
        ConfigKind::Long => 5,
        ConfigKind::Double => 6,
        ConfigKind::List(_) => 7,
    }
}
