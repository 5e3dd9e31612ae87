//! Which records a query sees: the committed ones before the last stable offset of its beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_client::{Producer, ProducerConfig, ProducerRecord};

use crate::ground::{Ground, check, check_soon, lines, query, run};

async fn send(producer: &Producer, topic: &str, n: i32) {
    let record = ProducerRecord::new(topic, format!(r#"{{"n":{n}}}"#));
    producer.send(record).await.expect("there is room");
}

#[tokio::test(flavor = "multi_thread")]
async fn open_and_aborted_transactions_are_invisible() {
    let ground = Ground::new().await;
    ground.create("t", 1).await;
    let transactional = |id: &str| {
        ground.client.producer(ProducerConfig::transactional(id)).expect("the configuration is right")
    };
    let (first, second, plain) = (transactional("first"), transactional("second"), ground.producer());
    first.init_transactions().await.expect("taken over");
    second.init_transactions().await.expect("taken over");

    first.begin_transaction().expect("it was not begun");
    send(&first, "t", 1).await;
    first.commit_transaction().await.expect("committed");
    let session = ground.session();
    run(&session, "CREATE TABLE n (n INT) WITH (topic = 't')").await;
    let all = "SELECT n FROM n ORDER BY n";
    check_soon(&session, all, &["1"]).await;
    first.begin_transaction().expect("it was not begun");
    send(&first, "t", 2).await;
    first.flush().await.expect("written");
    first.abort_transaction().await.expect("aborted");
    send(&plain, "t", 3).await;
    plain.flush().await.expect("written");

    check_soon(&session, all, &["1", "3"]).await;

    second.begin_transaction().expect("it was not begun");
    send(&second, "t", 4).await;
    second.flush().await.expect("written");
    send(&plain, "t", 5).await;
    plain.flush().await.expect("written");
    check(&session, all, &["1", "3"]).await;
    check(&session, "SELECT count(*) FROM n WHERE _offset > 3", &["1"]).await;
    second.commit_transaction().await.expect("committed");
    check_soon(&session, all, &["1", "3", "4", "5"]).await;

    // Offsets of markers and aborted records are holes, nothing more.
    let offsets = lines(&session, "SELECT _offset FROM n ORDER BY n").await;
    assert_eq!(offsets, ["0", "4", "5", "6"]);
    first.begin_transaction().expect("it was not begun");
    send(&first, "t", 6).await;
    first.flush().await.expect("written");
    first.abort_transaction().await.expect("aborted");
    check(&session, all, &["1", "3", "4", "5"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_ends_where_the_log_ended_when_it_began() {
    let ground = Ground::new().await;
    let values: Vec<String> = (0..100).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
    ground.topic_of("t", &values.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let session = ground.session();
    let mut rows = query(&session, "SELECT count(*), max(n) FROM t").await;
    let producer = ground.producer();
    for n in 100..200 {
        send(&producer, "t", n).await;
    }
    producer.flush().await.expect("written");
    let shown = arrow::util::pretty::pretty_format_batches(&rows.collect().await.expect("it runs"));
    let shown = shown.expect("shown").to_string();
    assert!(shown.contains("| 100      | 99       |"), "{shown}");
    check(&session, "SELECT count(*), max(n) FROM t", &["200,199"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_use_of_a_topic_in_a_statement_has_the_same_end() {
    let ground = Ground::new().await;
    ground.topic_of("t", &[r#"{"n":0}"#]).await;
    let session = ground.session();
    run(&session, "CREATE TABLE other_name (n INT) WITH (topic = 't')").await;
    let is_done = Arc::new(AtomicBool::new(false));
    let writing = {
        let (producer, is_done) = (ground.producer(), Arc::clone(&is_done));
        tokio::spawn(async move {
            let mut n = 1;
            while !is_done.load(Ordering::Relaxed) {
                send(&producer, "t", n).await;
                n += 1;
                if n % 50 == 0 {
                    producer.flush().await.expect("written");
                }
            }
        })
    };
    let sql = "SELECT (SELECT count(*) FROM t), (SELECT count(n) FROM other_name), (SELECT max(_offset) + 1 FROM t x)";
    let mut counts = Vec::new();
    for _ in 0..10 {
        let line = lines(&session, sql).await.pop().expect("one row");
        let parts: Vec<&str> = line.split(',').collect();
        assert!(parts.iter().all(|part| *part == parts[0]), "{line}");
        counts.push(parts[0].parse::<u64>().expect("a number"));
    }
    is_done.store(true, Ordering::Relaxed);
    writing.await.expect("it ends");
    assert!(counts.first() < counts.last(), "nothing was written meanwhile: {counts:?}");
}
