//! The three stream jobs of the benchmark against Kafka Streams, on the same records and by the same rules.
//!
//! ```text
//! streams_bench BOOTSTRAP load TOPIC PARTITIONS RECORDS KEYS uniform|zipf
//! streams_bench BOOTSTRAP run  TOPIC RECORDS stateless|count|window at-least-once|exactly-once THREADS
//! ```
//!
//! Records: key = 8-byte big-endian number, value = 92 random bytes, timestamp = index in ms. `run` ends when
//! RECORDS inputs are processed and committed; it prints records a second by wall time and by CPU second of
//! this process, from the first record to the end of `close`.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg_client::{Client, ClientConfig, NewTopic, ProducerConfig};
use thalweg_streams::{
    BigEndian, Event, Grouped, Guarantee, RawBytes, Streams, StreamsBuilder, StreamsConfig, TimeWindows,
    Topology,
};

const VALUE: usize = 92;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [bootstrap, "load", topic, partitions, records, keys, spread] => {
            load(bootstrap, topic, partitions.parse()?, records.parse()?, keys.parse()?, spread == "zipf")
        }
        [bootstrap, "run", topic, records, job, guarantee, threads] => {
            run(bootstrap, topic, records.parse()?, job, guarantee, threads.parse()?)
        }
        _ => Err("see the head of the source for the arguments".into()),
    }
}

fn load(
    bootstrap: &str,
    topic: &str,
    partitions: i32,
    records: i64,
    keys: usize,
    zipf: bool,
) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let client = runtime.block_on(Client::connect(ClientConfig::with_bootstrap(bootstrap)))?;
    // The records are dated 1970: without this, retention deletes them while they are being read.
    let new = NewTopic::new(topic, partitions).config("retention.ms", "-1");
    runtime.block_on(client.admin().create_topic(new))?;
    let mut random = fastrand::Rng::with_seed(7);
    let cumulated = if zipf { zipf_cumulated(keys) } else { Vec::new() };
    let _entered = runtime.enter();
    let producer = client.producer(ProducerConfig::default())?;
    let mut appender = producer.appender();
    let slot = runtime.block_on(appender.topic(topic))?;
    let mut value = [0; VALUE];
    for at in 0..records {
        let key = match zipf {
            false => random.usize(..keys) as i64,
            true => {
                let drawn = random.f64();
                cumulated.partition_point(|&sum| sum < drawn) as i64
            }
        };
        random.fill(&mut value);
        let key = key.to_be_bytes();
        let partition = appender.partition_for(slot, Some(&key), Some(&value));
        appender.append_blocking(slot, partition, at, Some(&key), Some(&value), &[])?;
    }
    runtime.block_on(appender.flush())?;
    Ok(())
}

/// The cumulated probabilities of keys by Zipf's law with exponent 1.1.
fn zipf_cumulated(keys: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let mut cumulated: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += (rank as f64).powf(-1.1);
            sum
        })
        .collect();
    cumulated.iter_mut().for_each(|value| *value /= sum);
    cumulated
}

fn topology(topic: &str, job: &str) -> Result<Topology, Box<dyn Error>> {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<i64, Vec<u8>>(topic.to_owned(), BigEndian, RawBytes);
    let out = format!("{topic}-out");
    let grouped = Grouped::new("unused", BigEndian, RawBytes);
    match job {
        "stateless" => stream
            .filter(|record| record.value[0] < 128)
            .map_values(|mut value| {
                value[0] ^= 1;
                value
            })
            .to(out, BigEndian, RawBytes),
        "count" => stream.group_by_key(grouped).count("counts").to_stream().to(out, BigEndian, BigEndian),
        "window" => stream
            .group_by_key(grouped)
            .windowed_by(TimeWindows::tumbling(60_000))
            .count("windows")
            .to_stream()
            .select_key(|record| record.key.as_ref().map_or(0, |windowed| windowed.key))
            .to(out, BigEndian, BigEndian),
        _ => return Err("the job is stateless, count or window".into()),
    }
    Ok(builder.build()?)
}

fn run(
    bootstrap: &str,
    topic: &str,
    records: u64,
    job: &str,
    guarantee: &str,
    threads: usize,
) -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let mut config = StreamsConfig::new(format!("bench-{:08x}", fastrand::u32(..)), directory.path());
    config.threads = threads;
    config.guarantee = match guarantee {
        "exactly-once" => Guarantee::ExactlyOnce,
        "at-least-once" => Guarantee::AtLeastOnce,
        _ => return Err("the guarantee is exactly-once or at-least-once".into()),
    };
    make_output(bootstrap, topic)?;
    let began = Instant::now();
    let streams = Streams::start(topology(topic, job)?, config, ClientConfig::with_bootstrap(bootstrap))?;
    let events = streams.events();
    let processed = AtomicU64::new(0);
    let (mut first, mut cpu_at_first) = (began, 0.0);
    let (mut commits, mut in_commits) = (0, Duration::ZERO);
    loop {
        match events.recv_timeout(Duration::from_secs(60))? {
            Event::Committed(committed) => {
                commits += 1;
                in_commits += committed.took;
                let before = processed.fetch_add(committed.records_in, Ordering::Relaxed);
                if before == 0 {
                    (first, cpu_at_first) = (Instant::now() - Duration::from_millis(100), cpu_seconds());
                }
                if before + committed.records_in >= records {
                    break;
                }
            }
            Event::Failed { reason } => return Err(reason.to_string().into()),
            Event::Reopened { reason } => eprintln!("opened again: {reason}"),
            _ => {}
        }
    }
    let done = Instant::now();
    streams.close()?;
    let closed = Instant::now();
    // What was used before the first commit counts too: it is the work of the first interval, and the start.
    let (cpu, since_start) = (cpu_seconds() - cpu_at_first, cpu_seconds());
    let wall = (closed - first).as_secs_f64();
    eprintln!("{commits} commits took {:.2}s", in_commits.as_secs_f64());
    println!(
        "{job} {guarantee} threads={threads} records={records} ready={:.2}s process={:.2}s close={:.2}s \
         cpu={since_start:.2}s -> {:.0} rec/s wall, {:.0} rec/cpu-s (from the first commit {:.0})",
        (first - began).as_secs_f64(),
        (done - first).as_secs_f64(),
        (closed - done).as_secs_f64(),
        records as f64 / wall,
        records as f64 / since_start,
        records as f64 / cpu
    );
    Ok(())
}

fn make_output(bootstrap: &str, topic: &str) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let client = runtime.block_on(Client::connect(ClientConfig::with_bootstrap(bootstrap)))?;
    let admin = client.admin();
    let out = format!("{topic}-out");
    runtime.block_on(async {
        let topics = admin.list_topics().await?;
        if !topics.iter().any(|known| known.name == out) {
            let partitions = admin.describe_topic(topic).await?.partitions.len() as i32;
            admin.create_topic(NewTopic::new(out, partitions).config("retention.ms", "-1")).await?;
        }
        Ok(())
    })
}

/// The processor time that this process has used, in seconds.
fn cpu_seconds() -> f64 {
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_A_SECOND
}
