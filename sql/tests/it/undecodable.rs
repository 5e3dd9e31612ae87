//! Records that do not decode: left out whatever is selected, counted, and told.

use thalweg_client::ProducerRecord;
use thalweg_sql::SqlConfig;

use crate::ground::{Ground, check, lines_and_summary, query, run};

#[tokio::test(flavor = "multi_thread")]
async fn they_are_left_out_of_every_projection_and_told() {
    let ground = Ground::new().await;
    let values = [
        r#"{"a": 1, "b": "x", "c": 1.5}"#,
        r#"{"a": 2, "b": "y", "c": "no number"}"#,
        r#"{"a": 3.5, "b": "z"}"#,
        r#"{"a": 4, "b": "open"#,
        "not json",
        r#"{"a": 5}"#,
        r#"[{"a": 6}]"#,
    ];
    ground.topic_of("t", &values).await;
    let producer = ground.producer();
    let tombstone = ProducerRecord { value: None, ..ProducerRecord::new("t", "") }.key("k");
    producer.send_and_wait(tombstone).await.expect("it is written");
    let record = ProducerRecord::new("t", r#"{"a": 7}"#).key(b"\xff".to_vec());
    producer.send_and_wait(record).await.expect("it is written");
    let session = ground.session();
    let declare = "CREATE TABLE d (a BIGINT, b VARCHAR, c DOUBLE) WITH (topic = 't', key_format = 'text')";
    run(&session, declare).await;

    let reasons = [
        (1, r#"column `c` is DOUBLE, and the value is "no number""#),
        (2, "column `a` is BIGINT, and the value is 3.5"),
        (3, "its value is not JSON: expected the end of a string at byte 19"),
        (4, "its value is not JSON: expected an object at byte 0"),
        (6, "its value is not JSON: expected an object at byte 0"),
        (7, "it has no value (a tombstone)"),
        (8, "its key is not UTF-8; declare the table with key_format = 'bytes'"),
    ];
    for (projection, expected) in [
        ("count(*)", "2"),
        ("count(a)", "2"),
        ("count(b)", "1"),
        ("count(c)", "1"),
        ("count(_offset)", "2"),
        ("count(*), sum(a), max(_partition)", "2,6,0"),
    ] {
        let sql = format!("SELECT {projection} FROM d");
        let (rows, summary) = lines_and_summary(&session, &sql).await;
        assert_eq!(rows, [expected], "{sql}");
        assert_eq!(summary.undecodable.count, 7, "{sql}");
        let told: Vec<(i64, &str)> =
            summary.undecodable.first.iter().map(|record| (record.offset, record.reason.as_str())).collect();
        assert_eq!(told, reasons, "{sql}");
        assert!(summary.undecodable.first.iter().all(|record| record.topic == "t" && record.partition == 0));
    }
    // A record that two scans meet counts once; one that is not read does not count.
    let (_, summary) = lines_and_summary(&session, "SELECT count(*) FROM d x, d y").await;
    assert_eq!(summary.undecodable.count, 7);
    let (_, summary) = lines_and_summary(&session, "SELECT count(*) FROM d WHERE _offset < 3").await;
    assert_eq!(summary.undecodable.count, 2);

    run(&session, "CREATE TABLE e (a BIGINT, c VARCHAR) WITH (topic = 't')").await;
    check(&session, "SELECT a, c FROM e ORDER BY a", &["1,1.5", "2,no number", "5,", "7,"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_sample_did_not_show_is_told_with_advice() {
    let ground = Ground::new().await;
    ground.topic_of("t", &[r#"{"n": 1}"#, r#"{"n": 2}"#, r#"{"n": 2.5}"#, r#"{"n": "x"}"#]).await;
    let config = SqlConfig { sample_records: 2, undecodable_shown: 1, ..SqlConfig::default() };
    let session = ground.session_with(config);
    let mut rows = query(&session, "SELECT sum(n) FROM t").await;
    rows.collect().await.expect("it runs");
    let expected = "2 records left out because they do not decode\n  t-0 offset 2: column `n` is BIGINT, and the \
                    value is 2.5 (the type was inferred from the first records; CREATE TABLE declares another)\n  \
                    and 1 more";
    assert_eq!(rows.undecodable().to_string(), expected);
    check(&ground.session(), "SELECT count(n) FROM t", &["4"]).await;
}
