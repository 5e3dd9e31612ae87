//! A broker of its own for each test, what is written into it, and how queries are asked.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_broker::Broker;
use thalweg_client::{Client, ClientConfig, NewTopic, Producer, ProducerConfig, ProducerRecord};
use thalweg_connectors::files::{Columns, Input, InputFormat, InputRecord, open};
use thalweg_sql::output::{Format, Summary, print};
use thalweg_sql::{Error, Outcome, Rows, Session, SqlConfig};

/// An embedded broker with its directory, which goes last.
pub struct Ground {
    pub client: Client,
    broker: Broker,
    directory: TempDir,
}

impl Ground {
    pub async fn new() -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let broker = Broker::embedded(directory.path().join("log")).await.expect("the broker starts");
        let client = Client::connect(Self::config_of(&broker)).await.expect("the broker answers");
        Self { client, broker, directory }
    }

    fn config_of(broker: &Broker) -> ClientConfig {
        ClientConfig::with_connector(Arc::new(broker.connect()))
    }

    /// How another client reaches the broker.
    pub fn client_config(&self) -> ClientConfig {
        Self::config_of(&self.broker)
    }

    /// A path beside the log.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub async fn create(&self, topic: &str, partitions: i32) {
        let created = self.client.admin().create_topic(NewTopic::new(topic, partitions)).await;
        created.expect("the topic is created");
    }

    pub fn producer(&self) -> Producer {
        self.client.producer(ProducerConfig::default()).expect("the configuration is right")
    }

    /// A topic of one partition with these values.
    pub async fn topic_of(&self, topic: &str, values: &[&str]) {
        self.create(topic, 1).await;
        let producer = self.producer();
        for value in values {
            let record = ProducerRecord::new(topic, value.to_string());
            producer.send(record).await.expect("there is room");
        }
        producer.flush().await.expect("all are written");
    }

    pub fn session(&self) -> Session {
        Session::new(self.client.clone())
    }

    pub fn session_with(&self, config: SqlConfig) -> Session {
        Session::with_config(self.client.clone(), config)
    }

    /// All flights as JSON, keyed by tail number, in four partitions.
    pub async fn load_flights(&self, topic: &str) {
        self.create(topic, 4).await;
        let columns = Columns {
            key: Some("tailnum".to_owned()),
            timestamp: Some("time_hour".to_owned()),
            null: Some("NA".to_owned()),
        };
        let file = open(Some(&data("flights.csv.zst"))).expect("the flights are part of the repository");
        let mut input = Input::new(file, InputFormat::Csv, None, columns).expect("the columns are there");
        let producer = self.producer();
        let mut record = InputRecord::default();
        while input.next(&mut record).expect("the file is whole") {
            let mut produced = ProducerRecord::new(topic, std::mem::take(&mut record.value));
            if let Some(key) = record.key.take() {
                produced = produced.key(key);
            }
            let timestamp = record.timestamp.expect("every flight has a time");
            producer.send(produced.timestamp(timestamp)).await.expect("there is room");
        }
        producer.flush().await.expect("all are written");
    }
}

/// A file of the examples.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data").join(name)
}

/// Runs a query.
pub async fn query(session: &Session, sql: &str) -> Rows {
    match session.execute(sql).await {
        Ok(Outcome::Rows(rows)) => rows,
        other => panic!("{sql}: {other:?}"),
    }
}

/// Runs statements that return no rows.
pub async fn run(session: &Session, sql: &str) {
    match session.execute(sql).await {
        Ok(Outcome::Rows(_)) => panic!("{sql}: it returns rows"),
        Ok(_) => {}
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// The error of statements.
pub async fn fail(session: &Session, sql: &str) -> Error {
    let outcome = match session.execute(sql).await {
        Ok(Outcome::Rows(mut rows)) => rows.collect().await.map(|_| ()),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    outcome.expect_err(sql)
}

/// The rows of a query as lines of CSV, without the header; and the summary.
pub async fn lines_and_summary(session: &Session, sql: &str) -> (Vec<String>, Summary) {
    let outcome = session.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut out = Vec::new();
    let summary = print(outcome, Format::Csv, &mut out, Instant::now()).await;
    let summary = summary.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let lines = out.lines().skip(1).map(|line| line.expect("it is UTF-8")).collect();
    (lines, summary)
}

/// The rows of a query as lines of CSV, without the header.
pub async fn lines(session: &Session, sql: &str) -> Vec<String> {
    lines_and_summary(session, sql).await.0
}

/// Checks that a query has these rows.
pub async fn check(session: &Session, sql: &str, expected: &[&str]) {
    assert_eq!(lines(session, sql).await, expected, "{sql}");
}

/// Checks that a query has these rows within seconds: the markers that end a transaction follow its commit.
pub async fn check_soon(session: &Session, sql: &str, expected: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let rows = lines(session, sql).await;
        if rows == expected {
            return;
        }
        assert!(Instant::now() < deadline, "{sql}: {rows:?}, not {expected:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
