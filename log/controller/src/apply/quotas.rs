//! Changing the quotas of clients.

use std::sync::Arc;

use super::repeated;
use crate::command::{AlterClientQuotas, QuotaChange, Results};
use crate::limits;
use crate::rejection::Rejection;
use crate::state::ClusterState;

pub(super) fn alter(state: &mut ClusterState, command: &AlterClientQuotas) -> Results<()> {
    let repeated = repeated(command.entries.iter().map(|entry| &entry.entity));
    let mut alter = |change: &QuotaChange| {
        if repeated.contains(&change.entity) {
            return Err(Rejection::InvalidQuotaEntity { reason: "it occurs more than once in the request" });
        }
        alter_entity(state, change)
    };
    command.entries.iter().map(&mut alter).collect()
}

fn alter_entity(state: &mut ClusterState, change: &QuotaChange) -> Result<(), Rejection> {
    change.entity.check()?;
    if let Some(key) = repeated(change.ops.iter().map(|op| &op.key)).into_iter().min() {
        return Err(Rejection::InvalidQuota { key: key.clone(), reason: "it occurs more than once" });
    }
    let mut quotas = state.quotas.get(&change.entity).cloned().unwrap_or_default();
    for op in &change.ops {
        change.entity.check_quota(&op.key, op.value)?;
        match op.value {
            Some(value) => {
                quotas.insert(op.key.clone(), value);
            }
            None => {
                quotas.remove(&op.key);
            }
        }
    }
    let is_new = !state.quotas.contains_key(&change.entity);
    if is_new && !quotas.is_empty() && state.quotas.len() >= limits::MAX_QUOTA_ENTITIES {
        return Err(Rejection::TooManyQuotaEntities);
    }
    let all = Arc::make_mut(&mut state.quotas);
    if quotas.is_empty() {
        all.remove(&change.entity);
    } else {
        all.insert(change.entity.clone(), quotas);
    }
    Ok(())
}
