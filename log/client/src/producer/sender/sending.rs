//! Which batches are sent when, and how they are asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{NodeId, ProducerEpoch, Records, TopicPartition, Uuid};
use tokio::time::Instant;

use super::super::identity::request_identity;
use super::super::queue::{Identity, Next};
use super::super::transaction::add_partitions;
use super::{Event, Sender, Sent};
use crate::error::{Error, Result};
use crate::metadata::Metadata;
use crate::node::{Node, typed};

/// The last version of Produce that names topics, and the first that adds partitions to a transaction by
/// itself.
const NAMED_TOPICS: i16 = 12;
const IMPLICIT_TRANSACTIONS: i16 = 12;

/// What the broker's own time for acknowledging is short of the time that its answer is waited for.
const ANSWER_MARGIN: Duration = Duration::from_secs(1);

/// A request that is being put together.
#[derive(Default)]
struct Outgoing {
    batches: Vec<(usize, u64, Records)>,
    bytes: usize,
}

impl Sender {
    /// Sends whatever can be sent.
    pub(super) fn send_ready(&mut self) {
        self.looked_at = Instant::now();
        self.throttled_until = None;
        if !self.abandons.is_empty() || self.busy_queues().all(|queue| !queue.has_waiting()) {
            return;
        }
        let metadata = self.core.cluster.metadata();
        loop {
            let outgoing = self.collect(&metadata);
            if outgoing.is_empty() {
                break;
            }
            for (node, outgoing) in outgoing {
                self.dispatch(node, outgoing, &metadata);
            }
        }
        if (self.wants_metadata || self.core.cluster.is_stale()) && !self.is_refreshing {
            self.is_refreshing = true;
            self.wants_metadata = false;
            let refresh = self.core.cluster.refresh();
            self.events.push(Box::pin(async move {
                // Without news the partitions stay where they are, and this is tried again.
                let _ = refresh.await;
                Event::Refreshed
            }));
        }
    }

    /// Puts one request together for each broker that can take one, with at most one batch of each partition.
    fn collect(&mut self, metadata: &Metadata) -> HashMap<NodeId, Outgoing> {
        let now = self.looked_at;
        let mut outgoing: HashMap<NodeId, Outgoing> = HashMap::new();
        let mut to_add = Vec::new();
        let first = self.core.cluster.random(self.busy.len());
        for at in (first..self.busy.len()).chain(0..first) {
            let slot = self.busy[at];
            if !self.queues[slot].has_waiting()
                || self.queues[slot].not_before().is_some_and(|time| time > now)
            {
                continue;
            }
            let leader = metadata.leader(&self.queues[slot].partition).map(|(leader, _)| leader);
            let Some(leader) = leader.filter(|leader| metadata.broker(*leader).is_some()) else {
                if metadata.partition(&self.queues[slot].partition).is_some() {
                    self.core.tally.note(metadata.no_leader(&self.queues[slot].partition));
                }
                self.wants_metadata = true;
                self.queues[slot].hold(now + self.core.retry_pause(1));
                continue;
            };
            if !self.can_take(leader, metadata) {
                continue;
            }
            if self.core.must_add_partitions() && !self.added.contains(&self.queues[slot].partition) {
                to_add.push(self.queues[slot].partition.clone());
                continue;
            }
            let request = outgoing.entry(leader).or_default();
            let size = self.queues[slot].next_size();
            if request.bytes > 0 && request.bytes + size > self.core.config.max_request_size {
                continue;
            }
            let mut next = self.queues[slot].next(self.identity, now);
            if next == Next::NeedsIdentity && self.renew_identity() {
                next = self.queues[slot].next(self.identity, now);
            }
            match next {
                Next::Send { serial, records } => {
                    request.bytes += size;
                    request.batches.push((slot, serial, Records::Bytes(records.into_bytes())));
                }
                Next::NeedsIdentity | Next::Nothing | Next::Wait(_) => {}
            }
        }
        self.add_to_transaction(to_add);
        outgoing.retain(|_, request| !request.batches.is_empty());
        outgoing
    }

    /// Whether the broker is connected and has room for another request; connects if it is not.
    fn can_take(&mut self, id: NodeId, metadata: &Metadata) -> bool {
        let state = self.nodes.entry(id).or_default();
        if state.in_flight >= self.core.config.max_in_flight || state.is_opening {
            return false;
        }
        let Some(broker) = metadata.broker(id) else { return false };
        if let Some(node) = self.pool.open_node(broker) {
            let until = node.throttled_until();
            self.throttled_until = self.throttled_until.into_iter().chain(until).min();
            return until.is_none();
        }
        state.is_opening = true;
        let opening = self.pool.node(broker);
        self.events.push(Box::pin(async move { Event::Opened { node: id, opened: opening.await } }));
        false
    }

