//! What can be changed of nodes while they run: the defaults of topics' configs, under the names that Kafka has for them,
//! and some more that tools set.

use std::collections::BTreeMap;

use crate::topic_config::{ConfigDefinition, ConfigError, TopicConfig, shortened};

/// A config that is kept and shown but has no effect here.
#[derive(Clone, Copy, Debug)]
pub struct IdleNodeConfig {
    /// Its name.
    pub name: &'static str,
    /// Its default in Kafka, a 32-bit integer or a 64-bit one.
    pub default: i64,
    /// Whether it is a 64-bit one.
    pub is_long: bool,
    /// What it would be for, and why it has no effect.
    pub documentation: &'static str,
}

const fn threads(name: &'static str, default: i64) -> IdleNodeConfig {
    IdleNodeConfig {
        name,
        default,
        is_long: false,
        documentation: "Accepted from tools that set it: a node here has no such pool of threads.",
    }
}

/// Those that are kept and shown but have no effect.
static IDLE: &[IdleNodeConfig] = &[
    threads("background.threads", 10),
    threads("num.io.threads", 8),
    threads("num.network.threads", 3),
    threads("num.recovery.threads.per.data.dir", 2),
    threads("num.replica.fetchers", 1),
    threads("log.cleaner.threads", 1),
    IdleNodeConfig {
        name: "sasl.kerberos.min.time.before.relogin",
        default: 60_000,
        is_long: true,
        documentation: "Accepted from tools that set it: a node here does not speak Kerberos.",
    },
];

/// The configs of nodes that can be changed while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeConfig;

impl NodeConfig {
    /// Those that are kept and shown but have no effect.
    pub fn idle() -> &'static [IdleNodeConfig] {
        IDLE
    }

    /// The config of topics whose default this one is.
    pub fn topic_default(key: &str) -> Option<&'static ConfigDefinition> {
        TopicConfig::definitions().iter().find(|definition| definition.node_wide == Some(key))
    }

    /// Whether it can be changed while a node runs.
    pub fn is_known(key: &str) -> bool {
        Self::topic_default(key).is_some() || IDLE.iter().any(|idle| idle.name == key)
    }

    /// The defaults for topics among `configs`, under their names as topics' configs.
    pub fn topic_defaults(configs: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let named = configs
            .iter()
            .filter_map(|(key, value)| Some((Self::topic_default(key)?.name.to_owned(), value.clone())));
        named.collect()
    }

    /// Checks all that a node, or all of them, would have.
    pub(crate) fn check(configs: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        for (key, value) in configs {
            let reason = match (Self::topic_default(key), IDLE.iter().find(|idle| idle.name == key)) {
                (Some(definition), _) => definition.check(value),
                (None, Some(idle)) => idle.check(value),
                (None, None) => Err(Self::unknown(key)),
            };
            reason.map_err(|reason| ConfigError { key: key.clone(), reason })?;
        }
        // Together they can cross where each is valid.
        TopicConfig::default().with_overrides(&Self::topic_defaults(configs)).map(|_| ())
    }

    pub(crate) fn unknown(key: &str) -> String {
        format!("nodes have no config '{}' that can be changed while they run", shortened(key))
    }
}

impl IdleNodeConfig {
    fn check(&self, value: &str) -> Result<(), String> {
        let value = value.trim();
        let number =
            if self.is_long { value.parse::<i64>().ok() } else { value.parse::<i32>().ok().map(i64::from) };
        match number {
            Some(1..) => Ok(()),
            _ => Err(format!("'{}' is not a number above 0", shortened(value))),
        }
    }
}
