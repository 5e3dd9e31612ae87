//! The programs in `examples/`, run.

use std::sync::Arc;

use parking_lot::Mutex;
use thalweg_client::{ConsumerConfig, Offset, ProducerConfig, TopicPartition};

use super::{Ground, read, read_to_end, texts};
use crate::one_database::{self, Counts, Database};
use crate::{at_least_once, at_most_once, custom_assignor, custom_partitioner, exactly_once, queue, sending};

/// A topic with these values in its two partitions.
async fn topic_with(ground: &Ground, values: &[&str]) -> String {
    let topic = ground.topic(2).await;
    let producer = ground.producer(ProducerConfig::default());
    for (at, value) in values.iter().enumerate() {
        ground.write(&producer, &topic, (at % 2) as i32, &[value]).await;
    }
    topic
}

fn sorted(mut values: Vec<String>) -> Vec<String> {
    values.sort();
    values
}

pub async fn records_are_processed_and_not_again(ground: &Ground) {
    let topic = topic_with(ground, &["a", "b", "c"]).await;
    let collect =
        |seen: &mut Vec<String>, value: &[u8]| seen.push(String::from_utf8_lossy(value).into_owned());
    let (at_most, at_least) = (ground.name("at-most-once"), ground.name("at-least-once"));
    for expected in [&["a", "b", "c"][..], &[]] {
        let (mut most, mut least) = (Vec::new(), Vec::new());
        let (first, second) = tokio::join!(
            at_most_once::run(&ground.client, &topic, &at_most, |value| collect(&mut most, value)),
            at_least_once::run(&ground.client, &topic, &at_least, |value| collect(&mut least, value)),
        );
        first.expect("it ends");
        second.expect("it ends");
        assert_eq!((sorted(most), sorted(least)), (own(expected), own(expected)));
    }
}

fn own(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

pub async fn records_are_transformed_exactly_once(ground: &Ground) {
    let from = topic_with(ground, &["one", "two", "three"]).await;
    let (to, id) = (ground.topic(1).await, ground.name("shouter"));
    // What an instance before left unfinished is never seen.
    let before = ground.transactional(&id).await;
    before.begin_transaction().expect("none is open");
    ground.write(&before, &to, 0, &["UNFINISHED"]).await;
    exactly_once::run(&ground.client, &from, &to, &id).await.expect("it ends");
    let producer = ground.producer(ProducerConfig::default());
    ground.write(&producer, &from, 0, &["four"]).await;
    exactly_once::run(&ground.client, &from, &to, &id).await.expect("it ends");
    let mut reader = ground.reader(&to, &[0], ConsumerConfig::default());
    let values = sorted(texts(&read(&mut reader, 4).await));
    assert_eq!(values, ["FOUR", "ONE", "THREE", "TWO"]);
    assert!(read_to_end(&mut reader).await.is_empty(), "none twice");
}

pub async fn words_are_counted_exactly_once_in_one_database(ground: &Ground) {
    let directory = tempfile::tempdir().expect("there is room");
    let file = directory.path().join("words.db").display().to_string();
    words_are_counted_exactly_once_in(ground, &file).await;
}

/// In the database that `THALWEG_TEST_POSTGRES` names, in a schema of its own that is dropped again.
pub async fn words_are_counted_exactly_once_in_postgres(ground: &Ground) {
    let Some(url) = postgres() else { return };
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("it answers");
    let connected = tokio::spawn(connection);
    // Suites of several grounds may come here at once: each has a schema of its own.
    let schema = ground.name("words").replace(|other: char| !other.is_ascii_alphanumeric(), "_");
    client.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await.expect("it is new");
    words_are_counted_exactly_once_in(ground, &format!("{url}?options=-csearch_path%3D{schema}")).await;
    client.batch_execute(&format!("DROP SCHEMA \"{schema}\" CASCADE")).await.expect("it is there");
    drop(client);
    connected.await.expect("it does not panic").expect("it ends well");
}

fn postgres() -> Option<String> {
    let url = std::env::var("THALWEG_TEST_POSTGRES").ok();
    assert!(
        url.is_some() || std::env::var_os("THALWEG_TESTS_MUST_RUN").is_none(),
        "THALWEG_TEST_POSTGRES is not set"
    );
    url
}

async fn words_are_counted_exactly_once_in(ground: &Ground, at: &str) {
    let open = || async { Database::open(at).await.expect("it opens") };
    let topic = topic_with(ground, &["one", "two", "one"]).await;
    let (group, other_group) = (ground.name("counter"), ground.name("counter"));
    let run = |group: &str| {
        let (client, topic, group) = (ground.client.clone(), topic.clone(), group.to_owned());
        async move { one_database::run(&client, &topic, &group, &mut open().await).await }
    };
    run(&group).await.expect("it ends");
    let counts = |one, two| Counts::from([("one".to_owned(), one), ("two".to_owned(), two)]);
    let mut database = open().await;
    assert_eq!(database.counts().await.expect("it can be read"), counts(2, 1));

    // Nothing but what follows is taken, and of what is refused nothing stays.
    let partition = TopicPartition::new(&*topic, 0);
    let stored = database.progress(&partition).await.expect("there is one");
    assert!(!database.advance(&partition, Offset(0), stored, &counts(5, 5)).await.expect("it answers"));

    // Two instances that share the partitions, and one that takes all of them for its own.
    let producer = ground.producer(ProducerConfig::default());
    for at in 0..400 {
        ground.write(&producer, &topic, at % 2, &["one two one"]).await;
    }
    let (first, second, third) = tokio::join!(run(&group), run(&group), run(&other_group));
    for ended in [first, second, third] {
        ended.expect("it ends");
    }
    assert_eq!(database.counts().await.expect("it can be read"), counts(802, 401));
}

pub async fn records_are_sent_in_four_ways(ground: &Ground) {
    let topic = ground.topic(1).await;
    let written = sending::run(&ground.client, &topic).await.expect("all are written");
    let offsets: Vec<_> = written.iter().map(|written| written.offset.map(|offset| offset.0)).collect();
    assert_eq!(offsets, [Some(0), Some(1), Some(2), Some(3)]);
    let mut reader = ground.reader(&topic, &[0], ConsumerConfig::default());
    assert_eq!(texts(&read(&mut reader, 4).await), ["waited for", "called back", "from a thread", "flushed"]);
}

pub async fn partitions_and_members_are_chosen_by_own_rules(ground: &Ground) {
    let topic = ground.topic(4).await;
    let customers = ["big-1", "small-1", "big-2", "small-2", "small-3"];
    let placed = custom_partitioner::run(&ground.client, &topic, &customers).await.expect("all are written");
    for (customer, partition) in placed {
        assert_eq!(partition == 0, customer.starts_with("big-"), "{customer} is in {partition}");
    }
    let group = ground.name("by-capacity");
    let shares = custom_assignor::run(&ground.client, &topic, &group, [1, 3]).await.expect("they join");
    assert_eq!(shares, [1, 3]);
}

pub async fn a_queue_is_worked_off(ground: &Ground) {
    let topic = topic_with(ground, &["one", "poison", "two", "three", "four"]).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let jobs = Arc::clone(&seen);
    let process = move |job: &[u8]| {
        jobs.lock().push(String::from_utf8_lossy(job).into_owned());
        job != b"poison"
    };
    let rejected = queue::run(&ground.client, &topic, &ground.name("workers"), process).await;
    assert_eq!(rejected.expect("they end"), ["poison"]);
    let seen = sorted(std::mem::take(&mut *seen.lock()));
    assert_eq!(seen, ["four", "one", "poison", "poison", "poison", "three", "two"]);
}
