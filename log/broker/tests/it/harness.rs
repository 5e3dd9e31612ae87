//! Starts a broker on a directory of its own, and connects to it in one of three ways.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use thalweg_broker::{AllowAll, Broker, BrokerConfig, Gate};
use thalweg_protocol::Connection;
use thalweg_protocol::messages::Api;

use crate::raw_tcp::RawTcp;

/// How a client reaches the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Tcp,
    InProcess,
    ThroughBytes,
}

pub struct Harness {
    pub broker: Broker,
    pub way: Way,
    dir: TempDir,
}

impl Harness {
    pub async fn start(way: Way) -> Self {
        Self::start_with(way, |_| {}, AllowAll).await
    }

    pub async fn start_with(way: Way, change: impl FnOnce(&mut BrokerConfig), gate: impl Gate) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let mut config = Self::config(way, dir.path());
        change(&mut config);
        let broker = Broker::start_with_gate(config, Arc::new(gate)).await.expect("the broker starts");
        Self { broker, way, dir }
    }

    pub fn config(way: Way, dir: &Path) -> BrokerConfig {
        BrokerConfig {
            data_dir: dir.to_owned(),
            listen: if way == Way::Tcp { vec!["127.0.0.1:0".to_owned()] } else { Vec::new() },
            in_process_through_bytes: way == Way::ThroughBytes,
            offsets_topic_partitions: 4,
            transaction_topic_partitions: 4,
            ..BrokerConfig::default()
        }
    }

    pub async fn connect(&self) -> Client {
        Client(match self.way {
            Way::Tcp => RawTcp::connect(self.broker.addresses()[0]).await,
            Way::InProcess | Way::ThroughBytes => self.broker.connect().open().expect("the broker runs"),
        })
    }

    /// Shuts down in order and starts again on the same directory.
    pub async fn restart(self) -> Self {
        let way = self.way;
        Self::resume(way, self.stop().await).await
    }

    /// Starts again on a directory.
    pub async fn resume(way: Way, dir: TempDir) -> Self {
        let config = Self::config(way, dir.path());
        let broker = Broker::start(config).await.expect("the broker starts again");
        Self { broker, way, dir }
    }

    /// A broker that was started otherwise.
    pub fn of(way: Way, broker: Broker, dir: TempDir) -> Self {
        Self { broker, way, dir }
    }

    /// Shuts down in order.
    pub async fn stop(self) -> TempDir {
        self.broker.shutdown().await.expect("everything can be synced");
        self.dir
    }

    pub async fn finish(self) {
        self.stop().await;
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

/// A connection with typed calls.
#[derive(Clone)]
pub struct Client(pub Arc<dyn Connection>);

impl Client {
    pub async fn call<A: Api>(&self, request: A, version: i16) -> A::Response {
        self.send(request, version).await
    }

    /// Takes its place in the order at once; the answer is awaited by whoever wants it.
    pub fn send<A: Api>(
        &self,
        request: A,
        version: i16,
    ) -> impl Future<Output = A::Response> + Send + 'static + use<A> {
        let response = self.0.send(request.into_request(), version);
        async move {
            match response.await {
                Ok(response) => A::Response::try_from(response).expect("the answer belongs to the request"),
                Err(error) => panic!("{} version {version}: {error}", A::KEY),
            }
        }
    }
}

/// Passes a test over that cannot run here. `make test` has installed what tests need, and says that none may be.
pub fn pass_over(test: &str, needs: &str) {
    assert!(std::env::var_os("THALWEG_TESTS_MUST_RUN").is_none(), "{test} needs {needs}");
    eprintln!("SKIPPED: {test} needs {needs}");
}

/// Makes a test of each function for each way.
macro_rules! three_ways {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            use crate::harness::{Harness, Way};

            async fn run(way: Way) {
                let harness = Harness::start(way).await;
                super::$name(&harness).await;
                harness.finish().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn over_tcp() {
                run(Way::Tcp).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_process() {
                run(Way::InProcess).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn through_bytes() {
                run(Way::ThroughBytes).await;
            }
        }
    )*};
}

pub(crate) use three_ways;
