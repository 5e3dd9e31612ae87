//! The configs of a node under the names that Kafka's brokers have for them.

use thalweg_controller::{ConfigResource, NodeConfig};
use thalweg_protocol::ErrorCode;

use super::configs::{ConfigEntry, source};
use crate::config::BrokerConfig;
use crate::core::Core;
use crate::error::Refusal;
use crate::node_setting::{NodeSetting, kind};

/// What tells this node from others: its name, kind, value and what it is.
fn own(core: &Core) -> Vec<(&'static str, i8, String, &'static str)> {
    let state = core.controller.state();
    let listens = core.config.listen.iter().map(|address| format!("PLAINTEXT://{address}"));
    let advertised = state.node(core.node).filter(|_| !core.config.listen.is_empty());
    let advertised = advertised.map(|node| format!("PLAINTEXT://{}:{}", node.host, node.port));
    let directory = core.partitions.logs().directory().path();
    vec![
        ("node.id", kind::INT, core.node.to_string(), "The id of the node."),
        ("broker.id", kind::INT, core.node.to_string(), "The id of the node."),
        ("listeners", kind::LIST, listens.collect::<Vec<_>>().join(","), "Where the node listens."),
        (
            "advertised.listeners",
            kind::LIST,
            advertised.unwrap_or_default(),
            "Where clients are told to connect to.",
        ),
        ("log.dirs", kind::LIST, directory.display().to_string(), "The directory that holds the logs."),
    ]
}

/// Whether a node has a setting of this name that stays as it is while it runs.
pub(super) fn is_fixed(name: &str) -> bool {
    let is_own = matches!(name, "node.id" | "broker.id" | "listeners" | "advertised.listeners" | "log.dirs");
    is_own || NodeSetting::find(name).is_some()
}

/// Whether configs of this node are asked for, or of all, which have the empty name.
///
/// # Errors
/// INVALID_REQUEST.
pub(super) fn check_name(core: &Core, name: &str) -> Result<(), Refusal> {
    if name.is_empty() || *name == *core.node.to_string() {
        return Ok(());
    }
    Err(Refusal::new(ErrorCode::InvalidRequest, format!("this is node {}", core.node)))
}

/// All configs of this node but the defaults for topics.
pub(super) fn all(core: &Core) -> Vec<ConfigEntry> {
    let fixed = |name, kind, documentation, value: String, synonyms| ConfigEntry {
        name,
        kind,
        documentation,
        value,
        read_only: true,
        synonyms,
    };
    let own = own(core).into_iter().map(|(name, kind, value, documentation)| {
        fixed(name, kind, documentation, value.clone(), vec![(name, value, source::NODE)])
    });
    let with_defaults = NodeSetting::all().iter().map(|setting| {
        let value = (setting.value)(&core.config);
        fixed(setting.name, setting.kind, setting.documentation, value, synonyms(core, setting))
    });
    let state = core.controller.state();
    let given = [
        (ConfigResource::Node(core.node), source::OF_NODE),
        (ConfigResource::AllNodes, source::OF_ALL_NODES),
    ];
    let idle = NodeConfig::idle().iter().map(|config| {
        let mut synonyms: Vec<_> = given
            .iter()
            .filter_map(|(resource, source)| {
                let value = state.configs_of(resource)?.get(config.name)?;
                Some((config.name, value.clone(), *source))
            })
            .collect();
        synonyms.push((config.name, config.default.to_string(), source::DEFAULT));
        ConfigEntry {
            name: config.name,
            kind: if config.is_long { kind::LONG } else { kind::INT },
            documentation: config.documentation,
            value: synonyms.first().map(|(_, value, _)| value.clone()).unwrap_or_default(),
            read_only: false,
            synonyms,
        }
    });
    own.chain(with_defaults).chain(idle).collect()
}

/// What a setting is, and what it would be by default.
pub(super) fn synonyms(core: &Core, setting: &NodeSetting) -> Vec<(&'static str, String, i8)> {
    let (value, default) = ((setting.value)(&core.config), (setting.value)(&BrokerConfig::default()));
    let set = (value != default).then_some((setting.name, value, source::NODE));
    set.into_iter().chain([(setting.name, default, source::DEFAULT)]).collect()
}
