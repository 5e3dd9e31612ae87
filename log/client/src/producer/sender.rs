//! The task that sends a producer's batches: the one owner of what is waiting and in flight.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use thalweg_protocol::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{
    ErrorCode, LeaderEpoch, NodeId, Offset, ProducerEpoch, Records, TopicPartition, Uuid,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::batch::Batch;
use super::core::Core;
use super::delivery::BatchAcknowledged;
use super::flush::Flushes;
use super::identity::request_identity;
use super::queue::{Identity, Next, PartitionQueue};
use super::transaction::add_partitions;
use crate::by_leader::AnswersByPartition;
use crate::config::Acks;
use crate::error::{Error, Result};
use crate::metadata::{BrokerAddress, Metadata};
use crate::node::{Node, typed};
use crate::pool::Pool;

/// The last version of Produce that names topics, and the first that adds partitions to a transaction by itself.
const NAMED_TOPICS: i16 = 12;
const IMPLICIT_TRANSACTIONS: i16 = 12;

/// What the broker's own time for acknowledging is short of the time that its answer is waited for.
const ANSWER_MARGIN: Duration = Duration::from_secs(1);

/// Far enough away to never come.
const NEVER: Duration = Duration::from_secs(3600);

/// What the producer's handles tell the sender.
pub(super) enum Message {
    Batch(Batch),
    /// A batch has been opened in the accumulator and will have lingered in a while.
    Opened,
    Flush(oneshot::Sender<Result<()>>),
    /// Give up what is not in flight; answer when nothing is.
    Abandon(oneshot::Sender<()>),
    /// The transactional producer is now this.
    Identity(Identity),
    /// A transaction has begun.
    Begin,
}

/// A batch in a request that is in flight.
struct Sent {
    slot: usize,
    serial: u64,
    topic_id: Uuid,
}

enum Event {
    Answered { node: NodeId, sent: Vec<Sent>, answer: Result<ProduceResponse> },
    Opened { node: NodeId, opened: Result<Arc<Node>> },
    Refreshed,
    Identified(Result<Identity>),
    Added { partitions: Vec<TopicPartition>, answer: Result<()> },
}

#[derive(Default)]
struct NodeState {
    in_flight: usize,
    is_opening: bool,
}

/// A request that is being put together.
#[derive(Default)]
struct Outgoing {
    batches: Vec<(usize, u64, Records)>,
    bytes: usize,
}

pub(super) struct Sender {
    core: Arc<Core>,
    inbox: mpsc::UnboundedReceiver<Message>,
    to_self: mpsc::WeakUnboundedSender<Message>,
    pool: Pool,
    slots: HashMap<TopicPartition, usize>,
    queues: Vec<PartitionQueue>,
    nodes: HashMap<NodeId, NodeState>,
    events: FuturesUnordered<BoxFuture<'static, Event>>,
    flushes: Flushes,
    abandons: VecDeque<oneshot::Sender<()>>,
    identity: Option<Identity>,
    is_identifying: bool,
    is_refreshing: bool,
    wants_metadata: bool,
    /// The partitions that the transaction has got, where the producer has to say so beforehand.
    added: HashSet<TopicPartition>,
    is_adding: bool,
    /// When the accumulator must be looked at.
    lingered_at: Option<Instant>,
    /// When the queues were last looked at: only pauses that ended later are worth waking for.
    looked_at: Instant,
}

impl Sender {
    pub(super) fn new(
        core: Arc<Core>,
        inbox: mpsc::UnboundedReceiver<Message>,
        to_self: mpsc::WeakUnboundedSender<Message>,
    ) -> Self {
        Self {
            pool: core.cluster.new_pool(),
            core,
            inbox,
            to_self,
            slots: HashMap::new(),
            queues: Vec::new(),
            nodes: HashMap::new(),
            events: FuturesUnordered::new(),
            flushes: Flushes::default(),
            abandons: VecDeque::new(),
            identity: None,
            is_identifying: false,
            is_refreshing: false,
            wants_metadata: false,
            added: HashSet::new(),
            is_adding: false,
            lingered_at: None,
            looked_at: Instant::now(),
        }
    }

