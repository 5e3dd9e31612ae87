//! `thalweg bench latency`: how long a record takes from the producer to a consumer.

use std::time::{Duration, Instant};

use thalweg_client::{
    Appender, Consumer, ConsumerConfig, Isolation, OffsetReset, OffsetSpec, ProducerConfig, TopicSlot,
};
use thalweg_protocol::{Scratch, TopicPartition};

use super::noise;
use crate::consume::DECOMPRESSED_BYTES;
use crate::exit::{Exit, failure};
use crate::output::{Format, counted, line};
use crate::produce::{AcksArg, now_ms};
use crate::target::Target;

/// How records are sent.
#[derive(Debug, clap::Args)]
pub struct LatencyArgs {
    /// The topic; its records stay there
    topic: String,
    /// Records a second, at even distances
    #[arg(long, short = 'r', default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: u64,
    /// How many records
    #[arg(long, short = 'n', default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    records: u64,
    /// Bytes of each value, 8 at least
    #[arg(long, short = 's', default_value_t = 100)]
    pub(super) size: usize,
    /// How long the producer may wait for more records before it sends a batch, in ms
    #[arg(long, default_value_t = 0)]
    linger_ms: u64,
    /// When a record counts as written
    #[arg(long, value_enum, default_value_t = AcksArg::All)]
    acks: AcksArg,
}

/// The first part of the records, at most so many seconds, only warms everything up.
const WARM_UP_SECONDS: u64 = 2;

/// How long after the last record one that is missing is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends at the rate that was asked for, and prints one line with percentiles. A record's time runs from when it was due,
/// so that one that could not be sent in time counts its delay.
pub async fn measure(target: &Target, args: LatencyArgs, format: Format) -> anyhow::Result<()> {
    let partitions = target.partitions_of(&args.topic).await?;
    let mut consumer = at_the_end(target, &args.topic, partitions).await?;
    let producer = target.client().producer(ProducerConfig {
        acks: args.acks.into(),
        linger_ms: args.linger_ms,
        ..ProducerConfig::default()
    })?;
    let mut appender = producer.appender();
    let slot = appender.topic(&args.topic).await?;
    let schedule = Schedule {
        // The consumer should be waiting by then.
        began: Instant::now() + Duration::from_millis(500),
        rate: args.rate,
    };
    let warm_up = (args.rate * WARM_UP_SECONDS).min(args.records / 10);
    let (records, size) = (args.records, args.size.max(8));
    let sending =
        tokio::task::spawn_blocking(move || send(&schedule, &mut appender, slot, partitions, records, size));
    let mut latencies = Vec::with_capacity((records - warm_up) as usize);
    let mut scratch = Scratch::new(DECOMPRESSED_BYTES);
    let (mut seen, mut last_came) = (0, schedule.due(records));
    while seen < records && last_came.elapsed() < PATIENCE {
        let polled = consumer.poll(Duration::from_millis(500)).await?;
        let now = Instant::now();
        for fetched in &polled.batches {
            fetched.for_each(&mut scratch, |record| {
                let index = record
                    .value
                    .and_then(|value| value.first_chunk())
                    .map(|index| u64::from_le_bytes(*index));
                if let Some(index) = index.filter(|&index| index < records) {
                    seen += 1;
                    if index >= warm_up {
                        latencies.push(now.saturating_duration_since(schedule.due(index)));
                    }
                }
                Ok::<(), thalweg_client::Error>(())
            })?;
            last_came = last_came.max(now);
        }
    }
    sending.await??;
    producer.close().await?;
    consumer.close().await?;
    if seen < records {
        let all = counted(records, "record");
        return Err(failure(Exit::Failed, format!("{} of {all} did not come", records - seen)));
    }
    print(&args, latencies, format)
}

/// When which record is due.
#[derive(Clone, Copy)]
struct Schedule {
    began: Instant,
    /// Records a second.
    rate: u64,
}

impl Schedule {
    fn due(&self, index: u64) -> Instant {
        let (seconds, rest) = (index / self.rate, index % self.rate);
        self.began + Duration::from_secs(seconds) + Duration::from_nanos(rest * 1_000_000_000 / self.rate)
    }
}

/// A consumer of all partitions that stands at their ends.
async fn at_the_end(target: &Target, topic: &str, partitions: i32) -> anyhow::Result<Consumer> {
    let all: Vec<TopicPartition> =
        (0..partitions).map(|partition| TopicPartition::new(topic, partition)).collect();
    let ask: Vec<_> = all.iter().map(|partition| (partition.clone(), OffsetSpec::Latest)).collect();
    let ends = target.client().admin().list_offsets(&ask, Isolation::ReadCommitted).await?;
    let config = ConsumerConfig { offset_reset: OffsetReset::Latest, ..ConsumerConfig::default() };
    let mut consumer = target.client().consumer(config)?;
    consumer.assign(all)?;
    for (partition, listed) in &ends {
        if let Some(end) = listed.offset {
            consumer.seek(partition, end)?;
        }
    }
    Ok(consumer)
}

/// Sends each record when it is due; those that are due together go together.
fn send(
    schedule: &Schedule,
    appender: &mut Appender,
    slot: TopicSlot,
    partitions: i32,
    records: u64,
    size: usize,
) -> anyhow::Result<()> {
    wake_punctually();
    let mut value = noise(size);
    let mut index = 0;
    while index < records {
        let now = Instant::now();
        while index < records && schedule.due(index) <= now {
            value[..8].copy_from_slice(&index.to_le_bytes());
            let partition = (index % partitions as u64) as i32;
            appender.append_blocking(slot, partition, now_ms(), None, Some(&value), &[])?;
            index += 1;
        }
        appender.linger();
        std::thread::sleep(schedule.due(index).saturating_duration_since(Instant::now()));
    }
    appender.hand_over();
    Ok(())
}

/// Sleeps of this thread end when they should, and not some 50 µs later.
fn wake_punctually() {
    // SAFETY: this option takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

fn print(args: &LatencyArgs, mut latencies: Vec<Duration>, format: Format) -> anyhow::Result<()> {
    latencies.sort_unstable();
    let ms = |latency: &Duration| latency.as_secs_f64() * 1e3;
    let at = |permille: usize| {
        let index = (latencies.len() * permille).div_ceil(1000).saturating_sub(1);
        latencies.get(index).map_or(f64::NAN, ms)
    };
    let most = latencies.last().map_or(f64::NAN, ms);
    if format == Format::Json {
        return line(serde_json::json!({
            "measured": "latency", "records": latencies.len(), "size": args.size.max(8), "rate": args.rate,
            "p50_ms": at(500), "p99_ms": at(990), "p999_ms": at(999), "most_ms": most,
        }));
    }
    line(format_args!(
        "{} of {} at {}/s: p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms, most {:.3} ms",
        counted(latencies.len() as u64, "record"),
        counted(args.size.max(8) as u64, "byte"),
        args.rate,
        at(500),
        at(990),
        at(999),
        most,
    ))
}
