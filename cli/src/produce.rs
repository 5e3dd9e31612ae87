//! `thalweg produce`: records from a file or from standard input into a topic.

mod retention;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thalweg_client::{Acks, Appender, Error, Producer, ProducerConfig, Refused, TopicMetadata, TopicSlot};
use thalweg_connectors::files::{Columns, Input, InputFormat, InputRecord, open};
use thalweg_protocol::Compression;
use thalweg_protocol::record::Header;
use tokio::task::{JoinError, JoinHandle};

use crate::advice::did_you_mean;
use crate::exit::{Exit, failure, told};
use crate::output::{counted, progress as show_progress, tell};
use crate::produce::retention::Retention;
use crate::target::{Target, TargetArgs, leaderless};

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
    /// What stands between key and value in a line of text. A line without it is an error: the records before it are written,
    /// and the rest is not read
    #[arg(long, value_name = "TEXT")]
    key_delimiter: Option<String>,
    /// The column or field that is the timestamp, RFC 3339 or ms since 1970
    #[arg(long, value_name = "COLUMN")]
    timestamp: Option<String>,
    /// The partition for all records; by key if not given
    #[arg(long, short = 'p', value_name = "N")]
    partition: Option<i32>,
    /// Each record into the partition that it was read from, with --input record
    #[arg(long, conflicts_with = "partition")]
    keep_partition: bool,
    /// A header of each record; may be repeated
    #[arg(long, short = 'H', value_name = "NAME=VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// Write empty lines, and empty keys before a delimiter, as null: a null value deletes what its key stands for
    #[arg(long, short = 'Z')]
    empty_as_null: bool,
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
    /// A line is what `consume --format json` prints: a whole record
    Record,
    /// A row is a record, as one JSON object
    Csv,
}

/// Larger records than this, in bytes, are not sent: no line of the input is nearly as long.
pub const LARGEST_RECORD: usize = 128 << 20;

/// The values of `--acks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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

