//! The application and the broker are killed, and every carrier is still counted exactly once.
//!
//! The application is the example `carrier_count`, a process of its own. While it is killed again and again,
//! flights keep arriving.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use thalweg_broker::{Broker, BrokerConfig};
use thalweg_client::{ProducerConfig, ProducerRecord};
use thalweg_streams::{CommitOrder, CommitStep};

use crate::cluster::Cluster;

const CARRIERS: usize = 16;
const TOPICS: [(&str, i32); 2] = [("flights", 2), ("carriers", 1)];

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is killed when it goes out of scope.
struct Process {
    child: Child,
    lines: Receiver<String>,
    /// Closing it asks the process to end.
    input: Option<ChildStdin>,
}

impl Process {
    fn spawn(command: &mut Command) -> Self {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.expect("examples are built together with the tests");
        let (sender, lines) = unbounded();
        let output = child.stdout.take().expect("it is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The test may have stopped listening.
                let _gone = sender.send(line);
            }
        });
        let input = child.stdin.take();
        Self { child, lines, input }
    }

    /// `kill -9`.
    fn kill(&mut self) {
        self.child.kill().expect("it is a child");
        self.child.wait().expect("it is a child");
    }

    /// Waits until it has died by itself; returns whether it died of an abort.
    fn wait_for_death(&mut self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                return status.signal() == Some(6);
            }
            assert!(Instant::now() < deadline, "it reaches its failpoint");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait_for(&self, start: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_deadline(deadline) {
                Ok(line) if line.starts_with(start) => return,
                Ok(_) => {}
                Err(error) => panic!("waiting for {start:?}: {error}"),
            }
        }
    }

    /// Asks it to end, and waits for that.
    fn end(mut self) {
        self.input = None;
        let status = self.child.wait().expect("it is a child");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be dead already.
        let _dead = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// An application under test.
struct Application<'c> {
    cluster: &'c Cluster,
    order: CommitOrder,
    emit: &'static str,
    /// Whether a state was ever dropped because it was ahead of the log.
    dropped: bool,
}

impl<'c> Application<'c> {
    fn new(cluster: &'c Cluster, emit: &'static str, order: CommitOrder) -> Self {
        Self { cluster, order, emit, dropped: false }
    }

    fn spawn(&self, failpoint: Option<&str>, flush: bool) -> Process {
        let mut command = Command::new(example("carrier_count"));
        let state = self.cluster.directory.path().join("state");
        command.arg(self.cluster.bootstrap()).arg(state).args(["counts", "flights", "carriers", self.emit]);
        command.env("THALWEG_COMMIT_ORDER", format!("{:?}", self.order)).env_remove("THALWEG_FLUSH_STATE");
        if let Some(failpoint) = failpoint {
            command.env("THALWEG_FAILPOINT", failpoint);
        }
        if flush {
            command.env("THALWEG_FLUSH_STATE", "1");
        }
        Process::spawn(&mut command)
    }

    fn note(&mut self, process: &Process) {
        self.dropped |= process.lines.try_iter().any(|line| line.starts_with("dropped"));
    }

    fn die_at(&mut self, failpoint: &str, flush: bool) {
        let mut process = self.spawn(Some(failpoint), flush);
        assert!(process.wait_for_death(), "{failpoint} ends it with an abort");
        self.note(&process);
    }

    fn kill_after(&mut self, commits: u64, wait: Duration, flush: bool) {
        let mut process = self.spawn(None, flush);
        for _ in 0..commits {
            process.wait_for("commit");
        }
        std::thread::sleep(wait);
        process.kill();
        self.note(&process);
    }

    /// Runs undisturbed until all of `flights` are counted, and says what is wrong then.
    fn finish(&mut self, flights: usize) -> Option<String> {
        let process = self.spawn(None, false);
        process.wait_for("live");
        let mut counts = self.cluster.numbers("carriers");
        let mut fault = fault_in(&counts, flights, self.emit);
        while fault.is_some() {
            // Whatever is right within a second of going live is right; what no longer changes stays wrong.
            std::thread::sleep(Duration::from_secs(1));
            let now = self.cluster.numbers("carriers");
            fault = fault_in(&now, flights, self.emit);
            if now == counts {
                break;
            }
            counts = now;
        }
        self.note(&process);
        process.end();
        fault.or_else(|| self.dropped.then(|| "a state was ahead of the log".to_owned()))
    }
}

/// What is wrong with the counts of `flights` that came from each carrier in turn.
fn fault_in(counts: &BTreeMap<String, Vec<i64>>, flights: usize, emit: &str) -> Option<String> {
    for carrier in 0..CARRIERS {
        let n = (flights / CARRIERS + usize::from(carrier < flights % CARRIERS)) as i64;
        let name = carrier_name(carrier);
        let found = counts.get(&name).map(Vec::as_slice).unwrap_or_default();
        let is_right = match emit {
            "per-record" => found.iter().copied().eq(1..=n),
            _ => found.is_sorted_by(|a, b| a < b) && found.last().copied().unwrap_or(0) == n,
        };
        if !is_right {
            let wrong = found.windows(2).find(|pair| pair[1] != pair[0] + 1);
            let end = found.last();
            return Some(format!("{name} ends at {end:?} where {n} is right; first jump {wrong:?}"));
        }
    }
    None
}

