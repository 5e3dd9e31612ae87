//! A queue: workers share a topic record by record, however few partitions it has (KIP-932).
//!
//! What a worker fails at is released, and comes again, to it or another; what has failed too often is poison, and is
//! rejected so that it holds nobody up. A worker that dies gives back what it had. Records are processed at least once, in no
//! order.
//!
//! `cargo run -p thalweg-client --example queue -- HOST:PORT TOPIC GROUP`

use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_client::{AcknowledgeType, Client, ConfigChanges, ConfigResource, Error, ShareConsumerConfig};
use tokio::task::JoinSet;

#[path = "shared/connecting.rs"]
mod connecting;
use connecting::connect;

/// How many workers share the queue.
const WORKERS: usize = 3;

/// A record that so many deliveries have failed at is rejected.
const MAX_DELIVERIES: i16 = 3;

/// A worker ends when nothing has come for so long.
const IDLE: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (bootstrap, topic, group) = (next("127.0.0.1:9092"), next("jobs"), next("workers"));
    let client = connect(&bootstrap).await?;
    let process = |job: &[u8]| {
        println!("{}", String::from_utf8_lossy(job));
        !job.is_empty()
    };
    for poison in run(&client, &topic, &group, process).await? {
        println!("rejected: {}", String::from_utf8_lossy(&poison));
    }
    Ok(())
}

/// Has workers `process` the records of a topic, which says whether it succeeded; returns what was rejected.
pub async fn run(
    client: &Client,
    topic: &str,
    group: &str,
    process: impl Fn(&[u8]) -> bool + Clone + Send + 'static,
) -> Result<Vec<Bytes>, Error> {
    // A queue wants what was written before the first worker came, too.
    let resource = ConfigResource::Group(ByteString::from(group));
    let changes = ConfigChanges::of(resource).set("share.auto.offset.reset", "earliest");
    for result in client.admin().alter_configs(&[changes], false).await.into_values() {
        result?;
    }
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (client, topic, group) = (client.clone(), topic.to_owned(), group.to_owned());
        workers.spawn(work(client, topic, group, process.clone()));
    }
    let mut rejected = Vec::new();
    while let Some(worker) = workers.join_next().await {
        rejected.extend(worker.expect("a worker does not panic")?);
    }
    Ok(rejected)
}

async fn work(
    client: Client,
    topic: String,
    group: String,
    process: impl Fn(&[u8]) -> bool,
) -> Result<Vec<Bytes>, Error> {
    let mut consumer = client.share_consumer(ShareConsumerConfig::group(group).explicit())?;
    consumer.subscribe([topic])?;
    let mut rejected = Vec::new();
    loop {
        let has_joined = !consumer.assignment().is_empty();
        let polled = consumer.poll(IDLE).await?;
        for outcome in &polled.outcomes {
            if let Err(error) = &outcome.result {
                // The time was over, or the connection broke: somebody processes these once more.
                eprintln!("{error}");
            }
        }
        if polled.is_empty() && has_joined {
            consumer.close().await?;
            return Ok(rejected);
        }
        for batches in polled.batches {
            let partition = batches.partition.clone();
            for acquired in batches.into_records() {
                let acquired = acquired?;
                let job = acquired.record.value.unwrap_or_default();
                let what = match process(&job) {
                    true => AcknowledgeType::Accept,
                    false if acquired.delivery_count < MAX_DELIVERIES => AcknowledgeType::Release,
                    false => {
                        rejected.push(job);
                        AcknowledgeType::Reject
                    }
                };
                consumer.acknowledge(&partition, acquired.record.offset, what)?;
            }
        }
    }
}
