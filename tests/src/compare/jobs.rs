//! Stream jobs: ours against Kafka Streams, each on its own broker, from the same records.

use std::process::Command;

use anyhow::Context;

use super::broker::{Brokers, Side};
use super::report::Row;
use crate::peers::kafka;
use crate::process::{binary, run};

const PARTITIONS: &str = "4";
const KEYS: &str = "1000000";

/// (job, spread of the keys)
const JOBS: [(&str, &str); 3] = [("stateless", "uniform"), ("count", "uniform"), ("window", "zipf")];

/// Runs each job over `records` records on both sides, exactly once, on one thread.
///
/// # Errors
/// When a job fails.
pub fn compare(brokers: &Brokers, rounds: usize, records: u64) -> anyhow::Result<Vec<Row>> {
    let ours = binary("examples/streams_bench")?;
    let records = records.to_string();
    let mut rows = Vec::new();
    for (job, spread) in JOBS {
        let topic = format!("jobs-{job}");
        for side in [brokers.thalweg(), brokers.kafka()] {
            let load = [side.address(), "load", &topic, PARTITIONS, &records, KEYS, spread];
            run(Command::new(&ours).args(load))?;
        }
        let mut row = Row::new(format!("stream job, {}: records per CPU-s", describe(job)));
        for number in 1..=rounds {
            eprintln!("stream job {job}: round {number} of {rounds}");
            let mut command = Command::new(&ours);
            command.args([brokers.thalweg().address(), "run", &topic, &records, job, "exactly-once", "1"]);
            let measured = rate(&String::from_utf8(run(&mut command)?.stdout)?)?;
            row.rounds.push((measured, kafka_streams(brokers.kafka(), &topic, &records, job)?));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn describe(job: &str) -> &str {
    match job {
        "stateless" => "filter and map",
        "count" => "count of 1 M keys",
        _ => "count in windows of 60 s",
    }
}

fn kafka_streams(side: Side<'_>, topic: &str, records: &str, job: &str) -> anyhow::Result<f64> {
    let state = tempfile::tempdir()?;
    let state = state.path().to_str().context("the path is UTF-8")?;
    rate(&kafka::STREAMS_JOBS.run("3g", &[side.address(), state, topic, records, job])?)
}

/// The rate in "… 576,000 rec/cpu-s …", of either program.
fn rate(said: &str) -> anyhow::Result<f64> {
    let number = said.split(" rec/cpu-s").next().and_then(|before| before.rsplit(' ').next());
    let rate = number.and_then(|number| number.replace(',', "").parse().ok());
    rate.with_context(|| format!("no rate in {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_what_the_programs_print() {
        let ours = "count exactly-once threads=1 -> 9 rec/s wall, 576123 rec/cpu-s (from the first commit 7)";
        assert_eq!(rate(ours).expect("a rate"), 576_123.0);
        assert_eq!(rate("count: 57061 rec/cpu-s\n").expect("a rate"), 57_061.0);
        assert!(rate("").is_err());
    }
}
