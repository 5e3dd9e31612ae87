//! Share groups (KIP-932): who is in them, and where they are in the partitions that they read.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use futures::future::{BoxFuture, join_all};
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use thalweg_protocol::messages::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequestTopic,
};
use thalweg_protocol::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic, DescribeShareGroupOffsetsResponsePartition,
};
use thalweg_protocol::messages::share_group_describe::{self, ShareGroupDescribeRequest};
use thalweg_protocol::{ErrorCode, LeaderEpoch, Offset, TopicPartition};

use super::{Admin, GroupState, assigned, checked, checked_topic, keyed};
use crate::asking::{Answers, Asking};
use crate::by_coordinator::ask_coordinators;
use crate::by_leader::by_topic;
use crate::coordinator::{Coordinator, CoordinatorOf};
use crate::error::{Error, ErrorKind, Result};
use crate::node::Node;

/// A share group and its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGroupDescription {
    /// Its name.
    pub group: ByteString,
    /// Where it is: with members (`Stable`), without (`Empty`) or gone (`Dead`).
    pub state: GroupState,
    /// The coordinator's assignor.
    pub assignor: ByteString,
    /// Counts the changes of members and topics.
    pub epoch: i32,
    /// The epoch that the newest assignment was made for.
    pub assignment_epoch: i32,
    /// Its members, in the order of their ids.
    pub members: Vec<ShareMemberDescription>,
}

/// A member of a share group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareMemberDescription {
    /// The id that it has in the group.
    pub id: ByteString,
    /// Where it runs, if it said so.
    pub rack: Option<ByteString>,
    /// What its client calls itself.
    pub client_id: ByteString,
    /// The address that it came from.
    pub host: ByteString,
    /// The epoch that it has caught up with.
    pub epoch: i32,
    /// The topics that it subscribes to.
    pub topics: Vec<ByteString>,
    /// What it acquires records of, perhaps beside other members.
    pub assignment: Vec<TopicPartition>,
}

/// Where a share group is in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareGroupOffset {
    /// All before it is done with, and some of what comes behind it may be. Kafka moves it on with what is said of records
    /// next, and so may tell an earlier one.
    pub start_offset: Offset,
    /// The leader epoch under which that was noted; [`LeaderEpoch::UNKNOWN`] if that is not known.
    pub leader_epoch: LeaderEpoch,
    /// How many offsets up to the end of the log are not done with; `None` where the broker does not know, or does not
    /// say: before Kafka 4.2 (KIP-1226).
    pub lag: Option<u64>,
}

impl Admin {
    /// Share groups and their members. Each group has a result of its own; one that there is not, or that is of another
    /// type, is refused with `GroupIdNotFound`. [`Admin::list_groups`] finds them, with the type
    /// [`GroupType::Share`](crate::GroupType::Share), and [`Admin::delete_groups`] deletes them.
    pub async fn describe_share_groups(
        &self,
        groups: &[&str],
    ) -> BTreeMap<ByteString, Result<ShareGroupDescription>> {
        let open = keyed(groups.iter().map(|group| ByteString::from(*group)));
        let (of, api) = (CoordinatorOf::Group, ApiKey::ShareGroupDescribe);
        let asking =
            ask_coordinators(&self.cluster, of, api, "describing share groups", open, |node, groups| {
                let group_ids = groups.into_iter().map(|(group, ())| group).collect();
                Box::pin(async move {
                    let request = ShareGroupDescribeRequest { group_ids, ..Default::default() };
                    let groups = node.call(request).await?.groups.into_iter();
                    Ok(groups.map(|group| (group.group_id.clone(), described(group))).collect())
                })
            });
        asking.await.finish()
    }

