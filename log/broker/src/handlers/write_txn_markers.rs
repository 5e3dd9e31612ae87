//! WriteTxnMarkers: ends transactions in partitions that this node leads, on the word of an operator: those that hang there
//! although no coordinator knows of them (KIP-664). This node's own coordinator needs no request for its markers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytestring::ByteString;
use futures::stream::{self, StreamExt};
use thalweg_protocol::messages::write_txn_markers::{
    WritableTxnMarker, WritableTxnMarkerPartitionResult, WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};
use thalweg_protocol::{ErrorCode, LeaderEpoch, ProducerEpoch, ProducerId, TopicPartition};
use thalweg_storage::{MarkerAppend, TransactionResult};
use tokio::time::timeout;

use super::{RequestContext, own};
use crate::transaction::TransactionCoordinator;

/// The first version of transactions in which a marker has a newer epoch than what it ends (KIP-890, KIP-1228).
const BUMPS_EPOCH: i8 = 2;

/// How many markers of a request are on their way at once: they share rounds of syncs.
const AT_ONCE: usize = 1024;

/// How long a marker may take until it is committed, as long as a broker waits for others. On a full disk nobody knows when
/// it is.
const LONGEST: Duration = Duration::from_secs(30);

pub(crate) async fn handle(
    context: RequestContext,
    request: WriteTxnMarkersRequest,
) -> WriteTxnMarkersResponse {
    let mut markers = Vec::with_capacity(request.markers.len());
    for marker in request.markers {
        markers.push(write(&context, marker).await);
    }
    WriteTxnMarkersResponse { markers }
}

/// The answer that refuses everything in `request`.
pub(crate) fn refuse(request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse {
    let markers = request.markers.into_iter().map(|marker| {
        let topics = marker.topics.into_iter().map(|topic| {
            let partitions = topic.partition_indexes.into_iter();
            result(topic.name, partitions.map(|partition| (partition, code)))
        });
        WritableTxnMarkerResult { producer_id: marker.producer_id, topics: topics.collect() }
    });
    WriteTxnMarkersResponse { markers: markers.collect() }
}

/// Writes one marker to all its partitions, to each once.
async fn write(context: &RequestContext, marker: WritableTxnMarker) -> WritableTxnMarkerResult {
    let append = append(context.version, &marker);
    let mut partitions = BTreeSet::new();
    for topic in marker.topics {
        let name = own(&topic.name);
        let indexes = topic.partition_indexes.into_iter();
        partitions.extend(indexes.map(|partition| TopicPartition { topic: name.clone(), partition }));
    }
    let writes = partitions.into_iter().map(|partition| async move {
        let written = match append {
            Ok(append) => write_one(&context.core.transactions, &partition, append).await,
            Err(code) => Err(code),
        };
        (partition, written.err().unwrap_or(ErrorCode::None))
    });
    let outcomes: Vec<_> = stream::iter(writes).buffered(AT_ONCE).collect().await;
    let mut topics: BTreeMap<ByteString, Vec<(i32, ErrorCode)>> = BTreeMap::new();
    for (TopicPartition { topic, partition }, code) in outcomes {
        topics.entry(topic).or_default().push((partition, code));
    }
    let topics = topics.into_iter().map(|(name, outcomes)| result(name, outcomes.into_iter()));
    WritableTxnMarkerResult { producer_id: marker.producer_id, topics: topics.collect() }
}

async fn write_one(
    transactions: &TransactionCoordinator,
    partition: &TopicPartition,
    append: MarkerAppend,
) -> Result<(), ErrorCode> {
    let written = timeout(LONGEST, transactions.append_marker(partition, append)).await;
    written.unwrap_or(Err(ErrorCode::RequestTimedOut))
}

/// What is to be appended.
fn append(version: i16, marker: &WritableTxnMarker) -> Result<MarkerAppend, ErrorCode> {
    let (producer_id, producer_epoch) =
        (ProducerId(marker.producer_id), ProducerEpoch(marker.producer_epoch));
    if producer_id <= ProducerId::NONE {
        return Err(ErrorCode::InvalidProducerIdMapping);
    }
    if producer_epoch <= ProducerEpoch::NONE {
        return Err(ErrorCode::InvalidProducerEpoch);
    }
    Ok(MarkerAppend {
        producer_id,
        producer_epoch,
        result: match marker.transaction_result {
            true => TransactionResult::Commit,
            false => TransactionResult::Abort,
        },
        coordinator_epoch: marker.coordinator_epoch,
        epoch_is_bumped: version >= 2 && marker.transaction_version >= BUMPS_EPOCH,
        leader_epoch: LeaderEpoch::UNKNOWN,
    })
}

fn result(
    name: ByteString,
    outcomes: impl Iterator<Item = (i32, ErrorCode)>,
) -> WritableTxnMarkerTopicResult {
    let partitions = outcomes.map(|(partition_index, code)| WritableTxnMarkerPartitionResult {
        partition_index,
        error_code: code.code(),
    });
    WritableTxnMarkerTopicResult { name, partitions: partitions.collect() }
}
