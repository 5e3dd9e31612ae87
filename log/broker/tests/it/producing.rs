//! Produce: acknowledgements, order, and what is refused.

use bytes::{BufMut, Bytes, BytesMut};
use thalweg_protocol::messages::metadata::MetadataRequest;
use thalweg_protocol::messages::produce::{ProduceRequest, TopicProduceData};
use thalweg_protocol::record::BatchBuilder;
use thalweg_protocol::{Compression, ErrorCode};

use crate::calls::{
    PRODUCE, batch, batch_at, batches, create_topic, create_topic_with, fetch, list_offset, only, produce,
    produce_request, read_all,
};
use crate::harness::{Harness, three_ways};

three_ways!(
    a_batch_comes_back_as_it_was_sent,
    every_kind_of_acknowledgement,
    pipelined_requests_keep_their_order,
    answers_leave_in_the_order_of_the_requests,
    several_partitions_in_one_request,
    bad_batches_are_refused_and_nothing_is_appended,
    topics_can_be_named_by_id,
    log_append_time,
    a_relaxed_topic_does_not_wait_for_the_disk,
    every_version_of_produce,
);

async fn a_batch_comes_back_as_it_was_sent(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "flights", 1).await;
    assert_eq!(produce(&client, "flights", batch(["one", "two"])).await, 0);
    let sent = batch(["three", "four", "five"]);
    assert_eq!(produce(&client, "flights", sent.clone()).await, 2);

    let got = batches(&fetch(&client, "flights", 0).await);
    assert_eq!(got.len(), 2);
    assert_eq!(got[1].header().base_offset.0, 2);
    // Only the base offset and the leader epoch are the leader's to set; both lie before byte 17 with the magic.
    let (got, sent) = (got[1].bytes(), &sent);
    assert_eq!(got[8..12], sent[8..12]);
    assert_eq!(got[16..], sent[16..]);
}

async fn every_kind_of_acknowledgement(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "acks", 1).await;

    client.call(produce_request("acks", 0, vec![(0, batch(["none"]))]), PRODUCE).await;
    let one = only(client.call(produce_request("acks", 1, vec![(0, batch(["one"]))]), PRODUCE).await);
    assert_eq!((one.error_code, one.base_offset), (0, 1));
    let all = only(client.call(produce_request("acks", -1, vec![(0, batch(["all"]))]), PRODUCE).await);
    assert_eq!((all.error_code, all.base_offset, all.log_start_offset), (0, 2, 0));
    // What is acknowledged by all is committed, and with it everything before it.
    assert_eq!(list_offset(&client, "acks", -1).await.offset, 3);

    let odd = only(client.call(produce_request("acks", 2, vec![(0, batch(["odd"]))]), PRODUCE).await);
    assert_eq!(ErrorCode::from(odd.error_code), ErrorCode::InvalidRequiredAcks);
    let values: Vec<_> = read_all(&client, "acks", 0).await.into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, ["none", "one", "all"]);
}

async fn pipelined_requests_keep_their_order(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "order", 1).await;
    let answers: Vec<_> = (0..200)
        .map(|at| {
            let acks = if at % 3 == 0 { 1 } else { -1 };
            client.send(produce_request("order", acks, vec![(0, batch([at.to_string()]))]), PRODUCE)
        })
        .collect();
    for (at, answer) in answers.into_iter().enumerate() {
        let answer = only(answer.await);
        assert_eq!((answer.error_code, answer.base_offset), (0, at as i64));
    }
    let expected: Vec<_> = (0..200).map(|at| (at, at.to_string())).collect();
    assert_eq!(read_all(&client, "order", 0).await, expected);
}

async fn answers_leave_in_the_order_of_the_requests(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "order", 1).await;
    let mut parked = crate::calls::fetch_request("order", &[(0, 0)]);
    parked.max_wait_ms = 300;
    let parked = client.send(parked, crate::calls::FETCH);
    let quick = client.send(MetadataRequest::default(), 9);
    tokio::pin!(parked, quick);
    tokio::select! {
        biased;
        _ = &mut parked => {}
        _ = &mut quick => panic!("the fetch came first, so its answer had to leave first"),
    }
    quick.await;
}

async fn several_partitions_in_one_request(harness: &Harness) {
    let client = harness.connect().await;
    create_topic(&client, "three", 3).await;
    let batches = vec![(2, batch(["c"])), (0, batch(["a"])), (7, batch(["x"])), (1, batch(["b", "bb"]))];
    let mut response = client.call(produce_request("three", -1, batches), PRODUCE).await;
    let answers = response.responses.remove(0).partition_responses;
    let seen: Vec<_> =
        answers.iter().map(|answer| (answer.index, ErrorCode::from(answer.error_code))).collect();
    let expected = [
        (2, ErrorCode::None),
        (0, ErrorCode::None),
        (7, ErrorCode::UnknownTopicOrPartition),
        (1, ErrorCode::None),
    ];
    assert_eq!(seen, expected);
    assert_eq!(read_all(&client, "three", 1).await, [(0, "b".to_owned()), (1, "bb".to_owned())]);
}

