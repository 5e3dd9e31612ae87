//! Where a program's results go: a buffer per partition of every sink.

use std::fmt::Display;

use bytestring::ByteString;
use thalweg_protocol::record::{Header, Record as RawRecord};
use thalweg_protocol::{TopicPartition, partition_for_key};

use crate::config::Undecodable;
use crate::error::Error;
use crate::records::RecordBuffer;

/// Which partition of a sink a record goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartitionChoice {
    /// By the key's bytes, as every Kafka client does it (murmur2); without a key, the task's own.
    #[default]
    ByKey,
    /// This one.
    Number(i32),
}

/// Collects a task's results. A record is appended to the buffer of its partition; the runtime hands full
/// buffers to the producer between batches and flushes the rest in the commit.
pub struct Output {
    sinks: Vec<OutputTopic>,
    dead_letters: OutputTopic,
    undecodable: Undecodable,
    sources: Vec<Option<TopicPartition>>,
    task_partition: i32,
    sent: u64,
    dead: u64,
}

/// The buffers of one topic, a partition each.
pub(crate) struct OutputTopic {
    pub(crate) topic: ByteString,
    pub(crate) partitions: Vec<RecordBuffer>,
}

impl OutputTopic {
    pub(crate) fn new(topic: impl Into<ByteString>, partitions: i32) -> Self {
        let partitions = (0..partitions.max(1)).map(|_| RecordBuffer::new()).collect();
        Self { topic: topic.into(), partitions }
    }
}

/// The header that says why a record is a dead letter; the names are those of KIP-1034.
pub const DEAD_LETTER_REASON: &str = "__streams.errors.message";
/// The header that names the topic a dead letter was read from.
pub const DEAD_LETTER_TOPIC: &str = "__streams.errors.topic";
/// The header that names the partition a dead letter was read from, in decimal.
pub const DEAD_LETTER_PARTITION: &str = "__streams.errors.partition";
/// The header that says at which offset a dead letter was read, in decimal.
pub const DEAD_LETTER_OFFSET: &str = "__streams.errors.offset";

/// The `max.message.bytes` of the dead-letter topic: four times the default of the topics that the records
/// come from, and as much as a producer sends at once.
pub(crate) const DEAD_LETTER_BATCH_BYTES: usize = 4 << 20;

/// How large a record may be to be put aside whole: the reason and a batch's header must fit, too.
const DEAD_LETTER_BYTES: usize = DEAD_LETTER_BATCH_BYTES - (64 << 10);

/// How many bytes a record has, about.
fn size(record: &RawRecord<'_>) -> usize {
    let headers = record.headers.iter();
    let headers: usize =
        headers.map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len) + 10).sum();
    record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len) + headers
}

impl Output {
    pub(crate) fn new(
        sinks: Vec<OutputTopic>,
        dead_letters: OutputTopic,
        undecodable: Undecodable,
        sources: Vec<Option<TopicPartition>>,
        task_partition: i32,
    ) -> Self {
        Self { sinks, dead_letters, undecodable, sources, task_partition, sent: 0, dead: 0 }
    }

