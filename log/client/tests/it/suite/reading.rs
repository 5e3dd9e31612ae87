use std::time::Duration;

use thalweg_client::{
    ConsumerConfig, Error, ErrorKind, OffsetReset, OffsetSpec, ProducerConfig, ProducerRecord,
};
use thalweg_protocol::{Offset, Scratch};
use tokio::time::Instant;

use super::{Ground, PATIENCE, at, read, read_to_end, texts};

pub async fn a_consumer_seeks_and_pauses(ground: &Ground) {
    let topic = ground.topic(2).await;
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &topic, 0, &["a", "b", "c"]).await;
    ground.write(&producer, &topic, 1, &["x"]).await;
    let mut reader = ground.reader(&topic, &[0, 1], ConsumerConfig::default());
    reader.pause([&at(&topic, 1)]);
    assert_eq!(reader.paused(), [at(&topic, 1)]);
    assert_eq!(texts(&read(&mut reader, 3).await), ["a", "b", "c"]);
    assert_eq!(reader.position(&at(&topic, 0)), Some(Offset(3)));
    assert_eq!(reader.position(&at(&topic, 2)), None);
    reader.seek(&at(&topic, 0), Offset(1)).expect("it is assigned");
    assert_eq!(reader.position(&at(&topic, 0)), Some(Offset(1)));
    assert_eq!(
        texts(&read(&mut reader, 2).await),
        ["b", "c"],
        "the batch begins earlier, its records do not"
    );
    reader.resume([&at(&topic, 1)]);
    assert_eq!(texts(&read(&mut reader, 1).await), ["x"]);
    reader.seek_to(&at(&topic, 0), OffsetSpec::Earliest).expect("it is assigned");
    assert_eq!(texts(&read(&mut reader, 3).await), ["a", "b", "c"]);
    assert!(matches!(reader.seek(&at(&topic, 9), Offset(0)), Err(Error::Misuse { .. })));

    // The batches as they come, without a record of its own for each.
    reader.seek(&at(&topic, 0), Offset(2)).expect("it is assigned");
    let polled = reader.poll(PATIENCE).await.expect("the poll succeeds");
    let batches = &polled.batches[0];
    assert_eq!((batches.position, batches.next_offset, batches.end), (Offset(2), Offset(3), Offset(3)));
    let mut seen = Vec::new();
    let each = batches.for_each(&mut Scratch::new(1 << 20), |record| {
        seen.push(record.value.map(<[u8]>::to_vec));
        Ok::<_, Error>(())
    });
    each.expect("nothing is damaged");
    assert_eq!(seen, [Some(b"c".to_vec())]);
}

pub async fn a_consumer_starts_where_it_is_told(ground: &Ground) {
    let topic = ground.topic(1).await;
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &topic, 0, &["old"]).await;
    let mut latest = ground.consumer(ConsumerConfig::default());
    latest.assign([at(&topic, 0)]).expect("it reads nothing yet");
    let deadline = Instant::now() + PATIENCE;
    while latest.position(&at(&topic, 0)).is_none() && Instant::now() < deadline {
        let polled = latest.poll(Duration::from_millis(50)).await.expect("the poll succeeds");
        assert!(polled.is_empty());
    }
    ground.write(&producer, &topic, 0, &["new"]).await;
    assert_eq!(texts(&read(&mut latest, 1).await), ["new"]);

    let group = ground.name("group");
    let config = ConsumerConfig { offset_reset: OffsetReset::None, ..ConsumerConfig::group(group) };
    let mut none = ground.consumer(config);
    none.assign([at(&topic, 0)]).expect("it reads nothing yet");
    let error = none.poll(PATIENCE).await.expect_err("there is neither offset nor rule");
    assert!(matches!(error, Error::NoOffset { .. }), "{error}");
    none.seek(&at(&topic, 0), Offset(0)).expect("it is assigned");
    assert_eq!(texts(&read(&mut none, 2).await), ["old", "new"]);

    let missing = ground.name("missing");
    let mut unknown = ground.reader(&missing, &[0], ConsumerConfig::default());
    let error = unknown.poll(PATIENCE).await.expect_err("there is no topic");
    assert!(matches!(error, Error::UnknownTopic { .. }), "{error}");
}

pub async fn offsets_are_found_by_time(ground: &Ground) {
    let topic = ground.topic(2).await;
    let producer = ground.producer(ProducerConfig::default());
    for timestamp in [100, 200, 300] {
        let record =
            ProducerRecord::new(topic.as_str(), format!("{timestamp}")).partition(0).timestamp(timestamp);
        producer.send_and_wait(record).await.expect("it is written");
    }
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    let both = [at(&topic, 0), at(&topic, 1)];
    let ends = reader.end_offsets(&both).await.expect("it answers");
    assert_eq!((ends[&both[0]], ends[&both[1]]), (Offset(3), Offset(0)));
    let starts = reader.beginning_offsets(&both).await.expect("it answers");
    assert_eq!(starts[&both[0]], Offset(0));
    let found = reader.offsets_for_times(&[(both[0].clone(), 150), (both[1].clone(), 150)]).await;
    let found = found.expect("it answers");
    assert_eq!((found[&both[0]].offset, found[&both[0]].timestamp), (Some(Offset(1)), 200));
    assert_eq!(found[&both[1]].offset, None);
    reader.seek_to(&both[0], OffsetSpec::Timestamp(201)).expect("it is assigned");
    assert_eq!(texts(&read(&mut reader, 1).await), ["300"]);
    reader.seek_to(&both[0], OffsetSpec::Timestamp(301)).expect("it is assigned");
    assert_eq!(read_to_end(&mut reader).await, [""; 0], "no record is so late: the end");
    assert_eq!(reader.position(&both[0]), Some(Offset(3)));
}

