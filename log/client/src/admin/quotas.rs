//! Quotas of users, clients and addresses (KIP-546).

use std::collections::BTreeMap;
use std::fmt;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::alter_client_quotas::{self, AlterClientQuotasRequest, OpData};
use thalweg_protocol::messages::describe_client_quotas::{ComponentData, DescribeClientQuotasRequest};

use super::{Admin, Route, checked};
use crate::error::Result;

/// Whom a quota is for: a user, a client id, both together, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaEntity {
    /// By type (`user`, `client-id`, `ip`), which of them; `None` is whoever has no quota by name.
    pub parts: BTreeMap<ByteString, Option<ByteString>>,
}

impl QuotaEntity {
    /// A user; `None` is every user that has no quota by name.
    pub fn user(name: Option<&str>) -> Self {
        Self::default().and("user", name)
    }

    /// A client id; `None` is every client id that has no quota by name.
    pub fn client_id(id: Option<&str>) -> Self {
        Self::default().and("client-id", id)
    }

    /// An address; `None` is every address that has no quota of its own.
    pub fn ip(address: Option<&str>) -> Self {
        Self::default().and("ip", address)
    }

    /// The same narrowed down, such as a user's quota for one client id.
    #[must_use]
    pub fn and(mut self, entity_type: &'static str, name: Option<&str>) -> Self {
        self.parts.insert(ByteString::from_static(entity_type), name.map(ByteString::from));
        self
    }
}

impl fmt::Display for QuotaEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (entity_type, name)) in self.parts.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{entity_type} {}", name.as_deref().unwrap_or("by default"))?;
        }
        Ok(())
    }
}

/// Which of a type of entity are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaMatch {
    /// The one of this name.
    Named(ByteString),
    /// That for whoever has no quota by name.
    Default,
    /// Any.
    Any,
}

/// Which quotas are wanted: those of all entities that match every part. Empty: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaFilter {
    /// By type (`user`, `client-id`, `ip`), which of them.
    pub parts: BTreeMap<ByteString, QuotaMatch>,
    /// Whether entities that have parts besides these are left out.
    pub is_strict: bool,
}

impl QuotaFilter {
    /// The same with a condition.
    #[must_use]
    pub fn with(mut self, entity_type: &'static str, wanted: QuotaMatch) -> Self {
        self.parts.insert(ByteString::from_static(entity_type), wanted);
        self
    }
}

/// A change of the quotas of one entity.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaAlteration {
    /// Whose.
    pub entity: QuotaEntity,
    /// By name (such as `producer_byte_rate`, in bytes per second), the new value; `None` takes the quota away.
    pub quotas: BTreeMap<String, Option<f64>>,
}

impl QuotaAlteration {
    /// No change yet.
    pub fn of(entity: QuotaEntity) -> Self {
        Self { entity, quotas: BTreeMap::new() }
    }

    /// The same with a quota that gets a value, or (`None`) is taken away.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: Option<f64>) -> Self {
        self.quotas.insert(name.into(), value);
        self
    }
}

impl Admin {
    /// The quotas that are set, by entity and name.
    ///
    /// # Errors
    /// What the broker refused, or what keeps the cluster from answering.
    pub async fn describe_client_quotas(
        &self,
        filter: &QuotaFilter,
    ) -> Result<BTreeMap<QuotaEntity, BTreeMap<ByteString, f64>>> {
        let component = |(entity_type, wanted): (&ByteString, &QuotaMatch)| {
            let (match_type, name) = match wanted {
                QuotaMatch::Named(name) => (0, Some(name.clone())),
                QuotaMatch::Default => (1, None),
                QuotaMatch::Any => (2, None),
            };
            ComponentData { entity_type: entity_type.clone(), match_type, r#match: name }
        };
        let request = DescribeClientQuotasRequest {
            components: filter.parts.iter().map(component).collect(),
            strict: filter.is_strict,
        };
        let described = self.call("describing quotas", Route::Any, |node| {
            let request = request.clone();
            Box::pin(async move {
                let response = node.call(request).await?;
                let (code, message) = (response.error_code, response.error_message);
                let entries = response.entries.unwrap_or_default();
                checked(ApiKey::DescribeClientQuotas, code, message, || "quotas".to_owned(), entries)
            })
        });
        let entries = described.await?.into_iter().map(|entry| {
            let parts = entry.entity.into_iter().map(|part| (part.entity_type, part.entity_name));
            let values = entry.values.into_iter().map(|value| (value.key, value.value));
            (QuotaEntity { parts: parts.collect() }, values.collect())
        });
        Ok(entries.collect())
    }

    /// Changes quotas; with `validate_only` it is only said whether they could be changed so. Each entity has a result
    /// of its own.
    pub async fn alter_client_quotas(
        &self,
        alterations: &[QuotaAlteration],
        validate_only: bool,
    ) -> BTreeMap<QuotaEntity, Result<()>> {
        let api = ApiKey::AlterClientQuotas;
        let open = alterations.iter().map(|change| (change.entity.clone(), change.quotas.clone())).collect();
        let asking = self.call_each(api, "changing quotas", Route::Controller, open, |node, open| {
            Box::pin(async move {
                let entries = open.into_iter().map(altered).collect();
                let response = node.call(AlterClientQuotasRequest { entries, validate_only }).await?;
                let results = response.entries.into_iter().map(|result| {
                    let parts = result.entity.into_iter().map(|part| (part.entity_type, part.entity_name));
                    let entity = QuotaEntity { parts: parts.collect() };
                    let subject = || format!("the quotas of {entity}");
                    let checked = checked(api, result.error_code, result.error_message, subject, ());
                    (entity, checked)
                });
                Ok(results.collect())
            })
        });
        asking.await.finish()
    }
}

fn altered((entity, quotas): (QuotaEntity, BTreeMap<String, Option<f64>>)) -> alter_client_quotas::EntryData {
    let part = |(entity_type, entity_name)| alter_client_quotas::EntityData { entity_type, entity_name };
    let op = |(key, value): (String, Option<f64>)| OpData {
        key: key.into(),
        value: value.unwrap_or_default(),
        remove: value.is_none(),
    };
    alter_client_quotas::EntryData {
        entity: entity.parts.into_iter().map(part).collect(),
        ops: quotas.into_iter().map(op).collect(),
    }
}
