//! The settings of a node under the names that Kafka's brokers have for them. None can be changed while it runs.

use bytestring::ByteString;
use thalweg_controller::TopicConfig;
use thalweg_protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResourceResult, DescribeConfigsSynonym,
};

use super::configs::source;
use crate::config::BrokerConfig;
use crate::core::Core;
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

/// Whether a node has a setting of this name.
pub(super) fn is_known(name: &str) -> bool {
    let of_topics = TopicConfig::definitions().iter().any(|definition| definition.node_wide == Some(name));
    let is_own = matches!(name, "node.id" | "broker.id" | "listeners" | "advertised.listeners" | "log.dirs");
    of_topics || is_own || NodeSetting::find(name).is_some()
}

/// All settings but the defaults for topics.
pub(super) fn describe(core: &Core, request: &DescribeConfigsRequest) -> Vec<DescribeConfigsResourceResult> {
    let own = own(core)
        .into_iter()
        .map(|(name, kind, value, documentation)| shown(request, name, kind, documentation, value, None));
    let defaults = BrokerConfig::default();
    let with_defaults = NodeSetting::all().iter().map(|setting| {
        let (value, default) = ((setting.value)(&core.config), (setting.value)(&defaults));
        shown(request, setting.name, setting.kind, setting.documentation, value, Some(default))
    });
    own.chain(with_defaults).collect()
}

fn shown(
    request: &DescribeConfigsRequest,
    name: &'static str,
    config_type: i8,
    documentation: &'static str,
    value: String,
    default: Option<String>,
) -> DescribeConfigsResourceResult {
    let name = ByteString::from_static(name);
    let is_default = default.as_ref() == Some(&value);
    let synonym = |value: String, source| DescribeConfigsSynonym {
        name: name.clone(),
        value: Some(value.into()),
        source,
    };
    let set = (!is_default).then(|| synonym(value.clone(), source::NODE));
    let synonyms = set.into_iter().chain(default.map(|default| synonym(default, source::DEFAULT)));
    DescribeConfigsResourceResult {
        value: Some(value.into()),
        read_only: true,
        config_source: if is_default { source::DEFAULT } else { source::NODE },
        is_sensitive: false,
        synonyms: if request.include_synonyms { synonyms.collect() } else { Vec::new() },
        config_type,
        documentation: request.include_documentation.then(|| ByteString::from_static(documentation)),
        name,
    }
}
