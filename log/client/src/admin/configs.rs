//! Configs of topics, brokers, groups and what else has some: reading and changing them (KIP-133, 226, 339, 569).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::join_all;
use thalweg_protocol::NodeId;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
};
use thalweg_protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use thalweg_protocol::messages::list_config_resources::ListConfigResourcesRequest;

use super::{Admin, Route, checked, checked_topic, keyed, version_from};
use crate::error::{Error, Result};

/// The first version of DescribeConfigs that tells types and documentation.
const DOCUMENTED: i16 = 3;
/// The first version of ListConfigResources that lists others than client metrics.
const ALL_TYPES: i16 = 1;

/// Something that has configs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigResource {
    /// A topic, by name.
    Topic(ByteString),
    /// A broker.
    Broker(NodeId),
    /// What all brokers have that have nothing of their own.
    AllBrokers,
    /// The levels of a broker's loggers.
    BrokerLogger(NodeId),
    /// A subscription to client metrics (KIP-714), by name.
    ClientMetrics(ByteString),
    /// A group, by name.
    Group(ByteString),
}

/// A kind of [`ConfigResource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigResourceType {
    /// Topics.
    Topic,
    /// Brokers, and what all of them have.
    Broker,
    /// The levels of brokers' loggers.
    BrokerLogger,
    /// Subscriptions to client metrics.
    ClientMetrics,
    /// Groups.
    Group,
}

/// A config as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its value; `None` when it has none, or is sensitive.
    pub value: Option<ByteString>,
    /// Where the value comes from.
    pub source: ConfigSource,
    /// Whether the value is never shown.
    pub is_sensitive: bool,
    /// Whether it can only be changed where the broker starts.
    pub is_read_only: bool,
    /// What kind of values it has.
    pub config_type: ConfigType,
    /// From where it gets its value, the first of them that has one first.
    pub synonyms: Vec<ConfigSynonym>,
    /// What it is for, where the broker says so (Kafka 2.6 and later).
    pub documentation: Option<ByteString>,
}

impl ConfigEntry {
    /// Whether nobody has set it.
    pub fn is_default(&self) -> bool {
        self.source == ConfigSource::Default
    }
}

/// Another place that a config's value may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSynonym {
    /// The config's name there.
    pub name: ByteString,
    /// Its value there; `None` when it is sensitive.
    pub value: Option<ByteString>,
    /// Which place it is.
    pub source: ConfigSource,
}

/// Makes an enum of a number in the protocol.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// One that the broker does not tell, or that this client does not know.
            Unknown,
        }

        impl From<i8> for $name {
            fn from(number: i8) -> Self {
                match number {
                    $($number => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }
        }
    };
}

numbered! {
    /// Where a config's value comes from.
    ConfigSource {
        /// Set for the topic.
        Topic = 1,
        /// Set for the broker, while it runs.
        Broker = 2,
        /// Set for all brokers, while they run.
        AllBrokers = 3,
        /// From the file that the broker started with.
        StaticBroker = 4,
        /// Nobody has set it.
        Default = 5,
        /// Set for a logger of the broker.
        BrokerLogger = 6,
        /// Set for a subscription to client metrics.
        ClientMetrics = 7,
        /// Set for the group.
        Group = 8,
    }
}

numbered! {
    /// What kind of values a config has.
    ConfigType {
        /// `true` or `false`.
        Boolean = 1,
        /// Text.
        String = 2,
        /// A number of 32 bits.
        Int = 3,
        /// A number of 16 bits.
        Short = 4,
        /// A number of 64 bits.
        Long = 5,
        /// A floating point number.
        Double = 6,
        /// Values separated by commas; such can be appended to and subtracted from.
        List = 7,
        /// The name of a Java class.
        Class = 8,
        /// Sensitive text.
        Password = 9,
    }
}

/// A change of one config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigChange {
    /// It gets this value.
    Set(String),
    /// It goes back to its default.
    Delete,
    /// These values (separated by commas) are added to its list.
    Append(String),
    /// These values (separated by commas) are taken from its list.
    Subtract(String),
}

/// Changes of the configs of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChanges {
    /// Whose configs.
    pub resource: ConfigResource,
    /// What changes, by the names of configs; all others stay as they are.
    pub changes: BTreeMap<String, ConfigChange>,
}

impl ConfigChanges {
    /// No change yet.
    pub fn of(resource: ConfigResource) -> Self {
        Self { resource, changes: BTreeMap::new() }
    }

    /// The same with a config that gets a value.
    #[must_use]
    pub fn set(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(name, ConfigChange::Set(value.into()))
    }

    /// The same with a config that goes back to its default.
    #[must_use]
    pub fn delete(self, name: impl Into<String>) -> Self {
        self.change(name, ConfigChange::Delete)
    }

    /// The same with values that are added to a list.
    #[must_use]
    pub fn append(self, name: impl Into<String>, values: impl Into<String>) -> Self {
        self.change(name, ConfigChange::Append(values.into()))
    }

