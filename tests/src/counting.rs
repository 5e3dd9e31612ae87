//! The programs that count flights per carrier, as processes to be killed, and what must come out of them.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use thalweg_streams::CommitOrder;

use crate::feed::Flights;
use crate::process::{Process, binary, forward_lines, run};

/// The topic that both programs read.
pub const INPUT: &str = "flights";

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many of a program's last lines an error shows.
const SHOWN_LINES: usize = 20;

/// Which program counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `carrier_count` of thalweg-streams: the typed API.
    Typed,
    /// `arrow_count` of thalweg-sql: Arrow batches.
    Arrow,
}

/// When results come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// For every record: each carrier's counts are 1, 2, …, n.
    PerRecord,
    /// With every commit: each carrier's counts rise strictly, and end at n.
    PerCommit,
}

/// Creates a topic whose records, dated in 2013, stay.
///
/// # Errors
/// When the cluster refuses.
pub fn create_topic(address: &str, topic: &str, partitions: u32) -> anyhow::Result<()> {
    let mut command = Command::new(binary("thalweg")?);
    command.args(["--bootstrap", address, "topic", "create", topic, "--config", "retention.ms=-1"]);
    run(command.args(["--partitions", &partitions.to_string()]))?;
    Ok(())
}

/// A counting application: its process comes and goes, its name and state stay.
pub struct Application {
    program: Program,
    emit: Emit,
    order: CommitOrder,
    address: String,
    /// Its id, and its output topic.
    name: String,
    state: PathBuf,
    running: Option<Running>,
    /// What it said when it dropped a state.
    dropped: Vec<String>,
    /// How often a store was found behind its changelog.
    behind: u64,
}

struct Running {
    process: Process,
    /// Closing it asks the process to end.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: VecDeque<String>,
}

impl Application {
    /// Creates the output topic; the input must be there.
    ///
    /// # Errors
    /// When the cluster refuses.
    pub fn new(program: Program, emit: Emit, address: &str, directory: &Path) -> anyhow::Result<Self> {
        let name = format!("{program:?}-{emit:?}");
        create_topic(address, &name, 2)?;
        let (address, state) = (address.to_owned(), directory.join(&name));
        Ok(Self {
            program,
            emit,
            order: CommitOrder::Sound,
            address,
            name,
            state,
            running: None,
            dropped: Vec::new(),
            behind: 0,
        })
    }

    /// The same with another order of the commit.
    #[must_use]
    pub fn in_order(mut self, order: CommitOrder) -> Self {
        self.order = order;
        self
    }

