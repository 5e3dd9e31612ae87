//! A node of the cluster, as it registered.

use bytestring::ByteString;
use serde::{Deserialize, Serialize};
use thalweg_protocol::{NodeId, Uuid};

use crate::ids::NodeEpoch;
use crate::json;

/// A node of the cluster, as it registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its id.
    #[serde(with = "json::number")]
    pub id: NodeId,
    /// The id of its data directory.
    #[serde(with = "json::uuid")]
    pub uuid: Uuid,
    /// Where clients reach it.
    pub host: ByteString,
    /// Where clients reach it.
    pub port: u16,
    /// The rack it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<ByteString>,
    /// Its registration.
    #[serde(with = "json::number")]
    pub epoch: NodeEpoch,
    /// Whether it is shut out: it leads nothing and is in sync only where nobody else is.
    pub fenced: bool,
}
