//! A broker in a process of its own, which is the test's program started again: its memory and its descriptors are nobody
//! else's, and it can be killed.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use thalweg_broker::{Broker, BrokerConfig};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::harness::{Client, Harness, Way};
use crate::raw_tcp::RawTcp;

/// Says to the process that the test starts that it is the node, and where its data is.
const DATA: &str = "THALWEG_TEST_NODE";

/// What the node says begins with this: the test program says other things, too.
const SAYS: &str = "node: ";

/// Far longer than a start, a stop or anything else takes that a node is told to do.
const LONG: Duration = Duration::from_secs(60);

/// A running node.
pub struct Node {
    child: Child,
    said: mpsc::UnboundedReceiver<String>,
    pub address: SocketAddr,
}

impl Node {
    /// Starts a node on `dir`: `test` is the name of the test, which calls [`serve`] when [`is_node`] says so.
    pub async fn start(test: &str, dir: &Path) -> Self {
        Self::try_start(test, dir)
            .await
            .unwrap_or_else(|refused| panic!("the node does not start: {refused}"))
    }

    /// The same where the node may refuse to start, and say why.
    pub async fn try_start(test: &str, dir: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().expect("this test is a program");
        let mut child = Command::new(program)
            .args(["--exact", test, "--nocapture"])
            .env(DATA, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let (says, mut said) = mpsc::unbounded_channel();
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, line)) = line.split_once(SAYS) {
                    let _ = says.send(line.to_owned());
                }
            }
        });
        let first = timeout(LONG, said.recv()).await.expect("it starts in time").expect("it says something");
        match first.split_once(' ') {
            Some(("serves", address)) => {
                Ok(Self { child, said, address: address.parse().expect("an address") })
            }
            Some(("refuses", why)) => {
                child.wait().expect("it ends");
                Err(why.to_owned())
            }
            _ => panic!("{first}"),
        }
    }

    pub async fn connect(&self) -> Client {
        Client(RawTcp::connect(self.address).await)
    }

    /// Connects from another address of this machine.
    pub async fn connect_from(&self, address: [u8; 4]) -> Client {
        Client(RawTcp::over(self.socket_from(address).await))
    }

    pub async fn socket_from(&self, address: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a descriptor is left");
        socket.bind(SocketAddr::from((address, 0))).expect("it is an address of the loopback interface");
        socket.connect(self.address).await.expect("the node listens")
    }

    /// Has the node take up all descriptors but so many, or give them back: `None`.
    pub async fn leave_descriptors(&mut self, left: Option<usize>) {
        let left = left.map_or("all".to_owned(), |left| left.to_string());
        assert_eq!(self.tell(&format!("leave {left}")).await, "done");
    }

    async fn tell(&mut self, what: &str) -> String {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        writeln!(stdin, "{what}").expect("the node lives");
        timeout(LONG, self.said.recv()).await.expect("it answers in time").expect("the node lives")
    }

    /// Shuts it down in order.
    pub async fn stop(mut self) {
        assert_eq!(self.tell("stop").await, "stopped");
        assert!(self.child.wait().expect("it ends").success());
    }

    /// Ends it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it ends");
    }

    /// Whether the process has not ended.
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_none()
    }

    /// The most memory that it has ever had, in KiB.
    pub fn peak_memory_kib(&self) -> usize {
        peak_memory_kib(self.child.id())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The most memory that a process has ever had, in KiB.
pub fn peak_memory_kib(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("Linux tells");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak is among it");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Whether this process is to be the node of the test.
pub fn is_node() -> bool {
    std::env::var_os(DATA).is_some()
}

fn say(what: &str) {
    println!("{SAYS}{what}");
}

/// Is the node, until it is told to stop or the test is no more.
pub async fn serve(change: impl FnOnce(&mut BrokerConfig)) {
    let dir = std::env::var_os(DATA).expect("this is the node");
    let mut config = Harness::config(Way::Tcp, Path::new(&dir));
    change(&mut config);
    let broker = match Broker::start(config).await {
        Ok(broker) => broker,
        Err(error) => return say(&format!("refuses {error}")),
    };
    say(&format!("serves {}", broker.addresses()[0]));
    let mut held = Vec::new();
    loop {
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).expect("it can be read");
            line
        });
        match read.await.expect("no panic").trim() {
            "stop" => {
                match broker.shutdown().await {
                    Ok(()) => say("stopped"),
                    Err(error) => say(&format!("cannot stop in order: {error}")),
                }
                return;
            }
            "leave all" => {
                held.clear();
                say("done");
            }
            line => {
                // Nobody tells anything any more.
                let Some(left) = line.strip_prefix("leave ") else { return };
                held.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
                let left: usize = left.parse().expect("a number");
                held.truncate(held.len() - left.min(held.len()));
                say("done");
            }
        }
    }
}
