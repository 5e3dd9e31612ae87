//! Notices when a topic of the application is deleted or changed under it.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_client::{Metadata, TopicMetadata};
use thalweg_protocol::Uuid;

use super::shared::Shared;
use crate::error::{Error, TopicChange};

/// How often it looks at what the client knows. The client asks the cluster when something goes wrong with a
/// topic, and every few minutes besides.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What the application does with a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopicUse {
    /// Positions in it are kept, or state is in it: it must stay as it is.
    Keeps,
    /// Records are only written to it: there may be more partitions, or another topic of that name.
    Writes,
}

/// A topic as it was when the application started.
struct Known {
    name: ByteString,
    usage: TopicUse,
    id: Uuid,
    partitions: i32,
}

/// Ends the application when a topic is not what it was.
pub(super) async fn run(shared: Arc<Shared>) {
    let known = known(&shared.plan.topics(), &shared.client.metadata());
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let metadata = shared.client.metadata();
        let has_changed = |known: &&Known| change(known, metadata.topic(&known.name)).is_some();
        let Some(suspect) = known.iter().find(has_changed) else { continue };
        // What the client has heard may be late, or come from a broker that has just started.
        let found = match shared.client.admin().describe_topic(&suspect.name).await {
            Ok(found) => Some(found),
            Err(thalweg_client::Error::UnknownTopic { .. }) => None,
            Err(_) => continue,
        };
        if let Some(change) = change(suspect, found.as_ref()) {
            return shared.fail(Error::TopicChanged { topic: suspect.name.to_string(), change });
        }
    }
}

fn known(topics: &[(ByteString, TopicUse)], metadata: &Metadata) -> Vec<Known> {
    let known = |(name, usage): &(ByteString, TopicUse)| {
        let topic = metadata.topic(name)?;
        let partitions = topic.partitions.len() as i32;
        Some(Known { name: name.clone(), usage: *usage, id: topic.id, partitions })
    };
    topics.iter().filter_map(known).collect()
}

/// What keeps the application from going on with a topic that is `now` so, or gone.
fn change(known: &Known, now: Option<&TopicMetadata>) -> Option<TopicChange> {
    let Some(now) = now else { return Some(TopicChange::Deleted) };
    let (before, partitions) = (known.partitions, now.partitions.len() as i32);
    let keeps = known.usage == TopicUse::Keeps;
    if keeps && now.id != known.id {
        return Some(TopicChange::Recreated);
    }
    let has_changed = if keeps { partitions != before } else { partitions < before };
    has_changed.then_some(TopicChange::Partitions { before, now: partitions })
}

#[cfg(test)]
mod tests {
    use thalweg_client::PartitionMetadata;
    use thalweg_protocol::{LeaderEpoch, NodeId};

    use super::*;

    fn topic(id: u128, partitions: i32) -> TopicMetadata {
        let partition = |partition| PartitionMetadata {
            partition,
            leader: NodeId::NONE,
            leader_epoch: LeaderEpoch(0),
            replicas: Vec::new(),
            isr: Vec::new(),
            offline: Vec::new(),
        };
        TopicMetadata {
            name: "t".into(),
            id: Uuid(id.to_be_bytes()),
            is_internal: false,
            partitions: (0..partitions).map(partition).collect(),
        }
    }

    #[test]
    fn what_an_application_cannot_go_on_with() {
        let more = Some(TopicChange::Partitions { before: 2, now: 3 });
        let fewer = Some(TopicChange::Partitions { before: 2, now: 1 });
        for (now, keeps, writes) in [
            (Some(topic(7, 2)), None, None),
            (None, Some(TopicChange::Deleted), Some(TopicChange::Deleted)),
            (Some(topic(8, 2)), Some(TopicChange::Recreated), None),
            (Some(topic(7, 3)), more, None),
            (Some(topic(7, 1)), fewer, fewer),
        ] {
            for (usage, expected) in [(TopicUse::Keeps, keeps), (TopicUse::Writes, writes)] {
                let known = Known { name: "t".into(), usage, id: topic(7, 0).id, partitions: 2 };
                assert_eq!(change(&known, now.as_ref()), expected, "{usage:?} {now:?}");
            }
        }
    }
}
