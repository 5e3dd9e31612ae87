//! `thalweg produce`: records from a file or from standard input into a topic.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thalweg_client::{Acks, Appender, Producer, ProducerConfig, TopicSlot};
use thalweg_connectors::files::{Columns, Input, InputFormat, InputRecord, open};
use thalweg_protocol::Compression;
use tokio::task::JoinHandle;

use crate::advice::did_you_mean;
use crate::exit::{Exit, failure, told};
use crate::output::{progress as show_progress, tell};
use crate::target::{Target, TargetArgs};

/// What to produce, and how.
#[derive(Debug, clap::Args)]
pub struct ProduceArgs {
    /// The topic
    topic: String,
    /// The file to read, plain, gzip or Zstandard; standard input if not given
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
    /// How the input is cut into records
    #[arg(long, short = 'i', value_enum, default_value_t = Cut::Text)]
    input: Cut,
    /// How CSV spells a missing value
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
    /// The column or field that is the key
    #[arg(long, short = 'k', value_name = "COLUMN")]
    key: Option<String>,
    /// What stands between key and value in a line of text
    #[arg(long, value_name = "TEXT")]
    key_delimiter: Option<String>,
    /// The column or field that is the timestamp, RFC 3339 or ms since 1970
    #[arg(long, value_name = "COLUMN")]
    timestamp: Option<String>,
    /// The partition for all records; by key if not given
    #[arg(long, short = 'p', value_name = "N")]
    partition: Option<i32>,
    /// How to compress
    #[arg(long, short = 'z', value_name = "CODEC", default_value = "none", value_parser = codec)]
    compression: Compression,
    /// When a record counts as written
    #[arg(long, value_enum, default_value_t = AcksArg::All)]
    acks: AcksArg,
    /// Create the topic if there is none
    #[arg(long)]
    create: bool,
}

/// The values of `--input`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Cut {
    /// A line is a record; its bytes are kept
    Text,
    /// A line is a JSON object and a record
    Json,
    /// A row is a record, as one JSON object
    Csv,
}

/// The values of `--acks`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum AcksArg {
    /// Nobody waits
    #[value(name = "0")]
    None,
    /// The leader has it
    #[value(name = "1")]
    Leader,
    /// All in-sync replicas have it on disk
    All,
}

/// Reads the name of a codec.
pub fn codec(name: &str) -> Result<Compression, String> {
    Compression::from_name(name)
        .ok_or_else(|| format!("there is no codec `{name}`; there are none, gzip, snappy, lz4 and zstd"))
}

impl From<AcksArg> for Acks {
    fn from(arg: AcksArg) -> Self {
        match arg {
            AcksArg::None => Self::None,
            AcksArg::Leader => Self::Leader,
            AcksArg::All => Self::All,
        }
    }
}

/// Produces the whole input.
pub async fn run(args: ProduceArgs, target: &TargetArgs) -> anyhow::Result<()> {
    // The input first: a wrong file should not create a topic.
    let format = match args.input {
        Cut::Text => InputFormat::Text,
        Cut::Json => InputFormat::Json,
        Cut::Csv => InputFormat::Csv,
    };
    let columns =
        Columns { key: args.key.clone(), timestamp: args.timestamp.clone(), null: args.null.clone() };
    let path = args.file.clone();
    let key_delimiter = args.key_delimiter.clone();
    let input = tokio::task::spawn_blocking(move || {
        open(path.as_deref()).and_then(|reader| Input::new(reader, format, key_delimiter, columns))
    })
    .await?
    .map_err(with_advice)?;
    let target = if args.create { target.open_or_create().await? } else { target.open().await? };
    let result = produce(&args, &target, input).await;
    result.and(target.close().await)
}

/// Adds the name that was probably meant.
fn with_advice(error: thalweg_connectors::Error) -> anyhow::Error {
    let thalweg_connectors::Error::UnknownColumn { column, columns } = &error else {
        return error.into();
    };
    failure(Exit::Usage, format!("{error}{}", did_you_mean(column, columns.iter().map(String::as_str))))
}

