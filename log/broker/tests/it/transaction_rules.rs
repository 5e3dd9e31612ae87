//! Transactions over the wire, by the old rules and by those of KIP-890.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use thalweg_broker::AllowAll;
use thalweg_protocol::messages::add_offsets_to_txn::AddOffsetsToTxnRequest;
use thalweg_protocol::messages::add_partitions_to_txn::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use thalweg_protocol::messages::end_txn::EndTxnRequest;
use thalweg_protocol::messages::init_producer_id::InitProducerIdRequest;
use thalweg_protocol::messages::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use thalweg_protocol::record::{BatchBuilder, BatchProducer};
use thalweg_protocol::{Compression, ErrorCode, ProducerEpoch, ProducerId, Uuid};

use crate::calls::{create_topic, fetch_request, list_offset, only, produce_request, values};
use crate::committing::fetch_offset;
use crate::grouping::{code, find_coordinator};
use crate::harness::{Client, Harness, Way, three_ways};

three_ways! {
    transactions_by_the_old_rules,
    transactions_by_the_rules_of_kip_890,
    offsets_wait_for_the_end_of_their_transaction,
    offsets_may_be_announced_before_anyone_asks_for_the_group,
    partitions_are_verified_or_added,
    a_producer_that_was_replaced_is_fenced,
    producer_ids_in_every_version,
}

/// A transactional id, and who uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Txn {
    pub id: &'static str,
    pub producer: i64,
    pub epoch: i16,
}

fn init_request(id: Option<&str>, given: (i64, i16)) -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: id.map(Into::into),
        transaction_timeout_ms: 60_000,
        producer_id: given.0,
        producer_epoch: given.1,
        ..Default::default()
    }
}

pub async fn init(client: &Client, id: &'static str) -> Txn {
    let answer = client.call(init_request(Some(id), (-1, -1)), 5).await;
    assert_eq!(code(answer.error_code), ErrorCode::None);
    Txn { id, producer: answer.producer_id, epoch: answer.producer_epoch }
}

impl Txn {
    fn batch(&self, sequence: i32, value: &str) -> Bytes {
        let mut builder = BatchBuilder::new(Compression::None, None, 64);
        builder.append(now_ms(), None, Some(value.as_bytes()), []).expect("there is room");
        let producer = BatchProducer {
            id: ProducerId(self.producer),
            epoch: ProducerEpoch(self.epoch),
            base_sequence: sequence,
            transactional: true,
        };
        builder.finish(&mut Default::default(), Some(&producer)).into_bytes()
    }

    pub async fn produce(&self, client: &Client, sequence: i32, value: &str, version: i16) -> ErrorCode {
        let mut request = produce_request("t", -1, vec![(0, self.batch(sequence, value))]);
        request.transactional_id = Some(self.id.into());
        loop {
            // On a slow disk the markers of the transaction before take longer than the broker waits.
            match code(only(client.call(request.clone(), version).await).error_code) {
                ErrorCode::ConcurrentTransactions | ErrorCode::NotEnoughReplicas => {}
                other => return other,
            }
        }
    }

    pub async fn add_partitions(
        &self,
        client: &Client,
        topics: &[(&str, i32)],
        version: i16,
    ) -> Vec<ErrorCode> {
        let topics = topics.iter().map(|&(name, partition)| AddPartitionsToTxnTopic {
            name: name.into(),
            partitions: vec![partition],
        });
        let mut request = AddPartitionsToTxnRequest::default();
        if version < 4 {
            request.v3_and_below_transactional_id = self.id.into();
            request.v3_and_below_producer_id = self.producer;
            request.v3_and_below_producer_epoch = self.epoch;
            request.v3_and_below_topics = topics.collect();
        } else {
            request.transactions = vec![AddPartitionsToTxnTransaction {
                transactional_id: self.id.into(),
                producer_id: self.producer,
                producer_epoch: self.epoch,
                verify_only: false,
                topics: topics.collect(),
            }];
        }
        let answer = client.call(request, version).await;
        let topics = match version {
            ..4 => answer.results_by_topic_v3_and_below,
            _ => answer.results_by_transaction.into_iter().flat_map(|result| result.topic_results).collect(),
        };
        let partitions = topics.iter().flat_map(|topic| &topic.results_by_partition);
        partitions.map(|partition| code(partition.partition_error_code)).collect()
    }

