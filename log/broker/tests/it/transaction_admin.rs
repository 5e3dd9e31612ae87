//! Transactions as operators see them, and ending those that hang (KIP-664).

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::describe_producers::{
    DescribeProducersRequest, PartitionResponse, ProducerState, TopicRequest,
};
use thalweg_protocol::messages::describe_transactions::{DescribeTransactionsRequest, TransactionState};
use thalweg_protocol::messages::list_transactions::{ListTransactionsRequest, ListTransactionsResponse};
use thalweg_protocol::messages::write_txn_markers::{
    WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest,
};

use crate::calls::{batch, create_topic, list_offset, produce};
use crate::committing::fetch_offset;
use crate::grouping::code;
use crate::harness::{Client, Harness, Way, three_ways};
use crate::transaction_rules::{Txn, committed, init, prepare, settled};

three_ways! {
    transactional_ids_are_listed_in_every_version,
    transactional_ids_are_described,
    producers_are_described,
    a_transaction_is_ended_by_markers_in_every_version,
    offsets_of_a_transaction_are_ended_by_markers,
    markers_that_nobody_can_write_are_refused,
}

async fn list(client: &Client, request: ListTransactionsRequest, version: i16) -> ListTransactionsResponse {
    client.call(request, version).await
}

fn ids(response: &ListTransactionsResponse) -> Vec<&str> {
    assert_eq!(code(response.error_code), ErrorCode::None);
    response.transaction_states.iter().map(|state| &*state.transactional_id).collect()
}

async fn transactional_ids_are_listed_in_every_version(harness: &Harness) {
    let client = harness.connect().await;
    for version in 0..=2 {
        let nobody = list(&client, ListTransactionsRequest::default(), version).await;
        assert_eq!(ids(&nobody), [""; 0], "there is no topic of transactions yet");
    }
    let client = prepare(harness).await;
    let (open, mut ended, idle) =
        (init(&client, "open").await, init(&client, "ended").await, init(&client, "idle").await);
    assert_eq!(open.produce(&client, 0, "v", 12).await, ErrorCode::None);
    assert_eq!(ended.produce(&client, 0, "v", 12).await, ErrorCode::None);
    assert_eq!(ended.end(&client, true, 5).await, ErrorCode::None);
    ended_as(&client, "ended", "CompleteCommit").await;
    let states = |names: &[&'static str]| names.iter().map(|name| (*name).into()).collect();
    let any = ListTransactionsRequest::default;
    for version in 0..=2 {
        let all = list(&client, any(), version).await;
        assert_eq!(ids(&all), ["ended", "idle", "open"], "version {version}");
        let described = |at: usize| {
            let state = &all.transaction_states[at];
            (state.producer_id, &*state.transaction_state)
        };
        assert_eq!(described(0), (ended.producer, "CompleteCommit"));
        assert_eq!(described(1), (idle.producer, "Empty"));
        assert_eq!(described(2), (open.producer, "Ongoing"));
        let by_state = ListTransactionsRequest { state_filters: states(&["Ongoing", "Empty"]), ..any() };
        assert_eq!(ids(&list(&client, by_state, version).await), ["idle", "open"]);
        let odd = ListTransactionsRequest { state_filters: states(&["Ongoing", "Odd", "Dead"]), ..any() };
        let answer = list(&client, odd, version).await;
        assert_eq!((ids(&answer), &answer.unknown_state_filters[..]), (vec!["open"], &["Odd".into()][..]));
        let by_producer =
            ListTransactionsRequest { producer_id_filters: vec![idle.producer, 99_999], ..any() };
        assert_eq!(ids(&list(&client, by_producer, version).await), ["idle"]);
        // Older versions do not know these.
        if version >= 1 {
            let long = ListTransactionsRequest { duration_filter: 3_600_000, ..any() };
            assert_eq!(ids(&list(&client, long, version).await), [""; 0]);
        }
        if version >= 2 {
            let named = async |pattern: &'static str| {
                let request =
                    ListTransactionsRequest { transactional_id_pattern: Some(pattern.into()), ..any() };
                list(&client, request, version).await
            };
            let all = &["ended", "idle", "open"][..];
            for (pattern, expected) in [(".*e.*", all), ("e.*", &["ended"]), ("en", &[]), ("", all)] {
                assert_eq!(ids(&named(pattern).await), expected, "{pattern}");
            }
            let wrong = code(named("(").await.error_code);
            assert_eq!(wrong, ErrorCode::InvalidRegularExpression);
        }
    }
}

