//! `thalweg cluster`: which nodes there are, and whether all is well.

use std::collections::BTreeMap;
use std::fmt;

use bytestring::ByteString;
use comfy_table::{Table, presets};
use thalweg_client::{ConfigResource, PartitionMetadata, TopicMetadata};

use crate::exit::{Exit, failure};
use crate::output::{Format, counted, line, tell};
use crate::target::{Target, TargetArgs};
use crate::topic::{listed, numbers};

/// What to show.
#[derive(Debug, clap::Subcommand)]
pub enum ClusterCommand {
    /// Show the cluster's id and its nodes
    Info,
    /// Tell what is wrong; ends with exit code 10 if anything is
    Health,
}

/// Runs one of the commands.
pub async fn run(command: ClusterCommand, target: &TargetArgs, format: Format) -> anyhow::Result<()> {
    let target = target.open().await?;
    let result = match command {
        ClusterCommand::Info => info(&target, format).await,
        ClusterCommand::Health => health(&target, format).await,
    };
    result.and(target.close().await)
}

async fn info(target: &Target, format: Format) -> anyhow::Result<()> {
    let admin = target.client().admin();
    let cluster = admin.describe_cluster().await?;
    let topics = admin.list_topics().await?;
    let counts = TopicCounts::of(&topics);
    let leads =
        |node| topics.iter().flat_map(|topic| &topic.partitions).filter(|at| at.leader == node).count();
    if format == Format::Json {
        let brokers = cluster.brokers.iter().map(|broker| {
            serde_json::json!({
                "node": broker.id.0, "host": &*broker.host, "port": broker.port,
                "rack": broker.rack.as_deref(), "leads": leads(broker.id),
            })
        });
        return line(serde_json::json!({
            "cluster": &*cluster.cluster_id,
            "controller": cluster.controller.map(|node| node.0),
            "topics": counts.own,
            "internal": counts.internal,
            "brokers": brokers.collect::<Vec<_>>(),
        }));
    }
    line(format_args!("cluster {} · {counts}", cluster.cluster_id))?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["NODE", "ADDRESS", "RACK", "LEADS", "CONTROLLER"]);
    for broker in &cluster.brokers {
        table.add_row([
            broker.id.to_string(),
            format!("{}:{}", broker.host, broker.port),
            broker.rack.as_deref().unwrap_or("-").to_owned(),
            leads(broker.id).to_string(),
            (if cluster.controller == Some(broker.id) { "yes" } else { "" }).to_owned(),
        ]);
    }
    line(table)
}

/// How many topics there are.
struct TopicCounts {
    own: usize,
    /// Those that the log keeps for itself.
    internal: usize,
}

impl TopicCounts {
    fn of(topics: &[TopicMetadata]) -> Self {
        let internal = topics.iter().filter(|topic| topic.is_internal).count();
        Self { own: topics.len() - internal, internal }
    }
}

impl fmt::Display for TopicCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.own as u64, "topic"))?;
        match self.internal {
            0 => Ok(()),
            internal => write!(f, " and {internal} of the log's own"),
        }
    }
}

/// Something that is wrong with a partition.
struct Trouble<'a> {
    topic: &'a TopicMetadata,
    partition: &'a PartitionMetadata,
    what: &'static str,
}

/// `min_isr` has how many replicas in sync a topic asks of itself, for those topics of which that is known.
fn trouble<'a>(topics: &'a [TopicMetadata], min_isr: &BTreeMap<ByteString, usize>) -> Vec<Trouble<'a>> {
    let partitions =
        topics.iter().flat_map(|topic| topic.partitions.iter().map(move |partition| (topic, partition)));
    let judged = partitions.filter_map(|(topic, partition)| {
        let what = match partition {
            at if at.leader.0 < 0 => "has no leader: nobody can read or write it",
            // With fewer replicas than it asks for a topic is satisfied with all of those.
            at if min_isr
                .get(&topic.name)
                .is_some_and(|least| at.isr.len() < at.replicas.len().min(*least)) =>
            {
                "has fewer replicas in sync than its min.insync.replicas: producers with acks=all are refused"
            }
            at if !at.offline.is_empty() => "has replicas that are down",
            at if at.isr.len() < at.replicas.len() => "has replicas that are behind",
            _ => return None,
        };
        Some(Trouble { topic, partition, what })
    });
    judged.collect()
}

