//! A year of flights through the whole of Thalweg: history first and then live, checked at the end.
//!
//! The flights that left New York in 2013 are keyed by tail number; months 1 to 11 are in the log before the
//! processor starts, December arrives while it runs. It counts flights and averages departure delays per carrier,
//! and counts flights per origin and day in windows of event time. Then SQL reads the results and Parquet is written,
//! and everything is computed again from the CSV by code that shares nothing with the pipeline. Any difference
//! ends the program with exit code 1.

mod live;
mod load;
mod recompute;
mod results;
mod sql;
mod topology;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use thalweg_broker::Broker;
use thalweg_client::{Client, ClientConfig, NewTopic};
use thalweg_streams::{Streams, StreamsConfig};

/// A year of flights through the log, a stateful processor, SQL and Parquet, checked at the end
#[derive(Debug, Parser)]
struct Arguments {
    /// A running Thalweg or Kafka; without it, a log is opened in this process
    #[arg(long, value_name = "HOST:PORT")]
    bootstrap: Option<String>,
    /// Where the log (if it is in this process), state and Parquet go; a temporary directory if not given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// What topics and the application are named after, so that it can run again on the same log
    #[arg(long, default_value = "flights")]
    name: String,
    /// How many seconds December takes
    #[arg(long, default_value_t = 8.0)]
    december_seconds: f64,
    /// The CSV, plain or compressed
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/flights.csv.zst"))]
    csv: PathBuf,
    /// Names of the carriers
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/airlines.csv"))]
    airlines: PathBuf,
}

/// The topics of one run.
pub struct Topics {
    /// The flights as they happened.
    pub flights: String,
    /// Flights and mean delay per carrier.
    pub carriers: String,
    /// Flights per origin and day.
    pub days: String,
}

const PARTITIONS: i32 = 4;
const PROCESSING_TIMEOUT: Duration = Duration::from_secs(120);

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "error".into()),
        )
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let temporary = tempfile::tempdir()?;
    let dir = arguments.dir.clone().unwrap_or_else(|| temporary.path().to_path_buf());
    let broker = match &arguments.bootstrap {
        Some(_) => None,
        None => {
            let began = Instant::now();
            let broker = runtime.block_on(Broker::embedded(dir.join("log")))?;
            println!("The log is open in this process after {:.0} ms.", began.elapsed().as_secs_f64() * 1e3);
            Some(broker)
        }
    };
    let config = match (&broker, &arguments.bootstrap) {
        (Some(broker), _) => ClientConfig::with_connector(std::sync::Arc::new(broker.connect())),
        (None, Some(bootstrap)) => ClientConfig::with_bootstrap(bootstrap),
        (None, None) => unreachable!("without a bootstrap there is a broker"),
    };
    let result = run(&arguments, &runtime, config, &dir);
    if let Some(broker) = broker {
        runtime.block_on(broker.shutdown())?;
    }
    result
}

/// Where nobody answers soon, it is said soon.
async fn connect(config: ClientConfig) -> anyhow::Result<Client> {
    let mut impatient = config.clone();
    (impatient.api_timeout_ms, impatient.request_timeout_ms) = (5_000, 5_000);
    Client::connect(impatient).await.context("is the address right, and does a broker run there?")?;
    Ok(Client::connect(config).await?)
}

fn run(
    arguments: &Arguments,
    runtime: &tokio::runtime::Runtime,
    config: ClientConfig,
    dir: &Path,
) -> anyhow::Result<()> {
    let name = &arguments.name;
    let topics =
        Topics { flights: name.clone(), carriers: format!("{name}-carriers"), days: format!("{name}-days") };
    // A wrong file should not leave topics behind.
    let year = load::read(&arguments.csv)?;
    std::fs::metadata(&arguments.airlines)
        .with_context(|| format!("cannot open {}", arguments.airlines.display()))?;
    let client = runtime.block_on(connect(config.clone()))?;
    runtime.block_on(create(&client, &topics))?;
    let (history, december) = year.split();
    let began = Instant::now();
    let mut loader = load::Loader::new(runtime, &client, &topics.flights)?;
    loader.write(history)?;
    println!("Loaded months 1 to 11: {} flights in {:.2} s.", history.len(), began.elapsed().as_secs_f64());

    let streams = Streams::start(
        topology::build(&topics)?,
        StreamsConfig::new(name.clone(), dir.join("state")),
        config,
    )
    .context("the processor cannot start")?;
    live::replay(&streams)?;
    let all = (history.len() + december.len()) as i64;
    let seconds = arguments.december_seconds;
    let results = live::december(runtime, &client, &topics, &mut loader, december, all, seconds)?;
    loader.close()?;
    let committed = streams.committed();
    streams.close().context("the processor did not close in order")?;
    if committed.late + committed.dead_letters > 0 {
        bail!(
            "records that were late: {}, that did not decode: {}; there should be none",
            committed.late,
            committed.dead_letters
        );
    }

    let queried =
        runtime.block_on(sql::query(&client, &topics, &arguments.airlines, &dir.join("parquet")))?;
    if arguments.dir.is_some() {
        println!("Everything is in {}.", dir.display());
    }
    let expected = recompute::from_csv(&arguments.csv)?;
    results::compare("the output topics", &expected, &results)?;
    results::compare("SQL", &expected, &queried)?;
    println!(
        "Computed again from the CSV: {} flights, {} carriers, {} windows. Topics and SQL agree with it in every value.",
        expected.flights(),
        expected.carriers.len(),
        expected.days.len()
    );
    Ok(())
}

async fn create(client: &Client, topics: &Topics) -> anyhow::Result<()> {
    for (topic, partitions) in [(&topics.flights, PARTITIONS), (&topics.carriers, 1), (&topics.days, 1)] {
        // The flights date from 2013: the default retention of a week would delete them.
        let wanted = NewTopic::new(topic.as_str(), partitions).config("retention.ms", "-1");
        client.admin().create_topic(wanted).await.with_context(|| {
            format!("cannot create topic {topic}; if an earlier run left it there, choose another --name")
        })?;
    }
    Ok(())
}
