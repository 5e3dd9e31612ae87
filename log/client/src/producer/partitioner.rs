//! Which partition a record goes to.

use thalweg_protocol::partition_for_key;

/// Chooses the partition of a record that names none.
///
/// A closure `Fn(&str, Option<&[u8]>, &[u8], i32) -> i32` is one, too.
pub trait Partitioner: Send + Sync + 'static {
    /// The partition, from 0 to `partitions` − 1, for a record of `topic` with this key and value (empty
    /// where it is null). `None` leaves the choice to the sticky partitioner: the record joins the batch that
    /// is filling.
    fn partition(&self, topic: &str, key: Option<&[u8]>, value: &[u8], partitions: i32) -> Option<i32>;
}

impl<F> Partitioner for F
where
    F: Fn(&str, Option<&[u8]>, &[u8], i32) -> i32 + Send + Sync + 'static,
{
    fn partition(&self, topic: &str, key: Option<&[u8]>, value: &[u8], partitions: i32) -> Option<i32> {
        Some(self(topic, key, value, partitions))
    }
}

/// Java's default: a key's murmur2 hash, so that all clients agree where a key lives; records without a key
/// fill one partition's batch after the other's (KIP-480).
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHash;

impl Partitioner for KeyHash {
    fn partition(&self, _topic: &str, key: Option<&[u8]>, _value: &[u8], partitions: i32) -> Option<i32> {
        key.map(|key| partition_for_key(key, partitions))
    }
}