/// How many replicas in sync each topic asks of itself. Topics whose configs are not told are left out, and that is said.
async fn min_isr(target: &Target, topics: &[TopicMetadata]) -> BTreeMap<ByteString, usize> {
    let resources: Vec<_> = topics.iter().map(|topic| ConfigResource::Topic(topic.name.clone())).collect();
    let mut known = BTreeMap::new();
    let mut silent = None;
    for (resource, described) in target.client().admin().describe_configs(&resources).await {
        let ConfigResource::Topic(topic) = resource else { continue };
        match described {
            Ok(configs) => {
                let least =
                    configs.get("min.insync.replicas").and_then(|entry| entry.value.as_deref()?.parse().ok());
                known.extend(least.map(|least| (topic, least)));
            }
            Err(error) => drop(silent.get_or_insert(error)),
        }
    }
    if let Some(error) = silent {
        tell(format_args!("note: min.insync.replicas is not known of every topic: {error}"));
    }
    known
}

async fn health(target: &Target, format: Format) -> anyhow::Result<()> {
    let topics = target.client().admin().list_topics().await?;
    let troubles = trouble(&topics, &min_isr(target, &topics).await);
    for Trouble { topic, partition, what } in &troubles {
        match format {
            Format::Json => line(serde_json::json!({
                "topic": &*topic.name, "partition": partition.partition, "trouble": what, "offline": numbers(&partition.offline),
            }))?,
            Format::Text => {
                let down = match &*partition.offline {
                    [] => String::new(),
                    nodes => format!(" (down, or unable to open its log: node {})", listed(nodes)),
                };
                line(format_args!("{}-{} {what}{down}", topic.name, partition.partition))?;
            }
        }
    }
    let partitions: usize = topics.iter().map(|topic| topic.partitions.len()).sum();
    let counts = TopicCounts::of(&topics);
    if troubles.is_empty() {
        return match format {
            Format::Json => line(serde_json::json!({
                "healthy": true, "topics": counts.own, "internal": counts.internal, "partitions": partitions,
            })),
            Format::Text => line(format_args!(
                "healthy: {counts}, with {} in all",
                counted(partitions as u64, "partition")
            )),
        };
    }
    if format == Format::Json {
        line(serde_json::json!({
            "healthy": false, "topics": counts.own, "internal": counts.internal, "partitions": partitions,
            "troubled": troubles.len(),
        }))?;
    }
    let are = if troubles.len() == 1 { "is not as it should be" } else { "are not as they should be" };
    let found = format!("{} of {} {are}", troubles.len(), counted(partitions as u64, "partition"));
    Err(failure(Exit::Unhealthy, found))
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::{LeaderEpoch, NodeId, Uuid};

    use super::*;

    #[test]
    fn the_logs_own_topics_are_counted_by_themselves() {
        for (own, internal, expected) in
            [(0, 0, "0 topics"), (1, 0, "1 topic"), (2, 1, "2 topics and 1 of the log's own")]
        {
            assert_eq!(TopicCounts { own, internal }.to_string(), expected);
        }
    }

    #[test]
    fn partitions_without_leader_or_with_replicas_missing_are_told() {
        let partition = |leader, isr: &[i32], offline: &[i32]| PartitionMetadata {
            partition: 0,
            leader: NodeId(leader),
            leader_epoch: LeaderEpoch(0),
            replicas: vec![NodeId(1), NodeId(2)],
            isr: isr.iter().map(|node| NodeId(*node)).collect(),
            offline: offline.iter().map(|node| NodeId(*node)).collect(),
        };
        let refused =
            "has fewer replicas in sync than its min.insync.replicas: producers with acks=all are refused";
        let cases = [
            (partition(1, &[1, 2], &[]), 2, None),
            (partition(-1, &[], &[1, 2]), 1, Some("has no leader: nobody can read or write it")),
            (partition(1, &[1, 2], &[]), 3, None),
            (partition(1, &[1], &[]), 3, Some(refused)),
            (partition(1, &[1], &[2]), 2, Some(refused)),
            (partition(1, &[1], &[2]), 1, Some("has replicas that are down")),
            (partition(1, &[1], &[]), 1, Some("has replicas that are behind")),
        ];
        for (partition, least, expected) in cases {
            let topic = TopicMetadata {
                name: "t".into(),
                id: Uuid::ZERO,
                is_internal: false,
                partitions: vec![partition],
            };
            let found = trouble(std::slice::from_ref(&topic), &BTreeMap::from([("t".into(), least)]))
                .first()
                .map(|trouble| trouble.what);
            assert_eq!(found, expected);
        }
    }
}