    /// Runs until all of the producer's handles are gone and everything they left has been sent.
    pub(super) async fn run(mut self) {
        let mut is_open = true;
        while is_open || self.queues.iter().any(|queue| !queue.is_idle()) {
            let wake = self.wakes_at();
            tokio::select! {
                message = self.inbox.recv(), if is_open => match message {
                    Some(message) => self.take(message),
                    None => {
                        is_open = false;
                        self.close_all();
                    }
                },
                Some(event) = self.events.next(), if !self.events.is_empty() => self.on(event),
                () = sleep_until(wake) => {}
            }
            while let Ok(message) = self.inbox.try_recv() {
                self.take(message);
            }
            self.close_lingered();
            self.expire();
            self.send_ready();
            self.answer_abandons();
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Batch(batch) => self.take_batch(batch),
            Message::Opened => {
                let lingered = Instant::now() + self.core.linger();
                self.lingered_at = Some(self.lingered_at.map_or(lingered, |at| at.min(lingered)));
            }
            Message::Flush(done) => self.flushes.flush(done),
            Message::Abandon(done) => {
                self.give_up_waiting(&Error::Aborted);
                self.abandons.push_back(done);
            }
            Message::Identity(identity) => self.identity = Some(identity),
            Message::Begin => self.added.clear(),
        }
    }

    fn take_batch(&mut self, mut batch: Batch) {
        batch.generation = self.flushes.add();
        if let Some(error) = self.core.refusal() {
            self.finish(batch, Err(error));
            return;
        }
        let slot = match self.slots.get(&batch.partition) {
            Some(&slot) => slot,
            None => {
                let config = &self.core.config;
                // Without sequence numbers only one batch at a time keeps the order over retries.
                let keeps_order = config.is_idempotent() || config.acks == Acks::None;
                let max_in_flight = if keeps_order { config.max_in_flight } else { 1 };
                let partition = batch.partition.clone();
                self.core.cluster.want([&partition.topic]);
                self.slots.insert(partition.clone(), self.queues.len());
                self.queues.push(PartitionQueue::new(partition, config.is_idempotent(), max_in_flight));
                self.queues.len() - 1
            }
        };
        self.queues[slot].push(batch);
    }

    fn wakes_at(&self) -> Instant {
        let delivery_timeout = self.core.delivery_timeout();
        let expiries =
            self.queues.iter().filter_map(|queue| Some(queue.oldest_waiting()? + delivery_timeout));
        let holds =
            self.queues.iter().filter_map(PartitionQueue::not_before).filter(|time| *time > self.looked_at);
        let soonest = expiries.chain(holds).chain(self.lingered_at).min();
        soonest.unwrap_or_else(|| Instant::now() + NEVER)
    }

    /// Moves what has lingered in the accumulator into the inbox, behind what is there of the same partitions.
    fn close_lingered(&mut self) {
        let now = Instant::now();
        if self.lingered_at.is_none_or(|at| at > now) {
            return;
        }
        let Some(inbox) = self.to_self.upgrade() else { return };
        let hand_over = |batch| drop(inbox.send(Message::Batch(batch)));
        self.lingered_at =
            self.core.accumulator.close_opened(now - self.core.linger(), &self.core.memory, hand_over);
        while let Ok(message) = self.inbox.try_recv() {
            self.take(message);
        }
    }

    /// Takes everything out of the accumulator, when nobody can put anything in any more.
    fn close_all(&mut self) {
        let mut batches = Vec::new();
        let core = Arc::clone(&self.core);
        core.accumulator.close_opened(Instant::now(), &core.memory, |batch| batches.push(batch));
        self.lingered_at = None;
        batches.into_iter().for_each(|batch| self.take_batch(batch));
    }

    fn expire(&mut self) {
        let after_ms = self.core.config.delivery_timeout_ms;
        let Some(before) = Instant::now().checked_sub(self.core.delivery_timeout()) else { return };
        let expired: Vec<Batch> = self.queues.iter_mut().flat_map(|queue| queue.expire(before)).collect();
        for batch in expired {
            let error = Error::TimedOut { operation: "sending a batch", after_ms, last: None };
            self.fail(batch, error);
        }
    }

