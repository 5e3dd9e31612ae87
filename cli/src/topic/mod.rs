//! `thalweg topic`: create, list, describe, change and delete topics.

mod alter;
mod analyze;
mod configs;
mod delete_records;
mod describe;

pub use configs::TopicConfigs;
pub use describe::{listed, numbers};

use comfy_table::{Table, presets};
use thalweg_client::{NewTopic, TopicMetadata};
use thalweg_protocol::ErrorCode;

use crate::exit::{Exit, failure};
use crate::output::{Format, Results, confirmed, counted, line, nothing_deleted};
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
    /// Show partitions, leaders, replicas, offsets and the configs that were set
    Describe {
        /// The topics
        #[arg(required = true)]
        names: Vec<String>,
        /// All configs, with where each value comes from
        #[arg(long)]
        configs: bool,
    },
    /// Read topics and tell what is in them: sizes, codecs, nulls, the order of timestamps
    Analyze(analyze::AnalyzeArgs),
    /// Change configs
    Alter(alter::AlterArgs),
    /// Raise the number of partitions
    AddPartitions(alter::AddPartitionsArgs),
    /// Delete the first records of a topic, up to a place; the topic and what lies behind stay
    DeleteRecords(delete_records::DeleteRecordsArgs),
    /// Delete topics and all their records
    Delete {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        /// Do not ask
        #[arg(long, short = 'y')]
        yes: bool,
        /// Also those that the log keeps for itself: with them go what groups have committed, and transactions
        #[arg(long)]
        internal: bool,
    },
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a config is written NAME=VALUE")?;
    Ok((name.trim().to_string(), value.to_string()))
}

/// Runs one of the commands.
pub async fn run(command: TopicCommand, target: &TargetArgs, format: Format) -> anyhow::Result<()> {
    if let TopicCommand::Create { config, .. } = &command {
        let names: Vec<_> = config.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(twice) = twice(&names) {
            return Err(failure(Exit::Usage, format!("-c names `{twice}` twice")));
        }
    }
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
        TopicCommand::Describe { names, configs } => describe::topics(&target, &names, configs, format).await,
        TopicCommand::Analyze(args) => analyze::topics(&target, args, format).await,
        TopicCommand::Alter(args) => alter::configs(&target, args, format).await,
        TopicCommand::AddPartitions(args) => alter::partitions(&target, args, format).await,
        TopicCommand::DeleteRecords(args) => delete_records::records(&target, args, format).await,
        TopicCommand::Delete { names, yes, internal } => delete(&target, &names, yes, internal, format).await,
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
    if let Some(twice) = twice(&names) {
        return Err(failure(Exit::Usage, format!("`{twice}` is named twice")));
    }
    if let Some(long) = names.iter().find(|name| name.len() > TOPIC_NAME_LIMIT) {
        return Err(failure(
            Exit::Usage,
            format!(
                "a topic's name has {TOPIC_NAME_LIMIT} characters at most; `{}…` has {}",
                long.chars().take(20).collect::<String>(),
                long.len()
            ),
        ));
    }
    let mut results = Results::default();
    for (name, result) in names.iter().zip(target.client().admin().create_topics(wanted).await?) {
        match result {
            Ok(created) if format == Format::Json => {
                line(
                    serde_json::json!({"topic": &*created.name, "result": "created", "id": created.id.to_string(), "partitions": created.partitions}),
                )?;
            }
            Ok(created) => match created.partitions {
                Some(partitions) => {
                    line(format_args!("created {name} with {}", counted(partitions as u64, "partition")))?;
                }
                None => line(format_args!("created {name}"))?,
            },
            Err(error) if if_not_exists && error.code() == Some(ErrorCode::TopicAlreadyExists) => {
                match format {
                    Format::Json => line(serde_json::json!({"topic": &**name, "result": "exists"}))?,
                    Format::Text => line(format_args!("{name} is there already"))?,
                }
            }
            Err(error) if error.code() == Some(ErrorCode::TopicAlreadyExists) => results.fail(failure(
                Exit::Taken,
                format!(
                    "topic `{name}` exists already. `thalweg topic describe {name}` shows it; \
                     with --if-not-exists that is no error"
                ),
            )),
            Err(error) => {
                results.fail(anyhow::Error::new(error).context(format!("cannot create topic `{name}`")));
            }
        }
    }
    results.finish()
}

/// The longest name of a topic, in bytes; a partition's directory has it in its own.
const TOPIC_NAME_LIMIT: usize = 249;

/// A name that stands in a list twice.
fn twice<N: AsRef<str>>(names: &[N]) -> Option<&str> {
    let at = |name: &N| names.iter().filter(|other| other.as_ref() == name.as_ref()).count();
    names.iter().find(|name| at(name) > 1).map(AsRef::as_ref)
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

/// An error where something is to be deleted that the log keeps for itself, and it was not said that this is meant.
fn check_internal(topic: &TopicMetadata, is_meant: bool) -> anyhow::Result<()> {
    if topic.is_internal && !is_meant {
        return Err(failure(
            Exit::Usage,
            format!(
                "{} is a topic that the log keeps for itself: with it would go what all groups have committed, or \
                 all transactions. If that is meant, say --internal",
                topic.name
            ),
        ));
    }
    Ok(())
}

async fn delete(
    target: &Target,
    names: &[String],
    yes: bool,
    internal: bool,
    format: Format,
) -> anyhow::Result<()> {
    if let Some(twice) = twice(names) {
        return Err(failure(Exit::Usage, format!("`{twice}` is named twice")));
    }
    for name in names {
        check_internal(&target.topic(name).await?, internal)?;
    }
    let them = if names.len() == 1 { "it" } else { "them" };
    if !yes && !confirmed(&format!("Delete {} and all records in {them}?", names.join(", ")))? {
        return nothing_deleted();
    }
    for name in names {
        target.client().admin().delete_topic(name).await?;
        match format {
            Format::Json => line(serde_json::json!({"topic": name, "result": "deleted"}))?,
            Format::Text => line(format_args!("deleted {name}"))?,
        }
    }
    Ok(())
}
