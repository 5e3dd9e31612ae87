//! Finding positions: what the group has committed, or where the log begins or ends.

use std::collections::HashMap;
use std::sync::Arc;

use thalweg_protocol::{LeaderEpoch, Offset, TopicPartition};

use super::group_offsets::fetch_offsets;
use super::offsets::OffsetSpec;
use super::position::Search;
use crate::by_leader::list_offsets;
use crate::cluster::Cluster;
use crate::config::{Isolation, OffsetReset};
use crate::coordinator::Coordinator;
use crate::error::{Error, Result};

/// A partition whose position is wanted, under which version of its state.
#[derive(Clone, Debug)]
pub(super) struct Sought {
    pub(super) partition: TopicPartition,
    pub(super) version: u64,
    pub(super) search: Search,
}

/// Where reading begins, and the leader epoch of the record before.
pub(super) type Found = Result<(Offset, LeaderEpoch)>;

impl OffsetReset {
    /// Where reading goes on, if there is a rule.
    pub(super) fn spec(self) -> Option<OffsetSpec> {
        match self {
            Self::Earliest => Some(OffsetSpec::Earliest),
            Self::Latest => Some(OffsetSpec::Latest),
            Self::None => None,
        }
    }
}

/// Finds positions; what is not among the answers failed with the error.
pub(super) async fn search(
    cluster: Arc<Cluster>,
    group: Option<Arc<Coordinator>>,
    isolation: Isolation,
    reset: OffsetReset,
    sought: Vec<Sought>,
) -> (Vec<Sought>, Result<HashMap<TopicPartition, Found>>) {
    let found = search_all(&cluster, group.as_deref(), isolation, reset, &sought).await;
    (sought, found)
}

async fn search_all(
    cluster: &Arc<Cluster>,
    group: Option<&Coordinator>,
    isolation: Isolation,
    reset: OffsetReset,
    sought: &[Sought],
) -> Result<HashMap<TopicPartition, Found>> {
    let mut found: HashMap<TopicPartition, Found> = HashMap::new();
    let of_group = |sought: &&Sought| sought.search == Search::Committed;
    let in_group: Vec<TopicPartition> =
        sought.iter().filter(of_group).map(|sought| sought.partition.clone()).collect();
    if let (Some(group), false) = (group, in_group.is_empty()) {
        for (partition, committed) in fetch_offsets(group, Some(&in_group), true).await? {
            found.insert(partition, Ok((committed.offset, committed.leader_epoch)));
        }
    }
    let mut in_log = Vec::new();
    for sought in
        sought.iter().filter(|sought| !found.contains_key(&sought.partition)).cloned().collect::<Vec<_>>()
    {
        let partition = sought.partition;
        match (sought.search, reset.spec()) {
            (Search::Log(spec), _) | (Search::Committed, Some(spec)) => in_log.push((partition, spec)),
            (Search::Committed, None) => {
                found.insert(partition.clone(), Err(Error::NoOffset { partition }));
            }
        }
    }
    if !in_log.is_empty() {
        let ends = ends_where_needed(cluster, &in_log, isolation).await?;
        for (partition, listed) in list_offsets(cluster, in_log, isolation).await? {
            // No record is as late as the time that was asked for: the end.
            let offset = listed.offset.or_else(|| ends.get(&partition).copied());
            let offset = offset.ok_or_else(|| Error::NoOffset { partition: partition.clone() });
            found.insert(partition, offset.map(|offset| (offset, LeaderEpoch::UNKNOWN)));
        }
    }
    Ok(found)
}

/// The ends of those partitions in which no record may be found.
async fn ends_where_needed(
    cluster: &Arc<Cluster>,
    wanted: &[(TopicPartition, OffsetSpec)],
    isolation: Isolation,
) -> Result<HashMap<TopicPartition, Offset>> {
    let by_record = wanted
        .iter()
        .filter(|(_, spec)| matches!(spec, OffsetSpec::Timestamp(_) | OffsetSpec::MaxTimestamp))
        .map(|(partition, _)| (partition.clone(), OffsetSpec::Latest))
        .collect::<Vec<_>>();
    if by_record.is_empty() {
        return Ok(HashMap::new());
    }
    let ends = list_offsets(cluster, by_record, isolation).await?;
    Ok(ends.into_iter().filter_map(|(partition, listed)| Some((partition, listed.offset?))).collect())
}
