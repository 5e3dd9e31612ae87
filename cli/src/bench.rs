//! `thalweg bench`: how fast this log takes records and gives them back.

mod latency;
mod transactions;

use std::time::{Duration, Instant};

use bytes::Bytes;
use thalweg_client::{Acks, Consumer, ConsumerConfig, OffsetReset, ProducerConfig, ProducerRecord};
use thalweg_protocol::{Compression, Scratch, TopicPartition};

use crate::consume::DECOMPRESSED_BYTES;
use crate::exit::{Exit, failure};
use crate::extents::Extents;
use crate::output::{Format, counted, line, progress};
use crate::produce::{AcksArg, LARGEST_RECORD, codec, now_ms};
use crate::target::{Target, TargetArgs};

/// What to measure.
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Write records as fast as they are taken
    Produce {
        /// The topic; its records stay there
        topic: String,
        /// How many records
        #[arg(long, short = 'n', default_value_t = 1_000_000)]
        records: u64,
        /// Bytes of each value
        #[arg(long, short = 's', default_value_t = 100)]
        size: usize,
        /// How to compress
        #[arg(long, short = 'z', value_name = "CODEC", default_value = "none", value_parser = codec)]
        compression: Compression,
        /// When a record counts as written
        #[arg(long, value_enum, default_value_t = AcksArg::All)]
        acks: AcksArg,
        /// Send each record alone, and wait for it before the next
        #[arg(long)]
        one_by_one: bool,
    },
    /// Read records from the start as fast as they come
    Consume {
        /// The topic
        topic: String,
        /// How many records; all that there are at the start if not given
        #[arg(long, short = 'n')]
        records: Option<u64>,
    },
    /// Write records at a steady rate, and tell how long they take to a consumer
    Latency(latency::LatencyArgs),
    /// Commit transactions one after the other
    Transactions(transactions::TransactionsArgs),
}

/// Measures, and prints one line.
pub async fn run(command: BenchCommand, target: &TargetArgs, format: Format) -> anyhow::Result<()> {
    let size = match &command {
        BenchCommand::Produce { size, .. } => *size,
        BenchCommand::Consume { .. } => 0,
        BenchCommand::Latency(args) => args.size,
        BenchCommand::Transactions(args) => args.size,
    };
    if size > LARGEST {
        return Err(failure(Exit::Usage, format!("--size {size}: values have {LARGEST} bytes at most")));
    }
    let target = target.open().await?;
    let result = match command {
        BenchCommand::Produce { topic, records, size, compression, acks, one_by_one } => {
            let load = Load { records, size, compression, acks: acks.into() };
            match one_by_one {
                true => produce_one_by_one(&target, &topic, load, format).await,
                false => produce(&target, &topic, load, format).await,
            }
        }
        BenchCommand::Consume { topic, records } => consume(&target, &topic, records, format).await,
        BenchCommand::Latency(args) => latency::measure(&target, args, format).await,
        BenchCommand::Transactions(args) => transactions::measure(&target, args, format).await,
    };
    result.and(target.close().await)
}

