//! The time from a producer to a consumer: our clients on ours, Java's on Kafka.

use std::process::Command;

use anyhow::Context;

use super::broker::Brokers;
use super::report::Row;
use crate::peers::kafka;
use crate::process::run;

const PARTITIONS: u32 = 6;
const SIZE: &str = "100";

/// How long each measurement takes.
const SECONDS: u64 = 12;

const PERCENTILES: [&str; 3] = ["p50", "p99", "p99.9"];

/// Sends at each of `rates` in turn, which are records a second, on both sides.
///
/// # Errors
/// When a client fails.
pub fn compare(brokers: &Brokers, rounds: usize, rates: &[u64]) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &rate in rates {
        let row = |note: &str| {
            PERCENTILES.map(|what| Row::new(format!("end to end at {rate}/s{note}, {what}: ms")))
        };
        let (mut durable, mut relaxed) = (row(""), row(", ours with durability=relaxed"));
        for number in 1..=rounds {
            eprintln!("latency at {rate}/s: round {number} of {rounds}");
            let topic = format!("latency-{rate}-{number}");
            let theirs = javas(brokers, &topic, rate)?;
            for (rows, configs) in [(&mut durable, &[][..]), (&mut relaxed, &["durability=relaxed"])] {
                let ours = ours(brokers, &topic, configs, rate)?;
                for (row, round) in rows.iter_mut().zip(ours.into_iter().zip(theirs)) {
                    row.rounds.push(round);
                }
            }
        }
        rows.extend(durable.into_iter().chain(relaxed));
    }
    Ok(rows)
}

fn ours(brokers: &Brokers, topic: &str, configs: &[&str], rate: u64) -> anyhow::Result<[f64; 3]> {
    let side = brokers.thalweg();
    side.create(topic, PARTITIONS, configs)?;
    quieten_the_disk()?;
    let (records, rate) = ((rate * SECONDS).to_string(), rate.to_string());
    let said = side.thalweg(&["bench", "latency", topic, "-r", &rate, "-n", &records, "-s", SIZE])?;
    side.delete(topic)?;
    percentiles(&said)
}

fn javas(brokers: &Brokers, topic: &str, rate: u64) -> anyhow::Result<[f64; 3]> {
    let side = brokers.kafka();
    side.create(topic, PARTITIONS, &[])?;
    quieten_the_disk()?;
    let (records, rate) = ((rate * SECONDS).to_string(), rate.to_string());
    let said = kafka::LATENCY.run("1g", &[side.address(), topic, &rate, &records, SIZE])?;
    side.delete(topic)?;
    percentiles(&said)
}

/// What was written before is written to the disk now, and not while it is measured.
fn quieten_the_disk() -> anyhow::Result<()> {
    run(&mut Command::new("sync")).map(drop)
}

/// p50, p99 and p99.9 in ms, as either program prints them.
fn percentiles(said: &str) -> anyhow::Result<[f64; 3]> {
    let of = |name: &str| {
        let (_before, rest) =
            said.split_once(&format!("{name} ")).with_context(|| format!("no {name} in {said}"))?;
        let number = rest.split(' ').next().unwrap_or_default();
        number.parse::<f64>().with_context(|| format!("no number for {name} in {said}"))
    };
    Ok([of("p50")?, of("p99")?, of("p99.9")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_read_from_what_the_programs_print() {
        let said = "9000 records of 100 bytes at 1000/s: p50 0.512 ms, p99 1.250 ms, p99.9 3.000 ms, most 4.100 ms\n";
        assert_eq!(percentiles(said).expect("percentiles"), [0.512, 1.25, 3.0]);
        assert!(percentiles("p50 0.5 ms").is_err());
    }
}
