//! Members that are put out of their group (KIP-345, 571).

use std::collections::BTreeMap;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::leave_group::{LeaveGroupRequest, MemberIdentity};

use super::{Admin, checked, version_from};
use crate::coordinator::{Coordinator, CoordinatorOf};
use crate::error::{Error, ErrorKind, Result};

/// The first version that names several members, and static ones.
const SEVERAL: i16 = 3;

/// A member of a group, by one of its ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberRef {
    /// By the id that it has in the group.
    Id(ByteString),
    /// By the id that a static member keeps over restarts.
    Instance(ByteString),
}

/// A member that is out of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedMember {
    /// The id that it had.
    pub id: ByteString,
    /// The id that it keeps over restarts.
    pub instance_id: Option<ByteString>,
}

impl Admin {
    /// Puts members out of a group: what they had goes to the others at once, for example when a static member will not
    /// come back. A member that still runs joins again.
    ///
    /// Each member has a result of its own; one that is not in the group is refused with `UnknownMemberId`. Members of
    /// groups under the newer protocol (KIP-848) cannot be removed in this way: brokers refuse them so, too.
    ///
    /// # Errors
    /// What concerns the whole group: `GroupIdNotFound`, or whatever keeps its coordinator from answering.
    pub async fn remove_members(
        &self,
        group: &str,
        members: &[MemberRef],
        reason: &str,
    ) -> Result<BTreeMap<MemberRef, Result<RemovedMember>>> {
        let coordinator = Coordinator::for_short_calls(&self.cluster, group);
        let mut retry = self.cluster.retry("removing members");
        loop {
            match remove_once(&coordinator, members, reason).await {
                Err(error) if error.kind() == ErrorKind::Retry => {
                    coordinator.forget();
                    retry.pause(error).await?;
                }
                removed => return removed,
            }
        }
    }

    /// Puts all members of a group out of it, as [`Admin::remove_members`].
    ///
    /// # Errors
    /// What concerns the whole group: `GroupIdNotFound`, or whatever keeps its coordinator from answering.
    pub async fn remove_all_members(
        &self,
        group: &str,
        reason: &str,
    ) -> Result<BTreeMap<MemberRef, Result<RemovedMember>>> {
        let missing =
            Error::BadAnswer { api: ApiKey::DescribeGroups, reason: "the group is missing from it" };
        let described = self.describe_groups(&[group]).await.into_values().next().ok_or(missing)??;
        let members = described.members.into_iter();
        let members: Vec<MemberRef> = members
            .map(|member| member.instance_id.map_or(MemberRef::Id(member.id), MemberRef::Instance))
            .collect();
        if members.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.remove_members(group, &members, reason).await
    }
}

async fn remove_once(
    coordinator: &Coordinator,
    members: &[MemberRef],
    reason: &str,
) -> Result<BTreeMap<MemberRef, Result<RemovedMember>>> {
    let node = coordinator.node().await?;
    let needs_instances = members.iter().any(|member| matches!(member, MemberRef::Instance(_)));
    let version = version_from::<LeaveGroupRequest>(&node, if needs_instances { SEVERAL } else { 0 })?;
    let api = ApiKey::LeaveGroup;
    let group = coordinator.key();
    let mut removed = BTreeMap::new();
    if version < SEVERAL {
        for member in members {
            let MemberRef::Id(id) = member else { continue };
            let (group_id, member_id) = (group.clone(), id.clone());
            let request = LeaveGroupRequest { group_id, member_id, ..Default::default() };
            let response = node.call_in(version, request, Duration::ZERO).await?;
            removed.insert(member.clone(), answer(group, member, response.error_code, id.clone()));
        }
        return Ok(removed);
    }
    let identity = |member: &MemberRef| {
        let (member_id, group_instance_id) = match member {
            MemberRef::Id(id) => (id.clone(), None),
            MemberRef::Instance(id) => (ByteString::new(), Some(id.clone())),
        };
        MemberIdentity { member_id, group_instance_id, reason: Some(ByteString::from(reason)) }
    };
    let identities = members.iter().map(identity).collect();
    let request = LeaveGroupRequest { group_id: group.clone(), members: identities, ..Default::default() };
    let response = node.call_in(version, request, Duration::ZERO).await?;
    checked(api, response.error_code, None, || coordinator.subject(), ())?;
    // They come in the order of the request.
    for (member, found) in members.iter().zip(response.members) {
        removed.insert(member.clone(), answer(group, member, found.error_code, found.member_id));
    }
    Ok(removed)
}

fn answer(group: &ByteString, member: &MemberRef, code: i16, id: ByteString) -> Result<RemovedMember> {
    let (name, instance_id) = match member {
        MemberRef::Id(id) => (id, None),
        MemberRef::Instance(id) => (id, Some(id.clone())),
    };
    let subject = || format!("member {name} of {}", CoordinatorOf::Group.subject(group));
    checked(ApiKey::LeaveGroup, code, None, subject, RemovedMember { id, instance_id })
}
