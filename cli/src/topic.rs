//! `thalweg topic`: create, list, describe and delete topics.

use std::io::{IsTerminal, Write};

use comfy_table::{Table, presets};
use thalweg_client::{Isolation, NewTopic, OffsetSpec, TopicMetadata};
use thalweg_protocol::TopicPartition;

use crate::exit::{Exit, failure, told};
use crate::output::{Format, line, tell};
use crate::target::{Target, TargetArgs};

/// What to do with topics.
#[derive(Debug, clap::Subcommand)]
pub enum TopicCommand {
    /// Create topics
    Create {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        /// Partitions of each; the broker's default if not given
        #[arg(long, short = 'p', value_name = "N")]
        partitions: Option<i32>,
        /// Copies of each partition; the broker's default if not given
        #[arg(long, short = 'r', value_name = "N")]
        replication_factor: Option<i16>,
        /// A config of the topic, such as retention.ms=-1; may be repeated
        #[arg(long, short = 'c', value_name = "NAME=VALUE", value_parser = name_and_value)]
        config: Vec<(String, String)>,
        /// Succeed if the topic is there already
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List topics
    List {
        /// Also those that the log keeps for itself
        #[arg(long)]
        internal: bool,
    },
    /// Show partitions, leaders, replicas and offsets
    Describe {
        /// The topics
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Delete topics and all their records
    Delete {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        /// Do not ask
        #[arg(long, short = 'y')]
        yes: bool,
    },
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a config is written NAME=VALUE")?;
    Ok((name.trim().to_string(), value.to_string()))
}

/// Runs one of the commands.
pub async fn run(command: TopicCommand, target: &TargetArgs, format: Format) -> anyhow::Result<()> {
    let target = match &command {
        TopicCommand::Create { .. } => target.open_or_create().await?,
        _ => target.open().await?,
    };
    let result = match command {
        TopicCommand::Create { names, partitions, replication_factor, config, if_not_exists } => {
            let wanted = names.iter().map(|name| NewTopic {
                partitions,
                replication_factor,
                configs: config.iter().cloned().collect(),
                ..NewTopic::new(name.as_str(), 1)
            });
            create(&target, wanted.collect(), if_not_exists, format).await
        }
        TopicCommand::List { internal } => list(&target, internal, format).await,
        TopicCommand::Describe { names } => describe(&target, &names, format).await,
        TopicCommand::Delete { names, yes } => delete(&target, &names, yes).await,
    };
    result.and(target.close().await)
}

async fn create(
    target: &Target,
    wanted: Vec<NewTopic>,
    if_not_exists: bool,
    format: Format,
) -> anyhow::Result<()> {
    let names: Vec<_> = wanted.iter().map(|topic| topic.name.clone()).collect();
    let mut first_error = None;
    for (name, result) in names.iter().zip(target.client().admin().create_topics(wanted).await?) {
        match result {
            Ok(created) if format == Format::Json => {
                line(
                    serde_json::json!({"topic": &*created.name, "id": created.id.to_string(), "partitions": created.partitions}),
                )?;
            }
            Ok(created) => match created.partitions {
                Some(partitions) => line(format_args!(
                    "created {name} with {partitions} partition{}",
                    if partitions == 1 { "" } else { "s" }
                ))?,
                None => line(format_args!("created {name}"))?,
            },
            Err(error)
                if if_not_exists && error.code() == Some(thalweg_protocol::ErrorCode::TopicAlreadyExists) =>
            {
                line(format_args!("{name} is there already"))?;
            }
            Err(error) => {
                let error = anyhow::Error::new(error).context(format!("cannot create topic `{name}`"));
                match first_error {
                    None => first_error = Some(error),
                    Some(_) => tell(format_args!("error: {}", told(&error))),
                }
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

async fn list(target: &Target, internal: bool, format: Format) -> anyhow::Result<()> {
    let topics = target.client().admin().list_topics().await?;
    let shown = topics.iter().filter(|topic| internal || !topic.is_internal);
    if format == Format::Json {
        for topic in shown {
            line(
                serde_json::json!({"topic": &*topic.name, "id": topic.id.to_string(), "partitions": topic.partitions.len(), "internal": topic.is_internal}),
            )?;
        }
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["TOPIC", "PARTITIONS", "REPLICAS"]);
    for topic in shown {
        let replicas = topic.partitions.first().map_or(0, |partition| partition.replicas.len());
        table.add_row([topic.name.to_string(), topic.partitions.len().to_string(), replicas.to_string()]);
    }
    line(table)
}

async fn describe(target: &Target, names: &[String], format: Format) -> anyhow::Result<()> {
    for name in names {
        let topic = target.topic(name).await?;
        let offsets = Ends::of(target, &topic).await?;
        if format == Format::Json {
            line(describe_json(&topic, &offsets))?;
        } else {
            describe_table(&topic, &offsets)?;
        }
    }
    Ok(())
}

/// The first offset and the end of each partition that answered.
struct Ends(Vec<(Option<i64>, Option<i64>)>);

impl Ends {
    async fn of(target: &Target, topic: &TopicMetadata) -> anyhow::Result<Self> {
        let led: Vec<TopicPartition> = topic
            .partitions
            .iter()
            .filter(|partition| partition.leader.0 >= 0)
            .map(|partition| TopicPartition::new(topic.name.clone(), partition.partition))
            .collect();
        let admin = target.client().admin();
        let ask = |spec| led.iter().map(|partition| (partition.clone(), spec)).collect::<Vec<_>>();
        let starts = admin.list_offsets(&ask(OffsetSpec::Earliest), Isolation::ReadUncommitted).await?;
        let ends = admin.list_offsets(&ask(OffsetSpec::Latest), Isolation::ReadUncommitted).await?;
        Ok(Self(
            topic
                .partitions
                .iter()
                .map(|partition| TopicPartition::new(topic.name.clone(), partition.partition))
                .map(|at| {
                    let of = |offsets: &std::collections::BTreeMap<
                        TopicPartition,
                        thalweg_client::ListedOffset,
                    >| {
                        offsets.get(&at).and_then(|listed| listed.offset).map(|offset| offset.0)
                    };
                    (of(&starts), of(&ends))
                })
                .collect(),
        ))
    }
}

fn out_of_sync(partition: &thalweg_client::PartitionMetadata) -> Vec<i32> {
    partition.replicas.iter().filter(|node| !partition.isr.contains(node)).map(|node| node.0).collect()
}

fn describe_json(topic: &TopicMetadata, ends: &Ends) -> serde_json::Value {
    let partitions: Vec<serde_json::Value> = topic
        .partitions
        .iter()
        .zip(&ends.0)
        .map(|(partition, (start, end))| {
            serde_json::json!({
                "partition": partition.partition,
                "leader": partition.leader.0,
                "epoch": partition.leader_epoch.0,
                "replicas": partition.replicas.iter().map(|node| node.0).collect::<Vec<_>>(),
                "isr": partition.isr.iter().map(|node| node.0).collect::<Vec<_>>(),
                "out_of_sync": out_of_sync(partition),
                "start": start,
                "end": end,
            })
        })
        .collect();
    serde_json::json!({"topic": &*topic.name, "id": topic.id.to_string(), "internal": topic.is_internal, "partitions": partitions})
}

fn describe_table(topic: &TopicMetadata, ends: &Ends) -> anyhow::Result<()> {
    line(format_args!("{} · id {} · {} partitions", topic.name, topic.id, topic.partitions.len()))?;
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
    let ids = |nodes: &[i32]| {
        if nodes.is_empty() {
            "-".to_string()
        } else {
            nodes.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
        }
    };
    let number = |number: Option<i64>| number.map_or("?".to_string(), |number| number.to_string());
    for (partition, (start, end)) in topic.partitions.iter().zip(&ends.0) {
        let raw =
            |nodes: &[thalweg_protocol::NodeId]| ids(&nodes.iter().map(|node| node.0).collect::<Vec<_>>());
        table.add_row([
            partition.partition.to_string(),
            partition.leader.to_string(),
            partition.leader_epoch.to_string(),
            raw(&partition.replicas),
            raw(&partition.isr),
            ids(&out_of_sync(partition)),
            number(*start),
            number(*end),
        ]);
    }
    line(table)
}

async fn delete(target: &Target, names: &[String], yes: bool) -> anyhow::Result<()> {
    for name in names {
        target.partitions_of(name).await?;
    }
    if !yes && !confirmed(names)? {
        return line("nothing was deleted");
    }
    for name in names {
        target.client().admin().delete_topic(name).await?;
        line(format_args!("deleted {name}"))?;
    }
    Ok(())
}

fn confirmed(names: &[String]) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(failure(Exit::Usage, "deleting cannot be undone: say --yes where nobody can be asked"));
    }
    print!("Delete {} and all records in it? [y/N] ", names.join(", "));
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
