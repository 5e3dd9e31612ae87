//! Drives a group, keeps what it writes, and changes the topics of the cluster.

use std::sync::Arc;

use bytestring::ByteString;
use thalweg_controller::{
    ClusterState, Command, CreatePartitions, CreateTopics, DeleteTopics, MorePartitions, NewTopic,
    RegisterNode, TopicRef, apply,
};
use thalweg_protocol::{ErrorCode, LeaderEpoch, NodeId, Offset, Uuid};

use crate::coordinator::Now;
use crate::error::Refusal;
use crate::group::commit::{Commit, CommitPartition, CommitTopic};
use crate::group::consumer::{
    Assignment, Change, Changes, ConsumerGroup, ConsumerLimits, GroupEpoch, Heartbeat, HeartbeatAnswer,
    Image, TopicIdPartition,
};
use crate::group::topic_image::TopicImage;

pub(super) const LIMITS: ConsumerLimits =
    ConsumerLimits { heartbeat_interval_ms: 5_000, session_timeout_ms: 45_000, max_members: 3 };

/// A heartbeat in short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    pub(super) member: &'static str,
    pub(super) epoch: i32,
    pub(super) instance: Option<&'static str>,
    pub(super) topics: Option<&'static [&'static str]>,
    pub(super) regex: Option<&'static str>,
    pub(super) assignor: Option<&'static str>,
    pub(super) rebalance_timeout_ms: Option<i32>,
    /// Partitions of `t`.
    pub(super) owned: Option<&'static [i32]>,
}

impl Beat {
    /// One that says nothing new.
    pub(super) fn of(member: &'static str) -> Self {
        Self {
            member,
            epoch: 0,
            instance: None,
            topics: None,
            regex: None,
            assignor: None,
            rebalance_timeout_ms: None,
            owned: None,
        }
    }
}