/// The CPU time of this process so far, user and system.
fn cpu_time() -> Duration {
    // SAFETY: an all-zero rusage is valid, and getrusage only writes into it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let of = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

struct Measured {
    began: Instant,
    cpu: Duration,
}

impl Measured {
    fn begin() -> Self {
        Self { began: Instant::now(), cpu: cpu_time() }
    }

    /// Seconds since then.
    fn wall(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// CPU seconds of this process since then.
    fn cpu(&self) -> f64 {
        (cpu_time() - self.cpu).as_secs_f64()
    }

    fn print(&self, what: &str, records: u64, bytes: u64, format: Format) -> anyhow::Result<()> {
        let (wall, cpu) = (self.wall(), self.cpu());
        if format == Format::Json {
            return line(serde_json::json!({
                "measured": what, "records": records, "bytes": bytes, "seconds": wall, "cpu_seconds": cpu,
                "records_per_s": records as f64 / wall, "bytes_per_s": bytes as f64 / wall,
            }));
        }
        line(format_args!(
            "{what} {}, {:.1} MB in {wall:.3} s: {:.0} records/s, {:.1} MB/s; {cpu:.3} CPU-s, {:.0} records/CPU-s",
            counted(records, "record"),
            bytes as f64 / 1e6,
            records as f64 / wall,
            bytes as f64 / 1e6 / wall,
            records as f64 / cpu,
        ))
    }
}

/// The largest value that is written, in bytes: no broker takes one nearly as large.
const LARGEST: usize = 1 << 30;

/// What is written, and how.
struct Load {
    records: u64,
    size: usize,
    compression: Compression,
    acks: Acks,
}

async fn produce(target: &Target, topic: &str, load: Load, format: Format) -> anyhow::Result<()> {
    let Load { records, size, compression, acks } = load;
    target.partitions_of(topic).await?;
    let producer = target.client().producer(ProducerConfig { compression, acks, ..large_records() })?;
    let mut appender = producer.appender();
    let slot = appender.topic(topic).await?;
    let noise = noise(size + NOISE);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || -> anyhow::Result<()> {
        let bar = progress(Some(records));
        let measured = Measured::begin();
        for index in 0..records {
            let at = index as usize % NOISE;
            let value = Some(&noise[at..at + size]);
            let partition = appender.partition_for(slot, None, value);
            appender.append_blocking(slot, partition, now_ms(), None, value, &[])?;
            if index.is_multiple_of(4096) {
                bar.set_position(index);
                appender.linger();
            }
        }
        runtime.block_on(appender.flush())?;
        bar.finish_and_clear();
        measured.print("produced", records, records.saturating_mul(size as u64), format)
    })
    .await??;
    Ok(producer.close().await?)
}

/// How large records may be is the topic's to say.
fn large_records() -> ProducerConfig {
    ProducerConfig { max_request_size: LARGEST_RECORD, ..ProducerConfig::default() }
}

async fn produce_one_by_one(target: &Target, topic: &str, load: Load, format: Format) -> anyhow::Result<()> {
    let Load { records, size, compression, acks } = load;
    target.partitions_of(topic).await?;
    let config = ProducerConfig { compression, acks, linger_ms: 0, ..large_records() };
    let producer = target.client().producer(config)?;
    let value = Bytes::from(noise(size));
    let bar = progress(Some(records));
    let measured = Measured::begin();
    for index in 0..records {
        producer.send(ProducerRecord::new(topic, value.clone())).await?.await?;
        bar.set_position(index);
    }
    bar.finish_and_clear();
    measured.print("produced", records, records.saturating_mul(size as u64), format)?;
    Ok(producer.close().await?)
}

/// Random, so that a codec has the work that it has with real data, but the same in every run.
fn noise(size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..size).map(|_| random.alphanumeric() as u8).collect()
}

/// Values begin at one of so many places in the noise.
const NOISE: usize = 4096;

async fn consume(target: &Target, topic: &str, records: Option<u64>, format: Format) -> anyhow::Result<()> {
    let partitions = target.partitions_of(topic).await?;
    let partitions: Vec<_> = (0..partitions).map(|partition| TopicPartition::new(topic, partition)).collect();
    let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::default() };
    let extents = Extents::of(target.client().admin(), &partitions, config.isolation).await?;
    let mut consumer: Consumer = target.client().consumer(config)?;
    consumer.assign(partitions.iter().cloned())?;
    let extent = |at| (extents.start(at).unwrap_or(0), extents.end(at).unwrap_or(0));
    let offsets: u64 = partitions.iter().map(extent).map(|(start, end)| (end - start).max(0) as u64).sum();
    let bar = progress(Some(records.unwrap_or(offsets)));
    let mut scratch = Scratch::new(DECOMPRESSED_BYTES);
    let measured = Measured::begin();
    let (mut count, mut bytes, mut last) = (0_u64, 0_u64, Instant::now());
    // Not every offset has a record: without a number it is the positions that tell when all is read.
    let is_read = |consumer: &Consumer, at| {
        let (start, end) = extent(at);
        start >= end || consumer.position(at).is_some_and(|position| position.0 >= end)
    };
    while match records {
        Some(records) => count < records,
        None => !partitions.iter().all(|at| is_read(&consumer, at)),
    } {
        let polled = consumer.poll(Duration::from_millis(500)).await?;
        for fetched in &polled.batches {
            // As a reader would: every record is decoded, and its key and value are looked at.
            fetched.for_each(&mut scratch, |record| {
                count += 1;
                bytes += (record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)) as u64;
                Ok::<(), thalweg_client::Error>(())
            })?;
            last = Instant::now();
        }
        bar.set_position(count);
        if last.elapsed() > PATIENCE {
            bar.finish_and_clear();
            let found = counted(count, "record");
            return Err(failure(
                Exit::Failed,
                format!(
                    "{topic} has only {found}: no more came for {PATIENCE:?}. Without -n all that there are are read"
                ),
            ));
        }
    }
    bar.finish_and_clear();
    measured.print("consumed", count, bytes, format)?;
    Ok(consumer.close().await?)
}

const PATIENCE: Duration = Duration::from_secs(5);
