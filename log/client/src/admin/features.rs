//! Features of the cluster and their levels (KIP-584).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::api_versions::ApiVersionsRequest;
use thalweg_protocol::messages::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};

use super::{Admin, Route, checked, version_from};
use crate::error::{Error, Result};

/// The first version of ApiVersions that tells features.
const WITH_FEATURES: i16 = 3;
/// The first version of UpdateFeatures with kinds of downgrades, and with validation.
const KINDS: i16 = 1;
/// The first version of UpdateFeatures with one answer for all.
const ALL_OR_NONE: i16 = 2;

/// Which levels of features a broker can do, and which the cluster has agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// By name, the levels that the broker which was asked can do.
    pub supported: BTreeMap<ByteString, RangeInclusive<i16>>,
    /// By name, the level that the cluster has agreed on. A feature that is missing is at level 0: off.
    pub finalized: BTreeMap<ByteString, i16>,
    /// Counts the changes of what the cluster has agreed on; `None` where the broker does not say.
    pub epoch: Option<i64>,
}

/// How a feature's level may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureChange {
    /// Only upwards.
    Upgrade,
    /// Downwards, if nothing is lost by it.
    SafeDowngrade,
    /// Downwards, even if metadata is lost by it.
    UnsafeDowngrade,
}

/// The level that a feature is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureUpdate {
    /// The new level; 0 turns the feature off.
    pub level: i16,
    /// How it may change.
    pub change: FeatureChange,
}

impl Admin {
    /// Which levels of features any one broker can do, and which the cluster has agreed on.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn describe_features(&self) -> Result<Features> {
        self.call("describing features", Route::Any, |node| {
            Box::pin(async move {
                let version = version_from::<ApiVersionsRequest>(&node, WITH_FEATURES)?;
                let request = ApiVersionsRequest {
                    client_software_name: ByteString::from_static("thalweg"),
                    client_software_version: ByteString::from_static(env!("CARGO_PKG_VERSION")),
                    ..ApiVersionsRequest::default()
                };
                let response = node.call_in(version, request, Duration::ZERO).await?;
                let supported = response.supported_features.into_iter();
                let finalized = response.finalized_features.into_iter();
                let features = Features {
                    supported: supported.map(|it| (it.name, it.min_version..=it.max_version)).collect(),
                    finalized: finalized.map(|it| (it.name, it.max_version_level)).collect(),
                    epoch: (response.finalized_features_epoch >= 0)
                        .then_some(response.finalized_features_epoch),
                };
                checked(ApiKey::ApiVersions, response.error_code, None, || "features".to_owned(), features)
            })
        })
        .await
    }

    /// Changes the levels of features; with `validate_only` it is only said whether they could be. Each feature has a
    /// result of its own; from Kafka 4.1 on they are changed together or not at all.
    pub async fn update_features(
        &self,
        updates: &BTreeMap<ByteString, FeatureUpdate>,
        validate_only: bool,
    ) -> BTreeMap<ByteString, Result<()>> {
        let (api, timeout_ms) = (ApiKey::UpdateFeatures, self.timeout_ms());
        let open = updates.clone();
        let asking = self.call_each(api, "updating features", Route::Controller, open, |node, open| {
            Box::pin(async move {
                let needs_kinds =
                    validate_only || open.values().any(|it| it.change == FeatureChange::UnsafeDowngrade);
                let version =
                    version_from::<UpdateFeaturesRequest>(&node, if needs_kinds { KINDS } else { 0 })?;
                let update = |(feature, update): (&ByteString, &FeatureUpdate)| FeatureUpdateKey {
                    feature: feature.clone(),
                    max_version_level: update.level,
                    allow_downgrade: version < KINDS && update.change != FeatureChange::Upgrade,
                    upgrade_type: match update.change {
                        _ if version < KINDS => 1,
                        FeatureChange::Upgrade => 1,
                        FeatureChange::SafeDowngrade => 2,
                        FeatureChange::UnsafeDowngrade => 3,
                    },
                };
                let feature_updates = open.iter().map(update).collect();
                let request = UpdateFeaturesRequest { timeout_ms, feature_updates, validate_only };
                let response = node.call_in(version, request, Duration::ZERO).await?;
                let (code, message) = (response.error_code, response.error_message);
                let all = checked(api, code, message, || "features".to_owned(), ());
                if version >= ALL_OR_NONE || all.is_err() {
                    return Ok(open.into_keys().map(|feature| (feature, all.clone())).collect());
                }
                let results = response.results.into_iter().map(|result| {
                    let subject = || format!("feature {}", result.feature);
                    let checked: Result<(), Error> =
                        checked(api, result.error_code, result.error_message, subject, ());
                    (result.feature.clone(), checked)
                });
                Ok(results.collect())
            })
        });
        asking.await.finish()
    }
}
