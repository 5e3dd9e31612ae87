//! `thalweg consume`: records of a topic, from a place to a place or for ever.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use thalweg_client::{Consumer, ConsumerConfig, ErrorKind, Isolation, OffsetReset};
use thalweg_protocol::{Offset, Scratch, TopicPartition};

use crate::exit::{Exit, failure};
use crate::extents::Extents;
use crate::offset_range::OffsetRange;
use crate::output::{counted, tell, written};
use crate::produce::now_ms;
use crate::target::{Target, TargetArgs, leaderless};
use crate::template::RecordFormat;

/// What to consume, and how to print it.
#[derive(Debug, clap::Args)]
pub struct ConsumeArgs {
    /// The topic
    topic: String,
    /// Where to begin, and perhaps where to end: start, end, 42, +10, -5, 10:20, @2026-01-01T00:00:00Z, @-1h, @T1:T2
    #[arg(long, short = 'o', value_name = "RANGE", default_value = "start", allow_hyphen_values = true)]
    offset: String,
    /// Only these partitions
    #[arg(long, short = 'p', value_name = "N", value_delimiter = ',')]
    partition: Vec<i32>,
    /// Stop at this place: `end` is where the log ended when the command began
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    until: Option<String>,
    /// Stop at the end as it was when the command began, too: an end that lies beyond it is not waited for
    #[arg(long, short = 'e')]
    exit: bool,
    /// Stop after so many records
    #[arg(long, short = 'n', value_name = "COUNT")]
    num: Option<u64>,
    /// `json`, or a template such as '%p %o %k %v\n'; the value and a line feed if not given
    #[arg(long, value_name = "json|TEMPLATE")]
    format: Option<String>,
    /// Also records of transactions that are open or were aborted
    #[arg(long)]
    uncommitted: bool,
}

/// Prints records until the end that was asked for, or until interrupted.
pub async fn run(args: ConsumeArgs, target: &TargetArgs) -> anyhow::Result<()> {
    let now = now_ms();
    let usage = |error: String| failure(Exit::Usage, error);
    let format = RecordFormat::parse(args.format.as_deref().unwrap_or("%v\\n")).map_err(usage)?;
    let mut range = OffsetRange::parse(&args.offset, now).map_err(|error| usage(error.to_string()))?;
    if let Some(until) = &args.until {
        let until = OffsetRange::parse(until, now).map_err(|error| usage(error.to_string()))?;
        if range.until.is_some() || until.until.is_some() {
            return Err(usage("the end is given twice: in --offset FROM:UNTIL and in --until".to_string()));
        }
        range.until = Some(until.from);
    }
    let target = target.open().await?;
    let reading = read(&args, &target, range, &format);
    let result = tokio::select! {
        result = reading => result,
        // Whoever asked for an end has not got all of it.
        _ = crate::signals::ended() => match range.until.is_some() || args.exit || args.num.is_some() {
            true => Err(failure(Exit::Failed, "interrupted before the end that was asked for")),
            false => Ok(()),
        },
    };
    result.and(target.close().await)
}

/// Where each partition begins and ends.
struct Plan {
    from: BTreeMap<TopicPartition, i64>,
    /// Where each partition ended when the command began.
    end: BTreeMap<TopicPartition, i64>,
    until: BTreeMap<TopicPartition, i64>,
}

async fn read(
    args: &ConsumeArgs,
    target: &Target,
    range: OffsetRange,
    format: &RecordFormat,
) -> anyhow::Result<()> {
    let topic = target.topic(&args.topic).await?;
    let count = topic.partitions.len() as i32;
    if let Some(partition) = args.partition.iter().find(|partition| !(0..count).contains(*partition)) {
        return Err(failure(
            Exit::NotFound,
            format!("{} has no partition {partition}; its partitions are 0 to {}", args.topic, count - 1),
        ));
    }
    let chosen = if args.partition.is_empty() { (0..count).collect() } else { args.partition.clone() };
    let partitions: Vec<TopicPartition> =
        chosen.into_iter().map(|partition| TopicPartition::new(args.topic.as_str(), partition)).collect();
    for trouble in leaderless(&topic, |at| args.partition.is_empty() || args.partition.contains(&at)) {
        tell(format_args!("warning: {trouble}. Its records are waited for"));
    }
    let isolation = if args.uncommitted { Isolation::ReadUncommitted } else { Isolation::ReadCommitted };
    let plan = plan(target, &partitions, range, args.exit, isolation).await?;
    let config = ConsumerConfig {
        isolation,
        offset_reset: OffsetReset::Earliest,
        stall_timeout_ms: Some(STALL_MS),
        ..ConsumerConfig::default()
    };
    let mut consumer = target.client().consumer(config)?;
    print(&mut consumer, args, plan, format).await?;
    consumer.close().await?;
    Ok(())
}

