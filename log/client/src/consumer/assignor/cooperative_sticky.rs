use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytestring::ByteString;
use thalweg_protocol::TopicPartition;

use super::{Assignment, Assignor, GroupMember, ranked};
use crate::error::Error;

/// Balances the counts and otherwise leaves every partition where it is; members keep reading during a
/// rebalance (KIP-429). A partition that moves is taken away in one rebalance and given in the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct CooperativeSticky;

impl Assignor for CooperativeSticky {
    fn name(&self) -> &str {
        "cooperative-sticky"
    }

    fn is_cooperative(&self) -> bool {
        true
    }

    fn assign(
        &self,
        topics: &BTreeMap<ByteString, i32>,
        members: &[GroupMember],
    ) -> Result<BTreeMap<ByteString, Assignment>, Error> {
        let members = ranked(members);
        let owners = owners(topics, &members);
        let mut shares: Vec<BTreeSet<TopicPartition>> = vec![BTreeSet::new(); members.len()];
        for (partition, owner) in &owners {
            shares[*owner].insert(partition.clone());
        }
        place_unowned(topics, &members, &owners, &mut shares);
        balance(&members, &mut shares);
        let mut assignments = BTreeMap::new();
        for (at, (member, share)) in members.iter().zip(shares).enumerate() {
            let is_free = |partition: &TopicPartition| owners.get(partition).is_none_or(|owner| *owner == at);
            let partitions = share.into_iter().filter(is_free).collect();
            assignments.insert(member.id.clone(), Assignment { partitions, user_data: None });
        }
        Ok(assignments)
    }
}

/// Who owns what exists and is still subscribed to. Of two members that claim a partition, the one of the
/// younger generation owns it; of the same generation, neither does.
fn owners(topics: &BTreeMap<ByteString, i32>, members: &[&GroupMember]) -> HashMap<TopicPartition, usize> {
    let mut claims: HashMap<&TopicPartition, (i32, Option<usize>)> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        for partition in &member.owned {
            let exists = topics.get(&partition.topic).is_some_and(|count| partition.partition < *count);
            if !exists || !member.topics.contains(&partition.topic) {
                continue;
            }
            let claim = claims.entry(partition).or_insert((i32::MIN, None));
            if member.generation > claim.0 {
                *claim = (member.generation, Some(at));
            } else if member.generation == claim.0 {
                claim.1 = None;
            }
        }
    }
    claims.into_iter().filter_map(|(partition, (_, owner))| Some((partition.clone(), owner?))).collect()
}

/// Gives each partition without an owner to the member that has the fewest.
fn place_unowned(
    topics: &BTreeMap<ByteString, i32>,
    members: &[&GroupMember],
    owners: &HashMap<TopicPartition, usize>,
    shares: &mut [BTreeSet<TopicPartition>],
) {
    for (topic, &count) in topics {
        let readers: Vec<usize> =
            (0..members.len()).filter(|&at| members[at].topics.contains(topic)).collect();
        for partition in (0..count).map(|partition| TopicPartition::new(topic.clone(), partition)) {
            if owners.contains_key(&partition) {
                continue;
            }
            if let Some(&fewest) = readers.iter().min_by_key(|&&at| (shares[at].len(), at)) {
                shares[fewest].insert(partition);
            }
        }
    }
}

/// Moves partitions while a member has at least two more than another that could read one of them.
fn balance(members: &[&GroupMember], shares: &mut [BTreeSet<TopicPartition>]) {
    while let Some((from, to, partition)) = next_move(members, shares) {
        shares[from].remove(&partition);
        shares[to].insert(partition);
    }
}

fn next_move(
    members: &[&GroupMember],
    shares: &[BTreeSet<TopicPartition>],
) -> Option<(usize, usize, TopicPartition)> {
    let mut givers: Vec<usize> = (0..members.len()).collect();
    givers.sort_by_key(|&at| (usize::MAX - shares[at].len(), at));
    let mut takers = givers.clone();
    takers.sort_by_key(|&at| (shares[at].len(), at));
    for &from in &givers {
        for &to in &takers {
            if shares[from].len() < shares[to].len() + 2 {
                break;
            }
            let movable =
                shares[from].iter().rev().find(|partition| members[to].topics.contains(&partition.topic));
            if let Some(partition) = movable {
                return Some((from, to, partition.clone()));
            }
        }
    }
    None
}
