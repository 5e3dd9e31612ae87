use thalweg_client::{
    CommittedOffset, ConsumerConfig, Error, ErrorKind, GroupMetadata, Isolation, OffsetSpec, ProducerConfig,
    ProducerRecord,
};
use thalweg_protocol::Offset;
use thalweg_protocol::messages::ApiKey;
use tokio::time::Instant;

use super::lossy::Loss;
use super::{Ground, PATIENCE, at, read, read_to_end, texts};

pub async fn committed_records_are_read_and_aborted_ones_are_not(ground: &Ground) {
    let topic = ground.topic(2).await;
    let plain = ground.producer(ProducerConfig::default());
    let producer = ground.transactional(&ground.name("id")).await;
    ground.write(&plain, &topic, 0, &["before"]).await;
    for (value, commits) in [("one", true), ("two", false), ("three", true)] {
        producer.begin_transaction().expect("none is open");
        ground.write(&producer, &topic, 0, &[value, value]).await;
        ground.write(&producer, &topic, 1, &[value]).await;
        ground.write(&plain, &topic, 0, &["between"]).await;
        if commits {
            producer.commit_transaction().await.expect("it is committed");
        } else {
            producer.abort_transaction().await.expect("it is aborted");
        }
    }
    ground.write(&plain, &topic, 0, &["after"]).await;

    let mut committed = ground.reader(&topic, &[0], ConsumerConfig::default());
    let expected = ["before", "one", "one", "between", "between", "three", "three", "between", "after"];
    assert_eq!(texts(&read(&mut committed, expected.len()).await), expected);
    let mut other = ground.reader(&topic, &[1], ConsumerConfig::default());
    assert_eq!(texts(&read(&mut other, 2).await), ["one", "three"]);
    let uncommitted = ConsumerConfig { isolation: Isolation::ReadUncommitted, ..ConsumerConfig::default() };
    let mut all = ground.reader(&topic, &[0], uncommitted);
    assert_eq!(read(&mut all, 11).await.len(), 11);
    assert_eq!(read_to_end(&mut all).await, [""; 0]);
}

pub async fn an_open_transaction_holds_readers_up(ground: &Ground) {
    let topic = ground.topic(1).await;
    let plain = ground.producer(ProducerConfig::default());
    let producer = ground.transactional(&ground.name("id")).await;
    ground.write(&plain, &topic, 0, &["before"]).await;
    producer.begin_transaction().expect("none is open");
    ground.write(&producer, &topic, 0, &["inside"]).await;
    ground.write(&plain, &topic, 0, &["behind"]).await;

    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    assert_eq!(read_to_end(&mut reader).await, ["before"]);
    let progress = reader.progress(&at(&topic, 0)).expect("it has been read");
    assert_eq!((progress.end, progress.last_stable_offset), (Offset(1), Offset(1)));
    assert_eq!(progress.high_watermark, Offset(3));
    let stable = reader.end_offsets(&[at(&topic, 0)]).await.expect("it answers");
    assert_eq!(stable[&at(&topic, 0)], Offset(1));
    let admin = ground.client.admin();
    let listed = admin.list_offsets(&[(at(&topic, 0), OffsetSpec::Latest)], Isolation::ReadUncommitted).await;
    assert_eq!(listed.expect("it answers")[&at(&topic, 0)].offset, Some(Offset(3)));

    producer.commit_transaction().await.expect("it is committed");
    assert_eq!(texts(&read(&mut reader, 2).await), ["inside", "behind"]);
    assert_eq!(read_to_end(&mut reader).await, [""; 0]);
    assert_eq!(reader.position(&at(&topic, 0)), Some(Offset(4)), "past the marker");
}

pub async fn offsets_are_part_of_the_transaction(ground: &Ground) {
    let topic = ground.topic(2).await;
    let group = GroupMetadata::without_membership(ground.name("group"));
    let producer = ground.transactional(&ground.name("id")).await;
    let admin = ground.client.admin();
    let wanted = [at(&topic, 0), at(&topic, 1)];
    let mut expected = None;
    for (number, commits) in [(1, true), (2, false), (3, true), (4, false)] {
        producer.begin_transaction().expect("none is open");
        let offset = CommittedOffset::with_metadata(Offset(number), format!("commit {number}"));
        producer
            .send_offsets_to_transaction(&[(wanted[0].clone(), offset.clone())], &group)
            .await
            .expect("they are part of it");
        // A transaction may have nothing but offsets.
        if number > 2 {
            ground.write(&producer, &topic, 1, &["with a record"]).await;
        }
        if commits {
            producer.commit_transaction().await.expect("it is committed");
            expected = Some(offset);
        } else {
            producer.abort_transaction().await.expect("it is aborted");
        }
        let kept = admin.committed_offsets(&group.group, Some(&wanted), true).await.expect("it answers");
        assert_eq!(kept.get(&wanted[0]), expected.as_ref(), "after transaction {number}");
    }
}