fn carrier_name(carrier: usize) -> String {
    format!("C{carrier}")
}

/// An example's program, beside the directory that this test's own lies in.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this program has a path");
    let profile = own.parent().and_then(Path::parent).expect("target/PROFILE/deps/it-…");
    profile.join("examples").join(name)
}

/// Produces flights until `stop`; returns how many.
fn produce(cluster: &Cluster, stop: &AtomicBool) -> usize {
    let producer = cluster.producer(ProducerConfig::default());
    cluster.block_on(async {
        let mut flights = 0;
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..25 {
                let value = format!("{{\"carrier\":\"{}\"}}", carrier_name(flights % CARRIERS));
                let record = ProducerRecord::new("flights", value).key(format!("tail {}", flights % 997));
                producer.send(record.timestamp(flights as i64)).await.expect("sent");
                flights += 1;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        producer.flush().await.expect("written");
        flights
    })
}

/// Runs `work` while flights arrive; returns how many did.
fn while_flights_arrive(cluster: &Cluster, work: impl FnOnce()) -> usize {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let producing = scope.spawn(|| produce(cluster, &stop));
        work();
        stop.store(true, Ordering::Relaxed);
        producing.join().expect("produced")
    })
}

/// How often to kill at random, beside the points of the commit; more in a soak.
fn random_kills() -> usize {
    std::env::var("THALWEG_RANDOM_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(15)
}

#[test]
fn the_application_is_killed_at_every_step_and_at_random() {
    let random_kills = random_kills();
    for (emit, random_kills) in [("per-record", random_kills), ("per-commit", random_kills / 3)] {
        let cluster = Cluster::listening(&TOPICS);
        let mut application = Application::new(&cluster, emit, CommitOrder::Sound);
        let mut random = fastrand::Rng::with_seed(3);
        let flights = while_flights_arrive(&cluster, || {
            for step in CommitStep::ALL {
                for moment in ["before", "after"] {
                    let failpoint = format!("{moment}:{}:{}", step.name(), random.u32(1..4));
                    application.die_at(&failpoint, random.bool());
                }
            }
            for _ in 0..random_kills {
                let wait = Duration::from_micros(random.u64(..150_000));
                application.kill_after(random.u64(..3), wait, random.bool());
            }
        });
        assert_eq!(application.finish(flights), None, "{emit}");
    }
}

#[test]
fn wrong_orders_of_the_commit_are_noticed() {
    for (order, failpoint) in [
        (CommitOrder::StateBeforeEnd, "after:WriteState:2"),
        (CommitOrder::OffsetsAfterEnd, "before:SendOffsets:2"),
        (CommitOrder::ChangelogAfterEnd, "before:SendChangelog:2"),
    ] {
        let cluster = Cluster::listening(&TOPICS);
        let mut application = Application::new(&cluster, "per-record", order);
        let flights = while_flights_arrive(&cluster, || {
            for _ in 0..2 {
                application.die_at(failpoint, true);
            }
        });
        let fault = application.finish(flights);
        println!("{order:?}: {fault:?}");
        assert!(fault.is_some(), "{order:?} passes for sound");
    }
}

/// The variable that makes [`broker_process`] a broker: its directory, a space, and its address.
const BROKER: &str = "THALWEG_TEST_BROKER";

/// Not a test but the program of the broker that is killed: this binary, started again with [`BROKER`] set.
#[test]
fn broker_process() {
    let Ok(settings) = std::env::var(BROKER) else { return };
    let (directory, address) = settings.split_once(' ').expect("two words");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let config = BrokerConfig {
        data_dir: directory.into(),
        listen: vec![address.to_owned()],
        ..BrokerConfig::default()
    };
    let broker = runtime.block_on(Broker::start(config)).expect("a broker");
    println!("\nserving {}", broker.bootstrap().expect("it listens"));
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn spawn_broker(directory: &Path, address: &str) -> (Process, String) {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["killed::broker_process", "--exact", "--nocapture"]);
    command.env(BROKER, format!("{} {address}", directory.display()));
    let process = Process::spawn(&mut command);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let line = process.lines.recv_deadline(deadline).expect("the broker starts");
        if let Some(bootstrap) = line.strip_prefix("serving ") {
            let bootstrap = bootstrap.to_owned();
            return (process, bootstrap);
        }
    }
}

#[test]
fn the_broker_is_killed_at_random() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let (mut broker, bootstrap) = spawn_broker(&log, "127.0.0.1:0");
    let cluster = Cluster::at(&bootstrap, directory, &TOPICS);
    let mut application = Application::new(&cluster, "per-record", CommitOrder::Sound);
    let mut random = fastrand::Rng::with_seed(4);
    let flights = while_flights_arrive(&cluster, || {
        let process = application.spawn(None, false);
        for kill in 0..random_kills() / 2 {
            process.wait_for("commit");
            std::thread::sleep(Duration::from_micros(random.u64(..300_000)));
            broker.kill();
            broker = spawn_broker(&log, &bootstrap).0;
            if kill % 2 == 1 {
                process.lines.try_iter().for_each(drop);
            }
        }
        process.wait_for("commit");
        application.note(&process);
        process.end();
    });
    assert_eq!(application.finish(flights), None);
}
