//! A single-node Apache Kafka 4.4 in KRaft mode and its tools, from its published jars, on loopback.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::free_port;
use crate::process::{Process, run};

const START_TIMEOUT: Duration = Duration::from_secs(60);
const PROPERTIES: &str = "server.properties";

/// What kafka-server-start.sh gives the virtual machine.
const START_SCRIPT_OPTIONS: [&str; 7] = [
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
];

/// Where the jars are kept between runs.
fn home() -> anyhow::Result<PathBuf> {
    if let Some(home) = std::env::var_os("THALWEG_KAFKA_HOME") {
        return Ok(home.into());
    }
    let cache = match std::env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(cache.join("thalweg/kafka-4.4.0"))
}

/// Kafka's jars: fetched with Maven on first use, which takes a minute.
///
/// # Errors
/// When Maven is missing or cannot fetch them.
pub fn install() -> anyhow::Result<PathBuf> {
    let home = home()?;
    let jars = home.join("lib");
    if jars.is_dir() {
        return Ok(home);
    }
    fs::create_dir_all(&home)?;
    // Two test processes may come here at once: each fetches into a directory of its own, the first one wins.
    let fetched = tempfile::tempdir_in(&home)?;
    fs::write(fetched.path().join("pom.xml"), include_str!("../../peers/pom.xml"))?;
    let mut maven = Command::new("mvn");
    maven
        .args(["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"])
        .current_dir(fetched.path());
    run(&mut maven).context("Kafka's jars are fetched with Maven; scripts/setup tests installs it")?;
    if let Err(error) = fs::rename(fetched.path().join("lib"), &jars)
        && !jars.is_dir()
    {
        return Err(error).context("cannot keep Kafka's jars");
    }
    Ok(home)
}

/// The newest Java that is installed.
fn java() -> PathBuf {
    let temurin = Path::new("/usr/lib/jvm/temurin-25-jdk-amd64/bin/java");
    if temurin.is_file() { temurin.to_path_buf() } else { PathBuf::from("java") }
}

/// A command that runs one of Kafka's classes, such as `org.apache.kafka.tools.ConsoleConsumer`.
///
/// # Errors
/// When the jars cannot be had.
pub fn class(name: &str, heap: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(java());
    command.arg(format!("-Xmx{heap}")).arg("-XX:+UseG1GC").arg("-cp").arg(class_path()?).arg(name);
    Ok(command)
}

/// A program of one file, in Java.
#[derive(Debug)]
pub struct Program {
    name: &'static str,
    text: &'static str,
}

/// How long records take.
pub const LATENCY: Program = Program { name: "Latency.java", text: include_str!("../../peers/Latency.java") };
/// Stream jobs.
pub const STREAMS_JOBS: Program =
    Program { name: "StreamsJobs.java", text: include_str!("../../peers/StreamsJobs.java") };
/// Transactions, one after the other.
pub const TRANSACTIONS: Program =
    Program { name: "Transactions.java", text: include_str!("../../peers/Transactions.java") };

impl Program {
    /// Runs it to its end, and returns what it printed.
    ///
    /// # Errors
    /// When the jars cannot be had, or it fails.
    pub fn run(&self, heap: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let directory = tempfile::tempdir()?;
        let source = directory.path().join(self.name);
        fs::write(&source, self.text)?;
        let mut command = class(source.to_str().context("the path is UTF-8")?, heap)?;
        Ok(String::from_utf8(run(command.args(arguments))?.stdout)?)
    }
}

fn class_path() -> anyhow::Result<String> {
    Ok(format!("{}/lib/*", install()?.display()))
}

/// The words before the name of one of Kafka's classes in a command that runs it.
///
/// # Errors
/// When the jars cannot be had.
pub fn class_words() -> anyhow::Result<Vec<String>> {
    Ok(vec![java().display().to_string(), "-cp".into(), class_path()?])
}

/// A formatted, empty directory for a node.
#[derive(Debug)]
pub struct Prepared {
    directory: tempfile::TempDir,
    address: String,
}

impl Prepared {
    /// Chooses free ports, writes the configuration and formats the directory.
    ///
    /// # Errors
    /// When Kafka's tool refuses.
    pub fn new() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let (port, controller_port) = (free_port()?, free_port()?);
        let address = format!("127.0.0.1:{port}");
        let properties = directory.path().join(PROPERTIES);
        fs::write(&properties, server_properties(directory.path(), port, controller_port)?)?;
        let id = run(class("kafka.tools.StorageTool", "256m")?.arg("random-uuid"))?;
        let id = String::from_utf8(id.stdout)?;
        let mut format = class("kafka.tools.StorageTool", "256m")?;
        run(format.args(["format", "-t", id.trim(), "-c"]).arg(&properties))?;
        Ok(Self { directory, address })
    }

    /// Starts the node, with the heap and the settings of Kafka's own start script, and waits until it listens.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(self) -> anyhow::Result<Kafka> {
        let Self { directory, address } = self;
        let log = fs::File::create(directory.path().join("broker.log"))?;
        let mut command = Command::new(java());
        command.args(START_SCRIPT_OPTIONS).arg("-cp").arg(class_path()?);
        command.arg("kafka.Kafka").arg(directory.path().join(PROPERTIES));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let begun = Instant::now();
        let mut process = Process::spawn(&mut command)?;
        while TcpStream::connect(&address).is_err() {
            if begun.elapsed() > START_TIMEOUT || process.child().try_wait()?.is_some() {
                let log = fs::read_to_string(directory.path().join("broker.log")).unwrap_or_default();
                bail!("Kafka did not come up:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Kafka { process, address, _directory: directory })
    }
}

/// A running Kafka.
#[derive(Debug)]
pub struct Kafka {
    /// Killed when this goes out of scope.
    process: Process,
    address: String,
    /// Its data and log; removed when this goes out of scope.
    _directory: tempfile::TempDir,
}

impl Kafka {
    /// Starts a fresh node.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start() -> anyhow::Result<Self> {
        Prepared::new()?.start()
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// `host:port` that clients connect to.
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn server_properties(directory: &Path, port: u16, controller_port: u16) -> anyhow::Result<String> {
    let mut text = String::new();
    for (key, value) in [
        ("process.roles", "broker,controller".to_string()),
        ("node.id", "1".to_string()),
        ("controller.quorum.voters", format!("1@127.0.0.1:{controller_port}")),
        ("listeners", format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}")),
        ("advertised.listeners", format!("PLAINTEXT://127.0.0.1:{port}")),
        ("controller.listener.names", "CONTROLLER".to_string()),
        ("log.dirs", directory.join("data").display().to_string()),
        ("num.partitions", "1".to_string()),
        ("offsets.topic.replication.factor", "1".to_string()),
        ("offsets.topic.num.partitions", "4".to_string()),
        ("transaction.state.log.replication.factor", "1".to_string()),
        ("transaction.state.log.min.isr", "1".to_string()),
        ("transaction.state.log.num.partitions", "4".to_string()),
        ("share.coordinator.state.topic.replication.factor", "1".to_string()),
        ("share.coordinator.state.topic.min.isr", "1".to_string()),
        ("group.initial.rebalance.delay.ms", "0".to_string()),
    ] {
        writeln!(text, "{key}={value}")?;
    }
    Ok(text)
}
