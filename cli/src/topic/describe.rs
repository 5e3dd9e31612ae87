//! `thalweg topic describe`.

use std::collections::BTreeMap;

use bytestring::ByteString;
use comfy_table::{Table, presets};
use thalweg_client::{ConfigEntry, ConfigSource, Isolation, PartitionMetadata, TopicMetadata};
use thalweg_protocol::{NodeId, TopicPartition};

use super::TopicConfigs;
use crate::extents::Extents;
use crate::output::{Format, counted, line, tell};
use crate::target::Target;

/// A topic with what is known of it elsewhere.
struct Described {
    topic: TopicMetadata,
    extents: Extents,
    configs: BTreeMap<ByteString, ConfigEntry>,
}

/// Shows topics, with the configs that were set or, if asked for, all of them.
pub async fn topics(
    target: &Target,
    names: &[String],
    all_configs: bool,
    format: Format,
) -> anyhow::Result<()> {
    for name in names {
        let topic = target.topic(name).await?;
        let mut configs = configs_of(target, name).await;
        configs.retain(|_, entry| all_configs || entry.source == ConfigSource::Topic);
        let led = topic.partitions.iter().filter(|partition| partition.leader.0 >= 0);
        let led: Vec<TopicPartition> = led.map(|partition| at(&topic, partition)).collect();
        let extents = Extents::of(target.client().admin(), &led, Isolation::ReadUncommitted).await?;
        let described = Described { topic, extents, configs };
        match format {
            Format::Json => line(described.json())?,
            Format::Text => described.print(all_configs)?,
        }
    }
    Ok(())
}

/// None where the broker does not say, which is told.
async fn configs_of(target: &Target, topic: &str) -> BTreeMap<ByteString, ConfigEntry> {
    match TopicConfigs::of(&target.client().admin(), topic).await {
        Ok(TopicConfigs(configs)) => configs,
        Err(error) => {
            tell(format_args!("note: the configs of {topic} are not shown: {error}"));
            BTreeMap::new()
        }
    }
}

fn at(topic: &TopicMetadata, partition: &PartitionMetadata) -> TopicPartition {
    TopicPartition::new(topic.name.clone(), partition.partition)
}

fn out_of_sync(partition: &PartitionMetadata) -> Vec<NodeId> {
    partition.replicas.iter().filter(|node| !partition.isr.contains(node)).copied().collect()
}

/// The ids of nodes.
pub fn numbers(nodes: &[NodeId]) -> Vec<i32> {
    nodes.iter().map(|node| node.0).collect()
}

/// Such as `1,2`, or `-` for none.
pub fn listed(nodes: &[NodeId]) -> String {
    match nodes {
        [] => "-".to_owned(),
        nodes => nodes.iter().map(|node| node.0.to_string()).collect::<Vec<_>>().join(","),
    }
}

/// Where a config's value comes from, in a word or two.
pub fn source(source: ConfigSource) -> &'static str {
    match source {
        ConfigSource::Topic => "topic",
        ConfigSource::Broker | ConfigSource::StaticBroker => "broker",
        ConfigSource::AllBrokers => "all brokers",
        ConfigSource::Default => "default",
        _ => "other",
    }
}

impl Described {
    fn json(&self) -> serde_json::Value {
        let topic = &self.topic;
        let partitions = topic.partitions.iter().map(|partition| {
            let at = at(topic, partition);
            serde_json::json!({
                "partition": partition.partition,
                "leader": partition.leader.0,
                "epoch": partition.leader_epoch.0,
                "replicas": numbers(&partition.replicas),
                "isr": numbers(&partition.isr),
                "out_of_sync": numbers(&out_of_sync(partition)),
                "start": self.extents.start(&at),
                "end": self.extents.end(&at),
            })
        });
        let configs = self.configs.iter().map(|(name, entry)| {
            let config = serde_json::json!({"value": entry.value.as_deref(), "source": source(entry.source)});
            (name.to_string(), config)
        });
        serde_json::json!({
            "topic": &*topic.name,
            "id": topic.id.to_string(),
            "internal": topic.is_internal,
            "partitions": partitions.collect::<Vec<_>>(),
            "configs": configs.collect::<serde_json::Map<_, _>>(),
        })
    }

    fn print(&self, all_configs: bool) -> anyhow::Result<()> {
        let topic = &self.topic;
        let partitions = counted(topic.partitions.len() as u64, "partition");
        line(format_args!("{} · id {} · {partitions}", topic.name, topic.id))?;
        if !self.configs.is_empty() {
            line(self.config_table(all_configs))?;
        }
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_header([
            "PARTITION",
            "LEADER",
            "EPOCH",
            "REPLICAS",
            "IN SYNC",
            "OUT OF SYNC",
            "START",
            "END",
        ]);
        let number = |number: Option<i64>| number.map_or("?".to_string(), |number| number.to_string());
        for partition in &topic.partitions {
            let at = at(topic, partition);
            table.add_row([
                partition.partition.to_string(),
                partition.leader.to_string(),
                partition.leader_epoch.to_string(),
                listed(&partition.replicas),
                listed(&partition.isr),
                listed(&out_of_sync(partition)),
                number(self.extents.start(&at)),
                number(self.extents.end(&at)),
            ]);
        }
        line(table)
    }

    fn config_table(&self, all: bool) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(if all { vec!["CONFIG", "VALUE", "FROM"] } else { vec!["CONFIG", "VALUE"] });
        for (name, entry) in &self.configs {
            let value = if entry.is_sensitive { "(hidden)" } else { entry.value.as_deref().unwrap_or("-") };
            let mut row = vec![name.to_string(), value.to_owned()];
            row.extend(all.then(|| source(entry.source).to_owned()));
            table.add_row(row);
        }
        table
    }
}