    fn dispatch(&mut self, id: NodeId, outgoing: Outgoing, metadata: &Metadata) {
        let batches = outgoing.batches;
        let node = metadata.broker(id).and_then(|broker| self.pool.open_node(broker));
        let is_named = |slot: usize| self.topic_id(metadata, slot).is_zero();
        let needs_names = batches.iter().any(|(slot, ..)| is_named(*slot));
        let version =
            node.as_ref().ok_or(Error::Closed).and_then(|node| self.pick_version(node, needs_names));
        let sent: Vec<Sent> = batches
            .iter()
            .map(|&(slot, serial, _)| Sent { slot, serial, topic_id: self.topic_id(metadata, slot) })
            .collect();
        let (node, version) = match (node, version) {
            (Some(node), Ok(version)) => (node, version),
            (_, Err(Error::Closed)) | (None, Ok(_)) => return self.again(&sent, false),
            (_, Err(error)) => return self.fail_sent(&sent, &error),
        };
        self.core.tally.sent(batches.len(), outgoing.bytes);
        let request = self.request(batches, metadata);
        self.core.note_sent();
        if self.is_holding {
            self.lingered_at = Some(self.looked_at);
        }
        self.nodes.entry(id).or_default().in_flight += 1;
        let answer = node.send(request.into_request(), version, ANSWER_MARGIN);
        self.events.push(Box::pin(async move {
            let answer = answer.await.and_then(typed::<ProduceRequest>);
            Event::Answered { node: id, sent, answer }
        }));
    }

    fn topic_id(&self, metadata: &Metadata, slot: usize) -> Uuid {
        metadata.topic(&self.queues[slot].partition.topic).map_or(Uuid::ZERO, |topic| topic.id)
    }

    fn pick_version(&self, node: &Node, needs_names: bool) -> Result<i16> {
        let mut versions = ProduceRequest::VERSIONS;
        if needs_names {
            versions = *versions.start()..=NAMED_TOPICS;
        }
        match self.core.implicit_transactions() {
            Some(true) => versions = IMPLICIT_TRANSACTIONS..=*versions.end(),
            Some(false) => versions = *versions.start()..=(IMPLICIT_TRANSACTIONS - 1),
            None => {}
        }
        node.offered().pick(ApiKey::Produce, versions)
    }

    fn request(&self, batches: Vec<(usize, u64, Records)>, metadata: &Metadata) -> ProduceRequest {
        let mut topics: Vec<TopicProduceData> = Vec::new();
        let mut by_name: HashMap<ByteString, usize> = HashMap::new();
        for (slot, _, records) in batches {
            let partition = &self.queues[slot].partition;
            let at = *by_name.entry(partition.topic.clone()).or_insert_with(|| {
                topics.push(TopicProduceData {
                    name: partition.topic.clone(),
                    topic_id: self.topic_id(metadata, slot),
                    partition_data: Vec::new(),
                });
                topics.len() - 1
            });
            topics[at]
                .partition_data
                .push(PartitionProduceData { index: partition.partition, records: Some(records) });
        }
        ProduceRequest {
            transactional_id: self.core.config.transactional_id.as_deref().map(ByteString::from),
            acks: self.core.config.acks.code(),
            timeout_ms: self.core.cluster.config().request_timeout_ms.min(i32::MAX as u64) as i32,
            topic_data: topics,
        }
    }

    /// Raises the epoch of the identity there is, or asks for one; says whether there is a newer one now. Not
    /// within a transaction: there the coordinator has to know.
    fn renew_identity(&mut self) -> bool {
        if self.core.transaction.is_some() || self.is_identifying {
            return false;
        }
        match self.identity {
            Some(identity) if identity.epoch.0 < i16::MAX => {
                self.identity = Some(Identity { epoch: ProducerEpoch(identity.epoch.0 + 1), ..identity });
                true
            }
            _ => {
                self.is_identifying = true;
                let core = Arc::clone(&self.core);
                self.events
                    .push(Box::pin(async move { Event::Identified(request_identity(&core.cluster).await) }));
                false
            }
        }
    }

    fn add_to_transaction(&mut self, partitions: Vec<TopicPartition>) {
        let (Some(identity), false, false) = (self.identity, partitions.is_empty(), self.is_adding) else {
            return;
        };
        self.is_adding = true;
        self.core.note_sent();
        let core = Arc::clone(&self.core);
        self.events.push(Box::pin(async move {
            let answer = add_partitions(&core, identity, &partitions).await;
            Event::Added { partitions, answer }
        }));
    }
}
