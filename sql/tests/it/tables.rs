//! Topics as tables: which columns they have, and what is in them.

use arrow::datatypes::DataType;
use thalweg_client::ProducerRecord;
use thalweg_sql::Notice;

use crate::ground::{Ground, check, lines, query, run};

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_inferred_from_json() {
    let ground = Ground::new().await;
    let values = [
        r#"{"id": 1, "ratio": 1, "ok": true, "name": "a", "tags": ["x", "y"], "mixed": 1}"#,
        r#"{"id": 2, "ratio": 0.5, "ok": null, "name": null, "nested": {"k": 1}, "mixed": "one"}"#,
    ];
    ground.topic_of("things", &values).await;
    let session = ground.session();
    let rows = query(&session, "SELECT * FROM things").await;
    let columns: Vec<(&str, &DataType)> =
        rows.schema().fields().iter().map(|field| (field.name().as_str(), field.data_type())).collect();
    let expected = [
        ("id", &DataType::Int64),
        ("ratio", &DataType::Float64),
        ("ok", &DataType::Boolean),
        ("name", &DataType::Utf8),
        ("tags", &DataType::Utf8),
        ("mixed", &DataType::Utf8),
        ("nested", &DataType::Utf8),
    ];
    assert_eq!(columns, expected);
    let notice = Notice::Inferred { topic: "things".into(), records: 2, partitions: 1 };
    assert_eq!(rows.notices(), [notice]);
    let rows = [r#"1,1.0,true,a,"[""x"", ""y""]",1,"#, r#"2,0.5,,,,one,"{""k"": 1}""#];
    check(&session, "SELECT * FROM things ORDER BY id", &rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_columns_are_there_for_who_names_them() {
    let ground = Ground::new().await;
    ground.create("a.b-c", 2).await;
    let producer = ground.producer();
    for (at, (partition, key)) in [(0, Some("k0")), (1, None), (1, Some("k2"))].into_iter().enumerate() {
        let mut record = ProducerRecord::new("a.b-c", format!(r#"{{"n":{at}}}"#))
            .partition(partition)
            .timestamp(1_357_034_400_000 + at as i64);
        if let Some(key) = key {
            record = record.key(key);
        }
        producer.send_and_wait(record).await.expect("it is written");
    }
    let session = ground.session();
    check(&session, r#"SELECT * FROM "a.b-c" ORDER BY n"#, &["0", "1", "2"]).await;
    let sql = r#"SELECT *, _partition, _offset, _timestamp, _key FROM "a.b-c" ORDER BY n"#;
    let expected = [
        "0,0,0,2013-01-01T10:00:00Z,k0",
        "1,1,0,2013-01-01T10:00:00.001Z,",
        "2,1,1,2013-01-01T10:00:00.002Z,k2",
    ];
    check(&session, sql, &expected).await;
    let sql = r#"SELECT t.*, u.* FROM "a.b-c" t JOIN "a.b-c" u ON t.n = u._offset ORDER BY t.n, u.n"#;
    check(&session, sql, &["0,0", "0,1", "1,2"]).await;
    let sql = r#"SELECT * FROM "a.b-c" t JOIN "a.b-c" u USING (n) ORDER BY n"#;
    check(&session, sql, &["0", "1", "2"]).await;
    let sql = r#"SELECT x FROM (SELECT *, _offset AS x FROM "a.b-c" WHERE _key = 'k2')"#;
    check(&session, sql, &["1"]).await;
    run(&session, r#"CREATE VIEW v AS SELECT * FROM "a.b-c""#).await;
    check(&session, "SELECT * FROM v WHERE n > 0 ORDER BY n", &["1", "2"]).await;

    // The context knows the topics too, without the rewriting of `*`.
    let frame = session.context().sql(r#"SELECT * FROM "a.b-c""#).await.expect("it is planned");
    assert_eq!(frame.schema().fields().len(), 5);
    assert_eq!(frame.count().await.expect("it runs"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_json_is_one_column() {
    let ground = Ground::new().await;
    ground.topic_of("lines", &["first", "{\"second\": 2}", "third"]).await;
    ground.topic_of("nothing", &[]).await;
    ground.create("bytes", 1).await;
    let producer = ground.producer();
    for (key, value) in [(&b"\xfe"[..], &b"\xff\x00"[..]), (b"k", b"text")] {
        let record = ProducerRecord::new("bytes", value.to_vec()).key(key.to_vec());
        producer.send_and_wait(record).await.expect("it is written");
    }
    let session = ground.session();
    let sql = "SELECT value FROM lines ORDER BY _offset";
    check(&session, sql, &["first", r#""{""second"": 2}""#, "third"]).await;
    check(&session, "SELECT count(*), count(value) FROM nothing", &["0,0"]).await;
    check(&session, "SELECT _key, * FROM bytes ORDER BY _offset", &["fe,ff00", "6b,74657874"]).await;
    let sql = "SELECT encode(value, 'base64') FROM bytes WHERE value = arrow_cast('text', 'Binary')";
    assert_eq!(lines(&session, sql).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_declared() {
    let ground = Ground::new().await;
    let values = [
        r#"{"id": 1, "price": 12.34, "at": "2013-01-01T05:00:00.123Z", "day": "2013-01-01", "Name": "x"}"#,
        r#"{"id": 2, "price": "7", "at": 1000, "day": null}"#,
    ];
    ground.topic_of("raw", &values).await;
    let session = ground.session();
    let declare = r#"CREATE TABLE items (id INT NOT NULL, price DECIMAL(10, 2), at TIMESTAMP(3), day DATE, "Name" TEXT)
                     WITH (topic = 'raw', format = 'json')"#;
    run(&session, declare).await;
    let rows = ["1,12.34,2013-01-01T05:00:00.123,2013-01-01,x", "2,7.00,1970-01-01T00:00:01,,"];
    check(&session, "SELECT * FROM items ORDER BY id", &rows).await;
    let sql = "SELECT sum(price) FROM items WHERE at >= TIMESTAMP '2000-01-01'";
    check(&session, sql, &["12.34"]).await;
    let times = [r#"{"at": "9999-12-31T23:59:59.999999Z"}"#, r#"{"at": "1600-01-01T00:00:00.0005Z"}"#];
    ground.topic_of("times", &times).await;
    for (digits, far, early) in [
        (0, "9999-12-31T23:59:59", "1600-01-01T00:00:00"),
        (3, "9999-12-31T23:59:59.999", "1600-01-01T00:00:00"),
        (6, "9999-12-31T23:59:59.999999", "1600-01-01T00:00:00.000500"),
    ] {
        run(
            &session,
            &format!("CREATE OR REPLACE TABLE times (at TIMESTAMP({digits})) WITH (topic = 'times')"),
        )
        .await;
        check(&session, "SELECT at FROM times ORDER BY at", &[early, far]).await;
    }
    run(&session, "DROP TABLE times").await;
    // A table may have its topic's name, and hides it then.
    run(&session, "CREATE TABLE raw (value TEXT) WITH (topic = 'raw', format = 'text')").await;
    check(&session, "SELECT count(value) FROM raw", &["2"]).await;
    run(&session, "DROP TABLE raw").await;
    check(&session, "SELECT count(id) FROM raw", &["2"]).await;
    run(&session, "CREATE TABLE IF NOT EXISTS items (n INT) WITH (topic = 'raw')").await;
    check(&session, "SELECT count(price) FROM items", &["2"]).await;
    run(&session, "CREATE OR REPLACE TABLE items (id BIGINT) WITH (topic = 'raw')").await;
    check(&session, "SELECT * FROM items ORDER BY 1", &["1", "2"]).await;
    let tables = lines(&session, "SHOW TABLES").await;
    assert_eq!(tables, ["items,BASE TABLE", "raw,BASE TABLE", "times,BASE TABLE"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_tables_and_join_with_topics() {
    let ground = Ground::new().await;
    ground
        .topic_of("sales", &[r#"{"shop":"a","n":1}"#, r#"{"shop":"b","n":2}"#, r#"{"shop":"a","n":3}"#])
        .await;
    let csv = ground.path("shops.csv");
    std::fs::write(&csv, "shop,city,rent\na,Delft,NA\nb,Gouda,7\n").expect("there is room");
    let session = ground.session();
    let csv = csv.display();
    let sql = format!("SELECT * FROM sales s JOIN '{csv}' c ON s.shop = c.shop ORDER BY n");
    check(&session, &sql, &["a,1,a,Delft,NA", "b,2,b,Gouda,7", "a,3,a,Delft,NA"]).await;
    let declare = format!(
        "CREATE EXTERNAL TABLE shops STORED AS CSV LOCATION '{csv}' OPTIONS ('format.null_regex' '^NA$')"
    );
    run(&session, &declare).await;
    let sql = "SELECT city, sum(n), sum(rent) FROM sales JOIN shops USING (shop) GROUP BY city ORDER BY city";
    check(&session, sql, &["Delft,4,", "Gouda,2,7"]).await;
    for null in ["'null_value' 'NA'", "'format.null_regex' 'N[Aa]|-'"] {
        let declare = format!(
            "CREATE OR REPLACE EXTERNAL TABLE other_shops (shop TEXT, city TEXT, rent INT)
             STORED AS CSV LOCATION '{csv}' OPTIONS ({null})"
        );
        run(&session, &declare).await;
        check(&session, "SELECT shop, rent FROM other_shops ORDER BY shop", &["a,", "b,7"]).await;
    }
    run(&session, "DROP TABLE other_shops").await;
    let target = ground.path("shops");
    run(&session, &format!("COPY (SELECT * FROM shops) TO '{}'", target.display())).await;
    let sql =
        format!("SELECT * FROM sales JOIN '{}/' p USING (shop) WHERE n > 1 ORDER BY n", target.display());
    check(&session, &sql, &["b,2,Gouda,7", "a,3,Delft,"]).await;
}