async fn produce(args: &ProduceArgs, target: &Target, mut input: Input) -> anyhow::Result<()> {
    let partitions = match target.partitions_of(&args.topic).await {
        Ok(partitions) => partitions,
        Err(error) if args.create && crate::exit::of(&error) == Exit::NotFound => {
            let topic = thalweg_client::NewTopic {
                partitions: None,
                ..thalweg_client::NewTopic::new(args.topic.as_str(), 1)
            };
            target.client().admin().create_topic(topic).await?;
            target.partitions_of(&args.topic).await?
        }
        Err(error) => return Err(error),
    };
    if let Some(partition) = args.partition
        && !(0..partitions).contains(&partition)
    {
        return Err(failure(
            Exit::NotFound,
            format!(
                "{} has no partition {partition}; its partitions are 0 to {}",
                args.topic,
                partitions - 1
            ),
        ));
    }
    let config =
        ProducerConfig { compression: args.compression, acks: args.acks.into(), ..ProducerConfig::default() };
    let producer = Arc::new(target.client().producer(config)?);
    let mut appender = producer.appender();
    let topic = appender.topic(&args.topic).await?;
    let progress = Arc::new(Progress::default());
    let (partition, shared, watched) = (args.partition, Arc::clone(&progress), Arc::clone(&producer));
    // Reading blocks and appending may: both belong on a thread of their own.
    let appending = tokio::task::spawn_blocking(move || {
        append_all(&mut input, &mut appender, topic, partition, &shared, &watched)
    });
    let appended = telling_of_trouble(&producer, until_refused(&producer, &progress, appending)).await;
    // What was read before an error is written all the same.
    let written = telling_of_trouble(&producer, producer.flush()).await;
    let count = progress.appended.load(Ordering::Relaxed);
    let acknowledged = producer.acknowledged();
    match (appended, written) {
        (Ok(()), Ok(())) => {
            tell(format_args!("produced {} to {}", counted(count, "record"), args.topic));
            Ok(())
        }
        (Err(error), Ok(())) => {
            Err(error.context(format!("stopped after {}, which are written", counted(count, "record"))))
        }
        (appended, Err(error)) => {
            if let Err(also) = appended {
                tell(format_args!("error: {}", told(&also)));
            }
            Err(anyhow::Error::new(error).context(format!(
                "of {} that were read {acknowledged} are certainly written",
                counted(count, "record")
            )))
        }
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Waits for the thread that appends; tells it to stop when interrupted, or when a record is refused.
async fn until_refused(
    producer: &Producer,
    progress: &Progress,
    mut appending: JoinHandle<anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let mut watch = tokio::time::interval(Duration::from_millis(200));
    loop {
        let why = tokio::select! {
            appended = &mut appending => return appended?,
            _ = crate::signals::ended() => Err(failure(Exit::Failed, "interrupted")),
            _ = watch.tick() => {
                if producer.failed() == 0 {
                    continue;
                }
                // The flush says what it was.
                Ok(())
            }
        };
        progress.is_stopping.store(true, Ordering::Relaxed);
        // The thread ends with the next record; if it waits for input, it has handed everything over.
        return match tokio::time::timeout(AFTER_STOP, appending).await {
            Ok(appended) => appended?.and(why),
            Err(_) => why,
        };
    }
}

/// Says on standard error what `work` waits for, when it waits for long.
async fn telling_of_trouble<T>(producer: &Producer, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let mut watch = tokio::time::interval(TROUBLE);
    watch.tick().await;
    let mut before = None;
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = watch.tick() => {
                let trouble = producer.trouble().map(|trouble| trouble.to_string());
                if let Some(trouble) = &trouble
                    && before.is_some()
                {
                    tell(format_args!("warning: records wait: {trouble}"));
                }
                before = trouble;
            }
        }
    }
}

/// How often it is looked whether records wait. What lasts from one look to the next is told.
const TROUBLE: Duration = Duration::from_secs(5);

/// What the appending thread and the one that waits for it share.
#[derive(Default)]
struct Progress {
    appended: AtomicU64,
    is_stopping: AtomicBool,
}

/// How long a thread that is to stop gets to come to the end of its record.
const AFTER_STOP: Duration = Duration::from_millis(200);

/// Appends record after record until the input ends, a record is refused, or it is told to stop. When it returns
/// everything is handed over to the producer.
fn append_all(
    input: &mut Input,
    appender: &mut Appender,
    topic: TopicSlot,
    partition: Option<i32>,
    progress: &Progress,
    producer: &Producer,
) -> anyhow::Result<()> {
    let bar = show_progress(None);
    let mut record = InputRecord::default();
    let mut count = 0_u64;
    let mut append = || -> anyhow::Result<()> {
        loop {
            if input.may_wait() {
                // Whoever writes to us line by line wants them written line by line.
                appender.hand_over();
            }
            if !input.next(&mut record)? {
                return Ok(());
            }
            let (key, value) = (record.key.as_deref(), Some(record.value.as_slice()));
            let to = partition.unwrap_or_else(|| appender.partition_for(topic, key, value));
            let timestamp = record.timestamp.unwrap_or_else(now_ms);
            if let Err(error) = appender.append_blocking(topic, to, timestamp, key, value, &[]) {
                return Err(match producer.trouble() {
                    // The buffer is full because of this.
                    Some(trouble) if matches!(error, thalweg_client::Error::BufferFull { .. }) => {
                        trouble.into()
                    }
                    _ => error.into(),
                });
            }
            count += 1;
            progress.appended.store(count, Ordering::Relaxed);
            if count.is_multiple_of(1024) {
                bar.set_position(count);
                appender.linger();
            }
            if progress.is_stopping.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    };
    let result = append();
    appender.hand_over();
    bar.finish_and_clear();
    result
}

/// Wall-clock time in ms since 1970.
#[expect(clippy::disallowed_methods, reason = "the program is where the clock comes in")]
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
