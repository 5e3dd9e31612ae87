//! `thalweg topic delete-records`.

use thalweg_client::{Isolation, TopicMetadata};
use thalweg_protocol::{Offset, TopicPartition};

use super::TopicConfigs;
use crate::exit::{Exit, failure};
use crate::extents::Extents;
use crate::offset_range::{OffsetRange, Place};
use crate::output::{Format, confirmed, counted, line, nothing_deleted};
use crate::produce::now_ms;
use crate::target::{Target, leaderless};

/// Which records go.
#[derive(Debug, clap::Args)]
pub struct DeleteRecordsArgs {
    /// The topic, which stays
    name: String,
    /// Delete all records before this place of each partition: end (all of them), 42, +10, -5, @2026-01-01T00:00:00Z, @-1h
    #[arg(long, short = 'b', value_name = "PLACE", allow_hyphen_values = true)]
    before: String,
    /// Only in these partitions
    #[arg(long, short = 'p', value_name = "N", value_delimiter = ',')]
    partition: Vec<i32>,
    /// Only show where the partitions would begin
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
}

impl DeleteRecordsArgs {
    fn place(&self) -> anyhow::Result<Place> {
        let range = OffsetRange::parse(&self.before, now_ms())
            .map_err(|error| failure(Exit::Usage, error.to_string()))?;
        match range.until {
            None => Ok(range.from),
            Some(_) => Err(failure(
                Exit::Usage,
                format!("--before {}: it is one place, since records go from the start on", self.before),
            )),
        }
    }
}

/// A partition that loses its first records.
struct Cut {
    partition: TopicPartition,
    /// Where it begins before and, if all goes well, afterwards.
    start: i64,
    before: i64,
}

/// Deletes the first records of partitions. What lies behind keeps its offsets.
pub async fn records(target: &Target, args: DeleteRecordsArgs, format: Format) -> anyhow::Result<()> {
    let place = args.place()?;
    let topic = target.topic(&args.name).await?;
    check_policy(target, &topic).await?;
    let count = topic.partitions.len() as i32;
    if let Some(partition) = args.partition.iter().find(|partition| !(0..count).contains(*partition)) {
        let reason =
            format!("{} has no partition {partition}; its partitions are 0 to {}", args.name, count - 1);
        return Err(failure(Exit::NotFound, reason));
    }
    let is_meant = |partition| args.partition.is_empty() || args.partition.contains(&partition);
    if let Some(trouble) = leaderless(&topic, is_meant).into_iter().next() {
        return Err(trouble.into());
    }
    let partitions: Vec<TopicPartition> = (0..count)
        .filter(|partition| is_meant(*partition))
        .map(|partition| TopicPartition::new(args.name.as_str(), partition))
        .collect();
    let extents = Extents::of(target.client().admin(), &partitions, Isolation::ReadUncommitted).await?;
    check_reached(place, &args.name, &extents, &partitions)?;
    let mut cuts = Vec::new();
    for (partition, place) in extents.resolve(place).await? {
        let start = extents.start(&partition).unwrap_or(0);
        // A partition that ends before the place loses all that it has.
        let before = place.min(extents.end(&partition).unwrap_or(0)).max(start);
        cuts.push(Cut { partition, start, before });
    }
    let offsets: i64 = cuts.iter().map(|cut| cut.before - cut.start).sum();
    if !args.dry_run && offsets > 0 {
        // Compaction and the ends of transactions leave fewer records than offsets.
        let offsets = counted(offsets as u64, "offset");
        let question = format!("Delete the records of the first {offsets} of {}?", args.name);
        if !args.yes && !confirmed(&question)? {
            return nothing_deleted();
        }
        let shortened = cuts.iter().filter(|cut| cut.before > cut.start);
        let wanted: Vec<_> = shortened.map(|cut| (cut.partition.clone(), Offset(cut.before))).collect();
        let starts = target.client().admin().delete_records(&wanted).await?;
        for cut in &mut cuts {
            cut.before = starts.get(&cut.partition).map_or(cut.before, |start| start.0);
        }
    }
    cuts.iter().try_for_each(|cut| cut.print(args.dry_run, format))
}

/// Whether records may be deleted from the topic at all. Where its configs are not told the broker says so.
async fn check_policy(target: &Target, topic: &TopicMetadata) -> anyhow::Result<()> {
    let name = &topic.name;
    if topic.is_internal {
        let reason = format!(
            "{name} is a topic that the log keeps for itself: its records are not for others to delete"
        );
        return Err(failure(Exit::Usage, reason));
    }
    let Ok(configs) = TopicConfigs::of(&target.client().admin(), name).await else { return Ok(()) };
    let policy = configs.value("cleanup.policy").unwrap_or_default();
    if policy.is_empty() || configs.has_retention() == Some(true) {
        return Ok(());
    }
    let reason = format!(
        "{name} has cleanup.policy={policy}: what it has of each key goes only when something newer comes. Write null values \
         for the keys, or first `thalweg topic alter {name} -c cleanup.policy={policy},delete`"
    );
    Err(failure(Exit::Usage, reason))
}

/// An offset that no partition reaches was mistyped, and would delete all that there is.
fn check_reached(
    place: Place,
    topic: &str,
    extents: &Extents,
    partitions: &[TopicPartition],
) -> anyhow::Result<()> {
    let furthest = partitions.iter().filter_map(|partition| extents.end(partition)).max().unwrap_or(0);
    match place {
        Place::Offset(offset) if offset > furthest => {
            let reason = format!(
                "--before {offset}: {topic} ends at {furthest}. To delete all its records say --before end"
            );
            Err(failure(Exit::Usage, reason))
        }
        _ => Ok(()),
    }
}

impl Cut {
    fn print(&self, dry_run: bool, format: Format) -> anyhow::Result<()> {
        let Self { partition, start, before } = self;
        match format {
            Format::Json => line(serde_json::json!({
                "topic": &*partition.topic, "partition": partition.partition, "start": before, "before": start,
                "changed": !dry_run && before != start,
            })),
            Format::Text if before == start => {
                line(format_args!("{partition}: nothing to delete, begins at {start}"))
            }
            Format::Text if dry_run => {
                line(format_args!("{partition}: would begin at {before}, begins at {start}"))
            }
            Format::Text => line(format_args!("{partition}: begins at {before}, began at {start}")),
        }
    }
}