pub async fn a_newer_producer_fences_the_older(ground: &Ground) {
    let topic = ground.topic(1).await;
    let id = ground.name("id");
    let older = ground.transactional(&id).await;
    older.begin_transaction().expect("none is open");
    ground.write(&older, &topic, 0, &["older"]).await;
    let newer = ground.transactional(&id).await;
    newer.begin_transaction().expect("none is open");
    ground.write(&newer, &topic, 0, &["newer"]).await;
    let fenced = older.commit_transaction().await.expect_err("the newer one has taken over");
    assert_eq!(fenced.kind(), ErrorKind::Fenced, "{fenced}");
    assert_eq!(older.begin_transaction().expect_err("it stays so").kind(), ErrorKind::Fenced);
    newer.commit_transaction().await.expect("it is committed");
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    assert_eq!(texts(&read(&mut reader, 1).await), ["newer"]);
}

pub async fn what_a_dead_producer_left_is_aborted(ground: &Ground) {
    let topic = ground.topic(1).await;
    let id = ground.name("id");
    let dead = ground.transactional(&id).await;
    dead.begin_transaction().expect("none is open");
    ground.write(&dead, &topic, 0, &["left open"]).await;
    let next = ground.transactional(&id).await;
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    next.begin_transaction().expect("none is open");
    let sent = next.send_and_wait(ProducerRecord::new(topic.as_str(), "next")).await;
    sent.expect("it is written");
    next.commit_transaction().await.expect("it is committed");
    assert_eq!(texts(&read(&mut reader, 1).await), ["next"]);
    drop(dead);
}

pub async fn an_end_of_unknown_outcome_is_cleared_up(ground: &Ground) {
    let topic = ground.topic(1).await;
    let (lossy, client) = ground.lossy().await;
    let config = ProducerConfig::transactional(ground.name("id"));
    let producer = client.producer(config).expect("the configuration is right");
    producer.init_transactions().await.expect("the transactional id is taken over");
    let mut expected = Vec::new();
    for (loss, commits, is_committed) in [
        (Loss::Request(ApiKey::EndTxn), true, false),
        (Loss::Answer(ApiKey::EndTxn), true, true),
        (Loss::Request(ApiKey::EndTxn), false, false),
        (Loss::Answer(ApiKey::EndTxn), false, false),
    ] {
        let value = format!("{loss:?} {commits}");
        producer.begin_transaction().expect("none is open");
        ground.write(&producer, &topic, 0, &[&value]).await;
        lossy.lose(Some(loss));
        let ended =
            if commits { producer.commit_transaction().await } else { producer.abort_transaction().await };
        let error = ended.expect_err("no answer comes");
        assert_eq!(error.kind(), ErrorKind::Ambiguous, "{value}: {error}");
        lossy.lose(None);
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = producer.init_transactions().await {
            assert!(error.kind() == ErrorKind::Retry && Instant::now() < deadline, "{value}: {error}");
        }
        if is_committed {
            expected.push(value);
        }
        producer.begin_transaction().expect("none is open");
        ground.write(&producer, &topic, 0, &["next"]).await;
        producer.commit_transaction().await.expect("it is committed");
        expected.push("next".to_owned());
    }
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    assert_eq!(texts(&read(&mut reader, expected.len()).await), expected);
}

pub async fn many_transactions_follow_one_another(ground: &Ground) {
    const COUNT: usize = 40;
    let topic = ground.topic(3).await;
    let producer = ground.transactional(&ground.name("id")).await;
    assert!(matches!(producer.commit_transaction().await, Err(Error::Misuse { .. })), "none is open");
    let outside = producer.send(ProducerRecord::new(topic.as_str(), "outside")).await;
    assert!(matches!(outside, Err(Error::Misuse { .. })));
    let mut appender = producer.appender();
    let slot = appender.topic(&topic).await.expect("it is there");
    for number in 0..COUNT {
        producer.begin_transaction().expect("none is open");
        for partition in 0..3 {
            let value = number.to_string();
            let appended = appender.append(slot, partition, 0, None, Some(value.as_bytes()), &[]);
            appended.expect("there is room");
        }
        if number % 4 == 3 {
            if number % 8 == 3 {
                appender.discard();
            } else {
                appender.flush().await.expect("they are written");
            }
            producer.abort_transaction().await.expect("it is aborted");
        } else {
            appender.flush().await.expect("they are written");
            producer.commit_transaction().await.expect("it is committed");
        }
    }
    // An empty one costs nothing and works.
    producer.begin_transaction().expect("none is open");
    producer.commit_transaction().await.expect("it is committed");
    let expected: Vec<String> =
        (0..COUNT).filter(|number| number % 4 != 3).map(|number| number.to_string()).collect();
    for partition in 0..3 {
        let mut reader = ground.reader(&topic, &[partition], ConsumerConfig::default());
        assert_eq!(texts(&read(&mut reader, expected.len()).await), expected);
    }
}
