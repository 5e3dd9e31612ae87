//! At least once: offsets are committed after the records have been processed.
//!
//! Whoever dies in between has processed records that will be processed again; none is ever left out. For processing that
//! does no harm when it is repeated, such as setting a value by its key.
//!
//! `cargo run -p thalweg-client --example at_least_once -- HOST:PORT TOPIC GROUP`

use std::time::Duration;

use thalweg_client::{Client, ConsumerConfig, Error, ErrorKind, OffsetReset};

#[path = "shared/connecting.rs"]
mod connecting;
use connecting::connect;

/// It ends when nothing has come for so long of what it reads.
const IDLE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (bootstrap, topic, group) = (next("127.0.0.1:9092"), next("events"), next("at-least-once"));
    let client = connect(&bootstrap).await?;
    run(&client, &topic, &group, |value| println!("{}", String::from_utf8_lossy(value))).await
}

/// Hands the value of each record to `process`.
pub async fn run(
    client: &Client,
    topic: &str,
    group: &str,
    mut process: impl FnMut(&[u8]),
) -> Result<(), Error> {
    let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::group(group) };
    let mut consumer = client.consumer(config)?;
    consumer.subscribe([topic])?;
    loop {
        let polled = consumer.poll(IDLE).await?;
        if polled.is_empty() && !consumer.assignment().is_empty() {
            return consumer.close().await;
        }
        for batches in polled.batches {
            for record in batches.into_records() {
                process(record?.value.as_deref().unwrap_or_default());
            }
        }
        match consumer.commit().await {
            Ok(()) => {}
            // Another member has the partitions by now, and processes these records once more.
            Err(error) if error.kind() == ErrorKind::Rejoin => {}
            Err(error) => return Err(error),
        }
    }
}
