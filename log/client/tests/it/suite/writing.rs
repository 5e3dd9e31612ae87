use std::time::Duration;

use bytes::Bytes;
use thalweg_client::{Acks, ConsumerConfig, ErrorKind, ProducerConfig, ProducerRecord};
use thalweg_protocol::record::Header;
use thalweg_protocol::{Compression, Offset, partition_for_key};

use super::{Ground, read, text, texts};

pub async fn records_come_back_as_they_were_sent(ground: &Ground) {
    for compression in Compression::ALL {
        let topic = ground.topic(1).await;
        let producer = ground.producer(ProducerConfig { compression, ..ProducerConfig::default() });
        let mut sent = vec![
            ProducerRecord::new(topic.as_str(), "plain").timestamp(1_000),
            ProducerRecord::new(topic.as_str(), "keyed")
                .key("k")
                .timestamp(3_000)
                .header("h", "1")
                .header("h", "2"),
            ProducerRecord {
                value: None,
                ..ProducerRecord::new(topic.as_str(), "").key("gone").timestamp(2_000)
            },
            ProducerRecord::new(topic.as_str(), Bytes::from(vec![0xff; 10_000]))
                .key(vec![0; 3])
                .timestamp(2_001),
        ];
        sent[0].headers.push(("null".into(), None));
        for record in &sent {
            producer.send(record.clone()).await.expect("there is room");
        }
        producer.flush().await.expect("all are written");
        let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
        let found = read(&mut reader, sent.len()).await;
        for (at, (found, sent)) in found.iter().zip(&sent).enumerate() {
            assert_eq!(found.offset, Offset(at as i64), "{compression}");
            assert_eq!(
                (&found.key, &found.value, Some(found.timestamp)),
                (&sent.key, &sent.value, sent.timestamp)
            );
            let found = found.headers.as_headers().iter().map(|header| (header.key, header.value));
            let sent = sent.headers.iter().map(|(name, value)| (&name.as_bytes()[..], value.as_deref()));
            assert!(found.eq(sent), "{compression}");
        }
    }
}

pub async fn keys_go_where_java_puts_them(ground: &Ground) {
    let topic = ground.topic(7).await;
    let producer = ground.producer(ProducerConfig::default());
    let mut deliveries = Vec::new();
    for key in 0..50 {
        let key = format!("key {key}");
        let record = ProducerRecord::new(topic.as_str(), key.clone()).key(key.clone());
        deliveries.push((key, producer.send(record).await.expect("there is room")));
    }
    for (key, delivery) in deliveries {
        let acknowledged = delivery.await.expect("it is written");
        assert_eq!(acknowledged.partition.partition, partition_for_key(key.as_bytes(), 7));
    }
    let own = |_: &str, _: Option<&[u8]>, value: &[u8], partitions: i32| i32::from(value[0]) % partitions;
    let producer = ground.client.producer_with(ProducerConfig::default(), std::sync::Arc::new(own));
    let producer = producer.expect("the configuration is right");
    let delivery = producer.send_and_wait(ProducerRecord::new(topic.as_str(), vec![9]).key("key 1")).await;
    assert_eq!(delivery.expect("it is written").partition.partition, 2);
}

pub async fn many_batches_keep_their_order(ground: &Ground) {
    let topic = ground.topic(1).await;
    let config = ProducerConfig { batch_size: 300, linger_ms: 0, ..ProducerConfig::default() };
    let producer = ground.producer(config);
    let mut deliveries = Vec::new();
    for number in 0..2_000 {
        let record = ProducerRecord::new(topic.as_str(), format!("{number}"));
        deliveries.push(producer.send(record).await.expect("there is room"));
    }
    for (number, delivery) in deliveries.into_iter().enumerate() {
        assert_eq!(delivery.await.expect("it is written").offset, Some(Offset(number as i64)));
    }
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    let found = texts(&read(&mut reader, 2_000).await);
    assert!(found.iter().enumerate().all(|(number, value)| *value == number.to_string()));
}

