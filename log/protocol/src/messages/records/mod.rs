// Generated from messages.txt by generate/main.rs; do not edit.

//! What Kafka keeps in its internal topics and files, and what clients hide in opaque bytes.
//!
//! Every record begins with two bytes: the version of a value, or the kind of a key.

mod aborted_txn;
mod consumer_group_current_member_assignment;
mod consumer_group_member_metadata;
mod consumer_group_metadata;
mod consumer_group_regular_expression;
mod consumer_group_target_assignment_member;
mod consumer_group_target_assignment_metadata;
mod consumer_protocol;
mod control_record;
mod group_metadata;
mod offset_commit;
mod producer_snapshot;
mod share_group_current_member_assignment;
mod share_group_member_metadata;
mod share_group_metadata;
mod share_group_target_assignment_member;
mod share_group_target_assignment_metadata;
mod share_snapshot;
mod share_update;
mod transaction_log;

pub use aborted_txn::AbortedTxn;
pub use consumer_group_current_member_assignment::{
    ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, OwnedTopicPartitions,
};
pub use consumer_group_member_metadata::{
    ClassicMemberMetadata, ClassicProtocol, ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue,
};
pub use consumer_group_metadata::{ConsumerGroupMetadataKey, ConsumerGroupMetadataValue};
pub use consumer_group_regular_expression::{
    ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue,
};
pub use consumer_group_target_assignment_member::{
    ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, TargetTopicPartitions,
};
pub use consumer_group_target_assignment_metadata::{
    ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue,
};
pub use consumer_protocol::{ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartition};
pub use control_record::{ControlRecordTypeSchema, EndTxnMarker};
pub use group_metadata::{GroupMetadataKey, GroupMetadataValue, MemberMetadata};
pub use offset_commit::{OffsetCommitKey, OffsetCommitValue};
pub use producer_snapshot::{ProducerEntry, ProducerSnapshot};
pub use share_group_current_member_assignment::{
    ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue, SharedTopicPartitions,
};
pub use share_group_member_metadata::{ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue};
pub use share_group_metadata::{ShareGroupMetadataKey, ShareGroupMetadataValue};
pub use share_group_target_assignment_member::{
    ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue, SharedTargetPartitions,
};
pub use share_group_target_assignment_metadata::{
    ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue,
};
pub use share_snapshot::{ShareSnapshotKey, ShareSnapshotValue, ShareStateBatch};
pub use share_update::{ShareUpdateBatch, ShareUpdateKey, ShareUpdateValue};
pub use transaction_log::{PartitionsSchema, TransactionLogKey, TransactionLogValue};
