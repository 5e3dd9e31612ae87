//! Configs as answers show them.

use bytestring::ByteString;
use thalweg_controller::{ConfigDefinition, ConfigKind, Topic, TopicConfig};
use thalweg_protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResourceResult, DescribeConfigsSynonym,
};

use crate::topic_config::{DefaultLayers, TopicDefaults};

/// Where a value comes from, by the numbers of the protocol.
pub(super) mod source {
    /// It is set for the topic.
    pub(crate) const TOPIC: i8 = 1;
    /// The node has been given it while it runs.
    pub(crate) const OF_NODE: i8 = 2;
    /// All nodes have been given it while they run.
    pub(crate) const OF_ALL_NODES: i8 = 3;
    /// The node's configuration says so.
    pub(crate) const NODE: i8 = 4;
    /// It is the default.
    pub(crate) const DEFAULT: i8 = 5;
    /// It is set for the group.
    pub(crate) const GROUP: i8 = 8;
}

/// The kinds of resources that have configs, by the numbers of the protocol.
pub(super) mod resource {
    pub(crate) const TOPIC: i8 = 2;
    pub(crate) const NODE: i8 = 4;
    pub(crate) const CLIENT_METRICS: i8 = 16;
    pub(crate) const GROUP: i8 = 32;
}

/// A config as DescribeConfigs shows it.
pub(super) struct ConfigEntry {
    pub(super) name: &'static str,
    /// The type of its values, by the numbers of the protocol.
    pub(super) kind: i8,
    pub(super) documentation: &'static str,
    pub(super) value: String,
    pub(super) read_only: bool,
    /// What it would be if what goes before were not there, the value itself included: the name that it has there, the value,
    /// and where that comes from.
    pub(super) synonyms: Vec<(&'static str, String, i8)>,
}

impl ConfigEntry {
    pub(super) fn show(self, request: &DescribeConfigsRequest) -> DescribeConfigsResourceResult {
        let config_source = self.synonyms.first().map_or(source::DEFAULT, |&(_, _, source)| source);
        let synonyms = self.synonyms.into_iter().filter(|_| request.include_synonyms);
        let synonyms = synonyms.map(|(name, value, source)| DescribeConfigsSynonym {
            name: ByteString::from_static(name),
            value: Some(value.into()),
            source,
        });
        DescribeConfigsResourceResult {
            name: ByteString::from_static(self.name),
            value: Some(self.value.into()),
            read_only: self.read_only,
            config_source,
            is_sensitive: false,
            synonyms: synonyms.collect(),
            config_type: self.kind,
            documentation: request.include_documentation.then(|| ByteString::from_static(self.documentation)),
        }
    }
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
        } else {
            given(&defaults.layers(definition.name)).next().map_or(source::DEFAULT, |(_, source)| source)
        },
    })
}

/// The values that a node has been given for a config, with where they come from; the first counts.
pub(super) fn given<'a>(layers: &DefaultLayers<'a>) -> impl Iterator<Item = (&'a str, i8)> + use<'a> {
    let layers = [
        layers.of_node.map(|value| (value, source::OF_NODE)),
        layers.of_all.map(|value| (value, source::OF_ALL_NODES)),
        layers.fixed.map(|value| (value, source::NODE)),
    ];
    layers.into_iter().flatten()
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