pub async fn an_appender_writes_without_futures(ground: &Ground) {
    const COUNT: usize = 30_000;
    let topic = ground.topic(3).await;
    // So small a buffer that the appender has to wait for room.
    let config =
        ProducerConfig { batch_size: 16 << 10, buffer_memory: 256 << 10, ..ProducerConfig::default() };
    let producer = ground.producer(config);
    let mut appender = producer.appender();
    let slot = appender.topic(&topic).await.expect("it is there");
    assert_eq!(slot.partition_count(), 3);
    let appending = tokio::task::spawn_blocking(move || {
        let headers = [Header::new("h", Some(b"v"))];
        for number in 0..COUNT {
            let key = (number as u32).to_be_bytes();
            let partition = appender.partition_for(slot, Some(&key), None);
            let appended = appender.append_blocking(
                slot,
                partition,
                number as i64,
                Some(&key),
                Some(b"value"),
                &headers,
            );
            appended.expect("there is room in time");
            appender.linger();
        }
        appender
    });
    let mut appender = appending.await.expect("the thread ends");
    appender.flush().await.expect("all are written");
    let mut reader = ground.reader(&topic, &[0, 1, 2], ConsumerConfig::default());
    let mut numbers: Vec<i64> =
        read(&mut reader, COUNT).await.iter().map(|record| record.timestamp).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().enumerate().all(|(number, found)| *found == number as i64));
}

pub async fn threads_without_a_runtime_send_and_wait(ground: &Ground) {
    let topic = ground.topic(1).await;
    let producer = ground.producer(ProducerConfig::default());
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (producer, topic) = (producer.clone(), topic.clone());
            std::thread::spawn(move || {
                let send = |_| producer.send_blocking(ProducerRecord::new(topic.as_str(), "value"));
                let deliveries: Vec<_> = (0..50).map(send).collect();
                let offset = |delivery: thalweg_client::Result<thalweg_client::Delivery>| {
                    let written = delivery.expect("there is room").wait().expect("it is written");
                    written.offset.expect("the broker says where").0
                };
                deliveries.into_iter().map(offset).collect::<Vec<i64>>()
            })
        })
        .collect();
    let joined = tokio::task::spawn_blocking(move || {
        threads.into_iter().map(|thread| thread.join().expect("the thread ends")).collect::<Vec<_>>()
    });
    let offsets = joined.await.expect("it ends");
    assert!(offsets.iter().all(|offsets| offsets.is_sorted()), "each thread's records keep their order");
    let mut all: Vec<i64> = offsets.into_iter().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (0..150).collect::<Vec<i64>>());
}

pub async fn every_level_of_acks_works(ground: &Ground) {
    let topic = ground.topic(1).await;
    for (acks, offset) in [(Acks::None, None), (Acks::Leader, Some(Offset(1))), (Acks::All, Some(Offset(2)))]
    {
        let producer = ground.producer(ProducerConfig { acks, ..ProducerConfig::default() });
        let delivery = producer.send_and_wait(ProducerRecord::new(topic.as_str(), format!("{acks:?}"))).await;
        assert_eq!(delivery.expect("it is sent").offset, offset, "{acks:?}");
        if acks == Acks::None {
            // Nobody tells when it is there.
            let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
            assert_eq!(texts(&read(&mut reader, 1).await), ["None"]);
        }
    }
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    assert_eq!(texts(&read(&mut reader, 3).await), ["None", "Leader", "All"]);
}

pub async fn a_record_that_is_too_large_fails_alone(ground: &Ground) {
    let topic = ground.topic(1).await;
    let producer = ground.producer(ProducerConfig::default());
    let small = |value: &str| ProducerRecord::new(topic.as_str(), value.to_owned());
    let first = producer.send(small("first")).await.expect("there is room");
    let large = producer.send(ProducerRecord::new(topic.as_str(), vec![b'x'; 2 << 20])).await;
    let large = large.expect("only the broker knows its limit");
    let last = producer.send(small("last")).await.expect("there is room");
    assert_eq!(large.await.expect_err("a broker takes 1 MiB by default").kind(), ErrorKind::GiveUp);
    assert_eq!(first.await.expect("it is written").offset, Some(Offset(0)));
    assert_eq!(last.await.expect("it is written, under a newer epoch").offset, Some(Offset(1)));
    let flushed = producer.flush().await.expect_err("one was not written");
    assert_eq!(flushed.kind(), ErrorKind::GiveUp);
    producer.flush().await.expect("that has been told");
    let more = producer.send_and_wait(small("more")).await.expect("it is written");
    assert_eq!(more.offset, Some(Offset(2)));
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    let found: Vec<String> = read(&mut reader, 3).await.iter().map(text).collect();
    assert_eq!(found, ["first", "last", "more"]);
    let nothing = reader.poll(Duration::from_millis(50)).await.expect("the poll succeeds");
    assert!(nothing.batches.is_empty());
}