async fn bad_batches_are_refused_and_nothing_is_appended(harness: &Harness) {
    let client = harness.connect().await;
    create_topic_with(&client, "bad", 1, &[("max.message.bytes", "1000")]).await;
    let good = batch(["good"]);
    let changed = |at: usize, byte: u8| {
        let mut changed = BytesMut::from(&good[..]);
        changed[at] ^= byte;
        changed.freeze()
    };
    let twice: Bytes = [&good[..], &good[..]].concat().into();
    let huge = batch(["x".repeat(2000)]);
    let far = batch_at(4_500_000_000_000, ["in a century"]);
    let mut trailing = BytesMut::from(&good[..]);
    trailing.put_u8(0);
    let cases = [
        ("no magic 2", changed(16, 3), ErrorCode::UnsupportedForMessageFormat),
        ("a flipped bit", changed(good.len() - 3, 1), ErrorCode::CorruptMessage),
        ("a wrong checksum", changed(18, 1), ErrorCode::CorruptMessage),
        ("cut short", good.slice(..good.len() - 1), ErrorCode::CorruptMessage),
        ("a byte too many", trailing.freeze(), ErrorCode::InvalidRecord),
        ("two batches", twice, ErrorCode::InvalidRecord),
        ("too large", huge, ErrorCode::MessageTooLarge),
        ("too new", far, ErrorCode::InvalidTimestamp),
        ("empty", Bytes::new(), ErrorCode::InvalidRecord),
    ];
    for (what, bytes, expected) in cases {
        let answer = only(client.call(produce_request("bad", -1, vec![(0, bytes)]), PRODUCE).await);
        assert_eq!(ErrorCode::from(answer.error_code), expected, "{what}: {:?}", answer.error_message);
        assert_eq!(answer.base_offset, -1, "{what}");
        assert!(answer.error_message.is_some(), "{what}");
    }
    let mut null = produce_request("bad", -1, vec![(0, Bytes::new())]);
    null.topic_data[0].partition_data[0].records = None;
    let answer = only(client.call(null, PRODUCE).await);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::InvalidRecord);
    assert_eq!(list_offset(&client, "bad", -1).await.offset, 0);

    let unknown = only(client.call(produce_request("nowhere", -1, vec![(0, good.clone())]), PRODUCE).await);
    assert_eq!(ErrorCode::from(unknown.error_code), ErrorCode::UnknownTopicOrPartition);
    let keyless = create_topic_with(&client, "compacted", 1, &[("cleanup.policy", "compact")]).await;
    assert_eq!(keyless.error_code, 0);
    // Each record without a key is named: producers send the others again (KIP-467).
    let mut builder = BatchBuilder::new(Compression::None, None, 1024);
    for key in [None, Some(b"k"), None, Some(b"l"), None] {
        builder.append(0, key.map(|key| &key[..]), Some(b"v"), []).expect("there is room");
    }
    let mixed = builder.finish(&mut Default::default(), None).into_bytes();
    let answer = only(client.call(produce_request("compacted", -1, vec![(0, mixed)]), PRODUCE).await);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::InvalidRecord);
    let named: Vec<_> = answer.record_errors.iter().map(|error| error.batch_index).collect();
    assert_eq!(named, [0, 2, 4]);
}

async fn topics_can_be_named_by_id(harness: &Harness) {
    let client = harness.connect().await;
    let topic_id = create_topic(&client, "by-id", 1).await;
    let by_id = |topic_id| {
        let mut request = produce_request("", -1, vec![(0, batch(["v"]))]);
        request.topic_data[0].topic_id = topic_id;
        request
    };
    let mut response = client.call(by_id(topic_id), 13).await;
    assert_eq!(response.responses[0].topic_id, topic_id);
    let answer = response.responses.remove(0).partition_responses.remove(0);
    assert_eq!((answer.error_code, answer.base_offset), (0, 0));
    let stale = thalweg_protocol::Uuid([7; 16]);
    let answer = only(client.call(by_id(stale), 13).await);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::UnknownTopicId);
}

async fn log_append_time(harness: &Harness) {
    let client = harness.connect().await;
    create_topic_with(&client, "stamped", 1, &[("message.timestamp.type", "LogAppendTime")]).await;
    let answer =
        only(client.call(produce_request("stamped", -1, vec![(0, batch_at(7, ["v"]))]), PRODUCE).await);
    assert!(answer.log_append_time_ms > 1_700_000_000_000);
    let got = batches(&fetch(&client, "stamped", 0).await);
    assert!(got[0].header().is_log_append_time());
    assert_eq!(got[0].header().max_timestamp, answer.log_append_time_ms);
}

async fn a_relaxed_topic_does_not_wait_for_the_disk(harness: &Harness) {
    let client = harness.connect().await;
    create_topic_with(&client, "relaxed", 1, &[("durability", "relaxed")]).await;
    for at in 0..20 {
        assert_eq!(produce(&client, "relaxed", batch([at.to_string()])).await, at);
        assert_eq!(list_offset(&client, "relaxed", -1).await.offset, at + 1, "it can be read at once");
    }
}

async fn every_version_of_produce(harness: &Harness) {
    let client = harness.connect().await;
    let topic_id = create_topic(&client, "versions", 1).await;
    for (at, version) in (3..=13).enumerate() {
        let mut request: ProduceRequest = produce_request("versions", -1, vec![(0, batch(["v"]))]);
        if version >= 13 {
            let data: &mut TopicProduceData = &mut request.topic_data[0];
            data.topic_id = topic_id;
        }
        let answer = only(client.call(request, version).await);
        assert_eq!((answer.error_code, answer.base_offset), (0, at as i64), "version {version}");
    }
}
