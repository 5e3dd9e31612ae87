//! `thalweg bench transactions`: how many transactions one producer commits one after the other.

use thalweg_client::{Appender, Error, Producer, ProducerConfig, TopicSlot};

use super::{Measured, noise};
use crate::output::{Format, counted, line};
use crate::produce::now_ms;
use crate::target::Target;

/// What a transaction is, and how many are committed.
#[derive(Debug, clap::Args)]
pub struct TransactionsArgs {
    /// The topic; its records stay there
    topic: String,
    /// How many transactions
    #[arg(long, short = 'n', default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    transactions: u32,
    /// How many records each has, dealt to the partitions in turn
    #[arg(long, short = 'r', default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    records: u32,
    /// Bytes of each value
    #[arg(long, short = 's', default_value_t = 100)]
    pub(super) size: usize,
}

/// Commits them, after a tenth as many that are not counted, and prints one line.
pub async fn measure(target: &Target, args: TransactionsArgs, format: Format) -> anyhow::Result<()> {
    let partitions = target.partitions_of(&args.topic).await?;
    let id = format!("bench-{}", args.topic);
    let producer = target.client().producer(ProducerConfig::transactional(&id))?;
    producer.init_transactions().await?;
    let mut appender = producer.appender();
    let slot = appender.topic(&args.topic).await?;
    let mut bench = Bench { producer, appender, slot, partitions, value: noise(args.size) };
    bench.commit(args.transactions / 10, args.records).await?;
    let measured = Measured::begin();
    bench.commit(args.transactions, args.records).await?;
    measured.print_transactions(args.transactions, args.records, format)?;
    Ok(bench.producer.close().await?)
}

impl Measured {
    fn print_transactions(&self, transactions: u32, records: u32, format: Format) -> anyhow::Result<()> {
        let (wall, cpu) = (self.wall(), self.cpu());
        let rate = f64::from(transactions) / wall;
        if format == Format::Json {
            return line(serde_json::json!({
                "measured": "committed", "transactions": transactions, "records_each": records,
                "seconds": wall, "cpu_seconds": cpu, "transactions_per_s": rate,
            }));
        }
        line(format_args!(
            "committed {} of {} in {wall:.3} s: {rate:.1} transactions/s; {cpu:.3} CPU-s",
            counted(transactions.into(), "transaction"),
            counted(records.into(), "record"),
        ))
    }
}

struct Bench {
    producer: Producer,
    appender: Appender,
    slot: TopicSlot,
    partitions: i32,
    value: Vec<u8>,
}

impl Bench {
    async fn commit(&mut self, transactions: u32, records: u32) -> anyhow::Result<()> {
        for _ in 0..transactions {
            self.producer.begin_transaction()?;
            for (_, partition) in (0..records).zip((0..self.partitions).cycle()) {
                self.append(partition).await?;
            }
            self.appender.hand_over();
            self.producer.commit_transaction().await?;
        }
        Ok(())
    }

    async fn append(&mut self, partition: i32) -> anyhow::Result<()> {
        let value = Some(self.value.as_slice());
        loop {
            match self.appender.append(self.slot, partition, now_ms(), None, value, &[]) {
                Err(Error::BufferFull { .. }) => self.appender.room().await?,
                appended => return Ok(appended?),
            }
        }
    }
}
