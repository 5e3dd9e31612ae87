//! What members of a group tell each other, as bytes (KIP-429, 792).

use std::collections::BTreeMap;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::TopicPartition;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::join_group::JoinGroupResponseMember;
use thalweg_protocol::messages::records::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartition as TopicPartitions,
};

use super::assignor::{Assignment, GroupMember};
use crate::by_leader::by_topic;
use crate::error::{Error, Result};

/// The version that is written; others are read.
const VERSION: i16 = 3;

/// The kind of group that consumers form.
pub(super) const PROTOCOL_TYPE: ByteString = ByteString::from_static("consumer");

fn too_long(setting: &'static str) -> impl FnOnce(thalweg_protocol::EncodeError) -> Error {
    move |error| Error::Config { setting, reason: error.to_string() }
}

pub(super) fn encode_subscription(
    topics: &[ByteString],
    owned: &[TopicPartition],
    generation: i32,
    rack: Option<&str>,
    user_data: Option<Bytes>,
) -> Result<Bytes> {
    let subscription = ConsumerProtocolSubscription {
        topics: topics.to_vec(),
        user_data,
        owned_partitions: grouped(owned),
        generation_id: generation,
        rack_id: rack.map(ByteString::from),
    };
    subscription.to_bytes(VERSION).map_err(too_long("subscription"))
}

/// Reads what a consumer told the others, in an answer of `api`.
pub(crate) fn decode_subscription(api: ApiKey, bytes: Bytes) -> Result<ConsumerProtocolSubscription> {
    ConsumerProtocolSubscription::from_bytes(bytes)
        .map_err(|_| Error::BadAnswer { api, reason: "a member's subscription is malformed" })
}

pub(super) fn decode_member(member: JoinGroupResponseMember) -> Result<GroupMember> {
    let subscription = decode_subscription(ApiKey::JoinGroup, member.metadata)?;
    Ok(GroupMember {
        id: member.member_id,
        instance_id: member.group_instance_id,
        topics: subscription.topics,
        owned: flat(subscription.owned_partitions),
        generation: subscription.generation_id,
        rack: subscription.rack_id,
        user_data: subscription.user_data,
    })
}

pub(super) fn encode_assignment(assignment: &Assignment) -> Result<Bytes> {
    let assignment = ConsumerProtocolAssignment {
        assigned_partitions: grouped(&assignment.partitions),
        user_data: assignment.user_data.clone(),
    };
    assignment.to_bytes(VERSION).map_err(too_long("assignor"))
}

/// Reads what a consumer was assigned, in an answer of `api`; empty for nothing.
pub(crate) fn decode_assignment(api: ApiKey, bytes: Bytes) -> Result<Assignment> {
    if bytes.is_empty() {
        return Ok(Assignment::default());
    }
    let assignment = ConsumerProtocolAssignment::from_bytes(bytes)
        .map_err(|_| Error::BadAnswer { api, reason: "an assignment is malformed" })?;
    Ok(Assignment { partitions: flat(assignment.assigned_partitions), user_data: assignment.user_data })
}

fn grouped(partitions: &[TopicPartition]) -> Vec<TopicPartitions> {
    let topics: BTreeMap<ByteString, Vec<(i32, ())>> =
        by_topic(partitions.iter().map(|partition| (partition.clone(), ())));
    let group = |(topic, partitions): (ByteString, Vec<(i32, ())>)| TopicPartitions {
        topic,
        partitions: partitions.into_iter().map(|(partition, ())| partition).collect(),
    };
    topics.into_iter().map(group).collect()
}

fn flat(topics: Vec<TopicPartitions>) -> Vec<TopicPartition> {
    let flat = |topic: TopicPartitions| {
        let name = topic.topic;
        topic.partitions.into_iter().map(move |partition| TopicPartition::new(name.clone(), partition))
    };
    topics.into_iter().flat_map(flat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_read_what_members_write() {
        let owned = [TopicPartition::new("a", 2), TopicPartition::new("a", 0), TopicPartition::new("b", 1)];
        let topics = [ByteString::from_static("a"), ByteString::from_static("b")];
        let user_data = Some(Bytes::from_static(b"mine"));
        let metadata =
            encode_subscription(&topics, &owned, 7, Some("rack"), user_data.clone()).expect("it is short");
        let member = JoinGroupResponseMember {
            member_id: ByteString::from_static("m"),
            group_instance_id: None,
            metadata,
        };
        let member = decode_member(member).expect("it is whole");
        assert_eq!((member.topics.as_slice(), member.owned.as_slice()), (&topics[..], &owned[..]));
        assert_eq!((member.generation, member.user_data), (7, user_data));

        let assignment = Assignment { partitions: owned.to_vec(), user_data: None };
        let bytes = encode_assignment(&assignment).expect("it is short");
        assert_eq!(decode_assignment(ApiKey::SyncGroup, bytes).expect("it is whole"), assignment);
        assert_eq!(
            decode_assignment(ApiKey::SyncGroup, Bytes::new()).expect("nothing is assigned"),
            Assignment::default()
        );
        assert!(decode_assignment(ApiKey::SyncGroup, Bytes::from_static(b"\0")).is_err());
    }
}
