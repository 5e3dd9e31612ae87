//! Offsets in the logs of partitions, and records that are deleted.

use std::collections::BTreeMap;

use thalweg_protocol::{Offset, TopicPartition};

use super::Admin;
use crate::by_leader::{delete_records, list_offsets};
use crate::config::Isolation;
use crate::consumer::{ListedOffset, OffsetSpec};
use crate::error::Result;

impl Admin {
    /// Looks up offsets in the logs of partitions.
    ///
    /// # Errors
    /// Whatever keeps a leader from answering within the API timeout.
    pub async fn list_offsets(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
        isolation: Isolation,
    ) -> Result<BTreeMap<TopicPartition, ListedOffset>> {
        list_offsets(&self.cluster, wanted.iter().cloned(), isolation).await
    }

    /// Deletes the records before these offsets (`Offset(-1)`: all that are replicated); returns the first offset that
    /// each log has now.
    ///
    /// # Errors
    /// Whatever a leader refused or kept it from answering; other partitions may be done.
    pub async fn delete_records(
        &self,
        before: &[(TopicPartition, Offset)],
    ) -> Result<BTreeMap<TopicPartition, Offset>> {
        delete_records(&self.cluster, before.iter().cloned()).await
    }
}
