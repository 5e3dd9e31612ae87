//! Records as fast as they go, of several sizes, into several partitions, with and without a codec.

use anyhow::Context;

use super::broker::{Brokers, Side};
use super::report::Row;

/// What the clients are given to do.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Bytes of each value.
    size: u64,
    partitions: u32,
    codec: &'static str,
}

/// Six partitions without a codec, of which every row is measured, and the others.
const PLAIN: (u32, &str) = (6, "none");
const OTHERS: [(u32, &str); 3] = [(1, "none"), (6, "lz4"), (1, "lz4")];
const SIZES: [u64; 2] = [100, 1024];

impl Case {
    /// As the rows name it.
    fn name(self) -> String {
        let mut name = format!("{} B", self.size);
        if (self.partitions, self.codec) != PLAIN {
            name = format!(
                "{name}, {} partition{}",
                self.partitions,
                if self.partitions == 1 { "" } else { "s" }
            );
        }
        if self.codec != "none" { format!("{name}, {}", self.codec) } else { name }
    }

    fn topic(self, kind: &str, round: usize) -> String {
        format!("{kind}-{}-{}-{}-{round}", self.size, self.partitions, self.codec)
    }
}

/// So many records of one case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) size: u64,
    pub(super) records: u64,
    pub(super) codec: &'static str,
}

impl Load {
    /// What the unit "per GB" is measured with: `gigabytes` of values.
    fn of(case: Case, gigabytes: f64) -> Self {
        Self { size: case.size, records: (gigabytes * 1e9) as u64 / case.size, codec: case.codec }
    }

    fn gigabytes(self) -> f64 {
        (self.size * self.records) as f64 / 1e9
    }
}

/// Clients that run unchanged against both brokers.
#[derive(Clone, Copy, Debug)]
enum Clients {
    Java,
    Librdkafka,
}

impl Clients {
    /// As the rows name them.
    fn name(self) -> &'static str {
        match self {
            Self::Java => "Java's",
            Self::Librdkafka => "librdkafka's",
        }
    }

    /// Records a second.
    fn produce(self, side: Side<'_>, topic: &str, load: Load) -> anyhow::Result<f64> {
        match self {
            Self::Java => side.java_produces(topic, load),
            Self::Librdkafka => side.librdkafka_produces(topic, load),
        }
    }

    /// Records a second.
    fn consume(self, side: Side<'_>, topic: &str, load: Load) -> anyhow::Result<f64> {
        match self {
            Self::Java => side.java_consumes(topic, load),
            Self::Librdkafka => side.librdkafka_consumes(topic, load),
        }
    }
}

/// The same clients on each.
struct Same {
    clients: Clients,
    produce_cpu: Row,
    consume_cpu: Row,
    produce: Row,
    consume: Row,
}

impl Same {
    fn new(clients: Clients, case: Case) -> Self {
        let row =
            |what: &str| Row::new(what.replace("CLIENT's", clients.name()).replace("CASE", &case.name()));
        // Java's are what these rows are about unless they say otherwise.
        let cpu = |what: &str| {
            row(&match clients {
                Clients::Java => format!("broker, {what} CASE: CPU-s per GB"),
                Clients::Librdkafka => format!("broker, {what} CASE by CLIENT's clients: CPU-s per GB"),
            })
        };
        Self {
            clients,
            produce_cpu: cpu("producing"),
            consume_cpu: cpu("consuming"),
            produce: row("CLIENT's producer on each, CASE: records/s"),
            consume: row("CLIENT's consumer on each, CASE: records/s"),
        }
    }