    /// The same with values that are taken from a list.
    #[must_use]
    pub fn subtract(self, name: impl Into<String>, values: impl Into<String>) -> Self {
        self.change(name, ConfigChange::Subtract(values.into()))
    }

    fn change(mut self, name: impl Into<String>, change: ConfigChange) -> Self {
        self.changes.insert(name.into(), change);
        self
    }
}

impl Admin {
    /// All configs of these resources, by name, with where each value comes from and what it is for. Each resource has
    /// a result of its own.
    pub async fn describe_configs(
        &self,
        resources: &[ConfigResource],
    ) -> BTreeMap<ConfigResource, Result<BTreeMap<ByteString, ConfigEntry>>> {
        let api = ApiKey::DescribeConfigs;
        let by_route = by_route(keyed(resources.iter().cloned()), Route::Any);
        let describing = by_route.into_iter().map(|(route, open)| {
            self.call_each(api, "describing configs", route, open, |node, open| {
                Box::pin(async move {
                    let version = version_from::<DescribeConfigsRequest>(&node, 0)?;
                    let resource = |resource: &ConfigResource| DescribeConfigsResource {
                        resource_type: resource.resource_type().code(),
                        resource_name: resource.name(),
                        configuration_keys: None,
                    };
                    let request = DescribeConfigsRequest {
                        resources: open.keys().map(resource).collect(),
                        include_synonyms: true,
                        include_documentation: version >= DOCUMENTED,
                    };
                    let response = node.call_in(version, request, Duration::ZERO).await?;
                    let results = response.results.into_iter().filter_map(|result| {
                        let resource = ConfigResource::new(result.resource_type, result.resource_name)?;
                        let entries = result.configs.into_iter().map(entry).collect();
                        let checked = resource.checked(api, result.error_code, result.error_message, entries);
                        Some((resource, checked))
                    });
                    Ok(results.collect())
                })
            })
        });
        join_all(describing).await.into_iter().flat_map(|asking| asking.finish()).collect()
    }

    /// Changes configs; with `validate_only` it is only said whether they could be changed so. The changes of one
    /// resource are made together or not at all, and each resource has a result of its own. Configs that are not
    /// named stay as they are.
    ///
    /// A broker from before IncrementalAlterConfigs can only replace all configs of a resource at once, which could undo
    /// another client's change: this refuses then.
    pub async fn alter_configs(
        &self,
        changes: &[ConfigChanges],
        validate_only: bool,
    ) -> BTreeMap<ConfigResource, Result<()>> {
        let api = ApiKey::IncrementalAlterConfigs;
        let changes =
            changes.iter().map(|changes| (changes.resource.clone(), changes.changes.clone())).collect();
        let altering = by_route(changes, Route::Controller).into_iter().map(|(route, open)| {
            self.call_each(api, "changing configs", route, open, move |node, open| {
                Box::pin(async move {
                    let resources = open.into_iter().map(|(resource, changes)| AlterConfigsResource {
                        resource_type: resource.resource_type().code(),
                        resource_name: resource.name(),
                        configs: changes.into_iter().map(alterable).collect(),
                    });
                    let resources = resources.collect();
                    let request = IncrementalAlterConfigsRequest { resources, validate_only };
                    let response = node.call(request).await?;
                    let results = response.responses.into_iter().filter_map(|result| {
                        let resource = ConfigResource::new(result.resource_type, result.resource_name)?;
                        let checked = resource.checked(api, result.error_code, result.error_message, ());
                        Some((resource, checked))
                    });
                    Ok(results.collect())
                })
            })
        });
        join_all(altering).await.into_iter().flat_map(|asking| asking.finish()).collect()
    }

    /// What has configs of its own, of these types or (with none) of all. All topics and brokers count, whether any of
    /// their configs are set or not.
    ///
    /// # Errors
    /// Whatever keeps a broker from answering.
    pub async fn list_config_resources(&self, types: &[ConfigResourceType]) -> Result<Vec<ConfigResource>> {
        let first = if types == [ConfigResourceType::ClientMetrics] { 0 } else { ALL_TYPES };
        let types: Vec<i8> = types.iter().map(|wanted| wanted.code()).collect();
        self.call("listing config resources", Route::Any, |node| {
            let types = types.clone();
            Box::pin(async move {
                let version = version_from::<ListConfigResourcesRequest>(&node, first)?;
                let resource_types = if version >= ALL_TYPES { types } else { Vec::new() };
                let request = ListConfigResourcesRequest { resource_types };
                let response = node.call_in(version, request, Duration::ZERO).await?;
                let found = response.config_resources.into_iter();
                let found =
                    found.filter_map(|found| ConfigResource::new(found.resource_type, found.resource_name));
                let mut found: Vec<ConfigResource> = found.collect();
                found.sort();
                let api = ApiKey::ListConfigResources;
                checked(api, response.error_code, None, || "the cluster".to_owned(), found)
            })
        })
        .await
    }
}