/// Reads `NAME=VALUE`.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a header is written NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
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
    if args.empty_as_null && !matches!(args.input, Cut::Text) {
        return Err(failure(
            Exit::Usage,
            "--empty-as-null is for lines of text; only --input record has other values that are null",
        ));
    }
    if args.keep_partition && !matches!(args.input, Cut::Record) {
        return Err(failure(Exit::Usage, "--keep-partition: only --input record says where records were"));
    }
    // The input first: a wrong file should not create a topic.
    let format = match args.input {
        Cut::Text => InputFormat::Text,
        Cut::Json => InputFormat::Json,
        Cut::Record => InputFormat::Record,
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

async fn produce(args: &ProduceArgs, target: &Target, input: Input) -> anyhow::Result<()> {
    let topic = topic(args, target).await?;
    let partitions = topic.partitions.len() as i32;
    for trouble in leaderless(&topic, |at| args.partition.is_none_or(|own| own == at)) {
        tell(format_args!("warning: {trouble}. Records for it wait"));
    }
    let config = ProducerConfig {
        compression: args.compression,
        acks: args.acks.into(),
        // How large records may be is the topic's to say.
        max_request_size: LARGEST_RECORD,
        buffer_memory: LARGEST_RECORD,
        ..ProducerConfig::default()
    };
    let producer = Arc::new(target.client().producer(config)?);
    let mut appender = producer.appender();
    let refusals = appender.refusals();
    let topic = appender.topic(&args.topic).await?;
    let progress = Arc::new(Progress::default());
    let appending = Appending {
        input,
        appender,
        topic,
        place: match args.partition {
            Some(partition) => InPartition::This(partition),
            None if args.keep_partition => InPartition::AsRead { partitions },
            None => InPartition::ByKey,
        },
        headers: args.header.clone(),
        empty_as_null: args.empty_as_null,
        retention: Retention::new(target.client().admin(), &args.topic),
        progress: Arc::clone(&progress),
        producer: Arc::clone(&producer),
    };
    // Reading blocks and appending may: both belong on a thread of their own.
    let appending = tokio::task::spawn_blocking(move || appending.run());
    let stop = telling_of_trouble(&producer, until_stopped(&producer, &progress, appending)).await;
    // What was read before an error is written all the same.
    let written = telling_of_trouble(&producer, until_given_up(&producer)).await;
    let read = progress.appended.load(Ordering::Relaxed);
    conclude(&producer, read, stop, written, refused(refusals.take()))?;
    // Without an answer nobody knows.
    let did = if args.acks == AcksArg::None { "sent" } else { "produced" };
    tell(format_args!("{did} {} to {}", counted(read, "record"), args.topic));
    Ok(())
}

/// The topic, which is created if that was asked for, with the partition that was asked for.
async fn topic(args: &ProduceArgs, target: &Target) -> anyhow::Result<TopicMetadata> {
    let topic = match target.topic(&args.topic).await {
        Err(error) if args.create && crate::exit::of(&error) == Exit::NotFound => {
            let topic = thalweg_client::NewTopic {
                partitions: None,
                ..thalweg_client::NewTopic::new(args.topic.as_str(), 1)
            };
            target.client().admin().create_topic(topic).await?;
            target.topic(&args.topic).await?
        }
        known => known?,
    };
    let partitions = topic.partitions.len() as i32;
    match args.partition {
        Some(partition) if !(0..partitions).contains(&partition) => Err(failure(
            Exit::NotFound,
            format!(
                "{} has no partition {partition}; its partitions are 0 to {}",
                args.topic,
                partitions - 1
            ),
        )),
        _ => Ok(topic),
    }
}

/// Why not all of the input is written, if it is not, and how much is.
fn conclude(
    producer: &Producer,
    read: u64,
    stop: Stop,
    written: Option<Result<(), Error>>,
    refused: Option<anyhow::Error>,
) -> anyhow::Result<()> {
    let acknowledged = producer.acknowledged();
    let error = match (written, stop) {
        (Some(Ok(())), Stop::AtTheEnd | Stop::AtRefusal) => match refused {
            None => return Ok(()),
            Some(refused) => refused,
        },
        (Some(Ok(())), stop) => {
            return Err(stop.error().context(match acknowledged {
                0 => "stopped before any record was written".to_owned(),
                1 => "stopped after 1 record, which is written".to_owned(),
                count => format!("stopped after {count} records, which are written"),
            }));
        }
        (Some(Err(error)), stop) => {
            if let Stop::Failed(also) = stop {
                tell(format_args!("error: {}", told(&also)));
            }
            refused.unwrap_or_else(|| error.into())
        }
        (None, Stop::Failed(error)) => error,
        (None, _) => {
            let trouble = producer.trouble().map(|trouble| format!(": {trouble}")).unwrap_or_default();
            failure(Exit::Failed, format!("interrupted while records wait{trouble}"))
        }
    };
    let were = |count: u64, one, many| if count == 1 { one } else { many };
    let (was, are) = (were(read, "was", "were"), were(acknowledged, "is", "are"));
    let read = counted(read, "record");
    Err(error.context(format!("of {read} that {was} read {acknowledged} {are} certainly written")))
}

/// Why no more is read.
enum Stop {
    /// The input has ended.
    AtTheEnd,
    /// A record was refused; the flush says why.
    AtRefusal,
    /// Ctrl-C.
    Interrupted,
    /// The input or a record is not as it should be.
    Failed(anyhow::Error),
}

impl Stop {
    fn error(self) -> anyhow::Error {
        match self {
            Self::Failed(error) => error,
            Self::AtTheEnd | Self::AtRefusal | Self::Interrupted => failure(Exit::Failed, "interrupted"),
        }
    }
}

/// Waits for the thread that appends; tells it to stop when interrupted, or when a record is refused.
async fn until_stopped(
    producer: &Producer,
    progress: &Progress,
    mut appending: JoinHandle<anyhow::Result<()>>,
) -> Stop {
    let read = |appended: Result<anyhow::Result<()>, JoinError>| match appended {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Stop::Failed(error)),
        Err(panicked) => Some(Stop::Failed(panicked.into())),
    };
    let mut watch = tokio::time::interval(Duration::from_millis(200));
    let why = loop {
        tokio::select! {
            appended = &mut appending => return read(appended).unwrap_or(Stop::AtTheEnd),
            _ = crate::signals::ended() => break Stop::Interrupted,
            _ = watch.tick() => if producer.failed() > 0 {
                break Stop::AtRefusal;
            }
        }
    };
    progress.is_stopping.store(true, Ordering::Relaxed);
    // The thread ends with the next record; if it waits for input, it has handed everything over.
    match tokio::time::timeout(AFTER_STOP, appending).await {
        Ok(appended) => read(appended).unwrap_or(why),
        Err(_) => why,
    }
}

/// Flushes. After an interrupt that is given up as soon as nothing has been written for a while: `None`.
async fn until_given_up(producer: &Producer) -> Option<Result<(), Error>> {
    let nothing_moves = async {
        // Whoever cannot be interrupted waits for the flush alone.
        if crate::signals::ended().await.is_err() {
            return std::future::pending().await;
        }
        loop {
            let before = producer.acknowledged();
            tokio::time::sleep(AFTER_INTERRUPT).await;
            if producer.acknowledged() == before {
                return;
            }
        }
    };
    tokio::select! {
        flushed = producer.flush() => Some(flushed),
        () = nothing_moves => None,
    }
}

/// How long after an interrupt records that wait get to be written; again and again while some are.
const AFTER_INTERRUPT: Duration = Duration::from_secs(2);