    /// Appends a record to the sink with this index in the sub-topology; `headers` are `[]` for none.
    ///
    /// # Panics
    /// When the sub-topology has no such sink, or the sink no such partition.
    pub fn send<'h>(
        &mut self,
        sink: usize,
        to: PartitionChoice,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = Header<'h>>,
    ) {
        let partitions = &mut self.sinks[sink].partitions;
        let partition = match (to, key) {
            (PartitionChoice::Number(partition), _) => partition as usize,
            (PartitionChoice::ByKey, Some(key)) => partition_for_key(key, partitions.len() as i32) as usize,
            (PartitionChoice::ByKey, None) => self.task_partition as usize % partitions.len(),
        };
        partitions[partition].push(timestamp, key, value, headers);
        self.sent += 1;
    }

    /// How many partitions the sink with this index has.
    pub fn partitions(&self, sink: usize) -> i32 {
        self.sinks[sink].partitions.len() as i32
    }

    /// Puts aside a record of input `input` that cannot be processed: it goes to the application's
    /// dead-letter topic as it is, with reason, topic, partition and offset as headers. Of one that is larger
    /// than about 4 MB only those go there.
    ///
    /// # Errors
    /// [`Error::Undecodable`] when the configuration says to stop instead.
    pub fn dead_letter(
        &mut self,
        input: usize,
        record: &RawRecord<'_>,
        reason: &dyn Display,
    ) -> Result<(), Error> {
        let source = self.sources[input].as_ref().expect("records come only from partitions that exist");
        if self.undecodable == Undecodable::Fail {
            return Err(Error::Undecodable {
                partition: source.clone(),
                offset: record.offset.0,
                reason: reason.to_string(),
            });
        }
        let mut reason = reason.to_string();
        let fits = size(record) <= DEAD_LETTER_BYTES;
        if !fits {
            reason.push_str("; it is too large to be put aside whole, and lies where it was read");
        }
        let (number, offset) = (source.partition.to_string(), record.offset.to_string());
        let why = [
            Header::new(DEAD_LETTER_REASON, Some(reason.as_bytes())),
            Header::new(DEAD_LETTER_TOPIC, Some(source.topic.as_bytes())),
            Header::new(DEAD_LETTER_PARTITION, Some(number.as_bytes())),
            Header::new(DEAD_LETTER_OFFSET, Some(offset.as_bytes())),
        ];
        let partitions = &mut self.dead_letters.partitions;
        let partition = source.partition as usize % partitions.len();
        match fits {
            true => {
                let headers = record.headers.iter().chain(why);
                partitions[partition].push(record.timestamp, record.key, record.value, headers);
            }
            false => partitions[partition].push(record.timestamp, None, None, why),
        }
        self.dead += 1;
        Ok(())
    }

    /// The buffers of all sinks and of the dead letters.
    pub(crate) fn topics_mut(&mut self) -> impl Iterator<Item = &mut OutputTopic> {
        self.sinks.iter_mut().chain([&mut self.dead_letters])
    }

    /// How many records were sent to sinks since the start.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// How many records were put aside since the start.
    pub(crate) fn dead(&self) -> u64 {
        self.dead
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protocol::Offset;

    use super::*;

    #[test]
    fn a_dead_letter_says_where_it_came_from() {
        let sources = vec![Some(TopicPartition::new("in", 3))];
        let topic = || OutputTopic::new("dead", 2);
        let mut output = Output::new(vec![], topic(), Undecodable::DeadLetter, sources.clone(), 3);
        let record = RawRecord {
            offset: Offset(42),
            timestamp: 7,
            key: Some(b"k"),
            value: Some(b"v"),
            headers: Default::default(),
        };
        output.dead_letter(0, &record, &"not JSON").expect("the policy puts it aside");
        let dead: Vec<_> = output.dead_letters.partitions[1].iter().collect();
        assert_eq!((dead[0].key, dead[0].value, dead[0].timestamp), (record.key, record.value, 7));
        let headers: Vec<_> = dead[0].headers.iter().map(|header| header.value.unwrap_or_default()).collect();
        assert_eq!(headers, [&b"not JSON"[..], b"in", b"3", b"42"]);

        let large = vec![b'x'; DEAD_LETTER_BYTES + 1];
        output.dead_letter(0, &RawRecord { value: Some(&large), ..record }, &"not JSON").expect("put aside");
        let dead: Vec<_> = output.dead_letters.partitions[1].iter().collect();
        assert_eq!((dead[1].key, dead[1].value), (None, None));
        let headers: Vec<_> = dead[1].headers.iter().map(|header| header.value.unwrap_or_default()).collect();
        assert!(headers[0].starts_with(b"not JSON; it is too large to be put aside whole"));
        assert_eq!(headers[1..], [&b"in"[..], b"3", b"42"]);

        let mut strict = Output::new(vec![], topic(), Undecodable::Fail, sources, 3);
        let refused = strict.dead_letter(0, &record, &"not JSON");
        assert!(matches!(refused, Err(Error::Undecodable { offset: 42, .. })));
    }
}
