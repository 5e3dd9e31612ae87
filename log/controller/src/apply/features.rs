//! Changing the levels of features.

use std::sync::Arc;

use super::repeated;
use crate::command::{FeatureUpdate, FeatureUpgrade, Results, UpdateFeatures};
use crate::feature::FeatureDefinition;
use crate::rejection::Rejection;
use crate::state::ClusterState;

/// All updates are carried out or none is.
pub(super) fn update(state: &mut ClusterState, command: &UpdateFeatures) -> Results<i16> {
    let repeated = repeated(command.updates.iter().map(|update| &update.feature));
    let results: Results<i16> = command
        .updates
        .iter()
        .map(|update| match repeated.contains(&update.feature) {
            true => Err(rejected(update, "it occurs more than once in the request")),
            false => updated(state, update),
        })
        .collect();
    if results.iter().all(Result::is_ok) {
        let features = Arc::make_mut(&mut state.features);
        for (update, level) in command.updates.iter().zip(results.iter().flatten()) {
            features.insert(update.feature.clone(), *level);
        }
    }
    results
}

fn updated(state: &ClusterState, update: &FeatureUpdate) -> Result<i16, Rejection> {
    let Some(definition) = FeatureDefinition::find(&update.feature) else {
        return Err(rejected(update, "there is no such feature"));
    };
    let current = state.feature_level(definition);
    match update.level {
        level if level < definition.min_level => Err(rejected(update, "so low a level cannot be set")),
        level if level > definition.max_level => {
            Err(rejected(update, "this version does not know so high a level"))
        }
        level if level < current && update.upgrade == FeatureUpgrade::Upgrade => {
            Err(rejected(update, "the level is lower than it is now, and the request does not allow that"))
        }
        level if level > current && update.upgrade != FeatureUpgrade::Upgrade => {
            Err(rejected(update, "the level is higher than it is now, and the request is to lower it"))
        }
        level => Ok(level),
    }
}

fn rejected(update: &FeatureUpdate, reason: &'static str) -> Rejection {
    Rejection::InvalidFeatureUpdate { feature: update.feature.clone(), level: update.level, reason }
}
