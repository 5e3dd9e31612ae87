//! A log in memory, with transactions: what the test driver runs on.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;

use crate::error::Error;
use crate::output::OutputTopic;
use crate::records::{InputBatch, RecordBuffer};
use crate::runtime::{CommittedInput, TransactionLog};

/// Topics, and what is committed of them.
#[derive(Default)]
pub(super) struct MemoryLog {
    topics: BTreeMap<ByteString, Vec<Partition>>,
    committed: BTreeMap<TopicPartition, CommittedInput>,
    /// What the open transaction has written.
    open: Vec<TopicPartition>,
    pending: Vec<CommittedInput>,
    /// What the next end of a transaction does.
    pub(super) next_end: NextEnd,
}

/// How the end of a transaction goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextEnd {
    /// It is committed, and the answer arrives.
    #[default]
    Answered,
    /// It is committed, but the answer is lost.
    CommittedUnanswered,
    /// It never arrives, and is aborted when the producer is fenced.
    Lost,
}

#[derive(Default)]
struct Partition {
    entries: Vec<Entry>,
}

struct Entry {
    outcome: Outcome,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Open,
    Committed,
    Aborted,
    /// Not a record but the end of a transaction.
    Marker,
}

/// A record as a test reads it from a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRecord {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Its timestamp in ms.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl MemoryLog {
    pub(super) fn create(&mut self, topic: &ByteString, partitions: i32) {
        let partitions = (0..partitions).map(|_| Partition::default());
        self.topics.entry(topic.clone()).or_insert_with(|| partitions.collect());
    }

    pub(super) fn partition_counts(&self) -> BTreeMap<ByteString, i32> {
        self.topics.iter().map(|(topic, partitions)| (topic.clone(), partitions.len() as i32)).collect()
    }

    fn partition(&mut self, partition: &TopicPartition) -> Result<&mut Partition, Error> {
        let found = self.topics.get_mut(&partition.topic);
        found
            .and_then(|partitions| partitions.get_mut(partition.partition as usize))
            .ok_or_else(|| Error::UnknownTopic { topic: partition.topic.to_string(), similar: None })
    }

    /// Appends a record outside of any transaction.
    pub(super) fn produce(&mut self, partition: &TopicPartition, record: WrittenRecord) -> Result<(), Error> {
        let WrittenRecord { timestamp, key, value, headers, .. } = record;
        let outcome = Outcome::Committed;
        self.partition(partition)?.entries.push(Entry { outcome, timestamp, key, value, headers });
        Ok(())
    }

    /// The offset before which everything is decided.
    pub(super) fn last_stable_offset(&self, partition: &TopicPartition) -> i64 {
        let Some(entries) = self.entries(partition) else { return 0 };
        let open = entries.iter().position(|entry| entry.outcome == Outcome::Open);
        open.unwrap_or(entries.len()) as i64
    }

    fn entries(&self, partition: &TopicPartition) -> Option<&[Entry]> {
        let partitions = self.topics.get(&partition.topic)?;
        Some(&partitions.get(partition.partition as usize)?.entries)
    }

    /// The committed records from `from` on, as a batch, at most up to `to`.
    pub(super) fn read(&self, partition: &TopicPartition, from: i64, to: i64) -> InputBatch {
        let to = to.min(self.last_stable_offset(partition));
        let entries = self.entries(partition).unwrap_or_default();
        let mut buffer = RecordBuffer::new();
        let mut offsets = Vec::new();
        for offset in from..to {
            let entry = &entries[offset as usize];
            if entry.outcome == Outcome::Committed {
                let headers = entry.headers.iter();
                let headers = headers.map(|(name, value)| crate::Header::new(name, value.as_deref()));
                buffer.push(entry.timestamp, entry.key.as_deref(), entry.value.as_deref(), headers);
                offsets.push(offset);
            }
        }
        InputBatch::from_buffer_at(&buffer, &offsets, to.max(from))
    }

    /// The committed records of a topic, partition by partition.
    pub(super) fn records(&self, topic: &str) -> Vec<WrittenRecord> {
        let Some(partitions) = self.topics.get(topic) else { return Vec::new() };
        let mut records = Vec::new();
        for (number, partition) in partitions.iter().enumerate() {
            for (offset, entry) in partition.entries.iter().enumerate() {
                if entry.outcome == Outcome::Committed {
                    records.push(WrittenRecord {
                        partition: number as i32,
                        offset: offset as i64,
                        timestamp: entry.timestamp,
                        key: entry.key.clone(),
                        value: entry.value.clone(),
                        headers: entry.headers.clone(),
                    });
                }
            }
        }
        records
    }

    fn end(&mut self, outcome: Outcome) -> Result<(), Error> {
        let mut written = std::mem::take(&mut self.open);
        written.sort();
        written.dedup();
        for partition in written {
            let entries = &mut self.partition(&partition)?.entries;
            for entry in entries.iter_mut().filter(|entry| entry.outcome == Outcome::Open) {
                entry.outcome = outcome;
            }
            let marker =
                Entry { outcome: Outcome::Marker, timestamp: 0, key: None, value: None, headers: Vec::new() };
            entries.push(marker);
        }
        for offset in std::mem::take(&mut self.pending) {
            if outcome == Outcome::Committed {
                self.committed.insert(offset.partition.clone(), offset);
            }
        }
        Ok(())
    }
}

impl TransactionLog for MemoryLog {
    fn send(&mut self, topic: &mut OutputTopic) -> Result<(), Error> {
        for (number, buffer) in topic.partitions.iter_mut().enumerate() {
            if buffer.is_empty() {
                continue;
            }
            let partition = TopicPartition::new(topic.topic.clone(), number as i32);
            let entries = &mut self.partition(&partition)?.entries;
            for record in buffer.iter() {
                let headers = record.headers.iter().map(|header| {
                    let name = String::from_utf8_lossy(header.key).into_owned();
                    (name, header.value.map(<[u8]>::to_vec))
                });
                entries.push(Entry {
                    outcome: Outcome::Open,
                    timestamp: record.timestamp,
                    key: record.key.map(<[u8]>::to_vec),
                    value: record.value.map(<[u8]>::to_vec),
                    headers: headers.collect(),
                });
            }
            buffer.clear();
            self.open.push(partition);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn ends_of(&mut self, partitions: &[TopicPartition]) -> Result<Vec<i64>, Error> {
        partitions.iter().map(|partition| Ok(self.partition(partition)?.entries.len() as i64)).collect()
    }

    fn send_offsets(&mut self, offsets: &[CommittedInput]) -> Result<(), Error> {
        self.pending.extend_from_slice(offsets);
        Ok(())
    }

    fn end_transaction(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.next_end) {
            NextEnd::Answered => self.end(Outcome::Committed),
            NextEnd::CommittedUnanswered => {
                self.end(Outcome::Committed)?;
                Err(Error::UnknownOutcome { reason: "the answer was lost".into() })
            }
            NextEnd::Lost => Err(Error::UnknownOutcome { reason: "the request was lost".into() }),
        }
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.end(Outcome::Aborted)
    }

    fn committed(&mut self, partitions: &[TopicPartition]) -> Result<Vec<Option<CommittedInput>>, Error> {
        Ok(partitions.iter().map(|partition| self.committed.get(partition).cloned()).collect())
    }
}