    pub async fn end(&mut self, client: &Client, committed: bool, version: i16) -> ErrorCode {
        let request = EndTxnRequest {
            transactional_id: self.id.into(),
            producer_id: self.producer,
            producer_epoch: self.epoch,
            committed,
        };
        let answer = client.call(request, version).await;
        if version >= 5 && answer.error_code == 0 {
            (self.producer, self.epoch) = (answer.producer_id, answer.producer_epoch);
        }
        code(answer.error_code)
    }

    pub async fn commit_offset(&self, client: &Client, offset: i64, version: i16) -> ErrorCode {
        let partition = TxnOffsetCommitRequestPartition {
            partition_index: 0,
            committed_offset: offset,
            ..Default::default()
        };
        let request = TxnOffsetCommitRequest {
            transactional_id: self.id.into(),
            group_id: "g".into(),
            producer_id: self.producer,
            producer_epoch: self.epoch,
            topics: vec![TxnOffsetCommitRequestTopic {
                name: "t".into(),
                topic_id: Uuid::ZERO,
                partitions: vec![partition],
            }],
            ..Default::default()
        };
        loop {
            // The markers of the transaction before may still be on their way.
            let answer = client.call(request.clone(), version).await;
            match code(answer.topics[0].partitions[0].error_code) {
                ErrorCode::CoordinatorLoadInProgress | ErrorCode::ConcurrentTransactions => {}
                other => return other,
            }
        }
    }
}

/// Markers have the time of their append: were the records much older, the segment would be rolled between them.
fn now_ms() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the broker under test has the real clock")]
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    since_1970.as_millis() as i64
}

pub async fn prepare(harness: &Harness) -> Client {
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    find_coordinator(&client, "tx", 1).await;
    find_coordinator(&client, "g", 0).await;
    client
}

/// What a consumer sees of `t` under read_committed, once its markers are there.
pub async fn committed(client: &Client) -> Vec<String> {
    let mut request = fetch_request("t", &[(0, 0)]);
    request.isolation_level = 1;
    let data = client.call(request, 12).await.responses.remove(0).partitions.remove(0);
    assert_eq!(code(data.error_code), ErrorCode::None);
    let aborted = data.aborted_transactions.clone().unwrap_or_default();
    let batches = crate::calls::batches(&data);
    let mut all = values(&data).into_iter();
    let mut seen = Vec::new();
    let mut ended: Vec<(i64, i64)> = Vec::new();
    for batch in batches {
        let header = batch.header();
        let records: Vec<_> = all.by_ref().take(header.records_count as usize).collect();
        let producer = header.producer_id.0;
        let first = |a: &&_| -> bool {
            let a: &thalweg_protocol::messages::fetch::AbortedTransaction = a;
            a.producer_id == producer
                && a.first_offset <= header.base_offset.0
                && !ended.contains(&(producer, a.first_offset))
        };
        let is_aborted = aborted.iter().find(first);
        match (header.is_control(), is_aborted) {
            (true, Some(transaction)) => ended.push((producer, transaction.first_offset)),
            (false, None) => seen.extend(records.into_iter().map(|(_, value)| value)),
            (true, None) | (false, Some(_)) => {}
        }
    }
    seen
}

