//! A running application.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use thalweg_client::{Client, ClientConfig, ConsumerConfig, OffsetReset};
use tokio::runtime::Runtime;

use super::client_error::translate;
use super::client_log::ClientLog;
use super::events::{Committed, Event};
use super::live_monitor;
use super::opener::{self, OPEN_REQUESTS};
use super::plan::Plan;
use super::shared::Shared;
use super::stream_thread::StreamThread;
use super::topic_watch;
use super::topics;
use crate::assignment::TaskAssignor;
use crate::config::{StartAt, StreamsConfig};
use crate::error::Error;
use crate::state::{StateDirectory, StoreView};
use crate::topology::Topology;

/// A running streams application: its threads, and what they share. Dropping it closes it.
pub struct Streams {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// What watches over them on the runtime.
    watching: Vec<tokio::task::JoinHandle<()>>,
    /// Where the client works; `None` once it is closed.
    runtime: Option<Runtime>,
}

/// How many threads the client has for fetching, producing and the group.
const CLIENT_THREADS: usize = 2;

impl Streams {
    /// Checks the topology against the cluster, makes the internal topics, and starts the threads. History is
    /// processed first, then what arrives live; [`events`](Self::events) tell how far it is.
    ///
    /// `client` says where the cluster is: over TCP, or a broker embedded in this process. The call blocks
    /// until the cluster has answered; so an embedded broker must run on other threads than the caller's,
    /// which those of a multi-threaded runtime are.
    ///
    /// # Errors
    /// When the configuration or the topology cannot work, a topic is missing, the state directory is in use,
    /// or the cluster cannot be reached within the client's API timeout.
    pub fn start(topology: Topology, config: StreamsConfig, client: ClientConfig) -> Result<Self, Error> {
        // On a thread of its own, so that it may be called from within a runtime.
        let started = std::thread::spawn(move || Self::start_here(topology, config, client)).join();
        started.unwrap_or_else(|panic| Err(Error::panicked(&*panic)))
    }

    fn start_here(topology: Topology, config: StreamsConfig, client: ClientConfig) -> Result<Self, Error> {
        config.check()?;
        topology.check()?;
        let directory = Arc::new(StateDirectory::open(&config)?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(CLIENT_THREADS)
            .thread_name("streams-client")
            .enable_all()
            .build()
            .map_err(Error::Thread)?;
        let (client, plan) = runtime.block_on(prepare(topology, config, client))?;
        let (opener, requests) = bounded(OPEN_REQUESTS);
        let handle = runtime.handle().clone();
        let shared = Arc::new(Shared::new(Arc::new(plan), directory, client, handle, opener));
        let mut streams = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            watching: vec![
                runtime.spawn(live_monitor::run(Arc::clone(&shared))),
                runtime.spawn(topic_watch::run(Arc::clone(&shared))),
            ],
            runtime: Some(runtime),
        };
        streams.spawn("streams-opener".into(), move |shared| {
            opener::run(shared, &requests);
            Ok(())
        })?;
        for number in 0..shared.config().threads {
            let assignor =
                Arc::new(TaskAssignor::new(Arc::clone(&shared.plan), Arc::clone(&shared.directory)));
            let log = log_of(&shared, number, Arc::clone(&assignor))?;
            let thread = StreamThread::new(number, Arc::clone(&shared), log, assignor);
            streams.spawn(format!("streams-{number}"), move |_| thread.run())?;
        }
        Ok(streams)
    }

    /// Starts a thread; an error or panic of it ends the application.
    fn spawn(
        &mut self,
        name: String,
        work: impl FnOnce(&Shared) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let body = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| work(&shared)));
            let ended = ended.unwrap_or_else(|panic| Err(Error::panicked(&*panic)));
            if let Err(error) = ended {
                shared.fail(error);
            }
        };
        self.threads.push(Builder::new().name(name).spawn(body).map_err(Error::Thread)?);
        Ok(())
    }

    /// What happens from now on. There is one queue: of several receivers, each event reaches one. Of events
    /// that nobody takes, the latest thousand are kept.
    pub fn events(&self) -> Receiver<Event> {
        self.shared.events.receiver()
    }

    /// Whether history is done: [`Event::Live`] has been said.
    pub fn is_live(&self) -> bool {
        self.shared.is_live()
    }

    /// What all commits since the start covered together.
    pub fn committed(&self) -> Committed {
        self.shared.committed()
    }

    /// A store as the last commit left it, over the tasks that this instance runs now.
    pub fn store(&self, name: &str) -> StoreView {
        StoreView::new(self.shared.views(name))
    }

    /// Waits until the application has ended by itself, which only an error makes it do.
    ///
    /// # Errors
    /// That error.
    pub fn wait(&self) -> Result<(), Error> {
        loop {
            if let Some(reason) = self.shared.failure() {
                return Err(Error::Stopped(reason));
            }
            if self.shared.is_closing() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Commits what is processed, and ends.
    ///
    /// # Errors
    /// What the last commit failed with, or what had ended the application before.
    pub fn close(mut self) -> Result<(), Error> {
        self.shut_down();
        match self.shared.failure() {
            Some(reason) => Err(Error::Stopped(reason)),
            None => Ok(()),
        }
    }

    fn shut_down(&mut self) {
        self.shared.close();
        for thread in self.threads.drain(..) {
            // Its panics are caught within.
            let _ended = thread.join();
        }
        let Some(runtime) = self.runtime.take() else { return };
        let watching = std::mem::take(&mut self.watching);
        watching.iter().for_each(tokio::task::JoinHandle::abort);
        // They hold the state directory. On a thread of its own, since the caller may be within a runtime.
        let end = || {
            for watching in watching {
                let _aborted = runtime.block_on(watching);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(end);
        });
        runtime.shutdown_background();
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Connects, and lays the topology over the cluster's topics.
async fn prepare(
    topology: Topology,
    config: StreamsConfig,
    client: ClientConfig,
) -> Result<(Client, Plan), Error> {
    let client = Client::connect(client).await.map_err(translate("connecting"))?;
    let admin = client.admin();
    let all = topics::partition_counts(&admin).await?;
    let named = topics::named_counts(&topology, &all)?;
    let mut plan = Plan::new(Arc::new(config), topology, &named)?;
    topics::make_internal(&admin, &mut plan, &all).await?;
    Ok((client, plan))
}

/// The consumer and the producer of a thread.
fn log_of(shared: &Shared, number: usize, assignor: Arc<TaskAssignor>) -> Result<ClientLog, Error> {
    let config = shared.config();
    let name = format!("{}-{}-{number}", config.application_id, shared.directory.process_id());
    let consumer_config = ConsumerConfig {
        // A static member: after a restart it gets its tasks back without anyone waiting for its old self.
        group_instance_id: Some(name.clone()),
        session_timeout_ms: config.session_timeout_ms as i32,
        heartbeat_interval_ms: u64::from(config.session_timeout_ms / 15).clamp(100, 3000),
        offset_reset: match config.start_at {
            StartAt::Earliest => OffsetReset::Earliest,
            StartAt::Latest => OffsetReset::Latest,
        },
        ..ConsumerConfig::group(config.application_id.clone())
    };
    let consumer = {
        let _entered = shared.handle.enter();
        shared.client.consumer_with(consumer_config, vec![assignor])
    };
    let consumer = consumer.map_err(translate("making a consumer"))?;
    ClientLog::new(shared.handle.clone(), shared.waiting(), shared.client.clone(), consumer, config, name)
}
