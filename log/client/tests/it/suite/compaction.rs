//! Reading a log of which compaction has left some.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_client::{ConsumerConfig, NewTopic, OffsetSpec, Producer, ProducerConfig, ProducerRecord};
use thalweg_protocol::Offset;
use thalweg_protocol::record::OwnedRecord;
use tokio::time::Instant;

use super::{Ground, at, read};

/// Kafka looks every 15 s.
const PATIENCE: Duration = Duration::from_secs(90);

async fn send(producer: &Producer, topic: &str, key: usize, value: &str) {
    let record = ProducerRecord::new(topic, value.to_owned()).partition(0).key(format!("key {key}"));
    producer.send(record).await.expect("there is room");
}

async fn read_all(ground: &Ground, topic: &str) -> Vec<OwnedRecord> {
    let mut reader = ground.reader(topic, &[0], ConsumerConfig::default());
    let mut records = Vec::new();
    while !reader.progress(&at(topic, 0)).is_some_and(|progress| progress.is_caught_up()) {
        let polled = reader.poll(Duration::from_millis(100)).await.expect("the poll succeeds");
        for batches in polled.batches {
            records.extend(batches.into_records().map(|record| record.expect("nothing is damaged")));
        }
    }
    records
}

pub async fn a_compacted_topic_is_read_through_its_gaps(ground: &Ground) {
    let topic = ground.name("compacted");
    // As small as Kafka lets segments be.
    let wanted = NewTopic::new(topic.as_str(), 1)
        .config("cleanup.policy", "compact")
        .config("segment.bytes", (1 << 20).to_string());
    ground.client.admin().create_topic(wanted).await.expect("the topic is created");
    let producer = ground.producer(ProducerConfig::default());
    let transactional = ground.transactional(&ground.name("compacted")).await;
    let filler = "x".repeat(1000);
    let mut expected = BTreeMap::new();
    for round in 0..40 {
        for n in 0..100 {
            let value = format!("{round} {n} {filler}");
            send(&producer, &topic, n % 7, &value).await;
            expected.insert(format!("key {}", n % 7), value);
        }
        producer.flush().await.expect("all are written");
        transactional.begin_transaction().expect("none is open");
        send(&transactional, &topic, 7, &format!("{round} {filler}")).await;
        if round % 2 == 0 {
            transactional.commit_transaction().await.expect("it is committed");
            expected.insert("key 7".to_owned(), format!("{round} {filler}"));
        } else {
            send(&transactional, &topic, 1, "aborted").await;
            transactional.abort_transaction().await.expect("it is aborted");
        }
    }
    let deadline = Instant::now() + PATIENCE;
    let records = loop {
        let records = read_all(ground, &topic).await;
        if records.len() < 1500 {
            break records;
        }
        assert!(Instant::now() < deadline, "{} records are left", records.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(records.windows(2).all(|pair| pair[0].offset < pair[1].offset));
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.expect("not null").to_vec()).expect("text");
    let last: BTreeMap<String, String> =
        records.iter().map(|record| (text(record.key.as_deref()), text(record.value.as_deref()))).collect();
    assert_eq!(last, expected);

    // A position in a gap is followed by the next record there is.
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    let partition = at(&topic, 0);
    let gap =
        records.windows(2).find(|pair| pair[1].offset.0 > pair[0].offset.0 + 1).expect("there are gaps");
    for into in [gap[0].offset.0 + 1, gap[1].offset.0 - 1, gap[1].offset.0] {
        reader.seek(&partition, Offset(into)).expect("it is assigned");
        assert_eq!(read(&mut reader, 1).await[0].offset, gap[1].offset, "from {into}");
    }
    let starts = reader.beginning_offsets(std::slice::from_ref(&partition)).await.expect("it answers");
    assert_eq!(starts[&partition], Offset(0), "where the log begins does not change");
    reader.seek_to(&partition, OffsetSpec::Earliest).expect("it is assigned");
    assert_eq!(read(&mut reader, 1).await[0].offset, records[0].offset);

    // The producer goes on where it was.
    send(&producer, &topic, 0, "more").await;
    producer.flush().await.expect("it is written");
}
