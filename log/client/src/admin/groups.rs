//! Groups: which there are, what is in them, and deleting them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use thalweg_protocol::messages::consumer_group_describe::{self, Assignment, ConsumerGroupDescribeRequest};
use thalweg_protocol::messages::delete_groups::DeleteGroupsRequest;
use thalweg_protocol::messages::describe_groups::{self, DescribeGroupsRequest, DescribedGroupMember};
use thalweg_protocol::messages::list_groups::ListGroupsRequest;
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, TopicPartition};

use super::named::named;
use super::{Admin, Listing, assigned, checked, keyed, version_from};
use crate::asking::{Answers, ask_brokers};
use crate::by_coordinator::ask_coordinators;
use crate::consumer::{decode_assignment, decode_subscription};
use crate::coordinator::CoordinatorOf;
use crate::error::{Error, Result};
use crate::node::Node;

/// The first versions of ListGroups that filter by state (KIP-518) and by type (KIP-848).
const BY_STATE: i16 = 4;
const BY_TYPE: i16 = 5;
/// The protocol type of groups of consumers.
const CONSUMER: &str = "consumer";

named! {
    /// Where a group is.
    GroupState {
        /// Members are joining.
        PreparingRebalance = "PreparingRebalance",
        /// The leader is assigning.
        CompletingRebalance = "CompletingRebalance",
        /// Every member has what it is to have.
        Stable = "Stable",
        /// It is gone.
        Dead = "Dead",
        /// It has no members.
        Empty = "Empty",
        /// The coordinator is assigning (KIP-848).
        Assigning = "Assigning",
        /// Members are giving up and taking over what was assigned (KIP-848).
        Reconciling = "Reconciling",
        /// Something that a streams group needs is missing (KIP-1071).
        NotReady = "NotReady",
    }
}

named! {
    /// By which protocol a group works.
    GroupType {
        /// JoinGroup and SyncGroup: the members' leader assigns.
        Classic = "classic",
        /// Heartbeats: the coordinator assigns (KIP-848).
        Consumer = "consumer",
        /// Share groups (KIP-932).
        Share = "share",
        /// Streams groups (KIP-1071).
        Streams = "streams",
    }
}

/// Which groups are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupFilter {
    /// Only those in one of these states; empty: in any. Needs brokers of Kafka 2.6 or later.
    pub states: Vec<GroupState>,
    /// Only those of one of these types; empty: of any. Needs brokers of Kafka 3.8 or later.
    pub types: Vec<GroupType>,
}

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedGroup {
    /// Its name.
    pub group: ByteString,
    /// What its members do, such as `consumer` or `connect`; empty for offsets without members.
    pub protocol_type: ByteString,
    /// Where it is; `None` where the broker does not say.
    pub state: Option<GroupState>,
    /// By which protocol it works; `None` where the broker does not say.
    pub group_type: Option<GroupType>,
}

/// A group and its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its name.
    pub group: ByteString,
    /// By which protocol it works.
    pub group_type: GroupType,
    /// Where it is.
    pub state: GroupState,
    /// What its members do, such as `consumer` or `connect`.
    pub protocol_type: ByteString,
    /// Who assigns: the assignor that the members agreed on, or that of the coordinator; empty while there is none.
    pub assignor: ByteString,
    /// Counts the changes of members and topics; `None` in a classic group.
    pub epoch: Option<i32>,
    /// The epoch that the newest assignment was made for; `None` in a classic group.
    pub assignment_epoch: Option<i32>,
    /// Its members, in the order of their ids.
    pub members: Vec<MemberDescription>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// The id that it has in the group.
    pub id: ByteString,
    /// The id that survives restarts, of a static member (KIP-345).
    pub instance_id: Option<ByteString>,
    /// Where it runs, if it said so.
    pub rack: Option<ByteString>,
    /// What its client calls itself.
    pub client_id: ByteString,
    /// The address that it came from.
    pub host: ByteString,
    /// The epoch that it has caught up with; `None` in a classic group.
    pub epoch: Option<i32>,
    /// The topics that it subscribes to, of a consumer.
    pub topics: Vec<ByteString>,
    /// The pattern of topics that it subscribes to (KIP-848).
    pub topic_pattern: Option<ByteString>,
    /// What a consumer reads.
    pub assignment: Vec<TopicPartition>,
    /// What a consumer is to read once others have given it up; `None` in a classic group.
    pub target: Option<Vec<TopicPartition>>,
    /// What a member that is no consumer told the others; empty for consumers.
    pub metadata: Bytes,
    /// What a member that is no consumer was assigned; empty for consumers.
    pub assignment_data: Bytes,
}