/// Waits until no transaction holds back the last stable offset.
pub async fn settled(client: &Client) {
    loop {
        let mut request = fetch_request("t", &[(0, 0)]);
        request.isolation_level = 1;
        let data = client.call(request, 12).await.responses.remove(0).partitions.remove(0);
        if data.last_stable_offset == data.high_watermark
            && data.high_watermark == list_offset(client, "t", -1).await.offset
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn transactions_by_the_old_rules(harness: &Harness) {
    let client = prepare(harness).await;
    let mut txn = init(&client, "tx").await;
    let mut expected = Vec::new();
    for (round, end_version) in (0..=4).enumerate() {
        let sequence = 2 * round as i32;
        let added = txn.add_partitions(&client, &[("t", 0)], round.min(3) as i16).await;
        assert_eq!(added, [ErrorCode::None]);
        assert_eq!(txn.produce(&client, sequence, "kept", 9).await, ErrorCode::None);
        assert_eq!(committed(&client).await, expected, "nothing before the end");
        assert_eq!(txn.end(&client, true, end_version).await, ErrorCode::None, "version {end_version}");
        expected.push("kept".to_owned());
        settled(&client).await;
        assert_eq!(committed(&client).await, expected);
        assert_eq!(txn.end(&client, true, end_version).await, ErrorCode::None, "a retry");
        assert_eq!(txn.end(&client, false, end_version).await, ErrorCode::InvalidTxnState);

        txn.add_partitions(&client, &[("t", 0)], 3).await;
        assert_eq!(txn.produce(&client, sequence + 1, "dropped", 9).await, ErrorCode::None);
        assert_eq!(txn.end(&client, false, end_version).await, ErrorCode::None);
        settled(&client).await;
        assert_eq!(committed(&client).await, expected);
    }
}

async fn transactions_by_the_rules_of_kip_890(harness: &Harness) {
    let client = prepare(harness).await;
    let mut txn = init(&client, "tx").await;
    for round in 0..4 {
        let before = txn;
        assert_eq!(txn.produce(&client, 0, "v", 12).await, ErrorCode::None, "added by the write itself");
        assert_eq!(txn.produce(&client, 1, "v", 12).await, ErrorCode::None);
        assert_eq!(txn.end(&client, round % 2 == 0, 5).await, ErrorCode::None);
        assert_eq!((txn.producer, txn.epoch), (before.producer, before.epoch + 1), "an epoch of its own");
        // The answer was lost; the request comes again, now and when the next transaction is open.
        let mut retry = before;
        assert_eq!(retry.end(&client, round % 2 == 0, 5).await, ErrorCode::None);
        assert_eq!(retry, txn);
        assert_eq!(txn.produce(&client, 0, "next", 12).await, ErrorCode::None);
        let (mut late, mut stale) = (before, before);
        assert_eq!(late.end(&client, true, 5).await, ErrorCode::ProducerFenced);
        assert_eq!(stale.end(&client, true, 4).await, ErrorCode::ProducerFenced);
        assert_eq!(before.produce(&client, 2, "late", 12).await, ErrorCode::InvalidProducerEpoch);
        assert_eq!(txn.end(&client, false, 5).await, ErrorCode::None);
    }
    settled(&client).await;
    assert_eq!(committed(&client).await, ["v"; 4]);
    // Nothing was written: it may abort, and not commit.
    assert_eq!(txn.end(&client, true, 5).await, ErrorCode::InvalidTxnState);
    assert_eq!(txn.end(&client, false, 5).await, ErrorCode::None);
}

async fn offsets_wait_for_the_end_of_their_transaction(harness: &Harness) {
    let client = prepare(harness).await;
    let mut txn = init(&client, "tx").await;
    for (commits, version, offset) in
        [(true, 3, 10), (false, 4, 20), (true, 5, 30), (false, 5, 40), (true, 0, 50)]
    {
        let before = fetch_offset(&client, "g", "t", true).await.committed_offset;
        if version < 5 {
            let refused = txn.commit_offset(&client, offset, version).await;
            assert!(
                matches!(refused, ErrorCode::InvalidTxnState | ErrorCode::TransactionAbortable),
                "{refused}"
            );
            let add = AddOffsetsToTxnRequest {
                transactional_id: "tx".into(),
                producer_id: txn.producer,
                producer_epoch: txn.epoch,
                group_id: "g".into(),
            };
            assert_eq!(code(client.call(add, version.min(4)).await.error_code), ErrorCode::None);
        }
        assert_eq!(txn.commit_offset(&client, offset, version).await, ErrorCode::None, "version {version}");
        let unstable = fetch_offset(&client, "g", "t", true).await;
        assert_eq!(
            (code(unstable.error_code), unstable.committed_offset),
            (ErrorCode::UnstableOffsetCommit, -1)
        );
        assert_eq!(fetch_offset(&client, "g", "t", false).await.committed_offset, before);
        assert_eq!(txn.end(&client, commits, if version < 5 { 4 } else { 5 }).await, ErrorCode::None);
        let told = loop {
            let told = fetch_offset(&client, "g", "t", true).await;
            if code(told.error_code) != ErrorCode::UnstableOffsetCommit {
                break told.committed_offset;
            }
        };
        assert_eq!(told, if commits { offset } else { before });
    }
}

/// KafkaJS does so, and takes an error for the end of its transaction.
async fn offsets_may_be_announced_before_anyone_asks_for_the_group(harness: &Harness) {
    let client = harness.connect().await;
    find_coordinator(&client, "tx", 1).await;
    let mut txn = init(&client, "tx").await;
    let add = AddOffsetsToTxnRequest {
        transactional_id: "tx".into(),
        producer_id: txn.producer,
        producer_epoch: txn.epoch,
        group_id: "g".into(),
    };
    assert_eq!(code(client.call(add, 0).await.error_code), ErrorCode::None);
    assert_eq!(txn.end(&client, true, 1).await, ErrorCode::None);
}

async fn partitions_are_verified_or_added(harness: &Harness) {
    let client = prepare(harness).await;
    let mut txn = init(&client, "tx").await;
    assert_eq!(txn.produce(&client, 0, "v", 11).await, ErrorCode::TransactionAbortable, "not added before");
    let added = txn.add_partitions(&client, &[("t", 0), ("nowhere", 0), ("t", 9)], 3).await;
    let expected = [
        ErrorCode::OperationNotAttempted,
        ErrorCode::UnknownTopicOrPartition,
        ErrorCode::UnknownTopicOrPartition,
    ];
    assert_eq!(added, expected);
    let added = txn.add_partitions(&client, &[("t", 0), ("__transaction_state", 0)], 3).await;
    assert_eq!(added, [ErrorCode::OperationNotAttempted, ErrorCode::TopicAuthorizationFailed]);
    let stranger = Txn { producer: txn.producer + 1, ..txn };
    assert_eq!(stranger.add_partitions(&client, &[("t", 0)], 3).await, [ErrorCode::InvalidProducerIdMapping]);
    let unknown = Txn { id: "unknown", ..txn };
    assert_eq!(unknown.add_partitions(&client, &[("t", 0)], 3).await, [ErrorCode::InvalidProducerIdMapping]);
    for version in [3, 4, 5] {
        assert_eq!(txn.add_partitions(&client, &[("t", 0)], version).await, [ErrorCode::None]);
    }
    assert_eq!(txn.produce(&client, 0, "v", 11).await, ErrorCode::None);
    assert_eq!(txn.end(&client, true, 4).await, ErrorCode::None);
    settled(&client).await;
    assert_eq!(committed(&client).await, ["v"]);
}

async fn a_producer_that_was_replaced_is_fenced(harness: &Harness) {
    let client = prepare(harness).await;
    let mut old = init(&client, "tx").await;
    assert_eq!(old.produce(&client, 0, "old", 12).await, ErrorCode::None);
    let mut new = init(&client, "tx").await;
    assert_eq!(new.producer, old.producer);
    assert!(new.epoch > old.epoch);
    assert_eq!(old.produce(&client, 1, "old", 12).await, ErrorCode::InvalidProducerEpoch);
    assert_eq!(old.add_partitions(&client, &[("t", 0)], 1).await, [ErrorCode::InvalidProducerEpoch]);
    assert_eq!(old.add_partitions(&client, &[("t", 0)], 3).await, [ErrorCode::ProducerFenced]);
    assert_eq!(old.end(&client, true, 1).await, ErrorCode::InvalidProducerEpoch);
    assert_eq!(old.end(&client, true, 4).await, ErrorCode::ProducerFenced);
    assert_eq!(old.commit_offset(&client, 1, 5).await, ErrorCode::InvalidProducerEpoch);
    assert_eq!(new.produce(&client, 0, "new", 12).await, ErrorCode::None);
    for given in [(old.producer, old.epoch), (0, 0)] {
        let zombie = client.call(init_request(Some("tx"), given), 5).await;
        assert_eq!(code(zombie.error_code), ErrorCode::ProducerFenced);
        let zombie = client.call(init_request(Some("tx"), given), 3).await;
        assert_eq!(code(zombie.error_code), ErrorCode::InvalidProducerEpoch);
    }
    assert_eq!(new.end(&client, true, 5).await, ErrorCode::None);
    settled(&client).await;
    assert_eq!(committed(&client).await, ["new"]);
}

async fn producer_ids_in_every_version(harness: &Harness) {
    let client = prepare(harness).await;
    let mut ids = Vec::new();
    for version in 0..=5 {
        let answer = client.call(init_request(None, (-1, -1)), version).await;
        assert_eq!((code(answer.error_code), answer.producer_epoch), (ErrorCode::None, 0));
        ids.push(answer.producer_id);
        // Some clients send zeros where they have nothing.
        let given = if version < 3 { (-1, -1) } else { (0, 0) };
        let id = format!("tx{version}");
        let answer = client.call(init_request(Some(&id), given), version).await;
        assert_eq!(
            (code(answer.error_code), answer.producer_epoch),
            (ErrorCode::None, 0),
            "version {version}"
        );
        ids.push(answer.producer_id);
    }
    assert!(ids.iter().all(|&id| id > 0));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 12, "nobody gets another's id");
    for (timeout_ms, expected) in [
        (0, ErrorCode::InvalidTransactionTimeout),
        (900_000, ErrorCode::None),
        (900_001, ErrorCode::InvalidTransactionTimeout),
    ] {
        let request = InitProducerIdRequest {
            transaction_timeout_ms: timeout_ms,
            ..init_request(Some("tx"), (-1, -1))
        };
        assert_eq!(code(client.call(request, 5).await.error_code), expected);
    }
    assert_eq!(
        code(client.call(init_request(Some(""), (-1, -1)), 5).await.error_code),
        ErrorCode::InvalidRequest
    );
}

#[tokio::test]
async fn a_transaction_that_is_open_too_long_is_aborted() {
    let harness = Harness::start_with(Way::Tcp, |_| {}, AllowAll).await;
    let client = prepare(&harness).await;
    let request = InitProducerIdRequest { transaction_timeout_ms: 100, ..init_request(Some("tx"), (-1, -1)) };
    let answer = client.call(request, 5).await;
    let mut txn = Txn { id: "tx", producer: answer.producer_id, epoch: answer.producer_epoch };
    assert_eq!(txn.produce(&client, 0, "v", 12).await, ErrorCode::None);
    settled(&client).await;
    assert_eq!(committed(&client).await, [""; 0]);
    assert_eq!(txn.end(&client, true, 4).await, ErrorCode::ProducerFenced);
    assert_eq!(txn.end(&client, true, 5).await, ErrorCode::ProducerFenced);
    harness.finish().await;
}

#[tokio::test]
async fn an_open_transaction_outlives_the_broker() {
    let harness = Harness::start(Way::Tcp).await;
    let client = prepare(&harness).await;
    let mut txn = init(&client, "tx").await;
    assert_eq!(txn.produce(&client, 0, "v", 12).await, ErrorCode::None);
    assert_eq!(txn.commit_offset(&client, 3, 5).await, ErrorCode::None);
    let harness = harness.restart().await;
    let client = harness.connect().await;
    assert_eq!(committed(&client).await, [""; 0]);
    assert_eq!(txn.produce(&client, 1, "w", 12).await, ErrorCode::None);
    assert_eq!(txn.end(&client, true, 5).await, ErrorCode::None);
    settled(&client).await;
    assert_eq!(committed(&client).await, ["v", "w"]);
    let harness = harness.restart().await;
    let client = harness.connect().await;
    assert_eq!(fetch_offset(&client, "g", "t", true).await.committed_offset, 3);
    assert_eq!(txn.produce(&client, 0, "x", 12).await, ErrorCode::None, "the epoch is remembered");
    assert_eq!(txn.end(&client, true, 5).await, ErrorCode::None);
    settled(&client).await;
    assert_eq!(committed(&client).await, ["v", "w", "x"]);
    harness.finish().await;
}
