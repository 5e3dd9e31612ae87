//! `thalweg topic analyze`: what the records of a topic are like, from reading them.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use indicatif::ProgressBar;
use thalweg_client::{Consumer, ConsumerConfig, FetchedBatches, Isolation, OffsetReset};
use thalweg_connectors::format_time;
use thalweg_protocol::record::{Record, RecordBatch};
use thalweg_protocol::{Offset, Scratch, TopicPartition};

use crate::consume::DECOMPRESSED_BYTES;
use crate::exit::{Exit, failure};
use crate::extents::Extents;
use crate::offset_range::OffsetRange;
use crate::output::{Format, counted, line, progress, tell};
use crate::produce::now_ms;
use crate::target::{Target, leaderless};

/// What to read.
#[derive(Debug, clap::Args)]
pub struct AnalyzeArgs {
    /// The topics
    #[arg(required = true)]
    names: Vec<String>,
    /// Where to begin, and perhaps where to end (`thalweg help offsets`); to the end of each partition if not said
    #[arg(long, short = 'o', value_name = "RANGE", default_value = "start", allow_hyphen_values = true)]
    offset: String,
}

/// The name of a codec, `?` for one that is not known.
fn codec(batch: &RecordBatch) -> &'static str {
    batch.header().compression().map_or("?", |compression| compression.name())
}

/// What the records of a partition, or of several, are like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Findings {
    records: u64,
    null_keys: u64,
    null_values: u64,
    /// Bytes of keys, values and headers.
    bytes: u64,
    largest_record: u64,
    batches: u64,
    /// Bytes of the batches as they are stored.
    stored_bytes: u64,
    largest_batch: u64,
    transactional_batches: u64,
    /// Batches by codec.
    codecs: BTreeMap<&'static str, u64>,
    first_timestamp: Option<i64>,
    last_timestamp: Option<i64>,
    /// Records that are older than one before them.
    out_of_order: u64,
    without_timestamp: u64,
}

impl Findings {
    fn add_batch(&mut self, batch: &RecordBatch) {
        let bytes = batch.size_in_bytes() as u64;
        self.batches += 1;
        self.stored_bytes += bytes;
        self.largest_batch = self.largest_batch.max(bytes);
        self.transactional_batches += u64::from(batch.header().is_transactional());
        *self.codecs.entry(codec(batch)).or_default() += 1;
    }

    fn add_record(&mut self, record: &Record<'_>) {
        let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        let headers =
            record.headers.iter().map(|header| header.key.len() + length(header.value)).sum::<usize>();
        let bytes = (length(record.key) + length(record.value) + headers) as u64;
        self.records += 1;
        self.null_keys += u64::from(record.key.is_none());
        self.null_values += u64::from(record.value.is_none());
        self.bytes += bytes;
        self.largest_record = self.largest_record.max(bytes);
        if record.timestamp < 0 {
            self.without_timestamp += 1;
            return;
        }
        self.out_of_order += u64::from(self.last_timestamp.is_some_and(|last| record.timestamp < last));
        self.see(record.timestamp);
    }

    fn see(&mut self, timestamp: i64) {
        self.first_timestamp = Some(self.first_timestamp.map_or(timestamp, |first| first.min(timestamp)));
        self.last_timestamp = self.last_timestamp.max(Some(timestamp));
    }

    /// These and those of another partition.
    fn and(mut self, other: &Self) -> Self {
        self.records += other.records;
        self.null_keys += other.null_keys;
        self.null_values += other.null_values;
        self.bytes += other.bytes;
        self.largest_record = self.largest_record.max(other.largest_record);
        self.batches += other.batches;
        self.stored_bytes += other.stored_bytes;
        self.largest_batch = self.largest_batch.max(other.largest_batch);
        self.transactional_batches += other.transactional_batches;
        self.out_of_order += other.out_of_order;
        self.without_timestamp += other.without_timestamp;
        for (codec, batches) in &other.codecs {
            *self.codecs.entry(codec).or_default() += batches;
        }
        other.first_timestamp.into_iter().chain(other.last_timestamp).for_each(|time| self.see(time));
        self
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "records": self.records,
            "null_keys": self.null_keys,
            "null_values": self.null_values,
            "bytes": self.bytes,
            "largest_record": self.largest_record,
            "batches": self.batches,
            "stored_bytes": self.stored_bytes,
            "largest_batch": self.largest_batch,
            "transactional_batches": self.transactional_batches,
            "codecs": self.codecs,
            "first_timestamp": self.first_timestamp,
            "last_timestamp": self.last_timestamp,
            "out_of_order": self.out_of_order,
            "without_timestamp": self.without_timestamp,
        })
    }

    fn row(&self, name: String) -> Vec<String> {
        let per_batch =
            |sum: u64| sum.checked_div(self.batches).map_or("-".to_owned(), |mean| mean.to_string());
        let codecs: Vec<String> = match self.codecs.len() {
            1 => self.codecs.keys().map(|codec| (*codec).to_owned()).collect(),
            _ => self
                .codecs
                .iter()
                .map(|(codec, batches)| format!("{codec} {}", share(*batches, self.batches)))
                .collect(),
        };
        let time = |time: Option<i64>| time.map_or("-".to_owned(), format_time);
        vec![
            name,
            self.records.to_string(),
            self.bytes.to_string(),
            self.stored_bytes.to_string(),
            per_batch(self.records),
            per_batch(self.stored_bytes),
            if codecs.is_empty() { "-".to_owned() } else { codecs.join(", ") },
            share(self.null_keys, self.records),
            share(self.null_values, self.records),
            share(self.out_of_order, self.records),
            time(self.first_timestamp),
            time(self.last_timestamp),
        ]
    }
}

