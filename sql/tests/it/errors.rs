//! What is wrong is said, with where, and with what would do.

use thalweg_sql::Error;

use crate::ground::{Ground, check, fail};

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_why_and_what_next() {
    let ground = Ground::new().await;
    ground.topic_of("flights", &[r#"{"carrier":"UA","delay":1}"#]).await;
    ground.topic_of("my.topic", &["{}"]).await;
    let session = ground.session();
    let cases = [
        ("SELECT * FROM flihgts", "there is no topic or table `flihgts`; did you mean `flights`?"),
        ("SELECT * FROM Orders", "there is no topic or table `orders`"),
        ("SELECT * FROM flights f JOIN nowhere n ON true", "there is no topic or table `nowhere`"),
        ("COPY flihgts TO 'x'", "did you mean `flights`?"),
        ("CREATE TABLE t (a INT) WITH (topic = 'flight')", "did you mean `flights`?"),
        ("SELECT carier FROM flights", "carrier"),
        ("SELECT carier FROM flights", "(line 1, column 8)"),
        ("SELEC 1", "(line 1, column 1)"),
        ("SELECT 1 +", "Expected: an expression, found: EOF"),
        ("SELECT 1;\nSELECT 2 FORM x y", "(line 2, column 15)"),
        ("SELECT sum(carrier) FROM flights", "sum"),
        ("SELECT * FROM 'no/such.csv'", "there is no file `no/such.csv`"),
        ("SELECT * FROM flights NATURAL JOIN flights f", "NATURAL JOIN with a topic is not supported"),
        ("COPY (SELECT 1) TO 'x' STORED AS CSV", "Expected: PARQUET, found: CSV"),
        ("COPY flights FROM 'x'", "thalweg produce"),
        ("EXPLAIN COPY flights TO 'x' STORED AS PARQUET", "EXPLAIN COPY is not supported"),
        ("CREATE TABLE t (a BIGINT) WITH (topic = 'flights', key = 'a')", "no option `key`"),
        ("DROP TABLE nothing", "nothing"),
        ("SELECT * FROM my-topic", "needs double quotes"),
        ("SELECT * FROM my.topic", "did you mean `\"my.topic\"`?"),
        ("SELECT 1 / 0", "ivide by zero"),
    ];
    for (sql, expected) in cases {
        let error = fail(&session, sql).await.to_string();
        assert!(error.contains(expected), "{sql}\n{error}");
        assert!(!error.contains("External error") && !error.contains("backtrace"), "{sql}\n{error}");
    }
    let error = fail(&session, "SELECT * FROM flihgts").await;
    assert!(matches!(error, Error::UnknownTable { similar: Some(name), .. } if name == "flights"));
    // Nothing is run of a text with an error in it.
    fail(&session, "CREATE VIEW v AS SELECT 1; SELEC").await;
    fail(&session, "SELECT * FROM v").await;
    check(&session, "SELECT carrier FROM flights", &["UA"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_file_is_said_of_that_file() {
    let ground = Ground::new().await;
    let session = ground.session();
    for directory in ["deep/.git", "deep/a", "deep/b", "empty", "packed"] {
        std::fs::create_dir_all(ground.path(directory)).expect("it is made");
    }
    for file in ["deep/a/in.csv", "packed/in.csv.gz", "in.csv.zst", "in.json.gz", "notes.xz"] {
        std::fs::write(ground.path(file), "x\n1\n").expect("it is written");
    }
    let path = |name: &str| ground.path(name).display().to_string();
    let only_directories = format!(
        "`{0}/` holds no files, only directories, which are not looked into: name one of them, such as \
                                    '{0}/a/'",
        path("deep")
    );
    let compressed = |name: &str, command: &str| {
        let path = path(name);
        format!(
            "`{path}` is compressed, and SQL reads CSV and JSON only as they are. Decompress it first (`{command} {path}`)"
        )
    };
    let select = |name: &str| format!("SELECT * FROM '{}'", path(name));
    let create = |name: &str| format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}'", path(name));
    let cases = [
        (select("deep/"), only_directories.clone()),
        (create("deep/"), only_directories),
        (select("empty/"), format!("`{}/` holds no files", path("empty"))),
        (create("empty/"), format!("`{}/` holds no files", path("empty"))),
        (select("in.csv.zst"), compressed("in.csv.zst", "zstd -d")),
        (create("in.csv.zst"), compressed("in.csv.zst", "zstd -d")),
        (select("in.json.gz"), compressed("in.json.gz", "gunzip -k")),
        (select("*.csv.zst"), compressed("*.csv.zst", "zstd -d")),
        (select("notes.xz"), compressed("notes.xz", "unxz -k")),
        (select("packed/"), compressed("packed/in.csv.gz", "gunzip -k")),
        (create("packed/"), compressed("packed/in.csv.gz", "gunzip -k")),
        (
            format!("{} OPTIONS ('compression' 'zstd')", create("deep/a/in.csv")),
            "this file is compressed".to_owned(),
        ),
    ];
    for (sql, expected) in cases {
        let error = fail(&session, &sql).await.to_string();
        assert!(error.contains(&expected), "{sql}\n{error}\nlacks\n{expected}");
    }
    check(&session, &select("deep/a/"), &["1"]).await;
}
