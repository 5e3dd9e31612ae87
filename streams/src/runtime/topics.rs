//! The topics of an application: looked up, and made where they are its own.

use std::collections::BTreeMap;

use bytestring::ByteString;
use thalweg_client::{Admin, NewTopic};
use thalweg_protocol::ErrorCode;

use super::client_error::translate;
use super::plan::{InternalTopic, Plan};
use crate::error::Error;
use crate::topology::Topology;

/// The partition counts of all topics of the cluster.
pub(super) async fn partition_counts(admin: &Admin) -> Result<BTreeMap<ByteString, i32>, Error> {
    let topics = admin.list_topics().await.map_err(translate("listing topics"))?;
    Ok(topics.into_iter().map(|topic| (topic.name.clone(), topic.partitions.len() as i32)).collect())
}

/// The partition counts of the topics that the topology names, out of those of all topics.
pub(super) fn named_counts(
    topology: &Topology,
    all: &BTreeMap<ByteString, i32>,
) -> Result<BTreeMap<ByteString, i32>, Error> {
    let count = |name: ByteString| match all.get(&name) {
        Some(&count) => Ok((name, count)),
        None => Err(Error::UnknownTopic { topic: name.to_string(), similar: similar(&name, all.keys()) }),
    };
    Plan::named_topics(topology).into_iter().map(count).collect()
}

/// Makes the internal topics that are missing, and checks those that are there.
pub(super) async fn make_internal(
    admin: &Admin,
    plan: &mut Plan,
    all: &BTreeMap<ByteString, i32>,
) -> Result<(), Error> {
    let mut missing = Vec::new();
    for topic in plan.internal_topics() {
        match all.get(&topic.name) {
            Some(&found) => fit(plan, &topic, found)?,
            None => missing.push(topic),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let replication_factor = plan.config().replication_factor;
    for topic in &missing {
        let created = admin.create_topic(NewTopic {
            replication_factor: (replication_factor > 0).then_some(replication_factor),
            configs: topic.configs.clone(),
            ..NewTopic::new(topic.name.clone(), topic.partitions)
        });
        match created.await {
            // Another instance was quicker.
            Err(error) if error.code() == Some(ErrorCode::TopicAlreadyExists) => {}
            created => drop(created.map_err(translate("creating a topic"))?),
        }
    }
    let all = partition_counts(admin).await?;
    for topic in &missing {
        if let Some(&found) = all.get(&topic.name) {
            fit(plan, topic, found)?;
        }
    }
    Ok(())
}

fn fit(plan: &mut Plan, topic: &InternalTopic, found: i32) -> Result<(), Error> {
    if topic.exact && found != topic.partitions {
        let expected = topic.partitions;
        return Err(Error::TopicMismatch { topic: topic.name.to_string(), found, expected });
    }
    if !topic.exact {
        plan.set_partitions(&topic.name, found);
    }
    Ok(())
}

/// The name among `names` that is spelt most like `wanted`, if any is at all.
fn similar<'n>(wanted: &str, names: impl Iterator<Item = &'n ByteString>) -> Option<String> {
    let distances = names.map(|name| (distance(wanted, name), name));
    let (distance, name) = distances.min()?;
    (distance <= 1 + wanted.len() / 3).then(|| name.to_string())
}

/// How many insertions, deletions and replacements lead from one to the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_topic_is_guessed() {
        let names = ["flights", "airlines", "x"].map(ByteString::from);
        let guess = |wanted: &str| similar(wanted, names.iter());
        assert_eq!(guess("fligths").as_deref(), Some("flights"));
        assert_eq!(guess("flight").as_deref(), Some("flights"));
        assert_eq!(guess("weather"), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