impl Admin {
    /// The groups that there are, in the order of their names, and which brokers could not say.
    ///
    /// # Errors
    /// What keeps the cluster from saying which brokers there are.
    pub async fn list_groups(&self, filter: &GroupFilter) -> Result<Listing<ListedGroup>> {
        let first = match (filter.types.is_empty(), filter.states.is_empty()) {
            (false, _) => BY_TYPE,
            (true, false) => BY_STATE,
            (true, true) => 0,
        };
        let names = |names: Vec<&str>| names.into_iter().map(ByteString::from).collect::<Vec<_>>();
        let request = ListGroupsRequest {
            states_filter: names(filter.states.iter().map(GroupState::as_str).collect()),
            types_filter: names(filter.types.iter().map(GroupType::as_str).collect()),
        };
        let brokers = self.brokers().await?;
        let answers =
            ask_brokers(&self.cluster, ApiKey::ListGroups, "listing groups", brokers, |node, ()| {
                let request = request.clone();
                Box::pin(async move {
                    let version = version_from::<ListGroupsRequest>(&node, first)?;
                    let response = node.call_in(version, request, Duration::ZERO).await?;
                    let groups = response.groups.into_iter().map(|group| ListedGroup {
                        group: group.group_id,
                        protocol_type: group.protocol_type,
                        state: (!group.group_state.is_empty()).then(|| group.group_state.into()),
                        group_type: (!group.group_type.is_empty()).then(|| group.group_type.into()),
                    });
                    let groups = groups.collect();
                    checked(ApiKey::ListGroups, response.error_code, None, || "groups".to_owned(), groups)
                })
            });
        Ok(Listing::new(answers.await))
    }

    /// Groups and their members: of consumers under both protocols, and of whatever else joins by the classic one.
    /// Each group has a result of its own; one that there is not is refused with `GroupIdNotFound`.
    pub async fn describe_groups(&self, groups: &[&str]) -> BTreeMap<ByteString, Result<GroupDescription>> {
        let open = keyed(groups.iter().map(|group| ByteString::from(*group)));
        let (of, api) = (CoordinatorOf::Group, ApiKey::DescribeGroups);
        let asking = ask_coordinators(&self.cluster, of, api, "describing groups", open, |node, groups| {
            let groups = groups.into_iter().map(|(group, ())| group).collect();
            Box::pin(async move { describe(&node, groups).await })
        });
        asking.await.finish()
    }

    /// Deletes groups with their offsets. Each has a result of its own: one with members is refused with
    /// `NonEmptyGroup`, one that there is not with `GroupIdNotFound`.
    pub async fn delete_groups(&self, groups: &[&str]) -> BTreeMap<ByteString, Result<()>> {
        let open = keyed(groups.iter().map(|group| ByteString::from(*group)));
        let (of, api) = (CoordinatorOf::Group, ApiKey::DeleteGroups);
        let asking = ask_coordinators(&self.cluster, of, api, "deleting groups", open, |node, groups| {
            let groups_names = groups.into_iter().map(|(group, ())| group).collect();
            Box::pin(async move {
                let response = node.call(DeleteGroupsRequest { groups_names }).await?;
                let results = response.results.into_iter().map(|result| {
                    let subject = || CoordinatorOf::Group.subject(&result.group_id);
                    let checked = checked(api, result.error_code, result.error_message, subject, ());
                    (result.group_id.clone(), checked)
                });
                Ok(results.collect())
            })
        });
        let asking = asking.await;
        let lost: Vec<ByteString> = groups
            .iter()
            .map(|group| ByteString::from(*group))
            .filter(|group| asking.may_be_done(group))
            .collect();
        let mut results = asking.finish();
        for group in lost {
            // The attempt whose answer got lost has deleted it.
            if let Some(result) = results.get_mut(&group)
                && result.as_ref().err().and_then(Error::code) == Some(ErrorCode::GroupIdNotFound)
            {
                *result = Ok(());
            }
        }
        results
    }

    /// All brokers, as they are known now.
    pub(super) async fn brokers(&self) -> Result<BTreeMap<thalweg_protocol::NodeId, ()>> {
        let metadata = self.cluster.refresh().await?;
        Ok(keyed(metadata.brokers().into_iter().map(|broker| broker.id)))
    }
}