    /// Where a share group is: in `partitions`, or in all that it reads. Each partition has a result of its own: `None`
    /// where the group begins only with the next record that it gets. So it is for topics and groups that there are not, and
    /// for a partition that its topic does not have; of that Kafka 4.4 says nothing at all until the time is over.
    ///
    /// # Errors
    /// Whatever keeps the coordinator from answering within the API timeout.
    pub async fn share_group_offsets(
        &self,
        group: &str,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<BTreeMap<TopicPartition, Result<Option<ShareGroupOffset>>>> {
        let coordinator = Coordinator::for_short_calls(&self.cluster, group);
        let mut retry = self.cluster.retry("asking for a share group's offsets");
        loop {
            match offsets_once(&coordinator, partitions).await {
                Err(error) if error.kind() == ErrorKind::Retry => {
                    coordinator.forget();
                    retry.pause(error).await?;
                }
                Ok(found) if found.values().any(passes) && retry.wait().await => {}
                answer => return answer,
            }
        }
    }

    /// Has a share group without members go on at these offsets, whatever it had done with before; `Offset(-1)` has it begin
    /// where its `share.auto.offset.reset` says. A group that there is not is made. Each partition has a result of its own.
    ///
    /// # Errors
    /// What concerns the whole group: `NonEmptyGroup` when it has members, `GroupIdNotFound` when it is of another type.
    pub async fn alter_share_group_offsets(
        &self,
        group: &str,
        offsets: &[(TopicPartition, Offset)],
    ) -> Result<BTreeMap<TopicPartition, Result<()>>> {
        let (api, open) = (ApiKey::AlterShareGroupOffsets, offsets.iter().cloned().collect());
        let altering =
            self.ask_about(group, api, "altering a share group's offsets", open, |node, group, open| {
                Box::pin(async move { alter(&node, group, open).await })
            });
        let mut results = altering.await?;
        for (partition, result) in &mut results {
            // Brokers do not say whether it is the topic that there is not, or the partition.
            if matches!(result, Err(Error::UnknownTopic { .. }))
                && let Ok(partitions) = self.cluster.partition_count(&partition.topic).await
                && !(0..partitions).contains(&partition.partition)
            {
                *result = Err(Error::UnknownPartition { partition: partition.clone(), partitions });
            }
        }
        Ok(results)
    }

    /// Makes a share group without members forget where it is in all partitions of these topics: when it reads them again it
    /// begins where its `share.auto.offset.reset` says. Each topic has a result of its own. Where the group has read nothing,
    /// there is nothing to forget, and no error.
    ///
    /// # Errors
    /// What concerns the whole group: `NonEmptyGroup` when it has members, `GroupIdNotFound` when there is no share group of
    /// this name.
    pub async fn delete_share_group_offsets(
        &self,
        group: &str,
        topics: &[&str],
    ) -> Result<BTreeMap<ByteString, Result<()>>> {
        let open = keyed(topics.iter().map(|topic| ByteString::from(*topic)));
        let api = ApiKey::DeleteShareGroupOffsets;
        let deleting =
            self.ask_about(group, api, "deleting a share group's offsets", open, |node, group, open| {
                Box::pin(async move { delete(&node, group, open.into_keys().collect()).await })
            });
        let results = deleting.await?.into_iter().map(|(topic, deleted)| async move {
            let result = match deleted {
                Ok(Deleted::Offsets) => Ok(()),
                Ok(Deleted::Nothing) => self.cluster.look_up(&topic).await.map(|_| ()),
                Err(error) => Err(error),
            };
            (topic, result)
        });
        Ok(join_all(results).await.into_iter().collect())
    }

    /// Asks a group's coordinator about several things of the group until each has an answer, or the group as a whole is
    /// refused.
    async fn ask_about<K: Ord + Clone, T: Clone, R>(
        &self,
        group: &str,
        api: ApiKey,
        operation: &'static str,
        open: BTreeMap<K, T>,
        ask: impl Fn(Arc<Node>, ByteString, BTreeMap<K, T>) -> BoxFuture<'static, Answers<K, R>>,
    ) -> Result<BTreeMap<K, Result<R>>> {
        let coordinator = Coordinator::for_short_calls(&self.cluster, group);
        let count = open.len();
        let mut asking = Asking::new(&self.cluster, api, operation, open);
        while !asking.open().is_empty() {
            let open = asking.open().clone();
            let keys: Vec<K> = open.keys().cloned().collect();
            let answers = match coordinator.node().await {
                Ok(node) => ask(node, coordinator.key().clone(), open).await,
                Err(error) => Err(error),
            };
            match answers {
                // What has an answer already keeps it.
                Err(error) if error.kind() != ErrorKind::Retry && keys.len() == count => return Err(error),
                Err(error) => {
                    coordinator.forget();
                    asking.settle_all(keys, Err(error));
                }
                answers => asking.settle_all(keys, answers),
            }
            if !asking.pause().await {
                break;
            }
        }
        Ok(asking.finish())
    }
}

/// What came of deleting a group's offsets in a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deleted {
    /// It had some.
    Offsets,
    /// It had none, or there is no such topic.
    Nothing,
}

fn described(group: share_group_describe::DescribedGroup) -> Result<ShareGroupDescription> {
    let member = |member: share_group_describe::Member| ShareMemberDescription {
        id: member.member_id,
        rack: member.rack_id,
        client_id: member.client_id,
        host: member.client_host,
        epoch: member.member_epoch,
        topics: member.subscribed_topic_names,
        assignment: partitions(member.assignment),
    };
    let mut members: Vec<ShareMemberDescription> = group.members.into_iter().map(member).collect();
    members.sort_by(|a, b| a.id.cmp(&b.id));
    let description = ShareGroupDescription {
        group: group.group_id.clone(),
        state: group.group_state.into(),
        assignor: group.assignor_name,
        epoch: group.group_epoch,
        assignment_epoch: group.assignment_epoch,
        members,
    };
    let subject = || CoordinatorOf::Group.subject(&group.group_id);
    checked(ApiKey::ShareGroupDescribe, group.error_code, group.error_message, subject, description)
}