pub async fn a_position_that_is_gone_is_reset_or_told(ground: &Ground) {
    let topic = ground.topic(1).await;
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &topic, 0, &["a", "b", "c"]).await;
    let before = [(at(&topic, 0), Offset(2))];
    ground.client.admin().delete_records(&before).await.expect("they are deleted");
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    reader.seek(&at(&topic, 0), Offset(0)).expect("it is assigned");
    assert_eq!(texts(&read(&mut reader, 1).await), ["c"]);

    let mut strict =
        ground.consumer(ConsumerConfig { offset_reset: OffsetReset::None, ..ConsumerConfig::default() });
    strict.assign([at(&topic, 0)]).expect("it reads nothing yet");
    strict.seek(&at(&topic, 0), Offset(99)).expect("it is assigned");
    let error = strict.poll(PATIENCE).await.expect_err("there is no such offset and no rule");
    assert!(matches!(error, Error::OffsetOutOfRange { offset: Offset(99), .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::GiveUp);
    let nothing = strict.poll(Duration::from_millis(20)).await.expect("it has been told");
    assert!(nothing.is_empty());
    strict.seek(&at(&topic, 0), Offset(2)).expect("it is assigned");
    assert_eq!(texts(&read(&mut strict, 1).await), ["c"]);
}

pub async fn a_reader_knows_when_it_has_caught_up(ground: &Ground) {
    const COUNT: usize = 3_000;
    let topic = ground.topic(1).await;
    let partition = at(&topic, 0);
    let producer = ground.producer(ProducerConfig { batch_size: 500, ..ProducerConfig::default() });
    for number in 0..COUNT {
        producer.send(ProducerRecord::new(topic.as_str(), format!("{number}"))).await.expect("there is room");
    }
    producer.flush().await.expect("all are written");
    let config = ConsumerConfig { max_partition_fetch_bytes: 4_000, ..ConsumerConfig::default() };
    let mut reader = ground.reader(&topic, &[0], config);
    let mut seen = 0;
    let deadline = Instant::now() + PATIENCE;
    while seen < COUNT {
        assert!(Instant::now() < deadline, "only {seen} came");
        for batches in reader.poll(PATIENCE).await.expect("the poll succeeds").batches {
            seen += batches.records_count();
            assert_eq!(batches.is_caught_up(), seen == COUNT, "after {seen}");
            assert_eq!(batches.end, Offset(COUNT as i64));
        }
        let progress = reader.progress(&partition).expect("it has been read");
        assert_eq!((progress.position, progress.lag()), (Offset(seen as i64), (COUNT - seen) as i64));
    }
    ground.write(&producer, &topic, 0, &["one more"]).await;
    assert_eq!(read_to_end(&mut reader).await.last().map(String::as_str), Some("one more"));
}

pub async fn a_waiting_poll_can_be_woken(ground: &Ground) {
    let topic = ground.topic(1).await;
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    let waker = reader.waker();
    let start = Instant::now();
    let (polled, ()) = tokio::join!(reader.poll(PATIENCE), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        waker.wake();
    });
    assert!(polled.expect("the poll succeeds").is_empty());
    assert!(start.elapsed() < PATIENCE / 2);
}

pub async fn a_position_at_the_end_of_an_emptied_log_is_good(ground: &Ground) {
    let topic = ground.topic(1).await;
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &topic, 0, &["a", "b", "c"]).await;
    let group = ground.name("group");
    let config = |reset| ConsumerConfig { offset_reset: reset, ..ConsumerConfig::group(group.as_str()) };
    let mut first = ground.consumer(config(OffsetReset::Earliest));
    first.assign([at(&topic, 0)]).expect("it reads nothing yet");
    assert_eq!(read(&mut first, 3).await.len(), 3);
    // With the leader epoch of the last record, about which the leader is asked by who goes on here.
    first.commit().await.expect("it is committed");
    ground.client.admin().delete_records(&[(at(&topic, 0), Offset(3))]).await.expect("they are deleted");
    let mut second = ground.consumer(config(OffsetReset::None));
    second.assign([at(&topic, 0)]).expect("it reads nothing yet");
    assert!(read_to_end(&mut second).await.is_empty());
    ground.write(&producer, &topic, 0, &["d"]).await;
    assert_eq!(texts(&read(&mut second, 1).await), ["d"]);
    assert_eq!((second.current_lag(&at(&topic, 0)), second.metrics().truncations), (Some(0), 0));
}
