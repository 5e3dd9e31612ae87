//! What has configs besides topics.

use std::collections::BTreeMap;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use thalweg_protocol::NodeId;

use crate::group_config::GroupConfig;
use crate::json;
use crate::limits;
use crate::node_config::NodeConfig;
use crate::rejection::Rejection;
use crate::topic_config::ConfigDefinition;

/// What has configs besides topics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigResource {
    /// All nodes that have none of their own.
    AllNodes,
    /// One node.
    Node(#[serde(with = "json::number")] NodeId),
    /// A group, which need not exist.
    Group(ByteString),
}

impl ConfigResource {
    /// What is known of a config of such a resource, where that is a list or a default can be told.
    pub(crate) fn definition(&self, key: &str) -> Option<&'static ConfigDefinition> {
        match self {
            Self::AllNodes | Self::Node(_) => NodeConfig::topic_default(key),
            Self::Group(_) => GroupConfig::definition(key),
        }
    }

    pub(crate) fn check_name(&self) -> Result<(), Rejection> {
        match self {
            Self::Group(name) if name.is_empty() => {
                Err(Rejection::InvalidConfigResource { reason: "the group has no name" })
            }
            Self::Group(name) if name.len() > limits::MAX_CONFIG_VALUE => {
                Err(Rejection::InvalidConfigResource { reason: "the group's name is too long" })
            }
            Self::Node(node) if node.0 < 0 => {
                Err(Rejection::InvalidConfigResource { reason: "the node's id is negative" })
            }
            _ => Ok(()),
        }
    }

    /// Checks all configs that the resource would have.
    pub(crate) fn check(&self, configs: &BTreeMap<String, String>) -> Result<(), Rejection> {
        match self {
            Self::AllNodes | Self::Node(_) => NodeConfig::check(configs)?,
            Self::Group(_) => GroupConfig::default().with_overrides(configs).map(|_| ())?,
        }
        Ok(())
    }

    pub(crate) fn is_known(&self, key: &str) -> bool {
        match self {
            Self::AllNodes | Self::Node(_) => NodeConfig::is_known(key),
            Self::Group(_) => GroupConfig::definition(key).is_some(),
        }
    }
}
