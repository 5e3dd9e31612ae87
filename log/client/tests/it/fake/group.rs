//! A group of one member.

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::join_group::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember};
use thalweg_protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use thalweg_protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
};

use super::State;

impl State {
    /// A group of one, which is its own leader, and has to come twice (KIP-394).
    pub(super) fn join(&mut self, request: JoinGroupRequest, code: i16) -> JoinGroupResponse {
        let mut response = JoinGroupResponse { error_code: code, ..JoinGroupResponse::default() };
        response.member_id = ByteString::from_static("member");
        if request.member_id.is_empty() {
            response.error_code = ErrorCode::MemberIdRequired.code();
        } else if code == 0 {
            self.generation += 1;
            let protocol = request.protocols.into_iter().next().expect("a member has an assignor");
            response.generation_id = self.generation;
            response.protocol_name = Some(protocol.name);
            response.leader = request.member_id.clone();
            response.member_id = request.member_id.clone();
            response.members = vec![JoinGroupResponseMember {
                member_id: request.member_id,
                group_instance_id: None,
                metadata: protocol.metadata,
            }];
        }
        response
    }

    pub(super) fn commit(&mut self, request: OffsetCommitRequest, code: i16) -> OffsetCommitResponse {
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.into_iter().map(|partition| {
                if code == 0 {
                    self.offsets.insert(partition.partition_index, partition.committed_offset);
                }
                OffsetCommitResponsePartition { partition_index: partition.partition_index, error_code: code }
            });
            OffsetCommitResponseTopic {
                partitions: partitions.collect(),
                name: topic.name,
                ..OffsetCommitResponseTopic::default()
            }
        });
        OffsetCommitResponse { topics: topics.collect(), ..OffsetCommitResponse::default() }
    }

    pub(super) fn fetch_offsets(&self, request: OffsetFetchRequest) -> OffsetFetchResponse {
        let group = request.groups.into_iter().next().expect("the version has groups");
        let topics = group.topics.unwrap_or_default().into_iter().map(|topic| {
            let partition = |partition_index| OffsetFetchResponsePartitions {
                partition_index,
                committed_offset: self.offsets.get(&partition_index).copied().unwrap_or(-1),
                ..OffsetFetchResponsePartitions::default()
            };
            OffsetFetchResponseTopics {
                partitions: topic.partition_indexes.into_iter().map(partition).collect(),
                name: topic.name,
                ..OffsetFetchResponseTopics::default()
            }
        });
        OffsetFetchResponse {
            groups: vec![OffsetFetchResponseGroup {
                group_id: group.group_id,
                topics: topics.collect(),
                error_code: 0,
            }],
            ..OffsetFetchResponse::default()
        }
    }
}