/// The first heartbeat of a member.
pub(super) fn join(member: &'static str, topics: &'static [&'static str]) -> Beat {
    Beat { topics: Some(topics), rebalance_timeout_ms: Some(60_000), owned: Some(&[]), ..Beat::of(member) }
}

/// The id that topic `name` gets when it is made for the `times`th time.
fn topic_id(name: &str, times: u8) -> Uuid {
    let mut id = [times; 16];
    id.iter_mut().skip(1).zip(name.bytes()).for_each(|(at, byte)| *at = byte);
    Uuid(id)
}

/// Partitions of `t`.
pub(super) fn partitions(at: &[i32]) -> Assignment {
    at.iter().map(|at| TopicIdPartition::new(topic_id("t", 1), *at)).collect()
}

/// A cluster of one node whose topics change.
pub(super) struct Cluster {
    state: ClusterState,
    version: u64,
    made: u8,
}

impl Cluster {
    pub(super) fn new(topics: &[(&str, i32)]) -> Self {
        let state = ClusterState::new(Uuid(*b"a cluster of one"));
        let mut cluster = Self { state, version: 0, made: 0 };
        let host = ByteString::from_static("localhost");
        let node = RegisterNode { node: NodeId(1), uuid: Uuid([1; 16]), host, port: 1, rack: None };
        cluster.apply(node);
        for (name, count) in topics {
            cluster.create(name, *count);
            cluster.made = 0;
        }
        cluster
    }

    fn apply(&mut self, command: impl Into<Command>) {
        let next = Offset(self.state.offset().0 + 1);
        apply(&mut self.state, next, &command.into());
        self.version += 1;
    }

    pub(super) fn create(&mut self, name: &str, count: i32) {
        self.made += 1;
        let topic = NewTopic {
            name: name.into(),
            id: topic_id(name, self.made),
            partitions: count,
            replication_factor: 1,
            assignment: Vec::new(),
            configs: Default::default(),
        };
        self.apply(CreateTopics { topics: vec![topic], validate_only: false });
        assert!(self.state.topic(name).is_some(), "{name} is made");
    }

    pub(super) fn grow(&mut self, name: &str, count: i32) {
        let topics = vec![MorePartitions { name: name.into(), count, assignment: Vec::new() }];
        self.apply(CreatePartitions { topics, validate_only: false });
    }

    pub(super) fn delete(&mut self, name: &str) {
        self.apply(DeleteTopics { topics: vec![TopicRef::Name(name.into())] });
        assert!(self.state.topic(name).is_none(), "{name} is deleted");
    }

    pub(super) fn image(&self) -> TopicImage {
        TopicImage::new(self.version, Arc::new(self.state.clone()))
    }
}

pub(super) struct Harness {
    pub(super) group: ConsumerGroup,
    pub(super) cluster: Cluster,
    pub(super) now: Now,
    /// Whether nothing can be written.
    pub(super) is_full: bool,
    journal: Vec<Change>,
}

impl Harness {
    pub(super) fn new(topics: &[(&str, i32)]) -> Self {
        Self::with_limits(topics, LIMITS)
    }

    pub(super) fn with_limits(topics: &[(&str, i32)], limits: ConsumerLimits) -> Self {
        let now = Now { monotonic_ms: 1_000, wall_ms: 1_700_000_000_000 };
        let group = ConsumerGroup::new("g".into(), limits, now);
        Self { group, cluster: Cluster::new(topics), now, is_full: false, journal: Vec::new() }
    }

    pub(super) fn topics(&self) -> TopicImage {
        self.cluster.image()
    }

    pub(super) fn create(&mut self, name: &str, count: i32) {
        self.cluster.create(name, count);
    }

    pub(super) fn grow(&mut self, name: &str, count: i32) {
        self.cluster.grow(name, count);
    }

    pub(super) fn delete(&mut self, name: &str) {
        self.cluster.delete(name);
    }

    /// All partitions of topics that have so many.
    pub(super) fn all(&self, topics: &[(&str, i32)]) -> Assignment {
        let topics = topics.iter().flat_map(|(name, count)| {
            let id = self.topics().topic(name).expect("it is there").0;
            (0..*count).map(move |at| TopicIdPartition::new(id, at))
        });
        topics.collect()
    }

    pub(super) fn beat(&mut self, beat: Beat) -> Result<HeartbeatAnswer, Refusal> {
        let names = |names: &[&'static str]| names.iter().map(|name| ByteString::from_static(name)).collect();
        let request = Heartbeat {
            member_id: beat.member.into(),
            epoch: GroupEpoch(beat.epoch),
            instance_id: beat.instance.map(Into::into),
            rack_id: None,
            client_id: "client".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout_ms: beat.rebalance_timeout_ms,
            topics: beat.topics.map(names),
            regex: beat.regex.map(Into::into),
            assignor: beat.assignor.map(Into::into),
            owned: beat.owned.map(partitions),
        };
        request.check()?;
        self.take(|group, topics, now, changes| group.heartbeat(&request, topics, now, changes))
    }

    /// Calls the group, and writes what it decides or takes it back.
    pub(super) fn take<T, E: From<ErrorCode>>(
        &mut self,
        call: impl FnOnce(&mut ConsumerGroup, &TopicImage, Now, &mut Changes) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut changes = Changes::default();
        let result = call(&mut self.group, &self.cluster.image(), self.now, &mut changes);
        if result.is_err() {
            self.group.roll_back(changes);
            return result;
        }
        if self.is_full && !changes.made().is_empty() {
            self.group.roll_back(changes);
            return Err(ErrorCode::CoordinatorNotAvailable.into());
        }
        self.journal.extend_from_slice(changes.made());
        result
    }

    pub(super) fn epoch_of(&self, member: &str) -> i32 {
        self.group.image().current(member).expect("it is a member").epoch.0
    }

    /// Lets members of `t` join if they have not, and everybody give up and get what it shall.
    pub(super) fn settle(&mut self, members: &[&'static str]) {
        for member in members {
            if self.group.image().member(member).is_none() {
                self.beat(join(member, &["t"])).expect("taken");
            }
        }
        for _ in 0..4 {
            for member in members {
                let current = self.group.image().current(member).cloned().unwrap_or_default();
                let request = Heartbeat {
                    member_id: (*member).into(),
                    epoch: current.epoch,
                    instance_id: None,
                    rack_id: None,
                    client_id: "client".into(),
                    client_host: "/127.0.0.1".into(),
                    rebalance_timeout_ms: None,
                    topics: None,
                    regex: None,
                    assignor: None,
                    owned: Some(current.assignment()),
                };
                self.take(|group, topics, now, changes| group.heartbeat(&request, topics, now, changes))
                    .expect("a member");
            }
        }
    }

    /// Lets time pass, stopping at each deadline on the way.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now.monotonic_ms + ms;
        while let Some(deadline) = self.group.next_deadline().filter(|deadline| *deadline <= end) {
            self.advance_to(deadline.max(self.now.monotonic_ms));
            self.take(|group, topics, now, changes| Ok::<_, ErrorCode>(group.expire(topics, now, changes)))
                .expect("it can be written");
        }
        self.advance_to(end);
    }

    fn advance_to(&mut self, at: u64) {
        self.now.wall_ms += i64::try_from(at - self.now.monotonic_ms).expect("short");
        self.now.monotonic_ms = at;
    }

    /// Lets time pass in which these members send heartbeats.
    pub(super) fn pass_while(&mut self, ms: u64, members: &[&'static str]) {
        for _ in 0..ms / 5_000 {
            self.settle(members);
            self.pass(5_000);
        }
    }

    /// A commit of one partition of `t`.
    pub(super) fn commit(&self, member: &str, epoch: i32, knows_epochs: bool, partition: i32) -> Commit {
        let partition = CommitPartition {
            partition,
            offset: Offset(1),
            leader_epoch: LeaderEpoch(-1),
            metadata: ByteString::new(),
        };
        Commit {
            group: "g".into(),
            member_id: member.into(),
            instance_id: None,
            generation: epoch,
            knows_epochs,
            retention_ms: None,
            topics: vec![CommitTopic { name: "t".into(), id: topic_id("t", 1), partitions: vec![partition] }],
            producer: None,
        }
    }

    /// The group that the journal makes.
    pub(super) fn replayed(&self) -> Image {
        let mut image = Image::default();
        for change in &self.journal {
            image.apply(change.clone());
        }
        image
    }

    pub(super) fn check_replay(&self) {
        assert_eq!(&self.replayed(), self.group.image(), "the journal makes the same group");
    }
}
