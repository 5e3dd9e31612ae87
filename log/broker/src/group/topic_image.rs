//! The topics of the cluster as groups see them.

use std::sync::Arc;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_controller::{ClusterState, Controller, GroupConfig, Subscription, TopicChange};
use thalweg_protocol::Uuid;

use crate::topics::is_internal;

/// The topics at one time. A group that has looked at one version need not look again until there is a later one.
#[derive(Clone, Debug)]
pub(crate) struct TopicImage {
    version: u64,
    cluster: Arc<ClusterState>,
}

impl TopicImage {
    /// The topics of `cluster`.
    pub(crate) fn new(version: u64, cluster: Arc<ClusterState>) -> Self {
        Self { version, cluster }
    }

    /// The cluster that it is taken from.
    pub(crate) fn cluster(&self) -> &ClusterState {
        &self.cluster
    }

    /// Rises whenever a topic appears, grows or goes.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The id of the topic of this name, and how many partitions it has.
    pub(crate) fn topic(&self, name: &str) -> Option<(Uuid, i32)> {
        let topic = self.cluster.topic(name)?;
        Some((topic.id, i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX)))
    }

    /// The name of the topic with this id.
    pub(crate) fn name(&self, id: Uuid) -> Option<&ByteString> {
        self.cluster.topic_by_id(id).map(|topic| &topic.name)
    }

    /// The topics that a pattern may choose from. The broker's own are not among them: whoever read those by a pattern
    /// would read its own commits.
    pub(crate) fn choosable_names(&self) -> impl Iterator<Item = &ByteString> {
        self.cluster.topics().map(|topic| &topic.name).filter(|name| !is_internal(name))
    }

    /// The configs of a group, those of `node_wide` where it has none of its own.
    pub(crate) fn group_config(&self, group: &ByteString, node_wide: GroupConfig) -> GroupConfig {
        self.cluster.group_config(group, node_wide)
    }

    /// The place in the metadata log that this stands at.
    pub(crate) fn metadata_offset(&self) -> i64 {
        self.cluster.offset().0
    }
}

/// Keeps the newest image of the topics.
#[derive(Debug)]
pub(crate) struct Topics {
    /// Guards the image; held for a copy.
    newest: Arc<Mutex<TopicImage>>,
    _subscription: Followed,
}

/// A subscription says nothing of itself.
struct Followed(#[expect(dead_code, reason = "it is kept for what its drop ends")] Subscription);

impl std::fmt::Debug for Followed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Followed")
    }
}

impl Topics {
    /// Follows the topics of `controller` from now on.
    pub(crate) fn follow(controller: &Controller) -> Self {
        // Version 0 is never given out: nobody has looked at anything yet.
        let newest = Arc::new(Mutex::new(TopicImage::new(1, controller.state())));
        let followed = Arc::clone(&newest);
        let subscription = controller.subscribe(move |_, new| {
            let mut newest = followed.lock();
            let changes = new.topic_changes_since(&newest.cluster);
            let version = newest.version + u64::from(changes.iter().any(matters));
            *newest = TopicImage::new(version, Arc::clone(new));
        });
        // What changed before the subscription stood.
        let mut image = newest.lock();
        let now = controller.state();
        if now.offset() > image.cluster.offset() {
            *image = TopicImage::new(image.version + 1, now);
        }
        drop(image);
        Self { newest, _subscription: Followed(subscription) }
    }

    /// The topics as they stand.
    pub(crate) fn image(&self) -> TopicImage {
        self.newest.lock().clone()
    }
}

/// Whether a group may have to assign anew.
fn matters(change: &TopicChange) -> bool {
    match change {
        TopicChange::Created(_) | TopicChange::Deleted(_) => true,
        TopicChange::Changed { old, new } => old.partitions.len() != new.partitions.len(),
    }
}
