//! The flights, from the CSV into the topic.

use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;
use thalweg_client::{Appender, Client, Producer, ProducerConfig, TopicSlot};
use thalweg_connectors::files::{Columns, Input, InputFormat, InputRecord, open};

/// A flight as a record: JSON, keyed by tail number.
pub struct Row {
    key: Option<Vec<u8>>,
    /// The scheduled hour, in ms since 1970.
    timestamp: i64,
    value: Vec<u8>,
    month: u32,
    day: u32,
}

/// All flights in the order of their days.
pub struct Year(Vec<Row>);

impl Year {
    /// Months 1 to 11, and December.
    pub fn split(&self) -> (&[Row], &[Row]) {
        self.0.split_at(self.0.partition_point(|row| row.month < 12))
    }
}

#[derive(Deserialize)]
struct Date {
    month: u32,
    day: u32,
}

/// Reads the CSV; `NA` is null. Flights of a day keep the order of the file.
pub fn read(csv: &Path) -> anyhow::Result<Year> {
    let columns = Columns {
        key: Some("tailnum".to_string()),
        timestamp: Some("time_hour".to_string()),
        null: Some("NA".to_string()),
    };
    let mut input = Input::new(open(Some(csv))?, InputFormat::Csv, None, columns)?;
    let mut record = InputRecord::default();
    let mut rows = Vec::new();
    while input.next(&mut record)? {
        let date: Date = serde_json::from_slice(&record.value)?;
        rows.push(Row {
            key: record.key.take(),
            timestamp: record.timestamp.context("a flight has an hour")?,
            value: record.value.clone(),
            month: date.month,
            day: date.day,
        });
    }
    ensure!(!rows.is_empty(), "{} holds no flights", csv.display());
    rows.sort_by_key(|row| (row.month, row.day));
    Ok(Year(rows))
}

/// Writes flights into their topic.
pub struct Loader<'a> {
    runtime: &'a tokio::runtime::Runtime,
    producer: Producer,
    appender: Appender,
    topic: TopicSlot,
}

impl<'a> Loader<'a> {
    /// Looks the topic up.
    pub fn new(runtime: &'a tokio::runtime::Runtime, client: &Client, topic: &str) -> anyhow::Result<Self> {
        let _inside = runtime.enter();
        let producer = client.producer(ProducerConfig::default())?;
        let mut appender = producer.appender();
        let topic = runtime.block_on(appender.topic(topic))?;
        Ok(Self { runtime, producer, appender, topic })
    }

    /// Writes `rows` and waits until all of them are on disk.
    pub fn write(&mut self, rows: &[Row]) -> anyhow::Result<()> {
        for row in rows {
            let (key, value) = (row.key.as_deref(), Some(row.value.as_slice()));
            let partition = self.appender.partition_for(self.topic, key, value);
            self.appender.append_blocking(self.topic, partition, row.timestamp, key, value, &[])?;
        }
        Ok(self.runtime.block_on(self.appender.flush())?)
    }

    /// Closes the producer.
    pub fn close(self) -> anyhow::Result<()> {
        drop(self.appender);
        Ok(self.runtime.block_on(self.producer.close())?)
    }
}
