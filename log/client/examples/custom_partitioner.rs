//! A partitioner of one's own: orders of big customers have the first partition for themselves.
//!
//! `cargo run -p thalweg-client --example custom_partitioner -- HOST:PORT TOPIC`

use std::sync::Arc;

use thalweg_client::{Client, Error, Partitioner, ProducerConfig, ProducerRecord};
use thalweg_protocol::partition_for_key;

#[path = "shared/connecting.rs"]
mod connecting;
use connecting::connect;

/// Big customers' keys begin with this.
const BIG: &[u8] = b"big-";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (bootstrap, topic) = (next("127.0.0.1:9092"), next("orders"));
    let client = connect(&bootstrap).await?;
    for (customer, partition) in run(&client, &topic, &["big-1", "small-1", "small-2"]).await? {
        println!("{customer}: partition {partition}");
    }
    Ok(())
}

/// Puts big customers into partition 0 and shares the others out by key among the rest.
struct BigFirst;

impl Partitioner for BigFirst {
    fn partition(&self, _topic: &str, key: Option<&[u8]>, _value: &[u8], partitions: i32) -> Option<i32> {
        match key {
            Some(key) if key.starts_with(BIG) || partitions == 1 => Some(0),
            Some(key) => Some(1 + partition_for_key(key, partitions - 1)),
            // The sticky partitioner chooses: records without a key fill one batch after the other.
            None => None,
        }
    }
}

/// Sends an order of each customer; returns which partition it went to.
pub async fn run(client: &Client, topic: &str, customers: &[&str]) -> Result<Vec<(String, i32)>, Error> {
    let producer = client.producer_with(ProducerConfig::default(), Arc::new(BigFirst))?;
    let mut placed = Vec::new();
    for customer in customers {
        let order = ProducerRecord::new(topic, "an order").key(customer.as_bytes().to_vec());
        let written = producer.send_and_wait(order).await?;
        placed.push(((*customer).to_owned(), written.partition.partition));
    }
    producer.close().await?;
    Ok(placed)
}
