//! `make bench`: measures Thalweg and Apache Kafka side by side, prints the table, and puts it into the README.
//!
//! ```text
//! compare [--rounds N] [--gigabytes G] [--records N] [--publish FILE]
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use thalweg_tests::compare::{broker, jobs, report};

struct Settings {
    rounds: usize,
    gigabytes: f64,
    records: u64,
    publish: Option<PathBuf>,
}

fn settings(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Settings> {
    let mut settings = Settings { rounds: 3, gigabytes: 1.0, records: 5_000_000, publish: None };
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--rounds" => settings.rounds = value.parse()?,
            "--gigabytes" => settings.gigabytes = value.parse()?,
            "--records" => settings.records = value.parse()?,
            "--publish" => settings.publish = Some(value.into()),
            _ => bail!("{name}? The options are --rounds, --gigabytes, --records and --publish"),
        }
    }
    Ok(settings)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let settings = settings(std::env::args().skip(1))?;
    broker::check_room(4.0 * settings.gigabytes + 1e-9 * 1500.0 * settings.records as f64)?;
    let brokers = broker::Brokers::start()?;
    let mut rows = broker::compare(&brokers, settings.rounds, settings.gigabytes)?;
    rows.extend(jobs::compare(&brokers, settings.rounds, settings.records)?);
    let table = report::table(&rows, settings.rounds)?;
    println!("{table}");
    settings.publish.map_or(Ok(()), |path| report::publish(&path, &table))
}
