//! Two brokers under the same clients.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::load::Load;
use super::meter::{cpu_seconds, peak_megabytes, wait_for_an_answer};
use super::report::Row;
use crate::node::Node;
use crate::peers::kafka::{self, Kafka};
use crate::process::{binary, run};

const HEAP: &str = "512m";
const PATIENCE: Duration = Duration::from_secs(60);

/// So many different lines are written for kcat.
const LINES: usize = 4096;

/// One side of the comparison: where it listens, and its process.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    address: &'a str,
    process: u32,
}

/// Both sides, running.
#[derive(Debug)]
pub struct Brokers {
    node: Node,
    kafka: Kafka,
    /// Seconds from their start to their first answer.
    started: (f64, f64),
    _directory: tempfile::TempDir,
}

impl Brokers {
    /// Starts both on empty directories.
    ///
    /// # Errors
    /// When one does not come up.
    pub fn start() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let begun = Instant::now();
        let node = Node::start(&directory.path().join("thalweg"), "127.0.0.1:0")?;
        wait_for_an_answer(node.address(), PATIENCE)?;
        let ours = begun.elapsed().as_secs_f64();
        let prepared = kafka::Prepared::new()?;
        let begun = Instant::now();
        let kafka = prepared.start()?;
        wait_for_an_answer(kafka.address(), PATIENCE)?;
        let theirs = begun.elapsed().as_secs_f64();
        Ok(Self { node, kafka, started: (ours, theirs), _directory: directory })
    }

    /// Thalweg's node.
    pub fn thalweg(&self) -> Side<'_> {
        Side { address: self.node.address(), process: self.node.process().id() }
    }

    /// Apache Kafka.
    pub fn kafka(&self) -> Side<'_> {
        Side { address: self.kafka.address(), process: self.kafka.process().id() }
    }
}

