//! The task that sends a producer's batches: the one owner of what is waiting and in flight.

mod answers;
mod sending;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use thalweg_protocol::messages::produce::ProduceResponse;
use thalweg_protocol::{NodeId, TopicPartition, Uuid};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::batch::{Batch, Hold};
use super::core::Core;
use super::flush::Flushes;
use super::queue::{Identity, PartitionQueue};
use crate::cluster::Wanted;
use crate::config::Acks;
use crate::error::{Error, Result};
use crate::node::Node;
use crate::pool::Pool;

/// Far enough away to never come.
const NEVER: Duration = Duration::from_secs(3600);

/// Batches that are held back are looked at again after this long, should what was before them have been given up.
const LONGEST_HOLD: Duration = Duration::from_millis(10);

/// What the producer's handles tell the sender.
pub(in crate::producer) enum Message {
    Batch(Box<Batch>),
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

pub(in crate::producer) struct Sender {
    core: Arc<Core>,
    wanted: Wanted,
    inbox: mpsc::UnboundedReceiver<Message>,
    to_self: mpsc::WeakUnboundedSender<Message>,
    pool: Pool,
    slots: HashMap<TopicPartition, usize>,
    queues: Vec<PartitionQueue>,
    /// The slots of the queues that are not idle, and perhaps of some that have just become it.
    busy: Vec<usize>,
    /// By slot, whether it is among them.
    is_busy: Vec<bool>,
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
    /// Whether batches there have lingered, and are held back until one before them has been sent.
    is_holding: bool,
    /// When the first of the brokers that want nothing sent to them will take something again.
    throttled_until: Option<Instant>,
    /// When the queues were last looked at: only pauses that ended later are worth waking for.
    looked_at: Instant,
}

impl Sender {
    pub(in crate::producer) fn new(
        core: Arc<Core>,
        inbox: mpsc::UnboundedReceiver<Message>,
        to_self: mpsc::WeakUnboundedSender<Message>,
    ) -> Self {
        Self {
            pool: core.cluster.new_pool(),
            wanted: Wanted::new(&core.cluster),
            core,
            inbox,
            to_self,
            slots: HashMap::new(),
            queues: Vec::new(),
            busy: Vec::new(),
            is_busy: Vec::new(),
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
            is_holding: false,
            throttled_until: None,
            looked_at: Instant::now(),
        }
    }

    /// Runs until all of the producer's handles are gone and everything they left has been sent.
    pub(in crate::producer) async fn run(mut self) {
        let mut is_open = true;
        while is_open || !self.busy.is_empty() {
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
            self.leave_out_idle();
        }
    }

    fn leave_out_idle(&mut self) {
        let (queues, is_busy) = (&self.queues, &mut self.is_busy);
        self.busy.retain(|&slot| {
            is_busy[slot] = !queues[slot].is_idle();
            is_busy[slot]
        });
    }

    fn busy_queues(&self) -> impl Iterator<Item = &PartitionQueue> {
        self.busy.iter().map(|&slot| &self.queues[slot])
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Batch(batch) => self.take_batch(*batch),
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
                self.wanted.add(&partition.topic);
                self.slots.insert(partition.clone(), self.queues.len());
                self.queues.push(PartitionQueue::new(partition, config.is_idempotent(), max_in_flight));
                self.is_busy.push(false);
                self.queues.len() - 1
            }
        };
        self.queues[slot].push(batch);
        if !std::mem::replace(&mut self.is_busy[slot], true) {
            self.busy.push(slot);
        }
    }

    fn wakes_at(&self) -> Instant {
        let delivery_timeout = self.core.delivery_timeout();
        let expiries =
            self.busy_queues().filter_map(|queue| Some(queue.oldest_waiting()? + delivery_timeout));
        let holds =
            self.busy_queues().filter_map(PartitionQueue::not_before).filter(|time| *time > self.looked_at);
        let soonest = expiries.chain(holds).chain(self.lingered_at).chain(self.throttled_until).min();
        soonest.unwrap_or_else(|| Instant::now() + NEVER)
    }

    /// Moves what has lingered in the accumulator into the inbox, behind what is there of the same
    /// partitions.
    fn close_lingered(&mut self) {
        let now = Instant::now();
        if self.lingered_at.is_none_or(|at| at > now) {
            return;
        }
        let Some(inbox) = self.to_self.upgrade() else { return };
        let hand_over = |batch| drop(inbox.send(Message::Batch(Box::new(batch))));
        let core = &self.core;
        let left =
            core.accumulator.close_opened(now - core.linger(), Hold::BehindUnsent, &core.memory, hand_over);
        self.is_holding = left.is_holding;
        let held_until = left.is_holding.then_some(now + LONGEST_HOLD);
        self.lingered_at = left.lingered_at.into_iter().chain(held_until).min();
        while let Ok(message) = self.inbox.try_recv() {
            self.take(message);
        }
    }

    /// Takes everything out of the accumulator, when nobody can put anything in any more.
    fn close_all(&mut self) {
        let mut batches = Vec::new();
        let core = Arc::clone(&self.core);
        core.accumulator
            .close_opened(Instant::now(), Hold::Nothing, &core.memory, |batch| batches.push(batch));
        self.lingered_at = None;
        batches.into_iter().for_each(|batch| self.take_batch(batch));
    }

    fn expire(&mut self) {
        let after_ms = self.core.config.delivery_timeout_ms;
        let Some(before) = Instant::now().checked_sub(self.core.delivery_timeout()) else { return };
        let (busy, queues) = (&self.busy, &mut self.queues);
        let expired: Vec<Batch> = busy.iter().flat_map(|&slot| queues[slot].expire(before)).collect();
        for batch in expired {
            let last = self.core.tally.trouble().map(Arc::new);
            let error = Error::TimedOut { operation: "sending a batch", after_ms, last };
            self.fail(batch, error);
        }
    }

    fn answer_abandons(&mut self) {
        if self.abandons.is_empty() || self.is_adding || self.busy_queues().any(PartitionQueue::has_in_flight)
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