fn partitions(assignment: share_group_describe::Assignment) -> Vec<TopicPartition> {
    assigned(assignment.topic_partitions.into_iter().map(|topic| (topic.topic_name, topic.partitions)))
}

fn passes<R>(result: &Result<R>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Retry)
}

async fn offsets_once(
    coordinator: &Coordinator,
    partitions: Option<&[TopicPartition]>,
) -> Result<BTreeMap<TopicPartition, Result<Option<ShareGroupOffset>>>> {
    let api = ApiKey::DescribeShareGroupOffsets;
    let asked_topic = |(topic_name, partitions): (ByteString, Vec<(i32, ())>)| {
        let partitions = partitions.into_iter().map(|(partition, ())| partition).collect();
        DescribeShareGroupOffsetsRequestTopic { topic_name, partitions }
    };
    let topics = partitions.map(|partitions| {
        let topics = by_topic(partitions.iter().map(|partition| (partition.clone(), ())));
        topics.into_iter().map(asked_topic).collect()
    });
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: coordinator.key().clone(), topics };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group] };
    let response = coordinator.node().await?.call(request).await?;
    let missing = Error::BadAnswer { api, reason: "the group is missing from it" };
    let group = response.groups.into_iter().next().ok_or(missing)?;
    checked(api, group.error_code, group.error_message, || coordinator.subject(), ())?;
    let mut found = BTreeMap::new();
    for topic in group.topics {
        for partition in topic.partitions {
            let at = TopicPartition::new(topic.topic_name.clone(), partition.partition_index);
            found.insert(at, offset(&topic.topic_name, partition));
        }
    }
    for partition in partitions.unwrap_or_default() {
        let missing = || Err(Error::BadAnswer { api, reason: "a partition is missing from it" });
        found.entry(partition.clone()).or_insert_with(missing);
    }
    Ok(found)
}

fn offset(
    topic: &ByteString,
    partition: DescribeShareGroupOffsetsResponsePartition,
) -> Result<Option<ShareGroupOffset>> {
    let offset = (partition.start_offset >= 0).then_some(ShareGroupOffset {
        start_offset: Offset(partition.start_offset),
        leader_epoch: LeaderEpoch(partition.leader_epoch),
        // What is not known is -1; Kafka counts on below 0 where the group is ahead of the log.
        lag: u64::try_from(partition.lag).ok(),
    });
    let api = ApiKey::DescribeShareGroupOffsets;
    checked_topic(api, partition.error_code, partition.error_message, topic, offset)
}

async fn alter(
    node: &Arc<Node>,
    group: ByteString,
    open: BTreeMap<TopicPartition, Offset>,
) -> Answers<TopicPartition, ()> {
    let api = ApiKey::AlterShareGroupOffsets;
    let partition = |(partition_index, start): (i32, Offset)| AlterShareGroupOffsetsRequestPartition {
        partition_index,
        start_offset: start.0,
    };
    let topics =
        by_topic(open).into_iter().map(|(topic_name, partitions)| AlterShareGroupOffsetsRequestTopic {
            topic_name,
            partitions: partitions.into_iter().map(partition).collect(),
        });
    let request = AlterShareGroupOffsetsRequest { group_id: group.clone(), topics: topics.collect() };
    let response = node.call(request).await?;
    let subject = || CoordinatorOf::Group.subject(&group);
    checked(api, response.error_code, response.error_message, subject, ())?;
    let mut answers = Vec::new();
    for topic in response.responses {
        for found in topic.partitions {
            let partition = TopicPartition::new(topic.topic_name.clone(), found.partition_index);
            let altered = checked_topic(api, found.error_code, found.error_message, &topic.topic_name, ());
            answers.push((partition, altered));
        }
    }
    Ok(answers)
}

async fn delete(
    node: &Arc<Node>,
    group: ByteString,
    topics: Vec<ByteString>,
) -> Answers<ByteString, Deleted> {
    let api = ApiKey::DeleteShareGroupOffsets;
    let topics = topics.into_iter().map(|topic_name| DeleteShareGroupOffsetsRequestTopic { topic_name });
    let request = DeleteShareGroupOffsetsRequest { group_id: group.clone(), topics: topics.collect() };
    let response = node.call(request).await?;
    let subject = || CoordinatorOf::Group.subject(&group);
    checked(api, response.error_code, response.error_message, subject, ())?;
    let answer = |topic: ByteString, code: i16, message: Option<ByteString>| {
        let deleted = match ErrorCode::from(code) {
            ErrorCode::UnknownTopicOrPartition => Ok(Deleted::Nothing),
            _ => checked(api, code, message, || format!("topic {topic}"), Deleted::Offsets),
        };
        (topic, deleted)
    };
    let topics = response.responses.into_iter();
    Ok(topics.map(|topic| answer(topic.topic_name, topic.error_code, topic.error_message)).collect())
}
