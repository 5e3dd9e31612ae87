//! Flights that keep arriving while something else goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use thalweg_client::{Client, ClientConfig, ProducerConfig, ProducerRecord};
use tokio::runtime::Runtime;

use crate::flights::Flight;

/// Flights per carrier.
pub type Flights = BTreeMap<&'static str, u64>;

/// How often flights are sent.
const TICK: Duration = Duration::from_millis(5);

/// A thread that sends flights to a topic: JSON objects with a `carrier`, keyed by tail number.
pub struct Feed {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Flights>>>,
}

impl Feed {
    /// Sends `flights`, so many a tick of 5 ms, to `topic` at `address`.
    pub fn start(
        address: &str,
        topic: &'static str,
        flights: impl Iterator<Item = Flight<'static>> + Send + 'static,
        per_tick: usize,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (config, stopped) = (ClientConfig::with_bootstrap(address), Arc::clone(&stop));
        let send = move || Runtime::new()?.block_on(send(config, topic, flights, per_tick, &stopped));
        Self { stop, thread: Some(std::thread::spawn(send)) }
    }

    /// Waits until all flights are sent; returns how many there were of each carrier.
    ///
    /// # Errors
    /// When one of them could not be written.
    pub fn run_out(mut self) -> anyhow::Result<Flights> {
        let thread = self.thread.take().context("it is taken once")?;
        thread.join().map_err(|_| anyhow!("the feed panicked"))?
    }

    /// Sends no more, and waits until those that were sent are written; returns how many there were of each
    /// carrier.
    ///
    /// # Errors
    /// When one of them could not be written.
    pub fn stop(self) -> anyhow::Result<Flights> {
        self.stop.store(true, Ordering::Relaxed);
        self.run_out()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

async fn send(
    config: ClientConfig,
    topic: &'static str,
    mut flights: impl Iterator<Item = Flight<'static>>,
    per_tick: usize,
    stop: &AtomicBool,
) -> anyhow::Result<Flights> {
    let client = Client::connect(config).await?;
    let producer = client.producer(ProducerConfig::default())?;
    let mut sent = Flights::new();
    let mut tick = tokio::time::interval(TICK);
    'ticks: while !stop.load(Ordering::Relaxed) {
        tick.tick().await;
        for _ in 0..per_tick {
            let Some(flight) = flights.next() else { break 'ticks };
            let value = format!("{{\"carrier\":\"{}\"}}", flight.carrier);
            let record = ProducerRecord::new(topic, value).key(flight.tail.unwrap_or("NA"));
            producer.send(record).await?;
            *sent.entry(flight.carrier).or_default() += 1;
        }
    }
    // Whatever could not be written is an error here.
    producer.close().await?;
    Ok(sent)
}