    /// Starts the process. With a failpoint it dies or stalls there; with `flush` a kill leaves the state of the
    /// very last commit, else of some earlier one.
    ///
    /// # Errors
    /// When the program was not built.
    pub fn start(&mut self, failpoint: Option<&str>, flush: bool) -> anyhow::Result<()> {
        let (program, emit) = match (self.program, self.emit) {
            (Program::Typed, Emit::PerRecord) => ("examples/carrier_count", "per-record"),
            (Program::Typed, Emit::PerCommit) => ("examples/carrier_count", "per-commit"),
            (Program::Arrow, Emit::PerRecord) => ("examples/arrow_count", "per-record"),
            (Program::Arrow, Emit::PerCommit) => ("examples/arrow_count", "per-commit"),
        };
        let mut command = Command::new(binary(program)?);
        command.arg(&self.address).arg(&self.state).args([&self.name, INPUT, &self.name, emit]);
        command.env("THALWEG_COMMIT_ORDER", format!("{:?}", self.order));
        command.env_remove("THALWEG_FLUSH_STATE").env_remove("THALWEG_FAILPOINT");
        if let Some(failpoint) = failpoint {
            command.env("THALWEG_FAILPOINT", failpoint);
        }
        if flush {
            command.env("THALWEG_FLUSH_STATE", "1");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::spawn(&mut command)?;
        let (sender, lines) = channel();
        forward_lines(process.child().stdout.take().context("it is piped")?, sender.clone());
        forward_lines(process.child().stderr.take().context("it is piped")?, sender);
        let input = process.child().stdin.take();
        self.running = Some(Running { process, input, lines, last: VecDeque::new() });
        Ok(())
    }

    /// Waits for a line that begins with `start` and was not heard before.
    ///
    /// # Errors
    /// When it does not come, or the process ends.
    pub fn wait_for(&mut self, start: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while let Some(line) = self.next_line(deadline)? {
            if line.starts_with(start) {
                return Ok(());
            }
        }
        bail!("{} has ended while {start:?} was waited for:\n{}", self.name, self.last_lines())
    }

    /// Forgets what the process has said so far.
    ///
    /// # Errors
    /// When it does not run.
    pub fn hear_out(&mut self) -> anyhow::Result<()> {
        let running = self.running.as_mut().context("it runs")?;
        let lines: Vec<_> = running.lines.try_iter().collect();
        lines.into_iter().for_each(|line| self.note(line));
        Ok(())
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.running.as_mut().context("it runs")?.process.kill();
        self.bury()
    }

    /// Waits until it has died of an abort.
    ///
    /// # Errors
    /// When it does not, or ends otherwise.
    pub fn wait_for_abort(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.next_line(deadline)?.is_some() {}
        let status = self.running.as_mut().context("it runs")?.process.child().wait()?;
        ensure!(status.signal() == Some(libc::SIGABRT), "{status}, not an abort:\n{}", self.last_lines());
        self.bury()
    }

    /// Asks the process to end, and waits for that.
    ///
    /// # Errors
    /// When it does not end in order.
    pub fn end(&mut self) -> anyhow::Result<()> {
        let running = self.running.as_mut().context("it runs")?;
        running.input = None;
        let code = running.process.wait(PATIENCE)?;
        ensure!(code == 0, "{} has ended with {code}:\n{}", self.name, self.last_lines());
        self.bury()
    }

    /// How often it found a store behind its changelog when it started: what a kill had taken out of memory.
    pub fn found_behind(&self) -> u64 {
        self.behind
    }

    /// Deletes its whole state directory, as a new machine would find it.
    ///
    /// # Errors
    /// When there is none.
    pub fn lose_state(&mut self) -> anyhow::Result<()> {
        std::fs::remove_dir_all(&self.state).with_context(|| format!("{}", self.state.display()))
    }

    /// Runs undisturbed until all of `flights` are counted, and ends; says what is wrong if they are not counted
    /// rightly within `patience` after it went live.
    ///
    /// # Errors
    /// When the process fails.
    pub fn finish(&mut self, flights: &Flights, patience: Duration) -> anyhow::Result<Option<String>> {
        self.start(None, false)?;
        self.wait_for("live")?;
        let deadline = Instant::now() + patience;
        // What was killed may hold readers back for as long as its transaction lives.
        while self.fault(flights)?.is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(100));
        }
        self.end()?;
        // The end must not have added anything.
        self.fault(flights)
    }

    /// What is wrong with what came out, given the flights that went in.
    fn fault(&self, flights: &Flights) -> anyhow::Result<Option<String>> {
        if let Some(dropped) = self.dropped.first() {
            return Ok(Some(format!("{}: a state was {dropped}", self.name)));
        }
        let fault = fault_in(&counts(&self.address, &self.name)?, flights, self.emit);
        Ok(fault.map(|fault| format!("{}: {fault}", self.name)))
    }

    /// The next line; `None` when the process has ended.
    fn next_line(&mut self, deadline: Instant) -> anyhow::Result<Option<String>> {
        let running = self.running.as_mut().context("it runs")?;
        match running.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                self.note(line.clone());
                Ok(Some(line))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                bail!("{} says nothing that was waited for:\n{}", self.name, self.last_lines())
            }
        }
    }

    fn note(&mut self, line: String) {
        if line.starts_with("dropped") {
            self.dropped.push(line.clone());
        }
        self.behind += u64::from(line.starts_with("behind"));
        if let Some(running) = &mut self.running {
            running.last.push_back(line);
            if running.last.len() > SHOWN_LINES {
                running.last.pop_front();
            }
        }
    }

    fn last_lines(&self) -> String {
        let last = self.running.iter().flat_map(|running| &running.last);
        last.map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Hears what a process that has ended still had to say.
    fn bury(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.next_line(deadline)?.is_some() {}
        self.running = None;
        Ok(())
    }
}

/// The committed counts of each carrier in order, read with another's client.
fn counts(address: &str, topic: &str) -> anyhow::Result<BTreeMap<String, Vec<u64>>> {
    let mut command = Command::new("kcat");
    command.args(["-C", "-b", address, "-t", topic, "-o", "beginning", "-e", "-q"]);
    command.args(["-X", "isolation.level=read_committed", "-s", "value=Q", "-f", r"%k %s\n"]);
    let mut counts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in String::from_utf8(run(&mut command)?.stdout)?.lines() {
        let (carrier, count) = line.split_once(' ').context("a carrier and a count")?;
        counts.entry(carrier.to_owned()).or_default().push(count.parse()?);
    }
    Ok(counts)
}

/// What is wrong with the counts that came from each carrier in turn, given how many flights there are.
fn fault_in(counts: &BTreeMap<String, Vec<u64>>, flights: &Flights, emit: Emit) -> Option<String> {
    if let Some(unknown) = counts.keys().find(|carrier| !flights.contains_key(carrier.as_str())) {
        return Some(format!("{unknown} has no flights and is counted"));
    }
    for (carrier, &n) in flights {
        let found = counts.get(*carrier).map(Vec::as_slice).unwrap_or_default();
        let is_right = match emit {
            Emit::PerRecord => found.iter().copied().eq(1..=n),
            Emit::PerCommit => found.is_sorted_by(|a, b| a < b) && found.last() == Some(&n),
        };
        if !is_right {
            let jump = found.windows(2).find(|pair| pair[1] != pair[0] + 1);
            let end = found.last();
            return Some(format!("{carrier} ends at {end:?} where {n} is right; first jump {jump:?}"));
        }
    }
    None
}
