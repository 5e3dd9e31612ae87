//! What a share consumer has going on with one broker: a session, one request at a time, and what is still to be said.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::BoxFuture;
use thalweg_protocol::messages::share_acknowledge::{
    AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest, ShareAcknowledgeResponse,
};
use thalweg_protocol::messages::share_fetch::{
    FetchPartition, FetchTopic, ForgottenTopic, ShareFetchRequest, ShareFetchResponse,
};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{NodeId, TopicPartition};
use tokio::time::Instant;

use super::membership::by_topic;
use super::parcel::Parcel;
use super::session::{ENDS, Key, SessionNumber, ShareSession};
use crate::config::{AcquireMode, ShareConsumerConfig};
use crate::error::{Error, Result};
use crate::node::{Node, typed};

/// The first version of ShareFetch and ShareAcknowledge that knows renewals and how exact a fetch is.
const EXACT: i16 = 2;

/// An answer of a broker.
pub(super) enum Answer {
    Fetched {
        /// What was wanted, by the ids of topics.
        wanted: BTreeMap<Key, TopicPartition>,
        answer: Result<ShareFetchResponse>,
    },
    Acknowledged(Result<ShareAcknowledgeResponse>),
}

/// An answer, and what it is to.
pub(super) struct Answered {
    pub(super) node: NodeId,
    pub(super) session: SessionNumber,
    /// What the request said of records.
    pub(super) parcel: Option<Parcel>,
    pub(super) answer: Answer,
}

/// What a share consumer has going on with one broker.
#[derive(Default)]
pub(super) struct Link {
    /// The session and the connection that it belongs to.
    pub(super) session: Option<(ShareSession, Arc<Node>)>,
    pub(super) is_busy: bool,
    /// How many parcels are under way.
    pub(super) tells: usize,
    /// In the order in which it was said. There is no more in it than the broker has locked for the member.
    pub(super) outbox: VecDeque<Parcel>,
    /// Nothing is sent before then, after a failure.
    pub(super) not_before: Option<Instant>,
    pub(super) failures: u32,
}

/// Who sends, and how.
pub(super) struct Sender<'a> {
    pub(super) config: &'a ShareConsumerConfig,
    pub(super) member: &'a ByteString,
}

impl Link {
    /// The session that is open over a connection that works.
    pub(super) fn open_session(&self) -> Option<&ShareSession> {
        let (session, node) = self.session.as_ref()?;
        (session.is_open() && !node.is_closed()).then_some(session)
    }

    /// Ends the session, whose records are lost. Returns what was still to be said of them.
    pub(super) fn drop_session(&mut self) -> VecDeque<Parcel> {
        self.session = None;
        std::mem::take(&mut self.outbox)
    }

    /// Whether the next parcel can go with a fetch of these partitions: there is none, or it is about them alone.
    pub(super) fn fits_fetch(&self, wanted: &BTreeMap<Key, TopicPartition>) -> bool {
        let Some(parcel) = self.outbox.front() else { return true };
        !parcel.renews() && parcel.sayings.keys().all(|key| wanted.contains_key(key))
    }