const COLUMNS: [&str; 12] = [
    "PARTITION",
    "RECORDS",
    "BYTES",
    "STORED",
    "RECORDS/BATCH",
    "BYTES/BATCH",
    "CODEC",
    "NULL KEYS",
    "NULL VALUES",
    "OUT OF ORDER",
    "OLDEST",
    "NEWEST",
];

/// A part of a whole in percent; not 0 of what there is, nor 100 of what lacks some.
fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        (0, _) => "0 %".to_owned(),
        (part, whole) if part == whole => "100 %".to_owned(),
        (part, whole) => {
            let percent = part as f64 * 100.0 / whole as f64;
            format!("{:.1} %", percent.clamp(0.1, 99.9))
        }
    }
}

/// Reads topics and tells what is in them.
pub async fn topics(target: &Target, args: AnalyzeArgs, format: Format) -> anyhow::Result<()> {
    let range = OffsetRange::parse(&args.offset, now_ms())
        .map_err(|error| failure(Exit::Usage, error.to_string()))?;
    for name in &args.names {
        target.topic(name).await?;
    }
    for name in &args.names {
        let reading = analyze(target, name, range);
        let findings = tokio::select! {
            findings = reading => findings?,
            _ = crate::signals::ended() => return Err(failure(Exit::Failed, "interrupted before everything was read")),
        };
        let all = findings.values().fold(Findings::default(), Findings::and);
        match format {
            Format::Json => {
                let mut value = all.json();
                value["topic"] = name.as_str().into();
                value["partitions"] = findings
                    .iter()
                    .map(|(at, findings)| {
                        let mut value = findings.json();
                        value["partition"] = (*at).into();
                        value
                    })
                    .collect();
                line(value)?;
            }
            Format::Text => print(name, &findings, &all)?,
        }
    }
    Ok(())
}

