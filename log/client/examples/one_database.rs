//! Exactly once into a relational database: what comes out of the records and how far they were read are stored in one
//! transaction of the database. The log needs no transactions for that, and offsets are not committed to it.
//!
//! Whoever dies in between leaves nothing behind, and the next instance goes on where the database says. An instance that
//! still thinks a partition its own, while another has gone on with it, is refused: it stores only what begins where the
//! database ends.
//!
//! `cargo run -p thalweg-client --example one_database -- HOST:PORT TOPIC GROUP words.db`, or in place of a file for SQLite
//! `postgresql://USER:PASSWORD@HOST/DATABASE`

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;
use thalweg_client::{
    Client, Consumer, ConsumerConfig, FetchedBatches, Offset, OffsetReset, RebalanceEvent, TopicPartition,
};
use tokio::task::block_in_place;
use tokio_postgres::NoTls;

#[path = "shared/connecting.rs"]
mod connecting;
use connecting::connect;

/// It ends when nothing has come for so long.
const IDLE: Duration = Duration::from_secs(2);

/// The same SQL for both. SQLite numbers parameters in the order in which they first appear.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY, times BIGINT NOT NULL);
    CREATE TABLE IF NOT EXISTS progress (
        topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset BIGINT NOT NULL, PRIMARY KEY (topic, partition)
    )";
const BEGIN_AT_THE_FRONT: &str = "INSERT INTO progress VALUES ($1, $2, 0) ON CONFLICT DO NOTHING";
const PROGRESS: &str = "SELECT next_offset FROM progress WHERE topic = $1 AND partition = $2";
/// Locks the row until the transaction ends, so that of two instances one sees what the other has stored.
const ADVANCE: &str =
    "UPDATE progress SET next_offset = $1 WHERE topic = $2 AND partition = $3 AND next_offset = $4";
const COUNT: &str = "INSERT INTO words VALUES ($1, $2)
    ON CONFLICT (word) DO UPDATE SET times = words.times + excluded.times";
const COUNTS: &str = "SELECT word, times FROM words";

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How often each word was seen.
pub type Counts = BTreeMap<String, i64>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (bootstrap, topic, group) = (next("127.0.0.1:9092"), next("words"), next("word-counter"));
    let mut database = Database::open(&next("words.db")).await?;
    let client = connect(&bootstrap).await?;
    run(&client, &topic, &group, &mut database).await?;
    for (word, times) in database.counts().await? {
        println!("{times:8} {word}");
    }
    Ok(())
}

/// Counts the words of the records of `topic`, as one of the instances that share it in `group`.
pub async fn run(client: &Client, topic: &str, group: &str, database: &mut Database) -> Result<()> {
    let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::group(group) };
    let mut consumer = client.consumer(config)?;
    consumer.subscribe([topic])?;
    loop {
        let polled = consumer.poll(IDLE).await?;
        if polled.is_empty() && !consumer.assignment().is_empty() {
            return Ok(consumer.close().await?);
        }
        for event in polled.events {
            if let RebalanceEvent::Assigned(partitions) = event {
                for partition in partitions {
                    consumer.seek(&partition, database.progress(&partition).await?)?;
                }
            }
        }
        for batches in polled.batches {
            count(&mut consumer, batches, database).await?;
        }
    }
}

async fn count(consumer: &mut Consumer, batches: FetchedBatches, database: &mut Database) -> Result<()> {
    let (partition, from, to) = (batches.partition.clone(), batches.position, batches.next_offset);
    let log_start = batches.log_start;
    let mut counts = Counts::new();
    for record in batches.into_records() {
        let value = record?.value.unwrap_or_default();
        for word in String::from_utf8_lossy(&value).split_whitespace() {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    if database.advance(&partition, from, to, &counts).await? {
        return Ok(());
    }
    // It was read from elsewhere: before it was assigned, or by now it is another's.
    let stored = database.progress(&partition).await?;
    if stored < log_start {
        return Err(format!("{partition} begins at {log_start} by now, and was read to {stored} only").into());
    }
    if consumer.assignment().contains(&partition) {
        consumer.seek(&partition, stored)?;
    }
    Ok(())
}

/// Where words are counted.
pub enum Database {
    Sqlite(Connection),
    Postgres(tokio_postgres::Client),
}

impl Database {
    /// A `postgresql://` URL, or the path of a file for SQLite.
    pub async fn open(at: &str) -> Result<Self> {
        if at.starts_with("postgres") && at.contains("://") {
            let (client, connection) = tokio_postgres::connect(at, NoTls).await?;
            // Ends with the client; what goes wrong is told to whoever uses that.
            tokio::spawn(connection);
            client.batch_execute(TABLES).await?;
            return Ok(Self::Postgres(client));
        }
        let connection = Connection::open(at)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(TABLES)?;
        Ok(Self::Sqlite(connection))
    }

    /// Up to where a partition was read; the front of one that is new.
    pub async fn progress(&mut self, partition: &TopicPartition) -> Result<Offset> {
        let (topic, number) = (&*partition.topic, partition.partition);
        let next_offset: i64 = match self {
            Self::Sqlite(connection) => block_in_place(|| {
                connection.execute(BEGIN_AT_THE_FRONT, (topic, number))?;
                connection.query_row(PROGRESS, (topic, number), |row| row.get(0))
            })?,
            Self::Postgres(client) => {
                client.execute(BEGIN_AT_THE_FRONT, &[&topic, &number]).await?;
                client.query_one(PROGRESS, &[&topic, &number]).await?.get(0)
            }
        };
        Ok(Offset(next_offset))
    }

    /// Adds what was counted in the records between two offsets, and moves on. Returns false, having changed nothing, when
    /// the partition was not read up to exactly the first of them.
    pub async fn advance(
        &mut self,
        partition: &TopicPartition,
        Offset(from): Offset,
        Offset(to): Offset,
        counts: &Counts,
    ) -> Result<bool> {
        let (topic, number) = (&*partition.topic, partition.partition);
        // What is not committed is rolled back when the transaction goes out of scope.
        match self {
            Self::Sqlite(connection) => block_in_place(|| {
                let transaction = connection.transaction()?;
                if transaction.execute(ADVANCE, (to, topic, number, from))? == 0 {
                    return Ok(false);
                }
                let mut add = transaction.prepare_cached(COUNT)?;
                for (word, times) in counts {
                    add.execute((word, times))?;
                }
                drop(add);
                transaction.commit()?;
                Ok(true)
            }),
            Self::Postgres(client) => {
                let transaction = client.transaction().await?;
                if transaction.execute(ADVANCE, &[&to, &topic, &number, &from]).await? == 0 {
                    return Ok(false);
                }
                let add = transaction.prepare(COUNT).await?;
                for (word, times) in counts {
                    transaction.execute(&add, &[word, times]).await?;
                }
                transaction.commit().await?;
                Ok(true)
            }
        }
    }

    /// All counts.
    pub async fn counts(&mut self) -> Result<Counts> {
        match self {
            Self::Sqlite(connection) => block_in_place(|| {
                let mut query = connection.prepare(COUNTS)?;
                let rows = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(rows.collect::<rusqlite::Result<Counts>>()?)
            }),
            Self::Postgres(client) => {
                let rows = client.query(COUNTS, &[]).await?;
                Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
            }
        }
    }
}