/// Which lines of the input are not written, and why. Lines with the same reason are told together; all reasons but the last
/// are told here.
fn refused(refused: Vec<Refused>) -> Option<anyhow::Error> {
    let mut reasons: Vec<(Error, Vec<u64>)> = Vec::new();
    for Refused { mark, error } in refused {
        match reasons.iter_mut().find(|(known, _)| known.to_string() == error.to_string()) {
            Some((_, lines)) => lines.push(mark),
            None => reasons.push((error, vec![mark])),
        }
    }
    let mut errors = reasons.into_iter().map(|(error, mut lines)| {
        lines.sort_unstable();
        anyhow::Error::new(error).context(format!("{} of the input", told_lines(&lines)))
    });
    let last = errors.next_back();
    errors.for_each(|error| tell(format_args!("error: {}", told(&error))));
    last
}

/// Such as `line 7`, or `lines 7, 8, 12 and 20 more`.
fn told_lines(lines: &[u64]) -> String {
    let shown = &lines[..lines.len().min(LINES_TOLD)];
    let more = lines.len() - shown.len();
    let shown = shown.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match (lines.len(), more) {
        (1, _) => format!("line {shown}"),
        (_, 0) => format!("lines {shown}"),
        _ => format!("lines {shown} and {more} more"),
    }
}

/// How many lines are named that have failed for the same reason.
const LINES_TOLD: usize = 10;

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

/// In which partition records are written.
enum InPartition {
    ByKey,
    This(i32),
    /// Where the input says that they were; the topic has so many.
    AsRead {
        partitions: i32,
    },
}

/// What is appended, where to, and how.
struct Appending {
    input: Input,
    appender: Appender,
    topic: TopicSlot,
    place: InPartition,
    /// What each record has behind the headers of its own.
    headers: Vec<(String, String)>,
    empty_as_null: bool,
    retention: Retention,
    progress: Arc<Progress>,
    producer: Arc<Producer>,
}

impl Appending {
    /// Appends record after record until the input ends, a record is refused, or it is told to stop. When it returns
    /// everything is handed over to the producer.
    fn run(mut self) -> anyhow::Result<()> {
        let bar = show_progress(None);
        let result = self.append_all(|count| bar.set_position(count));
        self.appender.hand_over();
        bar.finish_and_clear();
        result
    }

    fn append_all(&mut self, show: impl Fn(u64)) -> anyhow::Result<()> {
        let headers = std::mem::take(&mut self.headers);
        let headers: Vec<Header<'_>> =
            headers.iter().map(|(name, value)| Header::new(name, Some(value.as_bytes()))).collect();
        let mut record = InputRecord::default();
        let mut count = 0_u64;
        loop {
            if self.input.may_wait() {
                // Whoever writes to us line by line wants them written line by line.
                self.appender.hand_over();
            }
            if !self.input.next(&mut record)? {
                return Ok(());
            }
            if self.empty_as_null {
                record.is_null = record.value.is_empty();
                record.key = record.key.take().filter(|key| !key.is_empty());
            }
            let line = record.line;
            self.append(&record, &headers)
                .map_err(|error| error.context(format!("line {line} of the input")))?;
            count += 1;
            self.progress.appended.store(count, Ordering::Relaxed);
            if count.is_multiple_of(1024) {
                show(count);
                self.appender.linger();
            }
            if self.progress.is_stopping.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    fn append(&mut self, record: &InputRecord, of_all: &[Header<'_>]) -> anyhow::Result<()> {
        self.appender.mark(record.line);
        let (key, value) = (record.key.as_deref(), record.value());
        let partition = match (&self.place, record.partition) {
            (InPartition::This(partition), _) => *partition,
            (InPartition::AsRead { partitions }, Some(partition)) => {
                if !(0..*partitions).contains(&partition) {
                    let last = partitions - 1;
                    let reason =
                        format!("it is of partition {partition}; the topic's partitions are 0 to {last}");
                    return Err(failure(Exit::NotFound, reason));
                }
                partition
            }
            _ => self.appender.partition_for(self.topic, key, value),
        };
        if let Some(timestamp) = record.timestamp {
            self.retention.look_at(timestamp, record.line);
        }
        let timestamp = record.timestamp.unwrap_or_else(now_ms);
        let own = record.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
        let both: Vec<Header<'_>>;
        let headers = match record.headers.is_empty() {
            true => of_all,
            false => {
                both = own.chain(of_all.iter().copied()).collect();
                &both
            }
        };
        let appended = self.appender.append_blocking(self.topic, partition, timestamp, key, value, headers);
        appended.map_err(|error| match self.producer.trouble() {
            // The buffer is full because of this.
            Some(trouble) if matches!(error, Error::BufferFull { .. }) => trouble.into(),
            _ => error.into(),
        })
    }
}

/// Wall-clock time in ms since 1970.
#[expect(clippy::disallowed_methods, reason = "the program is where the clock comes in")]
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