    fn round(&mut self, brokers: &Brokers, case: Case, load: Load, number: usize) -> anyhow::Result<()> {
        let topic = case.topic(self.clients.name().trim_end_matches("'s"), number);
        let measure = |side: Side<'_>| {
            side.create(&topic, case.partitions, &[])?;
            let (produced, produce_cpu) = side.metered(|| self.clients.produce(side, &topic, load))?;
            let (consumed, consume_cpu) = side.metered(|| self.clients.consume(side, &topic, load))?;
            side.delete(&topic)?;
            anyhow::Ok([produced, produce_cpu / load.gigabytes(), consumed, consume_cpu / load.gigabytes()])
        };
        let (ours, theirs) = (measure(brokers.thalweg())?, measure(brokers.kafka())?);
        let rows = [&mut self.produce, &mut self.produce_cpu, &mut self.consume, &mut self.consume_cpu];
        for (row, pair) in rows.into_iter().zip(ours.into_iter().zip(theirs)) {
            row.rounds.push(pair);
        }
        Ok(())
    }

    fn into_rows(self) -> [Row; 4] {
        [self.produce_cpu, self.consume_cpu, self.produce, self.consume]
    }
}

/// Our clients on ours beside Java's on Kafka, and ours without syncing.
struct Own {
    relaxed_cpu: Row,
    produce: Row,
    consume: Row,
}

impl Own {
    fn new(case: Case) -> Self {
        let row = |what: &str| Row::new(what.replace("CASE", &case.name()));
        Self {
            relaxed_cpu: row("broker, producing CASE, ours with durability=relaxed: CPU-s per GB"),
            produce: row("our producer on ours, Java's on Kafka, CASE: records/s"),
            consume: row("our consumer on ours, Java's on Kafka, CASE: records/s"),
        }
    }

    /// Beside what Java's clients did in this round.
    fn round(
        &mut self,
        side: Side<'_>,
        case: Case,
        load: Load,
        number: usize,
        java: &Same,
    ) -> anyhow::Result<()> {
        let kafkas = |row: &Row| row.rounds.last().map(|round| round.1).context("Java's clients came first");
        let topic = case.topic("ours", number);
        side.create(&topic, case.partitions, &[])?;
        self.produce.rounds.push((side.ours_produces(&topic, load)?, kafkas(&java.produce)?));
        self.consume.rounds.push((side.ours_consumes(&topic, load)?, kafkas(&java.consume)?));
        side.delete(&topic)?;
        let topic = case.topic("relaxed", number);
        side.create(&topic, case.partitions, &["durability=relaxed"])?;
        let (_rate, relaxed_cpu) = side.metered(|| side.java_produces(&topic, load))?;
        self.relaxed_cpu.rounds.push((relaxed_cpu / load.gigabytes(), kafkas(&java.produce_cpu)?));
        side.delete(&topic)
    }

    fn into_rows(self) -> [Row; 3] {
        [self.relaxed_cpu, self.produce, self.consume]
    }
}

/// Runs `rounds` rounds of each case on both brokers, `gigabytes` of values in a plain one and half as many in the others,
/// after a short one that is not counted and warms Java up.
///
/// # Errors
/// When a client fails.
pub fn compare(brokers: &Brokers, rounds: usize, gigabytes: f64) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for size in SIZES {
        let plain = Case { size, partitions: PLAIN.0, codec: PLAIN.1 };
        Same::new(Clients::Java, plain).round(brokers, plain, Load::of(plain, gigabytes / 4.0), 0)?;
        let (mut java, mut own) = (Same::new(Clients::Java, plain), Own::new(plain));
        let mut librdkafka = Same::new(Clients::Librdkafka, plain);
        for number in 1..=rounds {
            eprintln!("records of {}: round {number} of {rounds}", plain.name());
            let load = Load::of(plain, gigabytes);
            java.round(brokers, plain, load, number)?;
            own.round(brokers.thalweg(), plain, load, number, &java)?;
            librdkafka.round(brokers, plain, Load::of(plain, gigabytes / 2.0), number)?;
        }
        rows.extend(java.into_rows().into_iter().chain(own.into_rows()).chain(librdkafka.into_rows()));
        for (partitions, codec) in OTHERS {
            let case = Case { size, partitions, codec };
            let mut java = Same::new(Clients::Java, case);
            for number in 1..=rounds {
                eprintln!("records of {}: round {number} of {rounds}", case.name());
                java.round(brokers, case, Load::of(case, gigabytes / 2.0), number)?;
            }
            rows.extend(java.into_rows());
        }
    }
    Ok(rows)
}