async fn describe(client: &Client, ids: &[&'static str]) -> Vec<TransactionState> {
    let transactional_ids = ids.iter().map(|id| (*id).into()).collect();
    client.call(DescribeTransactionsRequest { transactional_ids }, 0).await.transaction_states
}

/// Waits until the markers of the transaction of `id` are written.
async fn ended_as(client: &Client, id: &'static str, state: &str) {
    while describe(client, &[id]).await[0].transaction_state != state {
        tokio::task::yield_now().await;
    }
}

async fn transactional_ids_are_described(harness: &Harness) {
    let client = prepare(harness).await;
    create_topic(&client, "u", 2).await;
    let mut txn = init(&client, "tx").await;
    let added = txn.add_partitions(&client, &[("u", 1), ("t", 0), ("u", 0)], 3).await;
    assert_eq!(added, [ErrorCode::None; 3]);
    // However often it is asked for, it is described once.
    let described = describe(&client, &["tx", "nobody", "tx", ""]).await;
    let told: Vec<_> =
        described.iter().map(|state| (&*state.transactional_id, code(state.error_code))).collect();
    let expected = [
        ("", ErrorCode::InvalidRequest),
        ("nobody", ErrorCode::TransactionalIdNotFound),
        ("tx", ErrorCode::None),
    ];
    assert_eq!(told, expected);
    let open = &described[2];
    assert_eq!((&*open.transaction_state, open.transaction_timeout_ms), ("Ongoing", 60_000));
    assert_eq!((open.producer_id, open.producer_epoch), (txn.producer, txn.epoch));
    assert!(open.transaction_start_time_ms > 1_600_000_000_000, "{open:?}");
    let partitions: Vec<_> = open.topics.iter().map(|topic| (&*topic.topic, &topic.partitions[..])).collect();
    assert_eq!(partitions, [("t", &[0][..]), ("u", &[0, 1])]);
    assert_eq!(txn.end(&client, false, 5).await, ErrorCode::None);
    ended_as(&client, "tx", "CompleteAbort").await;
    let ended = describe(&client, &["tx"]).await.remove(0);
    assert_eq!((ended.topics.len(), ended.producer_epoch), (0, txn.epoch));
}

async fn producers(client: &Client, topics: &[(&'static str, &[i32])]) -> Vec<(String, PartitionResponse)> {
    let topics = topics.iter().map(|(name, partitions)| TopicRequest {
        name: (*name).into(),
        partition_indexes: partitions.to_vec(),
    });
    let answer = client.call(DescribeProducersRequest { topics: topics.collect() }, 0).await;
    let topics = answer.topics.into_iter();
    topics
        .flat_map(|topic| topic.partitions.into_iter().map(move |found| (topic.name.to_string(), found)))
        .collect()
}

/// The only producer of partition 0 of `t`.
async fn writer(client: &Client) -> ProducerState {
    let mut found = producers(client, &[("t", &[0])]).await;
    let [state] = found.remove(0).1.active_producers.try_into().expect("one producer wrote");
    state
}

async fn producers_are_described(harness: &Harness) {
    let client = prepare(harness).await;
    let found = producers(&client, &[("t", &[0, 0, 7]), ("none", &[0]), ("t", &[0])]).await;
    let told: Vec<_> = found
        .iter()
        .map(|(topic, found)| (topic.as_str(), found.partition_index, code(found.error_code)))
        .collect();
    let missing = ErrorCode::UnknownTopicOrPartition;
    // However often a partition is asked for, it is described once.
    assert_eq!(told, [("t", 0, ErrorCode::None), ("t", 7, missing), ("none", 0, missing)]);
    assert!(found[0].1.active_producers.is_empty());

    // Whoever writes without being a producer leaves nothing behind.
    produce(&client, "t", batch(["plain"])).await;
    let mut txn = init(&client, "tx").await;
    for sequence in 0..2 {
        assert_eq!(txn.produce(&client, sequence, "v", 12).await, ErrorCode::None);
    }
    let open = writer(&client).await;
    assert_eq!((open.producer_id, open.producer_epoch), (txn.producer, i32::from(txn.epoch)));
    assert_eq!((open.last_sequence, open.coordinator_epoch, open.current_txn_start_offset), (1, -1, 1));
    assert!(open.last_timestamp > 1_600_000_000_000, "{open:?}");
    assert_eq!(txn.end(&client, true, 5).await, ErrorCode::None);
    settled(&client).await;
    let ended = writer(&client).await;
    assert_eq!(ended.producer_epoch, i32::from(txn.epoch), "the marker has the next one");
    assert_eq!((ended.last_sequence, ended.current_txn_start_offset), (-1, -1));
    assert!(ended.coordinator_epoch >= 0, "{ended:?}");
}

fn marker(txn: Txn, commits: bool, topics: &[(&'static str, &[i32])]) -> WritableTxnMarker {
    let topics = topics.iter().map(|(name, partitions)| WritableTxnMarkerTopic {
        name: (*name).into(),
        partition_indexes: partitions.to_vec(),
    });
    WritableTxnMarker {
        producer_id: txn.producer,
        producer_epoch: txn.epoch,
        transaction_result: commits,
        topics: topics.collect(),
        ..Default::default()
    }
}

async fn write(
    client: &Client,
    markers: Vec<WritableTxnMarker>,
    version: i16,
) -> Vec<(i64, String, i32, ErrorCode)> {
    let answer = client.call(WriteTxnMarkersRequest { markers }, version).await;
    let mut outcomes = Vec::new();
    for marker in answer.markers {
        for topic in marker.topics {
            for found in topic.partitions {
                let outcome = code(found.error_code);
                outcomes.push((marker.producer_id, topic.name.to_string(), found.partition_index, outcome));
            }
        }
    }
    outcomes
}

async fn a_transaction_is_ended_by_markers_in_every_version(harness: &Harness) {
    let client = prepare(harness).await;
    let mut expected: Vec<String> = Vec::new();
    for (version, commits, value) in
        [(1, false, "dropped 1"), (1, true, "kept 1"), (2, false, "dropped 2"), (2, true, "kept 2")]
    {
        // A new producer leaves nothing open under its id.
        let txn = init(&client, "tx").await;
        assert_eq!(txn.produce(&client, 0, value, 12).await, ErrorCode::None);
        let start = writer_of(&client, txn).await.current_txn_start_offset;
        assert_eq!(start, list_offset(&client, "t", -1).await.offset - 1);
        assert_eq!(committed(&client).await, expected, "readers wait for it");
        // However often a partition is named, the marker is written once.
        let written = write(&client, vec![marker(txn, commits, &[("t", &[0, 0])])], version).await;
        assert_eq!(written, [(txn.producer, "t".to_owned(), 0, ErrorCode::None)]);
        assert_eq!(list_offset(&client, "t", -1).await.offset, start + 2, "one record and one marker");
        let ended = writer_of(&client, txn).await;
        assert_eq!((ended.current_txn_start_offset, ended.coordinator_epoch), (-1, 0));
        expected.extend(commits.then(|| value.to_owned()));
        assert_eq!(committed(&client).await, expected, "readers wait no longer");
    }
    // A marker with a raised epoch ends what came before it, and nothing of its own epoch (KIP-890).
    let txn = init(&client, "tx").await;
    assert_eq!(txn.produce(&client, 0, "open", 12).await, ErrorCode::None);
    let bumped = |epoch: i16| WritableTxnMarker {
        transaction_version: 2,
        ..marker(Txn { epoch, ..txn }, false, &[("t", &[0])])
    };
    let outcome = async |marker| write(&client, vec![marker], 2).await.remove(0).3;
    assert_eq!(outcome(bumped(txn.epoch)).await, ErrorCode::InvalidProducerEpoch);
    assert!(writer_of(&client, txn).await.current_txn_start_offset >= 0);
    assert_eq!(outcome(bumped(txn.epoch + 1)).await, ErrorCode::None);
    assert_eq!(writer_of(&client, txn).await.current_txn_start_offset, -1);
    assert_eq!(outcome(bumped(txn.epoch)).await, ErrorCode::InvalidProducerEpoch, "it is an old one now");
}

async fn writer_of(client: &Client, txn: Txn) -> ProducerState {
    let found = producers(client, &[("t", &[0])]).await.remove(0).1.active_producers;
    found.into_iter().find(|state| state.producer_id == txn.producer).expect("it has written")
}

async fn offsets_of_a_transaction_are_ended_by_markers(harness: &Harness) {
    let client = prepare(harness).await;
    for (commits, offset, expected) in [(false, 10, -1), (true, 20, 20)] {
        let txn = init(&client, "tx").await;
        assert_eq!(txn.commit_offset(&client, offset, 5).await, ErrorCode::None);
        let unstable = fetch_offset(&client, "g", "t", true).await;
        assert_eq!(code(unstable.error_code), ErrorCode::UnstableOffsetCommit);
        let described = describe(&client, &["tx"]).await.remove(0);
        let topic = &described.topics[0];
        assert_eq!(&*topic.topic, "__consumer_offsets");
        let partitions: &[i32] = &topic.partitions;
        let mut ending = marker(txn, commits, &[]);
        ending.topics = vec![WritableTxnMarkerTopic {
            name: topic.topic.clone(),
            partition_indexes: partitions.to_vec(),
        }];
        let written = write(&client, vec![ending], 2).await;
        assert_eq!(written.len(), 1);
        assert_eq!(written[0].3, ErrorCode::None);
        let told = fetch_offset(&client, "g", "t", true).await;
        assert_eq!((code(told.error_code), told.committed_offset), (ErrorCode::None, expected));
    }
}

async fn markers_that_nobody_can_write_are_refused(harness: &Harness) {
    let client = prepare(harness).await;
    let txn = init(&client, "tx").await;
    assert_eq!(txn.produce(&client, 0, "open", 12).await, ErrorCode::None);
    let end = list_offset(&client, "t", -1).await.offset;
    let none = ErrorCode::UnknownTopicOrPartition;
    for version in 1..=2 {
        let outcomes = async |marker| {
            let written: Vec<_> = write(&client, vec![marker], version).await;
            written.into_iter().map(|(_, _, _, code)| code).collect::<Vec<_>>()
        };
        let nowhere = marker(txn, false, &[("t", &[-1, 1, i32::MAX]), ("none", &[0])]);
        assert_eq!(outcomes(nowhere).await, [none; 4], "version {version}");
        for (odd, expected) in [
            (Txn { producer: -1, ..txn }, ErrorCode::InvalidProducerIdMapping),
            (Txn { producer: i64::MIN, ..txn }, ErrorCode::InvalidProducerIdMapping),
            (Txn { epoch: -1, ..txn }, ErrorCode::InvalidProducerEpoch),
            (Txn { producer: 99_999, epoch: -1, ..txn }, ErrorCode::InvalidProducerEpoch),
        ] {
            assert_eq!(outcomes(marker(odd, false, &[("t", &[0])])).await, [expected], "{odd:?}");
        }
        assert_eq!(outcomes(marker(txn, false, &[])).await, []);
    }
    assert_eq!(list_offset(&client, "t", -1).await.offset, end, "nothing is written");
    // Once a coordinator of a newer epoch has ended it, one of an older epoch is out of date.
    let newer = WritableTxnMarker { coordinator_epoch: 7, ..marker(txn, false, &[("t", &[0])]) };
    let older = WritableTxnMarker { coordinator_epoch: 6, ..newer.clone() };
    let outcomes: Vec<_> = write(&client, vec![newer, older], 1).await;
    let outcomes: Vec<_> = outcomes.into_iter().map(|(_, _, _, code)| code).collect();
    assert_eq!(outcomes, [ErrorCode::None, ErrorCode::TransactionCoordinatorFenced]);
    assert_eq!(writer(&client).await.coordinator_epoch, 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_know_all_transactional_ids_lists_none() {
    let harness = Harness::start(Way::InProcess).await;
    let client = prepare(&harness).await;
    init(&client, "tx").await;
    let everything = async |client: &Client| list(client, ListTransactionsRequest::default(), 2).await;
    assert_eq!(ids(&everything(&client).await), ["tx"]);
    let dir = harness.stop().await;
    let logs = (0..4).map(|index| dir.path().join(format!("__transaction_state-{index}")));
    let is_used = |log: &std::path::PathBuf| {
        let segment = std::fs::metadata(log.join("00000000000000000000.log"));
        segment.expect("it is there").len() > 0
    };
    let used: Vec<_> = logs.filter(is_used).collect();
    assert_eq!(used.len(), 1, "one has the transactional id");
    std::fs::remove_dir_all(&used[0]).expect("it was there");
    let harness = Harness::resume(Way::InProcess, dir).await;
    let client = harness.connect().await;
    let answer = everything(&client).await;
    assert_eq!(code(answer.error_code), ErrorCode::CoordinatorNotAvailable);
    assert!(answer.transaction_states.is_empty());
    harness.finish().await;
}
