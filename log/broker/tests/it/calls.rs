//! The calls that most tests need.

use bytes::Bytes;
use thalweg_protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
};
use thalweg_protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use thalweg_protocol::messages::fetch::{FetchPartition, FetchRequest, FetchTopic, PartitionData};
use thalweg_protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use thalweg_protocol::messages::metadata::MetadataRequest;
use thalweg_protocol::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
};
use thalweg_protocol::record::{BatchBuilder, Batches, RecordBatch};
use thalweg_protocol::{Compression, ErrorCode, Records, Uuid};

use crate::harness::Client;

pub fn all_topics() -> MetadataRequest {
    MetadataRequest { topics: None, ..Default::default() }
}

/// A version of Produce and Fetch that names topics by name and has everything else.
pub const PRODUCE: i16 = 12;
pub const FETCH: i16 = 12;

/// A batch of `values`, the records a millisecond apart from `timestamp` on.
pub fn batch_at<V: AsRef<[u8]>>(timestamp: i64, values: impl IntoIterator<Item = V>) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None, None, 1024);
    for (at, value) in values.into_iter().enumerate() {
        let timestamp = timestamp + at as i64;
        builder.append(timestamp, None, Some(value.as_ref()), []).expect("there is room");
    }
    builder.finish(&mut Default::default(), None).into_bytes()
}

pub fn batch<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Bytes {
    batch_at(1_357_000_000_000, values)
}

pub async fn create_topic(client: &Client, name: &str, partitions: i32) -> Uuid {
    let result = create_topic_with(client, name, partitions, &[]).await;
    assert_eq!(ErrorCode::from(result.error_code), ErrorCode::None, "{result:?}");
    result.topic_id
}

pub async fn create_topic_with(
    client: &Client,
    name: &str,
    partitions: i32,
    configs: &[(&str, &str)],
) -> CreatableTopicResult {
    let configs = configs
        .iter()
        .map(|&(name, value)| CreatableTopicConfig { name: name.into(), value: Some(value.into()) });
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: -1,
        configs: configs.collect(),
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    client.call(request, 7).await.topics.remove(0)
}

pub async fn delete_topic(client: &Client, name: &str) {
    let topic = DeleteTopicState { name: Some(name.into()), ..Default::default() };
    let request = DeleteTopicsRequest { topics: vec![topic], ..Default::default() };
    let answer = client.call(request, 6).await.responses.remove(0);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::None, "{answer:?}");
}

pub fn produce_request(topic: &str, acks: i16, batches: Vec<(i32, Bytes)>) -> ProduceRequest {
    let partitions = batches
        .into_iter()
        .map(|(index, batch)| PartitionProduceData { index, records: Some(Records::Bytes(batch)) });
    ProduceRequest {
        acks,
        timeout_ms: 10_000,
        topic_data: vec![TopicProduceData {
            name: topic.into(),
            partition_data: partitions.collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

pub fn only(mut response: ProduceResponse) -> PartitionProduceResponse {
    response.responses.remove(0).partition_responses.remove(0)
}

/// Produces to partition 0 with acks = all and returns the base offset.
pub async fn produce(client: &Client, topic: &str, batch: Bytes) -> i64 {
    let answer = only(client.call(produce_request(topic, -1, vec![(0, batch)]), PRODUCE).await);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::None, "{answer:?}");
    answer.base_offset
}

pub fn fetch_request(topic: &str, offsets: &[(i32, i64)]) -> FetchRequest {
    let partitions = offsets.iter().map(|&(partition, fetch_offset)| FetchPartition {
        partition,
        fetch_offset,
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    });
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 50 << 20,
        topics: vec![FetchTopic {
            topic: topic.into(),
            partitions: partitions.collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Fetches partition 0 once, without waiting.
pub async fn fetch(client: &Client, topic: &str, offset: i64) -> PartitionData {
    let response = client.call(fetch_request(topic, &[(0, offset)]), FETCH).await;
    assert_eq!(response.error_code, 0);
    response.responses.into_iter().next().expect("one topic").partitions.remove(0)
}

pub fn batches(data: &PartitionData) -> Vec<RecordBatch> {
    let records = data.records.clone().expect("records are never null here");
    let bytes = records.into_bytes().expect("the segment can be read");
    Batches::new(bytes).map(|batch| batch.expect("whole batches")).collect()
}

/// The values in `data`, with their offsets, from the first batch on, whatever offset was asked for.
pub fn values(data: &PartitionData) -> Vec<(i64, String)> {
    let mut values = Vec::new();
    for batch in batches(data) {
        batch.verify().expect("the broker sends what it took");
        let mut scratch = thalweg_protocol::Scratch::new(1 << 20);
        for record in batch.records(&mut scratch).expect("it is not compressed") {
            let record = record.expect("whole records");
            let value = String::from_utf8(record.value.unwrap_or_default().to_vec()).expect("text");
            values.push((record.offset.0, value));
        }
    }
    values
}

/// Reads all values of a partition, batch by batch.
pub async fn read_all(client: &Client, topic: &str, partition: i32) -> Vec<(i64, String)> {
    let mut all: Vec<(i64, String)> = Vec::new();
    loop {
        let next = all.last().map_or(0, |(offset, _)| offset + 1);
        let response = client.call(fetch_request(topic, &[(partition, next)]), FETCH).await;
        let data = &response.responses[0].partitions[0];
        assert_eq!(ErrorCode::from(data.error_code), ErrorCode::None);
        let new: Vec<_> = values(data).into_iter().filter(|(offset, _)| *offset >= next).collect();
        if new.is_empty() {
            return all;
        }
        all.extend(new);
    }
}

pub async fn list_offset(client: &Client, topic: &str, timestamp: i64) -> ListOffsetsPartitionResponse {
    list_offset_in(client, topic, timestamp, 11).await
}

pub async fn list_offset_in(
    client: &Client,
    topic: &str,
    timestamp: i64,
    version: i16,
) -> ListOffsetsPartitionResponse {
    let partition = ListOffsetsPartition { partition_index: 0, current_leader_epoch: -1, timestamp };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic { name: topic.into(), partitions: vec![partition] }],
        ..Default::default()
    };
    client.call(request, version).await.topics.remove(0).partitions.remove(0)
}
