//! Reads the first records of a topic, from which its columns are inferred.

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_client::{Client, Result};

use super::reader::{Extent, ExtentReader};
use crate::config::SqlConfig;
use crate::format::KeyFormat;
use crate::statement_context::Snapshot;

/// The first records of each partition of a topic.
pub(crate) struct Sample {
    /// Key and value of each, partition by partition.
    records: Vec<(Option<Bytes>, Option<Bytes>)>,
    /// How many partitions they are from.
    pub(crate) partitions: usize,
}

impl Sample {
    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The records' values.
    pub(crate) fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.records.iter().map(|(_, value)| value.as_deref())
    }

    /// What the keys are: text if all of them are UTF-8.
    pub(crate) fn key_format(&self) -> KeyFormat {
        let mut keys = self.records.iter().filter_map(|(key, _)| key.as_deref());
        if keys.all(|key| std::str::from_utf8(key).is_ok()) { KeyFormat::Text } else { KeyFormat::Bytes }
    }
}

/// Reads the first committed records of each partition of `topic`: as many as the configuration says.
pub(crate) async fn sample(
    client: &Client,
    topic: &ByteString,
    snapshot: &Snapshot,
    config: &SqlConfig,
) -> Result<Sample> {
    let extents: Vec<Extent> = snapshot
        .partitions
        .iter()
        .map(|known| Extent { partition: known.partition, start: known.start, end: known.end, is_cut: false })
        .collect();
    let mut taken: Vec<PartitionSample> = extents.iter().map(|_| PartitionSample::default()).collect();
    let mut reader = ExtentReader::new(client, topic, &extents)?;
    while let Some(fetched) = reader.next().await? {
        for fetched in fetched {
            let partition = fetched.partition.partition;
            let Some(at) = extents.iter().position(|extent| extent.partition == partition) else { continue };
            let end = extents[at].end;
            for record in fetched.into_records() {
                let record = record?;
                if record.offset >= end || taken[at].is_full(config) {
                    break;
                }
                taken[at].bytes += record.value.as_ref().map_or(0, Bytes::len);
                taken[at].records.push((record.key, record.value));
            }
            if taken[at].is_full(config) {
                reader.finish(partition);
            }
        }
    }
    let partitions = taken.len();
    Ok(Sample { records: taken.into_iter().flat_map(|sample| sample.records).collect(), partitions })
}

#[derive(Default)]
struct PartitionSample {
    records: Vec<(Option<Bytes>, Option<Bytes>)>,
    bytes: usize,
}

impl PartitionSample {
    fn is_full(&self, config: &SqlConfig) -> bool {
        self.records.len() >= config.sample_records || self.bytes >= config.sample_bytes
    }
}