/// Describes groups that one broker coordinates: those of the newer protocol as such, and what they are not by the
/// classic one.
async fn describe(node: &Arc<Node>, groups: Vec<ByteString>) -> Answers<ByteString, GroupDescription> {
    let mut answers = Vec::new();
    let mut classic = Vec::new();
    match version_from::<ConsumerGroupDescribeRequest>(node, 0) {
        Ok(version) => {
            let request = ConsumerGroupDescribeRequest { group_ids: groups, ..Default::default() };
            let response = node.call_in(version, request, Duration::ZERO).await?;
            for group in response.groups {
                match ErrorCode::from(group.error_code) {
                    ErrorCode::GroupIdNotFound | ErrorCode::UnsupportedVersion => {
                        classic.push(group.group_id);
                    }
                    _ => answers.push((group.group_id.clone(), consumer_group(group))),
                }
            }
        }
        Err(_) => classic = groups,
    }
    if !classic.is_empty() {
        let request = DescribeGroupsRequest { groups: classic, ..Default::default() };
        let response = node.call_within(request, DescribeGroupsRequest::VERSIONS, Duration::ZERO).await?;
        for group in response.groups {
            answers.push((group.group_id.clone(), classic_group(group)));
        }
    }
    Ok(answers)
}

fn consumer_group(group: consumer_group_describe::DescribedGroup) -> Result<GroupDescription> {
    let member = |member: consumer_group_describe::Member| MemberDescription {
        id: member.member_id,
        instance_id: member.instance_id,
        rack: member.rack_id,
        client_id: member.client_id,
        host: member.client_host,
        epoch: Some(member.member_epoch),
        topics: member.subscribed_topic_names,
        topic_pattern: member.subscribed_topic_regex.filter(|pattern| !pattern.is_empty()),
        assignment: partitions(member.assignment),
        target: Some(partitions(member.target_assignment)),
        metadata: Bytes::new(),
        assignment_data: Bytes::new(),
    };
    let mut members: Vec<MemberDescription> = group.members.into_iter().map(member).collect();
    members.sort_by(|a, b| a.id.cmp(&b.id));
    let description = GroupDescription {
        group: group.group_id.clone(),
        group_type: GroupType::Consumer,
        state: group.group_state.into(),
        protocol_type: ByteString::from_static(CONSUMER),
        assignor: group.assignor_name,
        epoch: Some(group.group_epoch),
        assignment_epoch: Some(group.assignment_epoch),
        members,
    };
    let subject = || CoordinatorOf::Group.subject(&group.group_id);
    checked(ApiKey::ConsumerGroupDescribe, group.error_code, group.error_message, subject, description)
}

fn partitions(assignment: Assignment) -> Vec<TopicPartition> {
    assigned(assignment.topic_partitions.into_iter().map(|topic| (topic.topic_name, topic.partitions)))
}

fn classic_group(group: describe_groups::DescribedGroup) -> Result<GroupDescription> {
    let is_of_consumers = group.protocol_type == CONSUMER;
    let mut members = Vec::new();
    for member in group.members {
        members.push(classic_member(member, is_of_consumers)?);
    }
    members.sort_by(|a, b| a.id.cmp(&b.id));
    let state = GroupState::from(group.group_state);
    // Before version 6 a group that there is not is described as dead.
    let code = match (&state, group.error_code) {
        (GroupState::Dead, 0) => ErrorCode::GroupIdNotFound.code(),
        (_, code) => code,
    };
    let description = GroupDescription {
        group: group.group_id.clone(),
        group_type: GroupType::Classic,
        state,
        protocol_type: group.protocol_type,
        assignor: group.protocol_data,
        epoch: None,
        assignment_epoch: None,
        members,
    };
    let subject = || CoordinatorOf::Group.subject(&group.group_id);
    checked(ApiKey::DescribeGroups, code, group.error_message, subject, description)
}

/// What a member told the others and got from them can only be read of consumers: others have formats of their own.
fn classic_member(member: DescribedGroupMember, is_consumer: bool) -> Result<MemberDescription> {
    let mut description = MemberDescription {
        id: member.member_id,
        instance_id: member.group_instance_id,
        rack: None,
        client_id: member.client_id,
        host: member.client_host,
        epoch: None,
        topics: Vec::new(),
        topic_pattern: None,
        assignment: Vec::new(),
        target: None,
        metadata: member.member_metadata,
        assignment_data: member.member_assignment,
    };
    if !is_consumer {
        return Ok(description);
    }
    let api = ApiKey::DescribeGroups;
    if !description.metadata.is_empty() {
        let subscription = decode_subscription(api, std::mem::take(&mut description.metadata))?;
        description.topics = subscription.topics;
        description.rack = subscription.rack_id;
    }
    let assignment = decode_assignment(api, std::mem::take(&mut description.assignment_data))?;
    description.assignment = assignment.partitions;
    description.assignment.sort();
    Ok(description)
}