fn print(name: &str, findings: &BTreeMap<i32, Findings>, all: &Findings) -> anyhow::Result<()> {
    let mut about =
        vec![format!("{name} · {} in {}", counted(all.records, "record"), counted(all.batches, "batch"))];
    about.push(format!("largest record {} bytes", all.largest_record));
    about.push(format!("largest batch {} bytes", all.largest_batch));
    if all.transactional_batches > 0 {
        about.push(format!("{} of transactions", counted(all.transactional_batches, "batch")));
    }
    if all.without_timestamp > 0 {
        about.push(format!("{} without a time", counted(all.without_timestamp, "record")));
    }
    line(about.join(" · "))?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(COLUMNS);
    for (at, findings) in findings {
        table.add_row(findings.row(at.to_string()));
    }
    if findings.len() > 1 {
        table.add_row(all.row("all".to_owned()));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    line(table)
}

/// Reads the partitions of a topic, records of open and aborted transactions included.
async fn analyze(target: &Target, name: &str, range: OffsetRange) -> anyhow::Result<BTreeMap<i32, Findings>> {
    let topic = target.topic(name).await?;
    for trouble in leaderless(&topic, |_| true) {
        tell(format_args!("warning: {trouble}; it is left out"));
    }
    let led = topic.partitions.iter().filter(|at| at.leader.0 >= 0);
    let partitions: Vec<TopicPartition> = led.map(|at| TopicPartition::new(name, at.partition)).collect();
    let extents = Extents::of(target.client().admin(), &partitions, Isolation::ReadUncommitted).await?;
    let from = extents.resolve(range.from).await?;
    let mut until = match range.until {
        Some(place) => extents.resolve(place).await?,
        None => BTreeMap::new(),
    };
    let mut parts = BTreeMap::new();
    for at in &partitions {
        let (start, end) = (extents.start(at).unwrap_or(0), extents.end(at).unwrap_or(0));
        let from = from.get(at).map_or(start, |from| (*from).clamp(start, end.max(start)));
        parts.insert(at.clone(), (from, until.remove(at).unwrap_or(end).min(end)));
    }
    let config = ConsumerConfig {
        isolation: Isolation::ReadUncommitted,
        offset_reset: OffsetReset::Earliest,
        stall_timeout_ms: Some(STALL_MS),
        ..ConsumerConfig::default()
    };
    let mut consumer = target.client().consumer(config)?;
    let total: i64 = parts.values().map(|(from, until)| (until - from).max(0)).sum();
    let bar = progress(Some(total.max(0) as u64));
    let findings = read(&mut consumer, parts, &bar).await;
    bar.finish_and_clear();
    consumer.close().await?;
    findings
}

/// What lies in each partition between two offsets.
async fn read(
    consumer: &mut Consumer,
    parts: BTreeMap<TopicPartition, (i64, i64)>,
    bar: &ProgressBar,
) -> anyhow::Result<BTreeMap<i32, Findings>> {
    let mut findings: BTreeMap<i32, Findings> =
        parts.keys().map(|at| (at.partition, Findings::default())).collect();
    let mut open: Vec<TopicPartition> =
        parts.iter().filter(|(_, (from, until))| from < until).map(|(at, _)| at.clone()).collect();
    consumer.assign(open.iter().cloned())?;
    for at in &open {
        consumer.seek(at, Offset(parts[at].0))?;
    }
    let mut scratch = Scratch::new(DECOMPRESSED_BYTES);
    while !open.is_empty() {
        for fetched in &consumer.poll(POLL).await?.batches {
            let found = findings.entry(fetched.partition.partition).or_default();
            let before = found.records;
            look(fetched, parts[&fetched.partition], found, &mut scratch)?;
            bar.inc(found.records - before);
        }
        let before = open.len();
        open.retain(|at| consumer.position(at).is_none_or(|position| position.0 < parts[at].1));
        if open.len() < before {
            consumer.assign(open.iter().cloned())?;
        }
    }
    Ok(findings)
}

/// Looks at what was fetched of a partition.
fn look(
    fetched: &FetchedBatches,
    (from, until): (i64, i64),
    found: &mut Findings,
    scratch: &mut Scratch,
) -> anyhow::Result<()> {
    let is_within = |batch: &&RecordBatch| {
        let header = batch.header();
        header.last_offset().0 >= from.max(fetched.position.0) && header.base_offset.0 < until
    };
    fetched.batches.iter().filter(is_within).for_each(|batch| found.add_batch(batch));
    fetched.for_each(scratch, |record| {
        if (from..until).contains(&record.offset.0) {
            found.add_record(&record);
        }
        Ok::<(), thalweg_client::Error>(())
    })?;
    Ok(())
}

const POLL: Duration = Duration::from_millis(500);
/// After so many ms in which a partition could not be read it is given up.
const STALL_MS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use thalweg_protocol::record::BatchBuilder;
    use thalweg_protocol::{Compression, Compressor, LeaderEpoch};

    use super::*;

    /// Timestamp, key and value.
    type Sent<'s> = (i64, Option<&'s [u8]>, Option<&'s [u8]>);

    fn batch(base: i64, records: &[Sent<'_>], compression: Compression) -> RecordBatch {
        let mut builder = BatchBuilder::new(compression, None, 1024);
        for (timestamp, key, value) in records {
            builder.append(*timestamp, *key, *value, []).expect("it fits");
        }
        builder.finish(&mut Compressor::new(), None).at(Offset(base), LeaderEpoch(0))
    }

    #[test]
    fn records_and_batches_within_the_range_are_counted() {
        let fetched = FetchedBatches {
            partition: TopicPartition::new("t", 0),
            batches: vec![
                batch(0, &[(5, None, Some(b"ab")), (9, Some(b"k"), None)], Compression::None),
                batch(2, &[(7, Some(b"k"), Some(b"v")), (-1, None, Some(b"x"))], Compression::Gzip),
                batch(4, &[(1, None, None)], Compression::None),
            ],
            position: Offset(1),
            next_offset: Offset(5),
            log_start: Offset(0),
            high_watermark: Offset(5),
            last_stable_offset: Offset(5),
            end: Offset(5),
        };
        let mut found = Findings::default();
        look(&fetched, (1, 4), &mut found, &mut Scratch::new(1024)).expect("readable");
        let expected = Findings {
            records: 3,
            null_keys: 1,
            null_values: 1,
            bytes: 4,
            largest_record: 2,
            batches: 2,
            stored_bytes: found.stored_bytes,
            largest_batch: found.largest_batch,
            codecs: BTreeMap::from([("none", 1), ("gzip", 1)]),
            first_timestamp: Some(7),
            last_timestamp: Some(9),
            out_of_order: 1,
            without_timestamp: 1,
            ..Findings::default()
        };
        assert_eq!(found, expected);
        let twice = found.clone().and(&expected);
        assert_eq!((twice.records, twice.codecs["gzip"], twice.first_timestamp), (6, 2, Some(7)));
    }

    #[test]
    fn shares_do_not_hide_what_there_is() {
        for (part, whole, expected) in [
            (0, 0, "0 %"),
            (0, 5, "0 %"),
            (5, 5, "100 %"),
            (1, 1_000_000, "0.1 %"),
            (999_999, 1_000_000, "99.9 %"),
        ] {
            assert_eq!(share(part, whole), expected);
        }
    }
}
