//! What clients may use (KIP-13, KIP-546, KIP-599, KIP-612): who it is for, and which quotas there are.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytestring::ByteString;
use serde::{Deserialize, Serialize};

use crate::rejection::Rejection;

/// The quotas of one entity, by their names.
pub type Quotas = BTreeMap<String, QuotaValue>;

/// Whom quotas are for: a user, a client id, both together, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaEntity {
    /// The name of the principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<EntityName>,
    /// The name that a client gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<EntityName>,
    /// The address that a client connects from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<EntityName>,
}

/// One part of an entity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityName {
    /// All that have no quota of their own; each is counted by itself.
    Default,
    /// This one.
    Named(ByteString),
}

/// How much may be used; a finite number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuotaValue(f64);

/// It is never NaN.
impl Eq for QuotaValue {}

impl QuotaValue {
    /// `None` for what is not finite.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// What is known of a quota.
#[derive(Clone, Copy, Debug)]
pub struct QuotaDefinition {
    /// Its name, as clients write it.
    pub name: &'static str,
    /// Whether it is for addresses; all others are for users and client ids.
    pub is_for_addresses: bool,
    /// Whether its values are whole numbers.
    is_whole: bool,
}

impl QuotaDefinition {
    /// Bytes of records per second that may be produced.
    pub const PRODUCER_BYTE_RATE: Self = Self::of_clients("producer_byte_rate", true);
    /// Bytes of records per second that may be fetched.
    pub const CONSUMER_BYTE_RATE: Self = Self::of_clients("consumer_byte_rate", true);
    /// The part of one thread's time that requests may take, in per cent; 200 is two threads.
    pub const REQUEST_PERCENTAGE: Self = Self::of_clients("request_percentage", false);
    /// Partitions per second that may be created and deleted.
    pub const CONTROLLER_MUTATION_RATE: Self = Self::of_clients("controller_mutation_rate", false);
    /// Connections per second that may be opened from an address.
    pub const CONNECTION_CREATION_RATE: Self =
        Self { name: "connection_creation_rate", is_for_addresses: true, is_whole: true };

    const ALL: [Self; 5] = [
        Self::PRODUCER_BYTE_RATE,
        Self::CONSUMER_BYTE_RATE,
        Self::REQUEST_PERCENTAGE,
        Self::CONTROLLER_MUTATION_RATE,
        Self::CONNECTION_CREATION_RATE,
    ];

    const fn of_clients(name: &'static str, is_whole: bool) -> Self {
        Self { name, is_for_addresses: false, is_whole }
    }
}

impl QuotaEntity {
    pub(crate) fn check(&self) -> Result<(), Rejection> {
        let invalid = |reason| Err(Rejection::InvalidQuotaEntity { reason });
        let is_of_client = self.user.is_some() || self.client_id.is_some();
        match (is_of_client, &self.ip) {
            (false, None) => return invalid("it names nobody"),
            (true, Some(_)) => {
                return invalid("an address stands for itself, not beside a user or client id");
            }
            (false, Some(EntityName::Named(ip))) if ip.parse::<IpAddr>().is_err() => {
                return invalid("its address is none");
            }
            _ => {}
        }
        let is_empty =
            |name: &Option<EntityName>| matches!(name, Some(EntityName::Named(name)) if name.is_empty());
        if is_empty(&self.user) || is_empty(&self.client_id) {
            return invalid("a name in it is empty");
        }
        Ok(())
    }

    /// Checks a change to one of its quotas; `None` takes it away.
    pub(crate) fn check_quota(&self, key: &str, value: Option<QuotaValue>) -> Result<(), Rejection> {
        let is_its = |definition: &&QuotaDefinition| {
            definition.name == key && definition.is_for_addresses == self.ip.is_some()
        };
        let invalid = |reason| Err(Rejection::InvalidQuota { key: key.to_owned(), reason });
        let Some(definition) = QuotaDefinition::ALL.iter().find(is_its) else {
            return invalid("such an entity has no such quota");
        };
        match value.map(QuotaValue::get) {
            Some(value) if value <= 0.0 => invalid("it must be more than 0"),
            Some(value) if definition.is_whole && value.fract() != 0.0 => {
                invalid("it must be a whole number")
            }
            // 2^63, the first that Kafka's clients cannot read as a long.
            Some(value) if definition.is_whole && value >= -(i64::MIN as f64) => {
                invalid("it must be less than 2^63")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_and_quotas_are_checked() {
        let named = |name: &str| Some(EntityName::Named(name.into()));
        let of = |user, client_id, ip| QuotaEntity { user, client_id, ip };
        for (entity, is_valid) in [
            (of(None, None, None), false),
            (of(named("u"), None, None), true),
            (of(named(""), None, None), false),
            (of(named("u"), Some(EntityName::Default), None), true),
            (of(None, named(""), None), false),
            (of(None, None, named("127.0.0.1")), true),
            (of(None, None, named("::1")), true),
            (of(None, None, named("here")), false),
            (of(None, None, Some(EntityName::Default)), true),
            (of(named("u"), None, named("127.0.0.1")), false),
        ] {
            assert_eq!(entity.check().is_ok(), is_valid, "{entity:?}");
        }
        let (user, ip) = (of(named("u"), None, None), of(None, None, Some(EntityName::Default)));
        for (entity, key, value, is_valid) in [
            (&user, "producer_byte_rate", 1000.0, true),
            (&user, "producer_byte_rate", 0.5, false),
            (&user, "producer_byte_rate", 1e18, true),
            (&user, "producer_byte_rate", 1e300, false),
            (&user, "request_percentage", 1e300, true),
            (&user, "request_percentage", 0.5, true),
            (&user, "request_percentage", 0.0, false),
            (&user, "consumer_byte_rate", -1.0, false),
            (&user, "connection_creation_rate", 1.0, false),
            (&user, "no_such_rate", 1.0, false),
            (&ip, "connection_creation_rate", 1.0, true),
            (&ip, "producer_byte_rate", 1.0, false),
        ] {
            let checked = entity.check_quota(key, QuotaValue::new(value));
            assert_eq!(checked.is_ok(), is_valid, "{key} {value}");
        }
        assert!(user.check_quota("controller_mutation_rate", None).is_ok());
        assert!(QuotaValue::new(f64::NAN).is_none() && QuotaValue::new(f64::INFINITY).is_none());
    }
}
