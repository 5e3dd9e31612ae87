//! Transactions as producers and read-committed consumers see them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use thalweg_protocol::messages::end_txn::EndTxnRequest;
use thalweg_protocol::messages::fetch::PartitionData;
use thalweg_protocol::messages::find_coordinator::FindCoordinatorRequest;
use thalweg_protocol::messages::init_producer_id::InitProducerIdRequest;
use thalweg_protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use thalweg_protocol::messages::produce::ProduceRequest;
use thalweg_protocol::record::{BatchBuilder, BatchProducer};
use thalweg_protocol::{Compression, ErrorCode, ProducerEpoch, ProducerId};

use crate::calls::{
    FETCH, PRODUCE, batches, create_topic, fetch_request, list_offset, only, produce_request,
};
use crate::harness::{Client, Harness, three_ways};

three_ways!(
    transactions_follow_one_another_without_a_pause,
    read_committed_stops_at_an_open_transaction,
    aborted_transactions_are_named,
    a_batch_outside_of_its_transaction_is_refused,
    a_duplicate_gets_its_first_answer,
);

/// A transactional producer by hand. It leaves it to the broker to add partitions (KIP-890).
struct Producer {
    client: Client,
    id: i64,
    epoch: i16,
    /// The next sequence number of partition 0; every epoch begins at 0.
    sequence: i32,
}

impl Producer {
    async fn start(harness: &Harness) -> Self {
        let client = harness.connect().await;
        // The topic of transactions is made when somebody asks for a coordinator.
        let request =
            FindCoordinatorRequest { key_type: 1, coordinator_keys: vec!["tx".into()], ..Default::default() };
        client.call(request, 4).await;
        let request = InitProducerIdRequest {
            transactional_id: Some("tx".into()),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        loop {
            let response = client.call(request.clone(), 5).await;
            match ErrorCode::from(response.error_code) {
                ErrorCode::None => {
                    let (id, epoch) = (response.producer_id, response.producer_epoch);
                    return Self { client, id, epoch, sequence: 0 };
                }
                code if code.is_retriable() => tokio::time::sleep(Duration::from_millis(5)).await,
                code => panic!("{code}"),
            }
        }
    }

    fn batch(&self, value: &str) -> Bytes {
        let mut builder = BatchBuilder::new(Compression::None, None, 256);
        builder.append(now_ms(), None, Some(value.as_bytes()), []).expect("there is room");
        let producer = BatchProducer {
            id: ProducerId(self.id),
            epoch: ProducerEpoch(self.epoch),
            base_sequence: self.sequence,
            transactional: true,
        };
        builder.finish(&mut Default::default(), Some(&producer)).into_bytes()
    }

    fn request(&self, value: &str) -> ProduceRequest {
        let transactional_id = Some("tx".into());
        ProduceRequest { transactional_id, ..produce_request("t", -1, vec![(0, self.batch(value))]) }
    }

    async fn send(&mut self, value: &str) -> i64 {
        let answer = only(self.client.call(self.request(value), PRODUCE).await);
        assert_eq!(
            ErrorCode::from(answer.error_code),
            ErrorCode::None,
            "{value}: {:?}",
            answer.error_message
        );
        self.sequence += 1;
        answer.base_offset
    }

    /// Ends the transaction; the next one has another epoch.
    async fn end(&mut self, committed: bool) {
        let request = EndTxnRequest {
            transactional_id: "tx".into(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed,
        };
        let response = self.client.call(request, 5).await;
        assert_eq!(ErrorCode::from(response.error_code), ErrorCode::None);
        assert!((response.producer_id, response.producer_epoch) > (self.id, self.epoch));
        (self.id, self.epoch, self.sequence) = (response.producer_id, response.producer_epoch, 0);
    }
}

/// Markers have the time of their append: were the records much older, the segment would be rolled between them.
fn now_ms() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the broker under test has the real clock")]
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    since_1970.as_millis() as i64
}

/// What a read-committed consumer gets from `offset` on, waiting up to `max_wait_ms` for anything.
async fn read_committed(client: &Client, offset: i64, max_wait_ms: i32) -> PartitionData {
    let mut request = fetch_request("t", &[(0, offset)]);
    (request.isolation_level, request.max_wait_ms) = (1, max_wait_ms);
    client.call(request, FETCH).await.responses.remove(0).partitions.remove(0)
}

/// Waits until everything before `offset` is decided.
async fn stable_until(client: &Client, offset: i64) {
    loop {
        let data = read_committed(client, offset - 1, 1000).await;
        assert_eq!(data.error_code, 0);
        if data.last_stable_offset >= offset {
            return;
        }
    }
}

async fn transactions_follow_one_another_without_a_pause(harness: &Harness) {
    let mut producer = Producer::start(harness).await;
    create_topic(&producer.client, "t", 1).await;
    // The markers of one transaction are on their way while the next one begins.
    for round in 0..50 {
        producer.send(&round.to_string()).await;
        producer.end(round % 5 != 4).await;
    }
    let consumer = harness.connect().await;
    stable_until(&consumer, 100).await;
    let (mut offset, mut seen, mut aborted) = (0, Vec::new(), Vec::new());
    while offset < 100 {
        let data = read_committed(&consumer, offset, 0).await;
        aborted.extend(data.aborted_transactions.iter().flatten().map(|aborted| aborted.first_offset));
        for batch in batches(&data) {
            offset = batch.header().next_offset().0;
            if !batch.header().is_control() {
                seen.push(batch.header().base_offset.0);
            }
        }
    }
    assert_eq!(seen, (0..50).map(|round| round * 2).collect::<Vec<_>>(), "a value and a marker each");
    aborted.dedup();
    assert_eq!(aborted, (0..50).filter(|round| round % 5 == 4).map(|round| round * 2).collect::<Vec<_>>());
}

async fn read_committed_stops_at_an_open_transaction(harness: &Harness) {
    let mut producer = Producer::start(harness).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    crate::calls::produce(&client, "t", crate::calls::batch(["plain"])).await;
    producer.send("open").await;
    crate::calls::produce(&client, "t", crate::calls::batch(["behind"])).await;

    let data = read_committed(&client, 0, 0).await;
    assert_eq!((data.high_watermark, data.last_stable_offset, batches(&data).len()), (3, 1, 1));
    let nothing = read_committed(&client, 1, 50).await;
    assert!(batches(&nothing).is_empty(), "it waits for the transaction to end");
    assert_eq!(list_offset(&client, "t", -1).await.offset, 3);
    let partition = ListOffsetsPartition { partition_index: 0, current_leader_epoch: -1, timestamp: -1 };
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level: 1,
        topics: vec![ListOffsetsTopic { name: "t".into(), partitions: vec![partition] }],
        ..Default::default()
    };
    assert_eq!(client.call(request, 9).await.topics[0].partitions[0].offset, 1);

