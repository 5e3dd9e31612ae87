//! A history of what producers were told and consumers have seen, and whether a log can have such a one.
//!
//! The kinds of faults are those that Jepsen's tests of Kafka look for. A value is written once by one producer, so that
//! it tells where it comes from and whether it is doubled, lost or out of order.

mod check;
mod plant;
mod workload;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use check::{Fault, FaultKind, check};
pub use plant::plant;
pub use workload::{Workload, read_to_the_end};

/// What one record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value {
    /// Who has written it.
    pub producer: u32,
    /// Counts up with each record of the producer.
    pub number: u64,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.producer, self.number)
    }
}

impl FromStr for Value {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (producer, number) =
            text.split_once('-').ok_or_else(|| anyhow::anyhow!("{text:?} is no value"))?;
        Ok(Self { producer: producer.parse()?, number: number.parse()? })
    }
}

/// What became of something, as far as its writer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was acknowledged.
    Done,
    /// It was refused, or taken back.
    NotDone,
    /// There was no answer, or one that says "perhaps".
    Unknown,
}

/// A record that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What it holds.
    pub value: Value,
    /// Where it went.
    pub partition: i32,
    /// The offset that it was acknowledged with, if it was.
    pub offset: Option<i64>,
}

/// Records that stand or fall together: those of a transaction, or a single one outside of any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What became of it.
    pub fate: Fate,
    /// Its records.
    pub records: Vec<Sent>,
}

/// What one consumer has read of one partition, from when it got the partition until it gave it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Which.
    pub partition: i32,
    /// Where it began; `None` where the group decided.
    pub from: Option<i64>,
    /// The name of its group, whose members together must see everything.
    pub group: Option<String>,
    /// In the order in which they came.
    pub records: Vec<(i64, Value)>,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What was sent.
    pub sent: Vec<Group>,
    /// What was read meanwhile, to the end.
    pub readings: Vec<Reading>,
    /// What a new consumer reads in the end, by partition: only what is committed.
    pub log: BTreeMap<i32, Vec<(i64, Value)>>,
}
