//! The records of internal topics and files, as Kafka 4.4 writes them.

use std::fmt::Debug;

use bytes::Bytes;
use thalweg_protocol::messages::records::{
    AbortedTxn, ClassicMemberMetadata, ClassicProtocol, ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue,
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, ControlRecordTypeSchema, EndTxnMarker,
    GroupMetadataKey, GroupMetadataValue, MemberMetadata, OffsetCommitKey, OffsetCommitValue,
    OwnedTopicPartitions, PartitionsSchema, ProducerEntry, ProducerSnapshot, TopicPartition,
    TransactionLogKey, TransactionLogValue,
};
use thalweg_protocol::{ByteString, DecodeError, EncodeError, Uuid};

use super::frames::hex;

fn text(text: &'static str) -> ByteString {
    ByteString::from_static(text)
}

fn unhex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(|c| *c != b' ').collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Checks both ways: `record` against its bytes in hexadecimal, with spaces between fields.
fn check<T: PartialEq + Debug>(
    record: &T,
    written: Result<Bytes, EncodeError>,
    read: impl Fn(Bytes) -> Result<T, DecodeError>,
    expected: &str,
) {
    assert_eq!(hex(&written.unwrap()), expected.replace(' ', ""), "{record:?}");
    assert_eq!(read(unhex(expected)).as_ref(), Ok(record));
}