/// What a broker knows for itself goes to that broker, and everything else to `other`.
fn by_route<T>(
    resources: BTreeMap<ConfigResource, T>,
    other: Route,
) -> BTreeMap<Route, BTreeMap<ConfigResource, T>> {
    let mut by_route: BTreeMap<Route, BTreeMap<ConfigResource, T>> = BTreeMap::new();
    for (resource, what) in resources {
        let route = match resource {
            ConfigResource::Broker(id) | ConfigResource::BrokerLogger(id) => Route::Broker(id),
            _ => other,
        };
        by_route.entry(route).or_default().insert(resource, what);
    }
    by_route
}

fn entry(config: DescribeConfigsResourceResult) -> (ByteString, ConfigEntry) {
    let synonyms = config.synonyms.into_iter().map(|synonym| ConfigSynonym {
        name: synonym.name,
        value: synonym.value,
        source: synonym.source.into(),
    });
    let entry = ConfigEntry {
        value: config.value,
        source: config.config_source.into(),
        is_sensitive: config.is_sensitive,
        is_read_only: config.read_only,
        config_type: config.config_type.into(),
        synonyms: synonyms.collect(),
        documentation: config.documentation.filter(|text| !text.is_empty()),
    };
    (config.name, entry)
}

fn alterable((name, change): (String, ConfigChange)) -> AlterableConfig {
    let (config_operation, value) = match change {
        ConfigChange::Set(value) => (0, Some(value)),
        ConfigChange::Delete => (1, None),
        ConfigChange::Append(values) => (2, Some(values)),
        ConfigChange::Subtract(values) => (3, Some(values)),
    };
    AlterableConfig { name: name.into(), config_operation, value: value.map(ByteString::from) }
}

impl ConfigResourceType {
    fn code(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::BrokerLogger => 8,
            Self::ClientMetrics => 16,
            Self::Group => 32,
        }
    }
}

impl ConfigResource {
    /// As brokers name it; `None` if it is none that this client knows.
    fn new(resource_type: i8, name: ByteString) -> Option<Self> {
        let id = || name.parse().ok().map(NodeId);
        match resource_type {
            2 => Some(Self::Topic(name)),
            4 if name.is_empty() => Some(Self::AllBrokers),
            4 => id().map(Self::Broker),
            8 => id().map(Self::BrokerLogger),
            16 => Some(Self::ClientMetrics(name)),
            32 => Some(Self::Group(name)),
            _ => None,
        }
    }

    /// Its kind.
    pub fn resource_type(&self) -> ConfigResourceType {
        match self {
            Self::Topic(_) => ConfigResourceType::Topic,
            Self::Broker(_) | Self::AllBrokers => ConfigResourceType::Broker,
            Self::BrokerLogger(_) => ConfigResourceType::BrokerLogger,
            Self::ClientMetrics(_) => ConfigResourceType::ClientMetrics,
            Self::Group(_) => ConfigResourceType::Group,
        }
    }

    fn name(&self) -> ByteString {
        match self {
            Self::Topic(name) | Self::ClientMetrics(name) | Self::Group(name) => name.clone(),
            Self::Broker(id) | Self::BrokerLogger(id) => ByteString::from(id.to_string()),
            Self::AllBrokers => ByteString::new(),
        }
    }

    fn checked<R>(&self, api: ApiKey, code: i16, message: Option<ByteString>, answer: R) -> Result<R, Error> {
        match self {
            Self::Topic(topic) => checked_topic(api, code, message, topic, answer),
            _ => checked(api, code, message, || self.to_string(), answer),
        }
    }
}

impl fmt::Display for ConfigResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic(name) => write!(f, "topic {name}"),
            Self::Broker(id) => write!(f, "broker {id}"),
            Self::AllBrokers => f.write_str("all brokers"),
            Self::BrokerLogger(id) => write!(f, "the loggers of broker {id}"),
            Self::ClientMetrics(name) => write!(f, "client metrics subscription {name}"),
            Self::Group(name) => write!(f, "group {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_named_as_brokers_name_them() {
        let text = ByteString::from_static;
        for (resource, name) in [
            (ConfigResource::Topic(text("t")), "t"),
            (ConfigResource::Broker(NodeId(7)), "7"),
            (ConfigResource::AllBrokers, ""),
            (ConfigResource::BrokerLogger(NodeId(7)), "7"),
            (ConfigResource::ClientMetrics(text("m")), "m"),
            (ConfigResource::Group(text("g")), "g"),
        ] {
            assert_eq!(&*resource.name(), name);
            let read = ConfigResource::new(resource.resource_type().code(), resource.name());
            assert_eq!(read, Some(resource));
        }
        assert_eq!(ConfigResource::new(8, text("seven")), None);
        assert_eq!(ConfigResource::new(1, text("t")), None);
    }
}
