//! UpdateFeatures: changes the levels of features (KIP-584, KIP-1022).

use bytestring::ByteString;
use thalweg_controller::{FeatureUpdate, FeatureUpgrade, UpdateFeatures};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::update_features::{
    FeatureUpdateKey, UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse,
};

use super::RequestContext;
use crate::core::propose_for;
use crate::error::Refusal;

pub(crate) async fn handle(
    context: RequestContext,
    request: UpdateFeaturesRequest,
) -> UpdateFeaturesResponse {
    let version = context.version;
    let updates: Option<Vec<_>> = request.feature_updates.iter().map(|key| update(version, key)).collect();
    let Some(updates) = updates else {
        let refusal =
            Refusal::new(ErrorCode::InvalidUpdateVersion, "there is no such way to update a feature");
        return refuse(&context, &request, &refusal);
    };
    let proposal = UpdateFeatures { updates, validate_only: version >= 1 && request.validate_only };
    let updated = propose_for(&context.core.controller, proposal, request.timeout_ms).await;
    let outcomes = match updated {
        Ok(results) => results.into_iter().map(|result| result.err().map(Refusal::from)).collect(),
        Err(error) => return refuse(&context, &request, &error.into()),
    };
    answer(version, &request, outcomes)
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(
    context: &RequestContext,
    request: &UpdateFeaturesRequest,
    refusal: &Refusal,
) -> UpdateFeaturesResponse {
    let outcomes = request.feature_updates.iter().map(|_| Some(refusal.clone())).collect();
    let response = answer(context.version, request, outcomes);
    let error_message = refusal.message.clone().map(ByteString::from);
    UpdateFeaturesResponse { error_code: refusal.code.code(), error_message, ..response }
}

/// `None` for a way to update that there is not.
fn update(version: i16, key: &FeatureUpdateKey) -> Option<FeatureUpdate> {
    let upgrade = match (version, key.upgrade_type) {
        (0, _) if key.allow_downgrade => FeatureUpgrade::SafeDowngrade,
        (0, _) | (_, 1) => FeatureUpgrade::Upgrade,
        (_, 2) => FeatureUpgrade::SafeDowngrade,
        (_, 3) => FeatureUpgrade::UnsafeDowngrade,
        _ => return None,
    };
    Some(FeatureUpdate { feature: key.feature.to_string(), level: key.max_version_level, upgrade })
}

/// Either all features are updated or none is: the first refusal stands for the whole request.
fn answer(
    version: i16,
    request: &UpdateFeaturesRequest,
    outcomes: Vec<Option<Refusal>>,
) -> UpdateFeaturesResponse {
    let first = outcomes.iter().flatten().next().cloned();
    let results = request.feature_updates.iter().zip(outcomes).map(|(key, refusal)| UpdatableFeatureResult {
        feature: key.feature.clone(),
        error_code: refusal.as_ref().map_or(0, |refusal| refusal.code.code()),
        error_message: refusal.and_then(|refusal| refusal.message).map(ByteString::from),
    });
    UpdateFeaturesResponse {
        error_code: first.as_ref().map_or(0, |refusal| refusal.code.code()),
        error_message: first.and_then(|refusal| refusal.message).map(ByteString::from),
        results: if version < 2 { results.collect() } else { Vec::new() },
        ..Default::default()
    }
}
