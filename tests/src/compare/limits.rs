//! How far this is from what the machine gives: one file written and synced, one connection that is only copied or kept in a
//! file, and our own broker without a socket between.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, anyhow};

use super::broker::{Brokers, Side};
use super::load::Load;
use super::meter::cpu_seconds_of_this_thread;
use super::report::Row;
use crate::process::{binary, run};

const SIZE: u64 = 1024;
const PARTITIONS: u32 = 6;

/// What a file is written and a connection is read in, in bytes.
const CHUNK: usize = 1 << 20;
/// Java's `batch.size`.
const BATCH: usize = 16 << 10;

/// Our clients beside the bare machine.
///
/// # Errors
/// When a client fails.
pub fn of_the_machine(brokers: &Brokers, rounds: usize, gigabytes: f64) -> anyhow::Result<Vec<Row>> {
    let mut produce = Row::new(format!("producing {SIZE} B, acks=all; one file written and synced: MB/s"));
    let mut consume = Row::new(format!("consuming {SIZE} B; one loopback connection copied: MB/s"));
    let mut kept = Row::new(format!(
        "broker, producing {SIZE} B; one connection kept in a file, not synced: CPU-s per GB"
    ));
    let bytes = (gigabytes * 1e9) as u64;
    let load = Load { size: SIZE, records: bytes / SIZE, codec: "none" };
    for number in 1..=rounds {
        eprintln!("limits of the machine: round {number} of {rounds}");
        let (side, topic) = (brokers.thalweg(), format!("limits-{number}"));
        side.create(&topic, PARTITIONS, &[])?;
        let produced = side.bench_produce(&topic, bytes)?.megabytes_per_second;
        produce.rounds.push((produced, write_and_sync(bytes)?));
        let consumed = side.thalweg(&["bench", "consume", &topic, "-n", &(bytes / SIZE).to_string()])?;
        consume.rounds.push((Said::parse(&consumed)?.megabytes_per_second, copy_over_loopback(bytes)?));
        side.delete(&topic)?;
        side.create(&topic, PARTITIONS, &[])?;
        let (_rate, cpu_seconds) = side.metered(|| side.java_produces(&topic, load))?;
        kept.rounds.push((cpu_seconds / gigabytes, keep_in_a_file(bytes)? / gigabytes));
        side.delete(&topic)?;
    }
    Ok(vec![produce, consume, kept])
}

/// Our producer with the broker in its own process, and over TCP: as fast as it goes, and with each record sent alone.
///
/// # Errors
/// When a client fails.
pub fn of_the_socket(brokers: &Brokers, rounds: usize, gigabytes: f64) -> anyhow::Result<Vec<Row>> {
    let fast = |size, durability| {
        let records = (gigabytes * 1e9) as u64 / size;
        Producing {
            what: format!("producing {size} B, {durability}"),
            records,
            size,
            durability,
            options: &[],
        }
    };
    let one_by_one = |durability| Producing {
        what: format!("producing 100 B, each waited for before the next, {durability}"),
        records: (gigabytes * 2e4) as u64,
        size: 100,
        durability,
        options: &["--one-by-one"],
    };
    let cases = [
        fast(100, "durable"),
        fast(100, "relaxed"),
        fast(SIZE, "durable"),
        fast(SIZE, "relaxed"),
        one_by_one("durable"),
        one_by_one("relaxed"),
    ];
    // The node over TCP has long been at work, so this one is to have its journal, too.
    let own = tempfile::tempdir()?;
    fast(SIZE, "durable").in_process(own.path(), 0)?;
    let mut rows = Vec::new();
    for case in cases {
        let mut row = Row::new(format!("{}: records per CPU-s of client and broker", case.what));
        for number in 1..=rounds {
            eprintln!("in process, {}: round {number} of {rounds}", case.what);
            row.rounds
                .push((case.in_process(own.path(), number)?, case.over_tcp(brokers.thalweg(), number)?));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// What `thalweg bench produce` is given to do.
struct Producing {
    what: String,
    records: u64,
    /// Bytes of each value.
    size: u64,
    durability: &'static str,
    options: &'static [&'static str],
}

impl Producing {
    /// Has `thalweg` make a topic and produce. Returns what it says.
    fn run(&self, topic: &str, thalweg: impl Fn(&[&str]) -> anyhow::Result<String>) -> anyhow::Result<Said> {
        let (partitions, durability) = (PARTITIONS.to_string(), format!("durability={}", self.durability));
        thalweg(&["topic", "create", topic, "--partitions", &partitions, "-c", &durability])?;
        let (records, size) = (self.records.to_string(), self.size.to_string());
        let bench = ["bench", "produce", topic, "-n", &records, "-s", &size];
        Said::parse(&thalweg(&[&bench, self.options].concat())?)
    }

    fn topic(&self, number: usize) -> String {
        format!("{}-{number}", self.what.replace([' ', ','], "-"))
    }

    /// Records a CPU-second, with the broker's data in `directory`.
    fn in_process(&self, directory: &Path, number: usize) -> anyhow::Result<f64> {
        let thalweg = |arguments: &[&str]| {
            let output = run(Command::new(binary("thalweg")?).args(arguments).arg("--data").arg(directory))?;
            Ok(String::from_utf8(output.stdout)?)
        };
        let topic = self.topic(number);
        let said = self.run(&topic, thalweg)?;
        thalweg(&["topic", "delete", &topic, "--yes"])?;
        Ok(self.records as f64 / said.cpu_seconds)
    }

    /// Records a CPU-second of both processes.
    fn over_tcp(&self, side: Side<'_>, number: usize) -> anyhow::Result<f64> {
        let topic = self.topic(number);
        let (said, broker) = side.metered(|| self.run(&topic, |arguments| side.thalweg(arguments)))?;
        side.delete(&topic)?;
        Ok(self.records as f64 / (said.cpu_seconds + broker))
    }
}

impl Side<'_> {
    fn bench_produce(&self, topic: &str, bytes: u64) -> anyhow::Result<Said> {
        let (records, size) = ((bytes / SIZE).to_string(), SIZE.to_string());
        Said::parse(&self.thalweg(&["bench", "produce", topic, "-n", &records, "-s", &size])?)
    }
}

/// What `thalweg bench produce` and `consume` say.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Said {
    megabytes_per_second: f64,
    cpu_seconds: f64,
}

