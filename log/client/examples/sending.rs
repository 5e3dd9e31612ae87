//! Ways to send: waiting for each record, with a callback, from a thread that blocks, and many before one flush.
//!
//! `cargo run -p thalweg-client --example sending -- HOST:PORT TOPIC`

use thalweg_client::{Acknowledged, Client, Error, ErrorKind, ProducerConfig, ProducerRecord};
use tokio::sync::mpsc;

#[path = "shared/connecting.rs"]
mod connecting;
use connecting::connect;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (bootstrap, topic) = (next("127.0.0.1:9092"), next("events"));
    let client = connect(&bootstrap).await?;
    for written in run(&client, &topic).await? {
        println!("{} at {:?}", written.partition, written.offset);
    }
    Ok(())
}

/// Sends four records, each in another way; returns where they went, in the order in which that was known.
pub async fn run(client: &Client, topic: &str) -> Result<Vec<Acknowledged>, Error> {
    let producer = client.producer(ProducerConfig::default())?;
    let mut written = Vec::new();

    // One that waits: until the record is on the disks that the topic asks for.
    written.push(producer.send_and_wait(ProducerRecord::new(topic, "waited for")).await?);

    // One with a callback: `send` only puts the record into its batch, and what it returns is a future.
    let (tell, mut told) = mpsc::channel(1);
    let delivery = producer.send(ProducerRecord::new(topic, "called back")).await?;
    tokio::spawn(async move {
        match delivery.await {
            Ok(acknowledged) => drop(tell.send(acknowledged).await),
            // `send` has tried it again for as long as that could help.
            Err(error) if error.kind() == ErrorKind::Ambiguous => eprintln!("perhaps written: {error}"),
            Err(error) => eprintln!("not written: {error}"),
        }
    });
    written.extend(told.recv().await);

    // One from a thread outside of the runtime, which blocks.
    let (blocking, record) = (producer.clone(), ProducerRecord::new(topic, "from a thread"));
    let thread = std::thread::spawn(move || blocking.send_blocking(record)?.wait());
    let joined = tokio::task::spawn_blocking(move || thread.join()).await;
    if let Ok(Ok(acknowledged)) = joined {
        written.push(acknowledged?);
    }

    // Without looking at each: a flush waits for all, and says if one has failed.
    let delivery = producer.send(ProducerRecord::new(topic, "flushed")).await?;
    producer.flush().await?;
    written.push(delivery.await?);
    producer.close().await?;
    Ok(written)
}
