//! Transactions of 100 records, one after the other: Java's producer on each, and ours on ours.

use anyhow::Context;

use super::broker::{Brokers, Side};
use super::report::Row;
use crate::peers::kafka;

const PARTITIONS: u32 = 6;
const TRANSACTIONS: &str = "1000";
const RECORDS: &str = "100";
const SIZE: &str = "100";

/// Commits a thousand a round.
///
/// # Errors
/// When a client fails.
pub fn compare(brokers: &Brokers, rounds: usize) -> anyhow::Result<Vec<Row>> {
    let row = |whose: &str| Row::new(format!("{whose}: transactions of {RECORDS} records a second"));
    let (mut java, mut own) = (row("Java's producer on each"), row("our producer on ours, Java's on Kafka"));
    for number in 1..=rounds {
        eprintln!("transactions: round {number} of {rounds}");
        let topic = format!("transactions-{number}");
        let theirs = javas(brokers.kafka(), &topic)?;
        java.rounds.push((javas(brokers.thalweg(), &topic)?, theirs));
        own.rounds.push((ours(brokers.thalweg(), &topic)?, theirs));
    }
    Ok(vec![java, own])
}

fn javas(side: Side<'_>, topic: &str) -> anyhow::Result<f64> {
    side.create(topic, PARTITIONS, &[])?;
    let said = kafka::TRANSACTIONS.run("512m", &[side.address(), topic, TRANSACTIONS, RECORDS, SIZE])?;
    side.delete(topic)?;
    rate(&said)
}

fn ours(side: Side<'_>, topic: &str) -> anyhow::Result<f64> {
    side.create(topic, PARTITIONS, &[])?;
    let said =
        side.thalweg(&["bench", "transactions", topic, "-n", TRANSACTIONS, "-r", RECORDS, "-s", SIZE])?;
    side.delete(topic)?;
    rate(&said)
}

/// The rate in "…: 512.3 transactions/s…", of either program.
fn rate(said: &str) -> anyhow::Result<f64> {
    let before = said.split(" transactions/s").next().and_then(|before| before.rsplit(' ').next());
    before.and_then(|rate| rate.parse().ok()).with_context(|| format!("no rate in {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_what_the_programs_print() {
        let said = "committed 1000 transactions of 100 records in 1.952 s: 512.3 transactions/s; 0.200 CPU-s";
        assert_eq!(rate(said).expect("a rate"), 512.3);
        assert!(rate("committed nothing").is_err());
    }
}