#[test]
fn committed_offsets() {
    let key = OffsetCommitKey { group: text("g"), topic: text("flights"), partition: 2 };
    check(&key, key.to_bytes(), OffsetCommitKey::from_bytes, "0001 0001 67 0007 666c6967687473 00000002");
    let mut value = OffsetCommitValue {
        offset: 42,
        metadata: text("m"),
        commit_timestamp: 1000,
        ..OffsetCommitValue::default()
    };
    let read = OffsetCommitValue::from_bytes;
    check(&value, value.to_bytes(0), read, "0000 000000000000002a 0001 6d 00000000000003e8");
    value.expire_timestamp = 2000;
    check(&value, value.to_bytes(1), read, "0001 000000000000002a 0001 6d 00000000000003e8 00000000000007d0");
    value.expire_timestamp = -1;
    value.leader_epoch = 7;
    check(&value, value.to_bytes(3), read, "0003 000000000000002a 00000007 0001 6d 00000000000003e8");
    value.topic_id = Uuid([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
    let expected =
        "0004 000000000000002a 00000007 02 6d 00000000000003e8 01 00 10 00000000000000010000000000000002";
    check(&value, value.to_bytes(4), read, expected);
}

#[test]
fn groups() {
    let key = GroupMetadataKey { group: text("g") };
    check(&key, key.to_bytes(), GroupMetadataKey::from_bytes, "0002 0001 67");
    let value = GroupMetadataValue {
        protocol_type: text("consumer"),
        generation: 3,
        protocol: Some(text("range")),
        leader: None,
        current_state_timestamp: 9,
        members: vec![MemberMetadata {
            member_id: text("m-1"),
            group_instance_id: Some(text("i")),
            client_id: text("c"),
            client_host: text("/h"),
            rebalance_timeout: 300,
            session_timeout: 45,
            subscription: Bytes::from_static(&[1, 2]),
            assignment: Bytes::new(),
        }],
    };
    let expected = "0003 0008 636f6e73756d6572 00000003 0005 72616e6765 ffff 0000000000000009 00000001 0003 6d2d31 \
                    0001 69 0001 63 0002 2f68 0000012c 0000002d 00000002 0102 00000000";
    check(&value, value.to_bytes(3), GroupMetadataValue::from_bytes, expected);
}

#[test]
fn transactions() {
    let key = TransactionLogKey { transactional_id: text("tx") };
    check(&key, key.to_bytes(), TransactionLogKey::from_bytes, "0000 0002 7478");
    let mut value = TransactionLogValue {
        producer_id: 5,
        producer_epoch: 6,
        transaction_timeout_ms: 7,
        transaction_status: 1,
        transaction_partitions: Some(vec![PartitionsSchema { topic: text("t"), partition_ids: vec![0, 1] }]),
        transaction_last_update_timestamp_ms: 8,
        transaction_start_timestamp_ms: 9,
        ..TransactionLogValue::default()
    };
    let expected = "0000 0000000000000005 0006 00000007 01 00000001 0001 74 00000002 00000000 00000001 \
                    0000000000000008 0000000000000009";
    check(&value, value.to_bytes(0), TransactionLogValue::from_bytes, expected);
    value.transaction_status = 0;
    value.transaction_partitions = None;
    value.previous_producer_id = 4;
    value.next_producer_epoch = 3;
    value.client_transaction_version = 2;
    let expected = "0001 0000000000000005 0006 00000007 00 00 0000000000000008 0000000000000009 \
                    03 00 08 0000000000000004 02 02 0002 03 02 0003";
    check(&value, value.to_bytes(1), TransactionLogValue::from_bytes, expected);
}

#[test]
fn groups_of_the_consumer_protocol() {
    let key = ConsumerGroupCurrentMemberAssignmentKey { group_id: text("g"), member_id: text("m") };
    let read = ConsumerGroupCurrentMemberAssignmentKey::from_bytes;
    check(&key, key.to_bytes(), read, "0008 0001 67 0001 6d");
    let id = Uuid(*b"0123456789abcdef");
    let owned =
        OwnedTopicPartitions { topic_id: id, partitions: vec![1, 3], assignment_epochs: Some(vec![2, 4]) };
    let value = ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: 5,
        previous_member_epoch: 4,
        state: 2,
        assigned_partitions: vec![owned],
        partitions_pending_revocation: Vec::new(),
    };
    let expected = "0000 00000005 00000004 02 02 30313233343536373839616263646566 03 00000001 00000003 \
                    01 00 09 03 00000002 00000004 01 00";
    check(&value, value.to_bytes(0), ConsumerGroupCurrentMemberAssignmentValue::from_bytes, expected);

    let protocol = ClassicProtocol { name: text("r"), metadata: Bytes::from_static(&[7]) };
    let classic = ClassicMemberMetadata { session_timeout_ms: 10, supported_protocols: vec![protocol] };
    let mut value = ConsumerGroupMemberMetadataValue {
        client_id: text("c"),
        client_host: text("h"),
        subscribed_topic_names: vec![text("t")],
        rebalance_timeout_ms: 9,
        ..Default::default()
    };
    (value.instance_id, value.rack_id) = (None, None);
    (value.subscribed_topic_regex, value.server_assignor) = (None, Some(text("u")));
    let read = ConsumerGroupMemberMetadataValue::from_bytes;
    let plain = "0000 00 00 02 63 02 68 02 02 74 00 00000009 02 75";
    check(&value, value.to_bytes(0), read, &format!("{plain} 00"));
    value.classic_member_metadata = Some(classic);
    let tagged = format!("{plain} 01 00 0c 01 0000000a 02 02 72 02 07 00 00");
    check(&value, value.to_bytes(0), read, &tagged);

    let value = ConsumerGroupMetadataValue { epoch: 3, metadata_hash: -2 };
    let expected = "0000 00000003 01 00 08 fffffffffffffffe";
    check(&value, value.to_bytes(0), ConsumerGroupMetadataValue::from_bytes, expected);
}

#[test]
fn what_consumers_tell_their_group() {
    let subscription = ConsumerProtocolSubscription {
        topics: vec![text("a"), text("b")],
        user_data: None,
        owned_partitions: vec![TopicPartition { topic: text("a"), partitions: vec![0, 3] }],
        generation_id: 4,
        rack_id: Some(text("r")),
    };
    let read = ConsumerProtocolSubscription::from_bytes;
    let expected = "0003 00000002 0001 61 0001 62 ffffffff 00000001 0001 61 00000002 00000000 00000003 00000004 \
                    0001 72";
    check(&subscription, subscription.to_bytes(3), read, expected);
    // A later version may have more fields; what is known of it is read.
    let later = expected.replacen("0003", "0009", 1) + "beef";
    assert_eq!(read(unhex(&later)), Ok(subscription));

    let assignment = ConsumerProtocolAssignment {
        assigned_partitions: vec![TopicPartition { topic: text("a"), partitions: vec![1] }],
        user_data: Some(Bytes::from_static(&[9])),
    };
    let expected = "0000 00000001 0001 61 00000001 00000001 00000001 09";
    check(&assignment, assignment.to_bytes(0), ConsumerProtocolAssignment::from_bytes, expected);
}

#[test]
fn what_segments_keep() {
    let marker = EndTxnMarker { coordinator_epoch: 11 };
    check(&marker, marker.to_bytes(0), EndTxnMarker::from_bytes, "0000 0000000b");
    let commit = ControlRecordTypeSchema { r#type: 1 };
    check(&commit, commit.to_bytes(0), ControlRecordTypeSchema::from_bytes, "0000 0001");
    let aborted = AbortedTxn { producer_id: 1, first_offset: 2, last_offset: 3, last_stable_offset: 4 };
    let expected = "0000 0000000000000001 0000000000000002 0000000000000003 0000000000000004";
    check(&aborted, aborted.to_bytes(0), AbortedTxn::from_bytes, expected);
    let entry = ProducerEntry {
        producer_id: 1,
        epoch: 2,
        last_sequence: 3,
        last_offset: 4,
        offset_delta: 5,
        timestamp: 6,
        coordinator_epoch: -1,
        current_txn_first_offset: -1,
    };
    let snapshot = ProducerSnapshot { crc: 0xdead_beef, producer_entries: vec![entry] };
    let expected = "0001 deadbeef 00000001 0000000000000001 0002 00000003 0000000000000004 00000005 \
                    0000000000000006 ffffffff ffffffffffffffff";
    check(&snapshot, snapshot.to_bytes(1), ProducerSnapshot::from_bytes, expected);
}

#[test]
fn unknown_versions_and_leftovers_are_refused() {
    let error = OffsetCommitValue::from_bytes(unhex("0005 00")).unwrap_err();
    assert_eq!(error, DecodeError::RecordVersion { version: 5, first: 0, last: 4 });
    let error = OffsetCommitKey::from_bytes(unhex("0002 0001 67")).unwrap_err();
    assert_eq!(error, DecodeError::RecordVersion { version: 2, first: 1, last: 1 });
    let error = GroupMetadataKey::from_bytes(unhex("0002 0001 67 00")).unwrap_err();
    assert_eq!(error, DecodeError::TrailingBytes { at: 5, remaining: 1 });
    let error = ProducerSnapshot::default().to_bytes(2).unwrap_err();
    assert_eq!(
        error,
        EncodeError::UnknownVersion { message: "ProducerSnapshot", version: 2, first: 1, last: 1 }
    );
}