async fn plan(
    target: &Target,
    partitions: &[TopicPartition],
    range: OffsetRange,
    exits: bool,
    isolation: Isolation,
) -> anyhow::Result<Plan> {
    let extents = Extents::of(target.client().admin(), partitions, isolation).await?;
    let mut from = extents.resolve(range.from).await?;
    for (partition, from) in &mut from {
        *from = (*from).max(extents.start(partition).unwrap_or(0));
    }
    let mut until = match range.until {
        Some(place) => extents.resolve(place).await?,
        None => BTreeMap::new(),
    };
    let end: BTreeMap<_, _> =
        partitions.iter().map(|at| (at.clone(), extents.end(at).unwrap_or(0))).collect();
    if exits {
        for (partition, end) in &end {
            let until = until.entry(partition.clone()).or_insert(*end);
            *until = (*until).min(*end);
        }
    }
    Ok(Plan { from, end, until })
}

async fn print(
    consumer: &mut Consumer,
    args: &ConsumeArgs,
    plan: Plan,
    format: &RecordFormat,
) -> anyhow::Result<()> {
    let mut open: Vec<TopicPartition> = plan
        .from
        .iter()
        .filter(|(partition, from)| plan.until.get(*partition).is_none_or(|until| *from < until))
        .map(|(partition, _)| partition.clone())
        .collect();
    consumer.assign(open.iter().cloned())?;
    for partition in &open {
        let (from, end) = (plan.from[partition], plan.end[partition]);
        if from > end {
            tell(format_args!("note: {partition} ends at {end}; waiting for offset {from}"));
        }
        // Past the end no consumer can stand.
        consumer.seek(partition, Offset(from.min(end)))?;
    }
    let mut left = args.num.unwrap_or(u64::MAX);
    let mut scratch = Scratch::new(DECOMPRESSED_BYTES);
    let mut out = Vec::with_capacity(1 << 16);
    let stdout = std::io::stdout();
    let is_bounded = args.num.is_some() || !plan.until.is_empty();
    let mut silence = Silence::new();
    while left > 0 && !open.is_empty() {
        let polled = match consumer.poll(POLL).await {
            Ok(polled) => polled,
            // Whoever waits for ever is told, and waits on.
            Err(error) if plan.until.is_empty() && error.kind() == ErrorKind::Retry => {
                tell(format_args!("warning: {error}; waiting"));
                continue;
            }
            Err(error) => {
                return Err(anyhow::Error::new(error).context("stopped before the end that was asked for"));
            }
        };
        for fetched in &polled.batches {
            let partition = &fetched.partition;
            let until = plan.until.get(partition).copied().unwrap_or(i64::MAX);
            let from = plan.from[partition];
            fetched.for_each(&mut scratch, |record| {
                if (from..until).contains(&record.offset.0) && left > 0 {
                    format.print(&partition.topic, partition.partition, &record, &mut out);
                    left -= 1;
                }
                Ok::<(), thalweg_client::Error>(())
            })?;
        }
        written(stdout.lock().write_all(&out).and_then(|()| stdout.lock().flush()))?;
        out.clear();
        // The position tells, not the records: those before the end may be gone by now.
        let before = open.len();
        open.retain(|partition| {
            let until = plan.until.get(partition).copied().unwrap_or(i64::MAX);
            consumer.position(partition).is_none_or(|position| position.0 < until)
        });
        if open.len() < before {
            consumer.assign(open.iter().cloned())?;
        }
        if is_bounded && !open.is_empty() && left > 0 && silence.is_news(!polled.batches.is_empty()) {
            tell(awaited(consumer, &open, &plan, args.num.map(|_| left)));
        }
    }
    Ok(())
}

/// For how long nothing has come.
struct Silence {
    since: Instant,
    is_told: bool,
}

impl Silence {
    fn new() -> Self {
        Self { since: Instant::now(), is_told: false }
    }

    /// Whether it is time to say that nothing comes; once is enough.
    fn is_news(&mut self, something_came: bool) -> bool {
        if something_came {
            self.since = Instant::now();
        }
        let is_news = !self.is_told && self.since.elapsed() >= SILENCE;
        self.is_told |= is_news;
        is_news
    }
}

/// What a reader waits for who has asked for an end that is not there yet.
fn awaited(consumer: &Consumer, open: &[TopicPartition], plan: &Plan, left: Option<u64>) -> String {
    let more = left.map(|left| format!("{} more", counted(left, "record")));
    let ends = open.iter().filter_map(|partition| {
        let (at, until) = (consumer.position(partition)?, plan.until.get(partition)?);
        Some(format!("offset {until} of {partition}, which ends at {at}"))
    });
    let all: Vec<String> = more.into_iter().chain(ends).collect();
    let shown = all[..all.len().min(PLACES_TOLD)].join("; ");
    let others = match all.len().saturating_sub(PLACES_TOLD) {
        0 => String::new(),
        others => format!("; and {} more", counted(others as u64, "partition")),
    };
    format!("note: waiting for {shown}{others}. --exit stops where the log ends now")
}

/// After so much time without a record it is said what is waited for.
const SILENCE: Duration = Duration::from_secs(5);
/// How many of the places that are waited for are told.
const PLACES_TOLD: usize = 3;

const POLL: Duration = Duration::from_millis(500);
/// After so many ms in which a partition could not be read it is said why.
const STALL_MS: u64 = 5_000;
/// The most that one batch may hold when it is decompressed.
pub const DECOMPRESSED_BYTES: usize = 256 << 20;