impl<'a> Side<'a> {
    /// `host:port`
    pub fn address(&self) -> &'a str {
        self.address
    }

    /// What `work` returns, and the broker's CPU seconds meanwhile.
    pub(super) fn metered<T>(&self, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(T, f64)> {
        let before = cpu_seconds(self.process)?;
        let done = work()?;
        Ok((done, cpu_seconds(self.process)? - before))
    }

    pub(super) fn thalweg(&self, command: &[&str]) -> anyhow::Result<String> {
        let output = run(Command::new(binary("thalweg")?).args(command).args(["--bootstrap", self.address]))?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A topic with the broker's defaults, or with others.
    pub(super) fn create(&self, topic: &str, partitions: u32, configs: &[&str]) -> anyhow::Result<()> {
        let partitions = partitions.to_string();
        let mut command = vec!["topic", "create", topic, "--partitions", &partitions];
        command.extend(configs.iter().flat_map(|config| ["-c", *config]));
        self.thalweg(&command).map(drop)
    }

    pub(super) fn delete(&self, topic: &str) -> anyhow::Result<()> {
        self.thalweg(&["topic", "delete", topic, "--yes"]).map(drop)
    }

    /// Java's producer, `acks=all`, its other settings as they come; returns its records a second.
    pub(super) fn java_produces(&self, topic: &str, load: Load) -> anyhow::Result<f64> {
        let mut command = kafka::class("org.apache.kafka.tools.ProducerPerformance", HEAP)?;
        command.args(["--topic", topic, "--throughput", "-1"]);
        command.args(["--num-records", &load.records.to_string(), "--record-size", &load.size.to_string()]);
        command.args(["--producer-props", &format!("bootstrap.servers={}", self.address), "acks=all"]);
        command.arg(format!("compression.type={}", load.codec));
        rate_of_java_producer(&String::from_utf8(run(&mut command)?.stdout)?)
    }

    pub(super) fn java_consumes(&self, topic: &str, load: Load) -> anyhow::Result<f64> {
        let mut command = kafka::class("org.apache.kafka.tools.ConsumerPerformance", HEAP)?;
        command.args(["--bootstrap-server", self.address, "--topic", topic, "--timeout", "60000"]);
        command.args(["--num-records", &load.records.to_string()]);
        rate_of_java_consumer(&String::from_utf8(run(&mut command)?.stdout)?)
    }

    /// kcat, which is librdkafka and little else, its settings as they come; returns its records a second, its start included.
    pub(super) fn librdkafka_produces(&self, topic: &str, load: Load) -> anyhow::Result<f64> {
        let lines = tempfile::NamedTempFile::new()?;
        write_lines(lines.as_file(), load)?;
        let mut command = Command::new("kcat");
        command.args(["-P", "-b", self.address, "-t", topic, "-z", load.codec, "-X", "acks=all", "-l"]);
        let begun = Instant::now();
        run(command.arg(lines.path()))?;
        Ok(load.records as f64 / begun.elapsed().as_secs_f64())
    }

    pub(super) fn librdkafka_consumes(&self, topic: &str, load: Load) -> anyhow::Result<f64> {
        let mut command = Command::new("kcat");
        command.args(["-C", "-q", "-b", self.address, "-t", topic, "-o", "beginning", "-f", ""]);
        command.args(["-c", &load.records.to_string()]);
        let begun = Instant::now();
        run(&mut command)?;
        Ok(load.records as f64 / begun.elapsed().as_secs_f64())
    }

    pub(super) fn ours_produces(&self, topic: &str, load: Load) -> anyhow::Result<f64> {
        let (records, size) = (load.records.to_string(), load.size.to_string());
        rate_of_ours(&self.thalweg(&["bench", "produce", topic, "-n", &records, "-s", &size])?)
    }

    pub(super) fn ours_consumes(&self, topic: &str, load: Load) -> anyhow::Result<f64> {
        rate_of_ours(&self.thalweg(&["bench", "consume", topic, "-n", &load.records.to_string()])?)
    }
}

/// What both needed to start, and the memory that they have held at most until now.
///
/// # Errors
/// When one has ended.
pub fn start_and_memory(brokers: &Brokers) -> anyhow::Result<[Row; 2]> {
    let mut start = Row::new("broker, start on an empty directory until it answers: s");
    start.rounds.push(brokers.started);
    let mut memory = Row::new("broker, most memory held in this run: MB");
    let held = |side: Side<'_>| peak_megabytes(side.process);
    memory.rounds.push((held(brokers.thalweg())?, held(brokers.kafka())?));
    Ok([start, memory])
}

/// Writes the values of `load`, a line each.
fn write_lines(file: &File, load: Load) -> anyhow::Result<()> {
    let mut random = fastrand::Rng::with_seed(7);
    let size = load.size as usize;
    let noise: Vec<u8> = (0..size + LINES).map(|_| random.alphanumeric() as u8).collect();
    let mut file = BufWriter::new(file);
    for at in (0..LINES).cycle().zip(0..load.records).map(|(at, _)| at) {
        file.write_all(noise.get(at..at + size).unwrap_or_default())?;
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}

/// The rate in "… 687000.1 records/sec (65.52 MB/sec) …", of the last such line.
fn rate_of_java_producer(said: &str) -> anyhow::Result<f64> {
    let line = said.lines().rfind(|line| line.contains("records/sec"));
    let rate = line.and_then(|line| line.split(" records/sec").next()?.rsplit(' ').next()?.parse().ok());
    rate.with_context(|| format!("no rate in {said}"))
}

/// The last column of the last line: records a second, without the time of joining the group.
fn rate_of_java_consumer(said: &str) -> anyhow::Result<f64> {
    let rate = said.trim_end().lines().last().and_then(|line| line.rsplit(',').next()?.trim().parse().ok());
    rate.with_context(|| format!("no rate in {said}"))
}

/// The rate in "…: 1234567 records/s, …".
fn rate_of_ours(said: &str) -> anyhow::Result<f64> {
    let rate = said.split(" records/s").next().and_then(|before| before.rsplit(' ').next()?.parse().ok());
    rate.with_context(|| format!("no rate in {said}"))
}

/// Where both brokers keep their data must have room for the rounds.
///
/// # Errors
/// When it has less than `gigabytes`.
pub fn check_room(gigabytes: f64) -> anyhow::Result<()> {
    let directory = std::env::temp_dir();
    let free = free_gigabytes(&directory)?;
    anyhow::ensure!(
        free > gigabytes,
        "{} has {free:.1} GB free, the comparison takes {gigabytes:.1}: set TMPDIR to a directory with more",
        directory.display()
    );
    Ok(())
}

fn free_gigabytes(directory: &Path) -> anyhow::Result<f64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: an all-zero statvfs is valid, `path` ends in a NUL, and statvfs only writes into `found`.
    let (result, found) = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut found), found)
    };
    anyhow::ensure!(result == 0, "{}: {}", directory.display(), std::io::Error::last_os_error());
    Ok(found.f_bavail as f64 * found.f_frsize as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_what_the_tools_print() {
        let java = "100 records sent, 20.0 records/sec (0.01 MB/sec), 1.0 ms avg latency\n\
                    5000000 records sent, 687000.1 records/sec (65.52 MB/sec), 3.1 ms avg latency, 9 ms max\n";
        assert_eq!(rate_of_java_producer(java).expect("a rate"), 687_000.1);
        let consumer = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, \
                        rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n\
                        2026-01-01 00:00:00:000, 2026-01-01 00:00:01:000, 95.3, 95.3, 1000000, 1000000.0, 100, \
                        900, 105.9, 1111111.1\n";
        assert_eq!(rate_of_java_consumer(consumer).expect("a rate"), 1_111_111.1);
        let ours = "produced 1000 records, 0.1 MB in 0.001 s: 1234567 records/s, 12.3 MB/s; 0.1 CPU-s, 9 records/CPU-s";
        assert_eq!(rate_of_ours(ours).expect("a rate"), 1_234_567.0);
        assert!(rate_of_ours("nothing").is_err());
    }
}
