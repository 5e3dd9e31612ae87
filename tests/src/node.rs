//! A `thalweg serve` process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::process::{Process, binary, forward_lines};

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long its port may be another's while it is away.
const COMEBACK_TIMEOUT: Duration = Duration::from_secs(30);

/// A running node and where it listens.
#[derive(Debug)]
pub struct Node {
    process: Process,
    data: PathBuf,
    address: String,
}

impl Node {
    /// Starts a node on `data` and waits until it serves. `listen` is `127.0.0.1:0` for a free port; give the
    /// address of an earlier node to come back where its clients look for it.
    ///
    /// # Errors
    /// When it does not come up; the error holds what it logged.
    pub fn start(data: &Path, listen: &str) -> anyhow::Result<Self> {
        Self::start_with(data, listen, |_| {})
    }

    /// As [`Node::start`], with a chance to add arguments and environment.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub fn start_with(data: &Path, listen: &str, adjust: impl FnOnce(&mut Command)) -> anyhow::Result<Self> {
        let mut command = Command::new(binary("thalweg")?);
        command.arg("serve").arg("--data").arg(data).args(["--listen", listen]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        adjust(&mut command);
        let mut process = Process::spawn(&mut command)?;
        let stderr = process.child().stderr.take().context("standard error is piped")?;
        let (sender, ready) = mpsc::channel();
        forward_lines(stderr, sender);
        let mut log = Vec::new();
        loop {
            match ready.recv_timeout(START_TIMEOUT) {
                Ok(line) => {
                    if let Some(at) = line.find("ready on ") {
                        let address = line[at + "ready on ".len()..].split_whitespace().next();
                        let address = address.context("the ready line names an address")?.to_string();
                        return Ok(Self { process, data: data.to_owned(), address });
                    }
                    log.push(line);
                }
                Err(_) => bail!("the node did not come up:\n{}", log.join("\n")),
            }
        }
    }

    /// `host:port` that clients connect to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Kills it as a power cut would, except that the page cache stays.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills it and starts it again, as [`Node::start`] does, where its clients look for it.
    ///
    /// # Errors
    /// When it does not come back.
    pub fn kill_and_restart(&mut self) -> anyhow::Result<()> {
        self.kill();
        let deadline = Instant::now() + COMEBACK_TIMEOUT;
        // While it is away, a client that looks for it may be given its port as its own.
        loop {
            match Self::start(&self.data, &self.address) {
                Ok(node) => break *self = node,
                Err(error) => ensure!(Instant::now() < deadline, error),
            }
        }
        Ok(())
    }

    /// Stops it with SIGTERM and waits; returns its exit code.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn stop(mut self) -> anyhow::Result<i32> {
        self.process.signal(libc::SIGTERM);
        self.process.wait(STOP_TIMEOUT)
    }

    /// The `thalweg` command pointed at this node.
    ///
    /// # Errors
    /// When the binary was not built.
    pub fn command(&self, subcommand: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(binary("thalweg")?);
        command.arg(subcommand).args(["--bootstrap", &self.address]);
        command.stdin(Stdio::null());
        Ok(command)
    }
}
