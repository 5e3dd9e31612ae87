//! Exactly once: records are read, transformed and written, and the offsets read are part of the transaction that writes.
//!
//! Whoever dies in between leaves nothing behind: readers of committed records (the default) never see what an unfinished
//! transaction wrote, and the next instance goes on at the offsets of the last finished one.
//!
//! `cargo run -p thalweg-client --example exactly_once -- HOST:PORT FROM TO ID`

use std::time::Duration;

use thalweg_client::{
    Client, CommittedOffset, Consumer, ConsumerConfig, Error, ErrorKind, FetchedBatches, OffsetReset,
    OffsetSpec, Producer, ProducerConfig, ProducerRecord,
};

#[path = "shared/connecting.rs"]
mod connecting;
use connecting::connect;

/// It ends when nothing has come for so long of what it reads.
const IDLE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (bootstrap, from, to, id) = (next("127.0.0.1:9092"), next("words"), next("shouts"), next("shouter"));
    let client = connect(&bootstrap).await?;
    run(&client, &from, &to, &id).await
}

/// Writes every record of `from` into `to`, in capital letters. `id` names the group and the transactional id: a newer
/// instance with the same fences this one.
pub async fn run(client: &Client, from: &str, to: &str, id: &str) -> Result<(), Error> {
    let producer = client.producer(ProducerConfig::transactional(id))?;
    producer.init_transactions().await?;
    let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::group(id) };
    let mut consumer = client.consumer(config)?;
    consumer.subscribe([from])?;
    loop {
        let polled = consumer.poll(IDLE).await?;
        if polled.is_empty() && !consumer.assignment().is_empty() {
            return consumer.close().await;
        }
        if polled.batches.is_empty() {
            continue;
        }
        let Err(error) = transform(&producer, &consumer, polled.batches, to).await else { continue };
        // The kind of the error says what to do.
        match error.kind() {
            ErrorKind::Abort | ErrorKind::Rejoin => producer.abort_transaction().await?,
            ErrorKind::Ambiguous => producer.init_transactions().await?,
            _ => return Err(error),
        }
        go_back(&mut consumer).await?;
    }
}

/// One transaction: the records, and how far was read.
async fn transform(
    producer: &Producer,
    consumer: &Consumer,
    fetched: Vec<FetchedBatches>,
    to: &str,
) -> Result<(), Error> {
    producer.begin_transaction()?;
    let mut offsets = Vec::new();
    for batches in fetched {
        offsets.push((batches.partition.clone(), CommittedOffset::new(batches.next_offset)));
        for record in batches.into_records() {
            let record = record?;
            let value = record.value.as_deref().unwrap_or_default().to_ascii_uppercase();
            let mut shout = ProducerRecord::new(to, value);
            shout.key = record.key;
            producer.send(shout).await?;
        }
    }
    producer.send_offsets_to_transaction(&offsets, &consumer.group_metadata()?).await?;
    loop {
        match producer.commit_transaction().await {
            // The coordinator could not be asked.
            Err(error) if error.kind() == ErrorKind::Retry => {
                tokio::time::sleep(Duration::from_millis(100)).await
            }
            committed => return committed,
        }
    }
}

/// Reads on where the last finished transaction was.
async fn go_back(consumer: &mut Consumer) -> Result<(), Error> {
    let assigned = consumer.assignment();
    let committed = consumer.committed(&assigned).await?;
    for partition in assigned {
        match committed.get(&partition) {
            Some(committed) => consumer.seek(&partition, committed.offset)?,
            None => consumer.seek_to(&partition, OffsetSpec::Earliest)?,
        }
    }
    Ok(())
}
