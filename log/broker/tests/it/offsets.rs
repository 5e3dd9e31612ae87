//! ListOffsets, OffsetForLeaderEpoch and DeleteRecords.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use thalweg_protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use thalweg_protocol::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use crate::calls::{
    batch, batch_at, create_topic, fetch, list_offset, list_offset_in, produce, produce_request,
};
use crate::harness::{Client, Harness, three_ways};

three_ways!(
    offsets_by_time,
    list_offsets_errors,
    every_version_finds_something,
    ends_of_leader_epochs,
    deleting_records,
);

async fn offsets_by_time(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let empty = list_offset(&client, "t", -3).await;
    assert_eq!((empty.error_code, empty.offset, empty.timestamp), (0, -1, -1));
    assert_eq!(list_offset(&client, "t", 0).await.offset, -1);

    produce(&client, "t", batch_at(1000, ["0", "1", "2"])).await;
    produce(&client, "t", batch_at(5000, ["3", "4"])).await;
    produce(&client, "t", batch_at(3000, ["5"])).await;
    for (asked, offset, timestamp) in [
        (-2, 0, -1),
        (-1, 6, -1),
        (-3, 4, 5001),
        (-4, 0, -1),
        (-5, -1, -1),
        (-6, -1, -1),
        (0, 0, 1000),
        (1000, 0, 1000),
        (1001, 1, 1001),
        (1002, 2, 1002),
        (1003, 3, 5000),
        (5001, 4, 5001),
        (5002, -1, -1),
    ] {
        let found = list_offset(&client, "t", asked).await;
        assert_eq!(
            (found.error_code, found.offset, found.timestamp),
            (0, offset, timestamp),
            "asked for {asked}"
        );
        assert_eq!(found.leader_epoch >= 0, offset >= 0, "asked for {asked}");
    }
}

async fn list_offsets_errors(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let asked =
        [("t", 0, -1, -1), ("t", 5, -1, -1), ("nowhere", 0, -1, -1), ("t", 0, 99, -1), ("t", 0, -1, -77)];
    let topics = asked.map(|(name, partition_index, current_leader_epoch, timestamp)| ListOffsetsTopic {
        name: name.into(),
        partitions: vec![ListOffsetsPartition { partition_index, current_leader_epoch, timestamp }],
    });
    let request = ListOffsetsRequest { replica_id: -1, topics: topics.into(), ..Default::default() };
    let response = client.call(request, 11).await;
    let codes: Vec<_> =
        response.topics.iter().map(|topic| ErrorCode::from(topic.partitions[0].error_code)).collect();
    let expected = [
        ErrorCode::None,
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::UnknownLeaderEpoch,
        ErrorCode::UnsupportedVersion,
    ];
    assert_eq!(codes, expected);
}

async fn every_version_finds_something(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch_at(1000, ["0", "1"])).await;
    for version in 1..=11 {
        let found = list_offset_in(&client, "t", 1001, version).await;
        assert_eq!((found.error_code, found.offset, found.timestamp), (0, 1, 1001), "version {version}");
        assert_eq!(found.leader_epoch >= 0, version >= 4, "version {version}");
        // The times that stand for something else have come one after the other.
        for (asked, first_version) in [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, i16::MAX)]
        {
            let code = ErrorCode::from(list_offset_in(&client, "t", asked, version).await.error_code);
            let right =
                if version >= first_version { ErrorCode::None } else { ErrorCode::UnsupportedVersion };
            assert_eq!(code, right, "asked for {asked} in version {version}");
        }
    }
    for version in 2..=4 {
        assert_eq!(end_of_epoch_in(&client, 0, version).await.0, 0, "version {version}");
    }
}

async fn end_of_epoch(client: &Client, leader_epoch: i32) -> (i16, i32, i64) {
    end_of_epoch_in(client, leader_epoch, 4).await
}

async fn end_of_epoch_in(client: &Client, leader_epoch: i32, version: i16) -> (i16, i32, i64) {
    let partition = OffsetForLeaderPartition { partition: 0, current_leader_epoch: -1, leader_epoch };
    let request = OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: vec![OffsetForLeaderTopic { topic: "t".into(), partitions: vec![partition] }],
    };
    let mut response = client.call(request, version).await;
    let end = response.topics.remove(0).partitions.remove(0);
    (end.error_code, end.leader_epoch, end.end_offset)
}

async fn ends_of_leader_epochs(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    produce(&client, "t", batch(["0", "1"])).await;
    let epoch = list_offset(&client, "t", -1).await.leader_epoch;
    assert_eq!(end_of_epoch(&client, epoch).await, (0, epoch, 2));
    assert_eq!(end_of_epoch(&client, epoch + 1).await, (0, -1, -1), "an epoch that has not been");
}

async fn delete_records(client: &Client, topic: &str, offset: i64, version: i16) -> (ErrorCode, i64) {
    let partition = DeleteRecordsPartition { partition_index: 0, offset };
    let request = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic { name: topic.into(), partitions: vec![partition] }],
        timeout_ms: 1000,
    };
    let mut response = client.call(request, version).await;
    let result = response.topics.remove(0).partitions.remove(0);
    (ErrorCode::from(result.error_code), result.low_watermark)
}

async fn deleting_records(harness: &Harness) {
    let client = harness.connect().await;
    for version in 0..=2 {
        let topic = &format!("version-{version}");
        create_topic(&client, topic, 1).await;
        for value in 0..5 {
            produce(&client, topic, batch([value.to_string()])).await;
        }
        let delete = async |offset| delete_records(&client, topic, offset, version).await;
        assert_eq!(delete(3).await, (ErrorCode::None, 3));
        assert_eq!(list_offset(&client, topic, -2).await.offset, 3);
        assert_eq!(ErrorCode::from(fetch(&client, topic, 2).await.error_code), ErrorCode::OffsetOutOfRange);
        assert_eq!(fetch(&client, topic, 3).await.log_start_offset, 3);
        assert_eq!(delete(1).await, (ErrorCode::None, 3), "it does not go back");
        assert_eq!(delete(6).await, (ErrorCode::OffsetOutOfRange, -1));
        assert_eq!(delete(-1).await, (ErrorCode::None, 5), "everything that is committed");
        assert_eq!(produce(&client, topic, batch(["5"])).await, 5);
        // What was acknowledged before it was synced can be deleted at once.
        for end in 7..20 {
            let request = produce_request(topic, 1, vec![(0, batch([end.to_string()]))]);
            client.call(request, 9).await;
            assert_eq!(delete(end).await, (ErrorCode::None, end));
        }
    }
}
