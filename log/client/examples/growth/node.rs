//! A node as a process of its own, what it uses, and those who talk to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thalweg_broker::{Broker, BrokerConfig};
use thalweg_client::{Client, ClientConfig, Consumer, ConsumerConfig};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Result;

/// A node that runs on a directory.
pub struct Node {
    child: Child,
    address: String,
    start_time: Duration,
}

/// What a process has used of the CPU, and holds of memory.
pub struct Used {
    pub cpu_s: f64,
    pub memory_mb: f64,
}

/// Runs a node until its input ends.
pub fn run(directory: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = BrokerConfig {
            data_dir: directory.to_owned(),
            listen: vec!["localhost:0".to_owned()],
            ..BrokerConfig::default()
        };
        let broker = Broker::start(config).await?;
        println!("{}", broker.bootstrap().unwrap_or_default());
        // An error ends it as well: then nobody is there to end it.
        let _ =
            tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await;
        broker.shutdown().await?;
        Ok(())
    })
}

impl Node {
    pub fn start(directory: &Path) -> Result<Self> {
        let begin = Instant::now();
        let mut child = Command::new(std::env::current_exe()?)
            .arg("node")
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut address)?;
        let address = address.trim().to_owned();
        if address.is_empty() {
            return Err(format!("the node did not start: {}", child.wait()?).into());
        }
        // It takes requests by now; this says so.
        greet(&address)?;
        Ok(Self { child, address, start_time: begin.elapsed() })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap_or_default()
    }

    /// From the start of the process until it answered.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// Stops it in order; returns how long that took.
    pub fn stop(mut self) -> Result<Duration> {
        let begin = Instant::now();
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if !status.success() {
            return Err(format!("the node ended with {status}").into());
        }
        Ok(begin.elapsed())
    }

    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn used(&self) -> Result<Used> {
        let of = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id()));
        let status = of("status")?;
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        let memory_mb = kib.ok_or("no VmRSS")?.trim().parse::<f64>()? * 1024.0 / 1e6;
        // In ns; see proc_pid_schedstat(5). That of each thread, as the first number is of the main one alone.
        let mut cpu_ns = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let schedule = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            cpu_ns += schedule.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0_u64);
        }
        Ok(Used { cpu_s: cpu_ns as f64 / 1e9, memory_mb })
    }

    pub fn open_files(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It has ended, but after an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection on which the node has answered an ApiVersions request, version 0, that asks for nothing.
pub fn greet(address: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff])?;
    let mut head = [0; 10];
    stream.read_exact(&mut head)?;
    if head[4..] != [0, 0, 0, 7, 0, 0] {
        return Err(format!("an odd answer: {head:?}").into());
    }
    let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    stream.read_exact(&mut vec![0; len - 6])?;
    Ok(stream)
}

/// A member of a group that polls on a task of its own.
pub struct Member {
    partitions: Arc<AtomicUsize>,
    leave: oneshot::Sender<()>,
    task: JoinHandle<thalweg_client::Result<()>>,
}

impl Member {
    pub async fn join(address: &str, config: ConsumerConfig, topic: &str) -> Result<Self> {
        let client = Client::connect(ClientConfig::with_bootstrap(address)).await?;
        let mut consumer = client.consumer(config)?;
        consumer.subscribe([topic.to_owned()])?;
        let partitions = Arc::new(AtomicUsize::new(0));
        let (leave, left) = oneshot::channel();
        let task = tokio::spawn(member(consumer, Arc::clone(&partitions), left));
        Ok(Self { partitions, leave, task })
    }

    pub async fn leave(self) -> Result<()> {
        // If nobody listens the task has failed, and says why.
        let _ = self.leave.send(());
        Ok(self.task.await??)
    }
}

async fn member(
    mut consumer: Consumer,
    partitions: Arc<AtomicUsize>,
    mut left: oneshot::Receiver<()>,
) -> thalweg_client::Result<()> {
    loop {
        tokio::select! {
            polled = consumer.poll(Duration::from_millis(500)) => {
                polled?;
            }
            _ = &mut left => return consumer.close().await,
        }
        partitions.store(consumer.assignment().len(), Ordering::Relaxed);
    }
}

/// Waits until the members share all partitions, and each has one.
pub async fn settle(members: &[Member], partitions: usize) -> Result<()> {
    let begin = Instant::now();
    loop {
        let held: Vec<usize> =
            members.iter().map(|member| member.partitions.load(Ordering::Relaxed)).collect();
        if held.iter().sum::<usize>() == partitions && !held.contains(&0) {
            return Ok(());
        }
        if begin.elapsed() > Duration::from_secs(120) {
            return Err(format!("the members hold {held:?} of {partitions} partitions").into());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