    /// Sends whatever can be sent.
    fn send_ready(&mut self) {
        self.looked_at = Instant::now();
        if !self.abandons.is_empty() || self.queues.iter().all(|queue| !queue.has_waiting()) {
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
        let first = self.core.cluster.random(self.queues.len());
        for slot in (first..self.queues.len()).chain(0..first) {
            if !self.queues[slot].has_waiting()
                || self.queues[slot].not_before().is_some_and(|time| time > now)
            {
                continue;
            }
            let Some((leader, _)) = metadata.leader(&self.queues[slot].partition) else {
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
        let Some(broker) = metadata.broker(id) else {
            self.wants_metadata = true;
            return false;
        };
        if self.pool.open_node(broker).is_some() {
            return true;
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
        let request = self.request(batches, metadata);
        self.core.note_sent();
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

    /// Raises the epoch of the identity there is, or asks for one; says whether there is a newer one now. Not within a
    /// transaction: there the coordinator has to know.
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

    fn on(&mut self, event: Event) {
        match event {
            Event::Answered { node, sent, answer } => {
                let state = self.nodes.entry(node).or_default();
                state.in_flight -= 1;
                match answer {
                    Ok(response) => self.on_response(&sent, response),
                    Err(error @ Error::UnsupportedVersion { .. }) => self.fail_sent(&sent, &error),
                    Err(_) => {
                        self.wants_metadata = true;
                        self.again(&sent, true);
                    }
                }
            }
            Event::Opened { node, opened } => {
                self.nodes.entry(node).or_default().is_opening = false;
                if opened.is_err() {
                    self.wants_metadata = true;
                }
            }
            Event::Refreshed => self.is_refreshing = false,
            Event::Identified(identity) => {
                self.is_identifying = false;
                match identity {
                    Ok(identity) => self.identity = Some(identity),
                    Err(error) => self.give_up_waiting(&error),
                }
            }
            Event::Added { partitions, answer } => {
                self.is_adding = false;
                match answer {
                    Ok(()) => self.added.extend(partitions),
                    Err(error) => self.fail_transaction(error),
                }
            }
        }
    }

    fn on_response(&mut self, sent: &[Sent], response: ProduceResponse) {
        if self.core.config.acks == Acks::None {
            for sent in sent {
                if let Some(batch) = self.queues[sent.slot].acknowledged(sent.serial) {
                    self.acknowledge(batch, None, None);
                }
            }
            return;
        }
        let mut answers = AnswersByPartition::new();
        for topic in response.responses {
            for partition in topic.partition_responses {
                answers.insert(topic.topic_id, &topic.name, partition.index, partition);
            }
        }
        let endpoints: Vec<BrokerAddress> = response
            .node_endpoints
            .into_iter()
            .map(|node| BrokerAddress {
                id: NodeId(node.node_id),
                host: node.host,
                port: u16::try_from(node.port).unwrap_or_default(),
                rack: node.rack,
            })
            .collect();
        for sent in sent {
            let partition = self.queues[sent.slot].partition.clone();
            match answers.take(sent.topic_id, &partition) {
                Some(answer) => {
                    self.learn_leader(&partition, &answer, &endpoints);
                    self.on_answer(sent, answer);
                }
                None => self.again(std::slice::from_ref(sent), true),
            }
        }
    }

    fn learn_leader(
        &mut self,
        partition: &TopicPartition,
        answer: &PartitionProduceResponse,
        endpoints: &[BrokerAddress],
    ) {
        let (leader, epoch) = (NodeId(answer.current_leader.leader_id), answer.current_leader.leader_epoch);
        if leader == NodeId::NONE || epoch < 0 {
            return;
        }
        let address = endpoints.iter().find(|endpoint| endpoint.id == leader).cloned();
        self.core.cluster.learn_leader(partition, leader, LeaderEpoch(epoch), address);
    }

    fn on_answer(&mut self, sent: &Sent, answer: PartitionProduceResponse) {
        let (slot, serial) = (sent.slot, sent.serial);
        let code = ErrorCode::from(answer.error_code);
        match code {
            ErrorCode::None => {
                let Some(batch) = self.queues[slot].acknowledged(serial) else { return };
                let base = (answer.base_offset >= 0).then_some(Offset(answer.base_offset));
                let time = (answer.log_append_time_ms >= 0).then_some(answer.log_append_time_ms);
                self.acknowledge(batch, base, time);
            }
            // The broker has it but has forgotten where.
            ErrorCode::DuplicateSequenceNumber => {
                if let Some(batch) = self.queues[slot].acknowledged(serial) {
                    self.acknowledge(batch, None, None);
                }
            }
            ErrorCode::OutOfOrderSequenceNumber if !self.queues[slot].is_first(serial) => {
                self.again(std::slice::from_ref(sent), false);
            }
            ErrorCode::OutOfOrderSequenceNumber
            | ErrorCode::UnknownProducerId
            | ErrorCode::InvalidProducerEpoch
                if self.core.transaction.is_none() && self.core.config.is_idempotent() =>
            {
                let pause = self.core.retry_pause(self.queues[slot].attempts(serial));
                self.queues[slot].renumber(serial, Instant::now() + pause);
            }
            code if code.is_retriable() => {
                self.wants_metadata |= !matches!(
                    code,
                    ErrorCode::NotEnoughReplicas
                        | ErrorCode::ConcurrentTransactions
                        | ErrorCode::CorruptMessage
                );
                let maybe_written =
                    matches!(code, ErrorCode::RequestTimedOut | ErrorCode::NotEnoughReplicasAfterAppend);
                self.again(std::slice::from_ref(sent), maybe_written);
            }
            code => {
                let subject = self.queues[slot].partition.to_string();
                let message = answer.error_message.or_else(|| {
                    let first = answer.record_errors.into_iter().next()?;
                    first.batch_index_error_message
                });
                let error = Error::Broker { api: ApiKey::Produce, code, subject, message };
                self.fail_sent(std::slice::from_ref(sent), &error);
            }
        }
    }

    fn again(&mut self, sent: &[Sent], maybe_written: bool) {
        let now = Instant::now();
        for sent in sent {
            let queue = &mut self.queues[sent.slot];
            let pause = self.core.retry_pause(queue.attempts(sent.serial));
            queue.again(sent.serial, maybe_written, now + pause);
        }
        if let Some(error) = self.core.transaction_failure() {
            self.give_up_waiting(&error);
        }
    }

    fn fail_sent(&mut self, sent: &[Sent], error: &Error) {
        for sent in sent {
            if let Some(batch) = self.queues[sent.slot].refused(sent.serial) {
                self.fail(batch, error.clone());
            }
        }
    }

    /// A batch will not be written, or it is not known whether it was; in a transaction nothing else matters then.
    fn fail(&mut self, batch: Batch, error: Error) {
        let error = match batch.maybe_written {
            true => Error::DeliveryUnknown { partition: batch.partition.clone(), source: Arc::new(error) },
            false => error,
        };
        self.finish(batch, Err(error.clone()));
        if self.core.transaction.is_some() {
            self.fail_transaction(error);
        }
    }

    fn fail_transaction(&mut self, error: Error) {
        let error = self.core.fail_transaction(error);
        self.give_up_waiting(&error);
    }

    fn give_up_waiting(&mut self, error: &Error) {
        let batches: Vec<Batch> = self.queues.iter_mut().flat_map(PartitionQueue::abandon).collect();
        for batch in batches {
            self.finish(batch, Err(error.clone()));
        }
    }

    fn acknowledge(&mut self, batch: Batch, base_offset: Option<Offset>, append_time: Option<i64>) {
        let partition = batch.partition.clone();
        self.finish(batch, Ok(BatchAcknowledged { partition, base_offset, append_time }));
    }

    fn finish(&mut self, batch: Batch, outcome: Result<BatchAcknowledged>) {
        self.core.memory.give_back(batch.reserved);
        self.flushes.done(batch.generation, outcome.as_ref().err());
        if let Some(notify) = batch.notify {
            // Nobody may be waiting, which is fine.
            let _ = notify.send(outcome);
        }
    }

    fn answer_abandons(&mut self) {
        if self.abandons.is_empty() || self.is_adding || self.queues.iter().any(PartitionQueue::has_in_flight)
        {
            return;
        }
        self.give_up_waiting(&Error::Aborted);
        self.flushes.forget_error();
        for done in self.abandons.drain(..) {
            let _ = done.send(());
        }
    }
}