impl Said {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let before = |unit: &str| {
            let before = text.split_once(unit).and_then(|(before, _)| before.rsplit(' ').next());
            before.and_then(|number| number.parse().ok()).with_context(|| format!("no{unit} in {text}"))
        };
        Ok(Self { megabytes_per_second: before(" MB/s")?, cpu_seconds: before(" CPU-s")? })
    }
}

/// Megabytes a second.
fn write_and_sync(bytes: u64) -> anyhow::Result<f64> {
    let mut file = tempfile::tempfile()?;
    let chunk: Vec<u8> = (0..CHUNK).map(|_| fastrand::alphanumeric() as u8).collect();
    let begun = Instant::now();
    copy(&chunk, &mut file, bytes)?;
    File::sync_data(&file)?;
    Ok(bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())
}

/// Megabytes a second.
fn copy_over_loopback(bytes: u64) -> anyhow::Result<f64> {
    let begun = Instant::now();
    receive_over_loopback(bytes, CHUNK, |_| Ok(()))?;
    Ok(bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())
}

/// The processor time, in seconds, of a thread that reads a connection and writes what comes into a file, in pieces of the
/// size of a batch of Java's producer: what no broker can do without.
fn keep_in_a_file(bytes: u64) -> anyhow::Result<f64> {
    let mut file = tempfile::tempfile()?;
    let before = cpu_seconds_of_this_thread();
    receive_over_loopback(bytes, BATCH, |piece| Ok(file.write_all(piece)?))?;
    Ok(cpu_seconds_of_this_thread() - before)
}

/// Has another thread send so many bytes over a connection, and gives them to `take` in pieces of at most `size` bytes.
fn receive_over_loopback(
    bytes: u64,
    size: usize,
    mut take: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    let sending = thread::spawn(move || copy(&vec![7; size], &mut sender, bytes));
    let (mut buffer, mut received) = (vec![0; size], 0);
    while received < bytes {
        let read = receiver.read(&mut buffer)?;
        anyhow::ensure!(read > 0, "the connection ended after {received} of {bytes} bytes");
        take(buffer.get(..read).unwrap_or_default())?;
        received += read as u64;
    }
    sending.join().map_err(|_| anyhow!("the sender failed"))?
}

fn copy(chunk: &[u8], to: &mut impl Write, bytes: u64) -> anyhow::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let size = left.min(chunk.len() as u64) as usize;
        to.write_all(chunk.get(..size).unwrap_or_default())?;
        left -= size as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_bench_says_is_read() {
        let said = "produced 1000 records, 1.0 MB in 0.004 s: 250000 records/s, 256.1 MB/s; 0.125 CPU-s, 8000 records/CPU-s";
        let expected = Said { megabytes_per_second: 256.1, cpu_seconds: 0.125 };
        assert_eq!(Said::parse(said).expect("both numbers"), expected);
        assert!(Said::parse("produced").is_err());
    }

    #[test]
    fn the_machine_copies_all_bytes() {
        assert!(write_and_sync(3 * CHUNK as u64 + 1).expect("it is written") > 0.0);
        assert!(copy_over_loopback(3 * CHUNK as u64 + 1).expect("it is copied") > 0.0);
        assert!(keep_in_a_file(64 * CHUNK as u64 + 1).expect("it is kept") > 0.0);
    }
}