    // The end of the transaction wakes whoever is parked.
    let (waiting, parked) = (harness.connect().await, harness.connect().await);
    let parked = tokio::spawn(async move { read_committed(&parked, 1, 60_000).await });
    producer.end(true).await;
    let data = parked.await.expect("it is answered");
    assert!(!batches(&data).is_empty() && data.last_stable_offset > 1);
    assert_eq!(data.aborted_transactions.as_deref(), Some(&[][..]));
    stable_until(&waiting, 4).await;
}

async fn aborted_transactions_are_named(harness: &Harness) {
    let mut producer = Producer::start(harness).await;
    let client = harness.connect().await;
    create_topic(&client, "t", 1).await;
    let id = producer.id;
    producer.send("a").await;
    producer.send("b").await;
    producer.end(false).await;
    stable_until(&client, 3).await;
    let data = read_committed(&client, 0, 0).await;
    assert_eq!(batches(&data).len(), 3, "aborted batches and markers are never left out");
    let aborted = data.aborted_transactions.expect("read committed");
    let aborted: Vec<_> = aborted.iter().map(|aborted| (aborted.producer_id, aborted.first_offset)).collect();
    assert_eq!(aborted, [(id, 0)]);
    let uncommitted = crate::calls::fetch(&client, "t", 0).await;
    assert_eq!(uncommitted.aborted_transactions, None);
}

async fn a_batch_outside_of_its_transaction_is_refused(harness: &Harness) {
    let mut producer = Producer::start(harness).await;
    create_topic(&producer.client, "t", 1).await;
    // Versions before 12 leave it to the client to add the partition, which it has not done.
    for (version, expected) in [(11, ErrorCode::TransactionAbortable), (10, ErrorCode::InvalidTxnState)] {
        let answer = only(producer.client.call(producer.request("v"), version).await);
        assert_eq!(ErrorCode::from(answer.error_code), expected);
    }
    let stray = async |producer: &Producer| {
        let mut stray = producer.request("stray");
        stray.transactional_id = None;
        let answer = only(producer.client.call(stray, PRODUCE).await);
        assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::TransactionalIdAuthorizationFailed);
    };
    stray(&producer).await;
    assert_eq!(list_offset(&producer.client, "t", -1).await.offset, 0);
    producer.send("v").await;
    // Its transaction is open on the partition by now.
    stray(&producer).await;
    assert_eq!(list_offset(&producer.client, "t", -1).await.offset, 1);

    // A zombie: its epoch is that of a transaction that has ended.
    let old = producer.epoch;
    producer.end(true).await;
    stable_until(&producer.client, 2).await;
    let current = std::mem::replace(&mut producer.epoch, old);
    producer.sequence = 1;
    let answer = only(producer.client.call(producer.request("zombie"), PRODUCE).await);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::InvalidProducerEpoch);
    (producer.epoch, producer.sequence) = (current, 0);
    assert_eq!(producer.send("alive").await, 2);
}

async fn a_duplicate_gets_its_first_answer(harness: &Harness) {
    let mut producer = Producer::start(harness).await;
    create_topic(&producer.client, "t", 1).await;
    let requests: Vec<_> = (0..5)
        .map(|at| {
            producer.sequence = at;
            producer.request(&at.to_string())
        })
        .collect();
    for (at, request) in requests.iter().enumerate() {
        let answer = only(producer.client.call(request.clone(), PRODUCE).await);
        assert_eq!((answer.error_code, answer.base_offset), (0, at as i64));
    }
    for (at, request) in requests.into_iter().enumerate() {
        let answer = only(producer.client.call(request, PRODUCE).await);
        assert_eq!((answer.error_code, answer.base_offset), (0, at as i64), "again");
    }
    producer.sequence = 7;
    let answer = only(producer.client.call(producer.request("a gap"), PRODUCE).await);
    assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(list_offset(&producer.client, "t", -1).await.offset, 5);
}
