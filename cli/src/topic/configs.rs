//! What a topic is configured to do.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_client::{Admin, ConfigEntry, ConfigResource, Error};

/// All configs of a topic, by name.
pub struct TopicConfigs(pub BTreeMap<ByteString, ConfigEntry>);

impl TopicConfigs {
    /// Those of `topic`.
    ///
    /// # Errors
    /// Why the broker does not tell them.
    pub async fn of(admin: &Admin, topic: &str) -> Result<Self, Error> {
        let resource = ConfigResource::Topic(topic.into());
        let mut described = admin.describe_configs(std::slice::from_ref(&resource)).await;
        described.remove(&resource).map_or_else(|| Ok(Self(BTreeMap::new())), |configs| configs.map(Self))
    }

    /// The value of a config, if it has one.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.value.as_deref()
    }

    /// Whether its records go with time or size, and not only when something newer comes under their keys; `None` where its
    /// policy is not known.
    pub fn has_retention(&self) -> Option<bool> {
        let policy = self.value("cleanup.policy")?;
        Some(policy.split(',').any(|part| part.trim() == "delete"))
    }
}
