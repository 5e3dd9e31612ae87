//! DescribeClientQuotas: the quotas of those clients that match (KIP-546).

use bytestring::ByteString;
use thalweg_controller::{EntityName, QuotaEntity, Quotas};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_client_quotas::{
    ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse, EntityData, EntryData,
    ValueData,
};

use super::RequestContext;
use crate::error::Refusal;

/// The parts that an entity can have.
const PARTS: [&str; 3] = ["user", "client-id", "ip"];

pub(crate) fn handle(
    context: &RequestContext,
    request: &DescribeClientQuotasRequest,
) -> DescribeClientQuotasResponse {
    let filter = match Filter::of(request) {
        Ok(filter) => filter,
        Err(refusal) => return refuse(&refusal),
    };
    let state = context.core.controller.state();
    let found = state.quotas().iter().filter(|(entity, _)| filter.matches(entity));
    let entries = found.map(|(entity, quotas)| entry(entity, quotas)).collect();
    DescribeClientQuotasResponse { entries: Some(entries), ..Default::default() }
}

/// The answer that refuses the request.
pub(crate) fn refuse(refusal: &Refusal) -> DescribeClientQuotasResponse {
    DescribeClientQuotasResponse {
        error_code: refusal.code.code(),
        error_message: refusal.message.clone().map(ByteString::from),
        entries: None,
        ..Default::default()
    }
}

/// What an entity must have in one of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// This name, or the default.
    Exactly(EntityName),
    /// Anything.
    Any,
}

/// Which entities are wanted.
#[derive(Debug, Default)]
struct Filter {
    /// By the place in [`PARTS`].
    wanted: [Option<Wanted>; 3],
    /// Whether entities with more parts than these are left out.
    is_strict: bool,
}

impl Filter {
    fn of(request: &DescribeClientQuotasRequest) -> Result<Self, Refusal> {
        let mut filter = Self { is_strict: request.strict, ..Self::default() };
        for component in &request.components {
            let place = PARTS.iter().position(|part| *part == &*component.entity_type);
            let Some(wanted) = place.and_then(|place| filter.wanted.get_mut(place)) else {
                let reason = format!("there are no quotas for '{}'", component.entity_type);
                return Err(Refusal::new(ErrorCode::UnsupportedVersion, reason));
            };
            if wanted.replace(Self::wanted(component)?).is_some() {
                let reason = format!("'{}' occurs more than once", component.entity_type);
                return Err(Refusal::new(ErrorCode::InvalidRequest, reason));
            }
        }
        Ok(filter)
    }

    fn wanted(component: &ComponentData) -> Result<Wanted, Refusal> {
        match (component.match_type, &component.r#match) {
            (0, Some(name)) => Ok(Wanted::Exactly(EntityName::Named(name.clone()))),
            (1, None) => Ok(Wanted::Exactly(EntityName::Default)),
            (2, None) => Ok(Wanted::Any),
            (other, _) => {
                let reason = format!("a match of type {other} is none, or its name is missing or too many");
                Err(Refusal::new(ErrorCode::InvalidRequest, reason))
            }
        }
    }

    fn matches(&self, entity: &QuotaEntity) -> bool {
        let parts = [&entity.user, &entity.client_id, &entity.ip];
        self.wanted.iter().zip(parts).all(|(wanted, part)| match (wanted, part) {
            (Some(Wanted::Exactly(name)), part) => part.as_ref() == Some(name),
            (Some(Wanted::Any), part) => part.is_some(),
            (None, part) => part.is_none() || !self.is_strict,
        })
    }
}

fn entry(entity: &QuotaEntity, quotas: &Quotas) -> EntryData {
    let parts = PARTS.iter().zip([&entity.user, &entity.client_id, &entity.ip]);
    let entity = parts.filter_map(|(&part, name)| {
        let entity_name = match name.as_ref()? {
            EntityName::Default => None,
            EntityName::Named(name) => Some(name.clone()),
        };
        Some(EntityData { entity_type: ByteString::from_static(part), entity_name })
    });
    let values = quotas.iter().map(|(key, value)| ValueData { key: key.as_str().into(), value: value.get() });
    EntryData { entity: entity.collect(), values: values.collect() }
}
