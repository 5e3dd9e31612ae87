//! An assignor of one's own: members say how much they can do, and get partitions in proportion.
//!
//! `cargo run -p thalweg-client --example custom_assignor -- HOST:PORT TOPIC GROUP`

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_client::{Assignment, Assignor, Client, Consumer, ConsumerConfig, Error, GroupMember};
use thalweg_protocol::TopicPartition;

#[path = "shared/connecting.rs"]
mod connecting;
use connecting::connect;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (bootstrap, topic, group) = (next("127.0.0.1:9092"), next("events"), next("by-capacity"));
    let client = connect(&bootstrap).await?;
    let shares = run(&client, &topic, &group, [1, 3]).await?;
    println!("capacity 1: {} partitions, capacity 3: {} partitions", shares[0], shares[1]);
    Ok(())
}

/// Gives each partition to the member that has the least for what it can do.
struct ByCapacity {
    capacity: u32,
}

impl Assignor for ByCapacity {
    fn name(&self) -> &str {
        "by-capacity"
    }

    /// What the leader learns of this member.
    fn user_data(&self, _topics: &[ByteString]) -> Option<Bytes> {
        Some(Bytes::copy_from_slice(&self.capacity.to_be_bytes()))
    }

    fn assign(
        &self,
        topics: &BTreeMap<ByteString, i32>,
        members: &[GroupMember],
    ) -> Result<BTreeMap<ByteString, Assignment>, Error> {
        let mut shares: BTreeMap<ByteString, Assignment> =
            members.iter().map(|member| (member.id.clone(), Assignment::default())).collect();
        for (topic, count) in topics {
            let readers: Vec<&GroupMember> =
                members.iter().filter(|member| member.topics.contains(topic)).collect();
            for partition in 0..*count {
                // How much of what it can do the member would have, in thousandths.
                let load = |member: &&&GroupMember| {
                    let share = shares.get(&member.id).map_or(0, |share| share.partitions.len() as u64);
                    (share + 1) * 1_000 / u64::from(capacity_of(member))
                };
                let Some(chosen) = readers.iter().min_by_key(load).map(|member| member.id.clone()) else {
                    continue;
                };
                let share = shares.entry(chosen).or_default();
                share.partitions.push(TopicPartition::new(topic.clone(), partition));
            }
        }
        Ok(shares)
    }
}

fn capacity_of(member: &GroupMember) -> u32 {
    let told = member.user_data.as_deref().and_then(|told| told.try_into().ok());
    told.map_or(1, u32::from_be_bytes).max(1)
}

/// Lets two members of these capacities share a topic; returns how many partitions each got.
pub async fn run(
    client: &Client,
    topic: &str,
    group: &str,
    capacities: [u32; 2],
) -> Result<[usize; 2], Error> {
    let join = |capacity| -> Result<Consumer, Error> {
        let assignors: Vec<Arc<dyn Assignor>> = vec![Arc::new(ByCapacity { capacity })];
        let config = ConsumerConfig { heartbeat_interval_ms: 100, ..ConsumerConfig::group(group) };
        let mut consumer = client.consumer_with(config, assignors)?;
        consumer.subscribe([topic])?;
        Ok(consumer)
    };
    let [mut small, mut large] = [join(capacities[0])?, join(capacities[1])?];
    let all = client.partition_count(topic).await? as usize;
    loop {
        small.poll(Duration::from_millis(50)).await?;
        large.poll(Duration::from_millis(50)).await?;
        let shares = [small.assignment().len(), large.assignment().len()];
        if shares.iter().sum::<usize>() == all && shares.iter().all(|share| *share > 0) {
            small.close().await?;
            large.close().await?;
            return Ok(shares);
        }
    }
}
