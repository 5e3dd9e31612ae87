//! A record on its way into a topic.

use bytes::Bytes;
use bytestring::ByteString;

/// A record to send, owning what it carries. For the last bit of speed see [`Appender`](crate::Appender),
/// which borrows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerRecord {
    /// The topic it goes to.
    pub topic: ByteString,
    /// The partition; `None` leaves it to the producer's [`Partitioner`](crate::Partitioner).
    pub partition: Option<i32>,
    /// In ms since 1970; `None` is the time of the send.
    pub timestamp: Option<i64>,
    /// The key, or null.
    pub key: Option<Bytes>,
    /// The value, or null: a tombstone in a compacted topic.
    pub value: Option<Bytes>,
    /// Names and values, in order; a name may occur twice.
    pub headers: Vec<(ByteString, Option<Bytes>)>,
}

impl ProducerRecord {
    /// A record with a value and no key.
    pub fn new(topic: impl Into<ByteString>, value: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), value: Some(value.into()), ..Self::default() }
    }

    /// The same with a key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The same for one partition.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// The same with an event time, in ms since 1970.
    #[must_use]
    pub fn timestamp(mut self, timestamp: i64) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn header(mut self, name: impl Into<ByteString>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }
}
