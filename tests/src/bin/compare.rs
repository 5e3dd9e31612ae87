//! `make bench`: measures Thalweg and Apache Kafka side by side, prints the table, and puts it into the README.
//!
//! ```text
//! compare [--rounds N] [--gigabytes G] [--records N] [--publish FILE]
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use thalweg_tests::compare::{broker, jobs, latency, limits, load, report, transactions};

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

/// Half of what Java's producer sends to Kafka at most, in whole thousands of records a second.
fn half_of_kafkas_rate(rows: &[report::Row]) -> anyhow::Result<u64> {
    let row = rows.iter().find(|row| row.what.starts_with("Java's producer on each, 100 B"));
    let rates = row.context("records of 100 B are produced")?.rounds.iter().map(|round| round.1);
    Ok((rates.fold(0.0, f64::max) / 2.0 / 1000.0) as u64 * 1000)
}

fn run() -> anyhow::Result<()> {
    let settings = settings(std::env::args().skip(1))?;
    broker::check_room(4.0 * settings.gigabytes + 1e-9 * 1500.0 * settings.records as f64)?;
    let brokers = broker::Brokers::start()?;
    let mut rows = load::compare(&brokers, settings.rounds, settings.gigabytes)?;
    rows.extend(broker::start_and_memory(&brokers)?);
    let half_of_kafkas = half_of_kafkas_rate(&rows)?;
    let mut failures = Vec::new();
    let mut part = |measured: anyhow::Result<Vec<report::Row>>| {
        measured.unwrap_or_else(|error| {
            eprintln!("compare: {error:#}; the other parts go on");
            failures.push(error);
            Vec::new()
        })
    };
    rows.extend(part(latency::compare(&brokers, settings.rounds, &[1_000, half_of_kafkas])));
    rows.extend(part(transactions::compare(&brokers, settings.rounds)));
    rows.extend(part(jobs::compare(&brokers, settings.rounds, settings.records)));
    let machine = part(limits::of_the_machine(&brokers, settings.rounds, settings.gigabytes));
    let socket = part(limits::of_the_socket(&brokers, settings.rounds, settings.gigabytes));
    let tables = [
        report::headline(settings.rounds)?,
        report::table(["Thalweg", "Apache Kafka 4.4"], &rows)?,
        report::table(["Thalweg", "the machine"], &machine)?,
        report::table(["in process", "over TCP"], &socket)?,
    ]
    .concat();
    println!("{tables}");
    if let Some(error) = failures.pop() {
        return Err(error.context("the tables lack a part, and are not published"));
    }
    settings.publish.map_or(Ok(()), |path| report::publish(&path, &tables))
}
