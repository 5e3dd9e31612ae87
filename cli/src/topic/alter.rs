//! `thalweg topic alter` and `thalweg topic add-partitions`.

use std::collections::BTreeMap;
use std::fmt::Display;

use thalweg_client::{ConfigChanges, ConfigResource, NewPartitions};

use super::{TopicConfigs, name_and_value};
use crate::advice::did_you_mean;
use crate::exit::{Exit, failure};
use crate::output::{Format, Results, counted, line};
use crate::target::Target;

/// Which configs change, and how.
#[derive(Debug, clap::Args)]
pub struct AlterArgs {
    /// The topics
    #[arg(required = true)]
    names: Vec<String>,
    /// Give a config a value, such as retention.ms=-1; may be repeated
    #[arg(long, short = 'c', value_name = "NAME=VALUE", value_parser = name_and_value)]
    config: Vec<(String, String)>,
    /// Give a config its default back; may be repeated
    #[arg(long, short = 'u', value_name = "NAME")]
    unset: Vec<String>,
    /// Add values to a list, such as cleanup.policy=compact; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    append: Vec<(String, String)>,
    /// Take values from a list; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    subtract: Vec<(String, String)>,
    /// Only say whether it could be done
    #[arg(long)]
    dry_run: bool,
}

impl AlterArgs {
    fn changes(&self, topic: &str) -> ConfigChanges {
        let mut changes = ConfigChanges::of(ConfigResource::Topic(topic.into()));
        for (name, value) in &self.config {
            changes = changes.set(name, value);
        }
        for name in &self.unset {
            changes = changes.delete(name);
        }
        for (name, values) in &self.append {
            changes = changes.append(name, values);
        }
        for (name, values) in &self.subtract {
            changes = changes.subtract(name, values);
        }
        changes
    }

    /// How many changes were asked for; one config can only change in one way.
    fn asked(&self) -> usize {
        self.config.len() + self.unset.len() + self.append.len() + self.subtract.len()
    }
}

/// Changes configs of topics, each topic's together or not at all.
pub async fn configs(target: &Target, args: AlterArgs, format: Format) -> anyhow::Result<()> {
    let once = args.changes("").changes.len();
    if args.asked() == 0 {
        return Err(failure(
            Exit::Usage,
            "say what changes: -c NAME=VALUE, --unset NAME, --append NAME=VALUE or --subtract NAME=VALUE",
        ));
    }
    if once != args.asked() {
        return Err(failure(Exit::Usage, "a config is named twice: it can change in one way only"));
    }
    for name in &args.names {
        target.partitions_of(name).await?;
    }
    let wanted: Vec<_> = args.names.iter().map(|name| args.changes(name)).collect();
    let mut results = Results::default();
    for (resource, result) in target.client().admin().alter_configs(&wanted, args.dry_run).await {
        let ConfigResource::Topic(topic) = resource else { continue };
        match result {
            Ok(()) => {
                let text = if args.dry_run { "could be changed" } else { "changed" };
                done(&topic, text, serde_json::json!({"changed": !args.dry_run}), format)?;
            }
            Err(error) => {
                let advice = known_configs(target, &topic, &wanted[0]).await;
                results.fail(
                    anyhow::Error::new(error).context(format!("cannot change topic `{topic}`{advice}")),
                );
            }
        }
    }
    results.finish()
}

/// The name that was probably meant, where one of the changes is of no config that the topic has.
async fn known_configs(target: &Target, topic: &str, changes: &ConfigChanges) -> String {
    let Ok(TopicConfigs(known)) = TopicConfigs::of(&target.client().admin(), topic).await else {
        return String::new();
    };
    let unknown = changes.changes.keys().find(|name| !known.contains_key(name.as_str()));
    unknown.map_or_else(String::new, |name| did_you_mean(name, known.keys().map(|known| &**known)))
}

/// How many partitions topics are to have.
#[derive(Debug, clap::Args)]
pub struct AddPartitionsArgs {
    /// The topics
    #[arg(required = true)]
    names: Vec<String>,
    /// How many partitions each has afterwards
    #[arg(long, short = 'p', value_name = "TOTAL")]
    partitions: i32,
    /// Only say whether it could be done
    #[arg(long)]
    dry_run: bool,
}

/// Adds partitions to topics. Keys go to other partitions afterwards.
pub async fn partitions(target: &Target, args: AddPartitionsArgs, format: Format) -> anyhow::Result<()> {
    let mut had = BTreeMap::new();
    for name in &args.names {
        had.insert(name.as_str(), target.partitions_of(name).await?);
    }
    let wanted: Vec<_> =
        args.names.iter().map(|name| NewPartitions::new(name.as_str(), args.partitions)).collect();
    let mut results = Results::default();
    for (topic, result) in target.client().admin().create_partitions(&wanted, args.dry_run).await {
        let before = had.get(&*topic).copied().unwrap_or_default();
        match result {
            Ok(()) => {
                let now = args.partitions;
                let partitions = counted(now.max(0) as u64, "partition");
                let text = match args.dry_run {
                    true => format!("could have {partitions}, has {before}"),
                    false => format!("has {partitions}, had {before}"),
                };
                let facts =
                    serde_json::json!({"partitions": now, "before": before, "changed": !args.dry_run});
                done(&topic, text, facts, format)?;
            }
            Err(error) => {
                let context = format!("cannot add partitions to topic `{topic}`, which has {before}");
                results.fail(anyhow::Error::new(error).context(context));
            }
        }
    }
    results.finish()
}

/// Tells people what was done, and programs the facts of it.
fn done(topic: &str, text: impl Display, mut facts: serde_json::Value, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => {
            facts["topic"] = topic.into();
            line(facts)
        }
        Format::Text => line(format_args!("{topic}: {text}")),
    }
}
