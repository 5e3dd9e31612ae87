//! AlterClientQuotas: proposes other quotas for clients (KIP-546). Each entity is answered by itself.

use bytestring::ByteString;
use thalweg_controller::{AlterClientQuotas, EntityName, QuotaChange, QuotaEntity, QuotaOp, QuotaValue};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, EntityData, EntryData, ResponseEntryData,
};

use super::{RequestContext, own};
use crate::core::propose;
use crate::error::Refusal;

pub(crate) async fn handle(
    context: RequestContext,
    request: AlterClientQuotasRequest,
) -> AlterClientQuotasResponse {
    let changes: Vec<Result<QuotaChange, Refusal>> = request.entries.iter().map(change).collect();
    let entries = changes.iter().flatten().cloned().collect();
    let proposal = AlterClientQuotas { entries, validate_only: request.validate_only };
    let mut results = match propose(&context.core.controller, proposal).await {
        Ok(results) => results.into_iter(),
        Err(error) => return refuse(request, &error.into()),
    };
    let refusals = changes.into_iter().map(|change| match change {
        Err(refusal) => Some(refusal),
        Ok(_) => match results.next() {
            Some(Ok(())) => None,
            Some(Err(rejection)) => Some(rejection.into()),
            None => Some(ErrorCode::UnknownServerError.into()),
        },
    });
    let refusals: Vec<_> = refusals.collect();
    answer(request, refusals)
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: AlterClientQuotasRequest, refusal: &Refusal) -> AlterClientQuotasResponse {
    let refusals = vec![Some(refusal.clone()); request.entries.len()];
    answer(request, refusals)
}

fn answer(request: AlterClientQuotasRequest, refusals: Vec<Option<Refusal>>) -> AlterClientQuotasResponse {
    let entries = request.entries.into_iter().zip(refusals).map(|(entry, refusal)| ResponseEntryData {
        error_code: refusal.as_ref().map_or(0, |refusal| refusal.code.code()),
        error_message: refusal.and_then(|refusal| refusal.message).map(ByteString::from),
        entity: entry.entity,
    });
    AlterClientQuotasResponse { entries: entries.collect(), ..Default::default() }
}

fn change(entry: &EntryData) -> Result<QuotaChange, Refusal> {
    let ops = entry.ops.iter().map(|op| {
        let value = match op.remove {
            true => None,
            false => Some(QuotaValue::new(op.value).ok_or_else(|| {
                Refusal::new(ErrorCode::InvalidRequest, format!("the quota '{}' is not finite", op.key))
            })?),
        };
        Ok(QuotaOp { key: op.key.to_string(), value })
    });
    let ops = ops.collect::<Result<Vec<_>, Refusal>>()?;
    Ok(QuotaChange { entity: entity(&entry.entity)?, ops })
}

fn entity(parts: &[EntityData]) -> Result<QuotaEntity, Refusal> {
    let mut entity = QuotaEntity::default();
    for part in parts {
        let place = match &*part.entity_type {
            "user" => &mut entity.user,
            "client-id" => &mut entity.client_id,
            "ip" => &mut entity.ip,
            other => {
                let reason = format!("there are no quotas for '{other}': only for user, client-id and ip");
                return Err(Refusal::new(ErrorCode::InvalidRequest, reason));
            }
        };
        // The name outlives the request in the metadata.
        let name = part.entity_name.as_ref().map_or(EntityName::Default, |name| EntityName::Named(own(name)));
        if place.replace(name).is_some() {
            let reason = format!("'{}' occurs more than once in an entity", part.entity_type);
            return Err(Refusal::new(ErrorCode::InvalidRequest, reason));
        }
    }
    Ok(entity)
}
