//! How topics and groups stand at one moment.

use std::collections::BTreeMap;
use std::time::Instant;

use thalweg_client::{GroupFilter, GroupState, GroupType, Isolation};
use thalweg_protocol::{NodeId, TopicPartition};

use crate::extents::Extents;
use crate::group::share;
use crate::output::tell;
use crate::produce::now_ms;
use crate::target::Target;

/// A partition at that moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionSample {
    /// First offset and end; `None` of one that nobody leads.
    pub extent: Option<(i64, i64)>,
    /// The size of its segments in bytes, where the leader says it.
    pub bytes: Option<i64>,
}

/// A group at that moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSample {
    /// Its state, where the coordinator says it.
    pub state: Option<String>,
    /// Its type, where the coordinator says it.
    pub kind: Option<String>,
    /// What it has committed; where a share group begins.
    pub committed: BTreeMap<TopicPartition, i64>,
    /// Of a share group, what its coordinator says of its lag: it has more behind it than what is before its start.
    pub share_lag: Option<Option<i64>>,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When it was taken.
    pub at: Instant,
    /// The same in ms since 1970.
    pub time_ms: i64,
    /// The partitions that are looked at.
    pub partitions: BTreeMap<TopicPartition, PartitionSample>,
    /// The groups that have committed something for one of them, or may yet.
    pub groups: BTreeMap<String, GroupSample>,
}

impl Sample {
    /// Looks at `topics`, or at all of them.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn take(target: &Target, topics: &[String], internal: bool) -> anyhow::Result<Self> {
        let admin = target.client().admin();
        let known = admin.list_topics().await?;
        let is_meant = |name: &str, is_internal: bool| match topics {
            [] => internal || !is_internal,
            named => named.iter().any(|named| named == name),
        };
        let meant = known.iter().filter(|topic| is_meant(&topic.name, topic.is_internal));
        let leaders: BTreeMap<TopicPartition, NodeId> = meant
            .flat_map(|topic| topic.partitions.iter().map(move |at| (topic, at)))
            .map(|(topic, at)| (TopicPartition::new(topic.name.clone(), at.partition), at.leader))
            .collect();
        let led: Vec<TopicPartition> =
            leaders.iter().filter(|(_, leader)| **leader != NodeId::NONE).map(|(at, _)| at.clone()).collect();
        let extents = Extents::of(admin.clone(), &led, Isolation::ReadUncommitted).await?;
        let (at, time_ms) = (Instant::now(), now_ms());
        let sizes = sizes(target, &leaders).await;
        let sample = |at: &TopicPartition| PartitionSample {
            extent: extents.start(at).zip(extents.end(at)),
            bytes: sizes.get(at).copied(),
        };
        let partitions = leaders.keys().map(|at| (at.clone(), sample(at))).collect();
        let groups = groups(target, &leaders, !topics.is_empty()).await?;
        Ok(Self { at, time_ms, partitions, groups })
    }
}

/// What their leaders say about the sizes of partitions; nothing where a broker cannot tell.
async fn sizes(target: &Target, leaders: &BTreeMap<TopicPartition, NodeId>) -> BTreeMap<TopicPartition, i64> {
    let Ok(nodes) = target.client().admin().describe_log_dirs(None, None).await else {
        return BTreeMap::new();
    };
    let mut sizes = BTreeMap::new();
    for (node, directories) in nodes {
        for (at, replica) in directories.into_iter().flatten().flat_map(|directory| directory.replicas) {
            if !replica.is_future && leaders.get(&at) == Some(&node) {
                sizes.insert(at, replica.size_in_bytes);
            }
        }
    }
    sizes
}

async fn groups(
    target: &Target,
    partitions: &BTreeMap<TopicPartition, NodeId>,
    only_readers: bool,
) -> anyhow::Result<BTreeMap<String, GroupSample>> {
    let admin = target.client().admin();
    let listing = admin.list_groups(&GroupFilter::default()).await?;
    for (broker, error) in &listing.failed {
        tell(format_args!("warning: the groups of broker {broker} are missing: {error}"));
    }
    let mut groups = BTreeMap::new();
    for group in listing.found {
        let is_meant = |at: &TopicPartition| partitions.contains_key(at);
        // One that has just gone has nothing to show.
        let (committed, share_lag) = if group.group_type == Some(GroupType::Share) {
            let Ok(mut places) = share::places(target, &group.group).await else { continue };
            places.retain(|at, _| is_meant(at));
            let lag = share::lag(places.values());
            let starts = places.into_iter().filter_map(|(at, place)| Some((at, place?.start_offset.0)));
            (starts.collect(), Some(lag))
        } else {
            let Ok(committed) = admin.committed_offsets(&group.group, None, false).await else { continue };
            let offsets = committed.into_iter().map(|(at, offset)| (at, offset.offset.0));
            let committed = offsets.filter(|(at, offset)| *offset >= 0 && is_meant(at));
            (committed.collect::<BTreeMap<_, _>>(), None)
        };
        if only_readers && committed.is_empty() {
            continue;
        }
        let state = group.state.as_ref().map(GroupState::as_str).map(str::to_owned);
        let kind = group.group_type.as_ref().map(GroupType::as_str).map(str::to_owned);
        groups.insert(group.group.to_string(), GroupSample { state, kind, committed, share_lag });
    }
    Ok(groups)
}
