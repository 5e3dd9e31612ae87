//! History with its progress, the moment it goes live, and the table that follows December.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use comfy_table::{Table, presets};
use serde::de::DeserializeOwned;
use thalweg_client::{Client, Consumer, ConsumerConfig, FetchedBatches, OffsetReset};
use thalweg_protocol::{Scratch, TopicPartition};
use thalweg_streams::{Event, Streams};

use crate::load::{Loader, Row};
use crate::results::{Carrier, Results};
use crate::topology::{CarrierRow, DayRow};
use crate::{PROCESSING_TIMEOUT, Topics};

/// Shows progress until everything that was in the log is processed.
pub fn replay(streams: &Streams) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut shown = Instant::now();
    let terminal = std::io::stdout().is_terminal();
    let events = streams.events();
    let (mut furthest, mut moved) = (0, Instant::now());
    loop {
        if moved.elapsed() > PROCESSING_TIMEOUT {
            bail!(
                "the processor has not come any further for {PROCESSING_TIMEOUT:?}; does the log still answer?"
            );
        }
        let committed = streams.committed().records_in;
        if committed != furthest {
            (furthest, moved) = (committed, Instant::now());
        }
        match events
            .recv_timeout(PROCESSING_TIMEOUT)
            .context("the processor has stopped telling how far it is")?
        {
            Event::Replaying { fraction, eta, .. }
                if terminal || shown.elapsed() > Duration::from_millis(250) =>
            {
                shown = Instant::now();
                let eta = eta.map_or("live soon".to_string(), |eta| {
                    format!("live in {:.0} s", eta.as_secs_f64().ceil())
                });
                let line = format!("{:3.0} %, {eta}", fraction * 100.0);
                if terminal {
                    print!("\r{line}   ");
                    std::io::stdout().flush()?;
                } else {
                    println!("{line}");
                }
            }
            Event::Live => break,
            Event::Failed { reason } => bail!("the processor failed: {reason}"),
            _ => {}
        }
    }
    if terminal {
        print!("\r");
    }
    println!("Live after {:.2} s: history is processed, December arrives.", began.elapsed().as_secs_f64());
    Ok(())
}

/// Writes December in `seconds`, follows the results meanwhile, and returns the last ones: those in which all
/// `wanted` flights of the year are counted.
pub fn december(
    runtime: &tokio::runtime::Runtime,
    client: &Client,
    topics: &Topics,
    loader: &mut Loader<'_>,
    rows: &[Row],
    wanted: i64,
    seconds: f64,
) -> anyhow::Result<Results> {
    let mut follower = {
        let _inside = runtime.enter();
        Follower::new(client, topics)?
    };
    let mut screen = Screen::new();
    let began = Instant::now();
    let mut written = 0;
    while written < rows.len() {
        let due = if seconds > 0.0 { began.elapsed().as_secs_f64() / seconds } else { 1.0 };
        let until = ((rows.len() as f64 * due) as usize).clamp(written, rows.len());
        loader.write(&rows[written..until])?;
        written = until;
        runtime.block_on(follower.follow(Duration::from_millis(100)))?;
        screen.show(&follower.results)?;
    }
    let last_written = Instant::now();
    let all = |results: &Results| (results.flights(), results.flights_in_windows());
    while all(&follower.results) != (wanted, wanted) {
        if last_written.elapsed() > PROCESSING_TIMEOUT {
            let (carriers, windows) = all(&follower.results);
            bail!(
                "of {wanted} flights only {carriers} are counted per carrier and {windows} per day after {PROCESSING_TIMEOUT:?}"
            );
        }
        runtime.block_on(follower.follow(Duration::from_millis(100)))?;
    }
    screen.finish(&follower.results)?;
    println!(
        "December is in: {} flights; the last result came {:.0} ms after the last flight.",
        rows.len(),
        last_written.elapsed().as_secs_f64() * 1e3
    );
    Ok(std::mem::take(&mut follower.results))
}

/// Reads the output topics: the last value of each key counts.
struct Follower {
    consumer: Consumer,
    results: Results,
    carriers: String,
    scratch: Scratch,
}

const DECOMPRESSED_BYTES: usize = 64 << 20;

impl Follower {
    fn new(client: &Client, topics: &Topics) -> anyhow::Result<Self> {
        let config = ConsumerConfig { offset_reset: OffsetReset::Earliest, ..ConsumerConfig::default() };
        let mut consumer = client.consumer(config)?;
        consumer.assign([
            TopicPartition::new(topics.carriers.as_str(), 0),
            TopicPartition::new(topics.days.as_str(), 0),
        ])?;
        let scratch = Scratch::new(DECOMPRESSED_BYTES);
        Ok(Self { consumer, results: Results::default(), carriers: topics.carriers.clone(), scratch })
    }

    async fn follow(&mut self, timeout: Duration) -> anyhow::Result<()> {
        let polled = self.consumer.poll(timeout).await?;
        for fetched in &polled.batches {
            if fetched.partition.topic == self.carriers {
                for row in decode::<CarrierRow>(fetched, &mut self.scratch)? {
                    let carrier = Carrier { flights: row.flights, mean_dep_delay: row.mean_dep_delay };
                    self.results.carriers.insert(row.carrier, carrier);
                }
            } else {
                for row in decode::<DayRow>(fetched, &mut self.scratch)? {
                    self.results.days.insert((row.origin, row.day), row.flights);
                }
            }
        }
        Ok(())
    }
}

fn decode<T: DeserializeOwned>(fetched: &FetchedBatches, scratch: &mut Scratch) -> anyhow::Result<Vec<T>> {
    let mut rows = Vec::with_capacity(fetched.records_count());
    fetched.for_each(scratch, |record| -> anyhow::Result<()> {
        rows.push(serde_json::from_slice(record.value.context("no tombstones come out")?)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Draws the table in place on a terminal, and only its end elsewhere.
struct Screen {
    terminal: bool,
    drawn_lines: usize,
    drawn: Instant,
}

impl Screen {
    fn new() -> Self {
        Self { terminal: std::io::stdout().is_terminal(), drawn_lines: 0, drawn: Instant::now() }
    }

    fn show(&mut self, results: &Results) -> anyhow::Result<()> {
        if self.terminal && self.drawn.elapsed() > Duration::from_millis(200) {
            self.draw(results)?;
        }
        Ok(())
    }

    fn finish(&mut self, results: &Results) -> anyhow::Result<()> {
        self.draw(results)
    }

    fn draw(&mut self, results: &Results) -> anyhow::Result<()> {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_header(["CARRIER", "FLIGHTS", "MEAN DELAY (min)"]);
        for (name, carrier) in &results.carriers {
            let mean = carrier.mean_dep_delay.map_or("-".to_string(), |mean| format!("{mean:.2}"));
            table.add_row([name.clone(), carrier.flights.to_string(), mean]);
        }
        let text =
            format!("{table}\n{} flights on {} days and origins", results.flights(), results.days.len());
        if self.drawn_lines > 0 {
            print!("\x1b[{}A\x1b[J", self.drawn_lines);
        }
        println!("{text}");
        self.drawn_lines = if self.terminal { text.lines().count() } else { 0 };
        self.drawn = Instant::now();
        Ok(())
    }
}