    /// Sends a fetch, which opens a session if none is, and the next parcel with it.
    pub(super) fn fetch(
        &mut self,
        id: NodeId,
        wanted: BTreeMap<Key, TopicPartition>,
        max_wait: Duration,
        sender: &Sender<'_>,
    ) -> Option<BoxFuture<'static, Answered>> {
        let (session, node) = self.session.as_mut()?;
        let parcel = if session.is_open() { self.outbox.pop_front() } else { None };
        let number = session.number;
        let Sender { config, member } = sender;
        let oldest = if config.acquire_mode == AcquireMode::RecordLimit { EXACT } else { 1 };
        let version = node.offered().pick(ApiKey::ShareFetch, oldest..=*ShareFetchRequest::VERSIONS.end());
        self.is_busy = true;
        self.tells += usize::from(parcel.is_some());
        let version = match version {
            Ok(version) => version,
            Err(error) => {
                let answer = Answer::Fetched { wanted, answer: Err(error) };
                return Some(Box::pin(std::future::ready(Answered {
                    node: id,
                    session: number,
                    parcel,
                    answer,
                })));
            }
        };
        let plan = session.plan(wanted.keys().copied().collect());
        let mut named: BTreeMap<Key, FetchPartition> = BTreeMap::new();
        for key in plan.added.iter().chain(parcel.iter().flat_map(|parcel| parcel.sayings.keys())) {
            let partition = FetchPartition { partition_index: key.1, ..FetchPartition::default() };
            named.insert(*key, partition);
        }
        for (key, saying) in parcel.iter().flat_map(|parcel| &parcel.sayings) {
            if let Some(partition) = named.get_mut(key) {
                partition.acknowledgement_batches = saying.in_fetch();
            }
        }
        let topic = |(topic_id, partitions): (_, Vec<(i32, FetchPartition)>)| FetchTopic {
            topic_id,
            partitions: partitions.into_iter().map(|(_, partition)| partition).collect(),
        };
        let forgotten = |(topic_id, partitions)| ForgottenTopic { topic_id, partitions };
        let request = ShareFetchRequest {
            group_id: Some(ByteString::from(config.group.as_str())),
            member_id: Some((*member).clone()),
            share_session_epoch: plan.epoch,
            max_wait_ms: max_wait.as_millis().min(i32::MAX as u128) as i32,
            min_bytes: config.fetch_min_bytes,
            max_bytes: config.fetch_max_bytes,
            max_records: config.max_poll_records,
            batch_size: config.max_poll_records,
            share_acquire_mode: config.acquire_mode.code(),
            topics: by_topic(named).into_iter().map(topic).collect(),
            forgotten_topics_data: plan.forgotten.into_iter().map(forgotten).collect(),
            ..ShareFetchRequest::default()
        };
        let answer = node.send(request.into_request(), version, max_wait);
        Some(Box::pin(async move {
            let answer = answer.await.and_then(typed::<ShareFetchRequest>);
            Answered { node: id, session: number, parcel, answer: Answer::Fetched { wanted, answer } }
        }))
    }

    /// Sends the next parcel by itself.
    pub(super) fn acknowledge(
        &mut self,
        id: NodeId,
        sender: &Sender<'_>,
    ) -> Option<BoxFuture<'static, Answered>> {
        let (session, node) = self.session.as_ref()?;
        let parcel = self.outbox.pop_front()?;
        let (number, epoch) = (session.number, session.epoch());
        self.is_busy = true;
        self.tells += 1;
        let answer = say(node, epoch, Some(&parcel), sender);
        Some(Box::pin(async move {
            let answer = Answer::Acknowledged(answer.await);
            Answered { node: id, session: number, parcel: Some(parcel), answer }
        }))
    }

    /// Ends the session with a last word, after which the broker takes back what the member has; `None` if none is open.
    pub(super) fn end(&mut self, id: NodeId, sender: &Sender<'_>) -> Option<BoxFuture<'static, Answered>> {
        self.open_session()?;
        let (session, node) = self.session.take()?;
        let parcel = self.outbox.pop_front().map(Parcel::without_renewals);
        self.tells += usize::from(parcel.is_some());
        let answer = say(&node, ENDS, parcel.as_ref(), sender);
        Some(Box::pin(async move {
            let answer = Answer::Acknowledged(answer.await);
            // The connection is kept for as long.
            drop(node);
            Answered { node: id, session: session.number, parcel, answer }
        }))
    }
}

/// Sends a ShareAcknowledge.
fn say(
    node: &Arc<Node>,
    epoch: i32,
    parcel: Option<&Parcel>,
    sender: &Sender<'_>,
) -> BoxFuture<'static, Result<ShareAcknowledgeResponse>> {
    let is_renewal = parcel.is_some_and(Parcel::renews);
    let oldest = if is_renewal { EXACT } else { 1 };
    let versions = oldest..=*ShareAcknowledgeRequest::VERSIONS.end();
    let version = match node.offered().pick(ApiKey::ShareAcknowledge, versions) {
        Ok(version) => version,
        Err(error) => return Box::pin(std::future::ready(Err(error))),
    };
    let each = parcel.iter().flat_map(|parcel| &parcel.sayings);
    let named = each.map(|(key, saying)| {
        let acknowledgement_batches = saying.in_acknowledge();
        (*key, AcknowledgePartition { partition_index: key.1, acknowledgement_batches })
    });
    let topic = |(topic_id, partitions): (_, Vec<(i32, AcknowledgePartition)>)| AcknowledgeTopic {
        topic_id,
        partitions: partitions.into_iter().map(|(_, partition)| partition).collect(),
    };
    let request = ShareAcknowledgeRequest {
        group_id: Some(ByteString::from(sender.config.group.as_str())),
        member_id: Some(sender.member.clone()),
        share_session_epoch: epoch,
        is_renew_ack: is_renewal,
        topics: by_topic(named).into_iter().map(topic).collect(),
    };
    let answer = node.send(request.into_request(), version, Duration::ZERO);
    Box::pin(async move { answer.await.and_then(typed::<ShareAcknowledgeRequest>) })
}

/// Why what was said of records of a session that has ended does not count.
pub(super) fn session_gone(partition: &TopicPartition) -> Error {
    Error::Broker {
        api: ApiKey::ShareAcknowledge,
        code: thalweg_protocol::ErrorCode::ShareSessionNotFound,
        subject: partition.to_string(),
        message: None,
    }
}
