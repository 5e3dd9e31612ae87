//! What answers mean for the batches that they are about.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::produce::{PartitionProduceResponse, ProduceResponse};
use thalweg_protocol::{ErrorCode, LeaderEpoch, NodeId, Offset, TopicPartition};
use tokio::time::Instant;

use super::super::batch::Batch;
use super::super::delivery::BatchAcknowledged;
use super::{Event, Sender, Sent};
use crate::by_leader::AnswersByPartition;
use crate::config::Acks;
use crate::error::{Error, Result};
use crate::metadata::BrokerAddress;

impl Sender {
    pub(super) fn on(&mut self, event: Event) {
        match event {
            Event::Answered { node, sent, answer } => {
                let state = self.nodes.entry(node).or_default();
                state.in_flight -= 1;
                match answer {
                    Ok(response) => self.on_response(&sent, response),
                    Err(error @ Error::UnsupportedVersion { .. }) => self.fail_sent(&sent, &error),
                    Err(error) => {
                        self.core.tally.note(error);
                        self.wants_metadata = true;
                        self.again(&sent, true);
                    }
                }
            }
            Event::Opened { node, opened } => {
                self.nodes.entry(node).or_default().is_opening = false;
                if let Err(error) = opened {
                    self.core.tally.note(error);
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
                let subject = self.queues[slot].partition.to_string();
                let message = answer.error_message;
                self.core.tally.note(Error::Broker { api: ApiKey::Produce, code, subject, message });
                let maybe_written =
                    matches!(code, ErrorCode::RequestTimedOut | ErrorCode::NotEnoughReplicasAfterAppend);
                self.again(std::slice::from_ref(sent), maybe_written);
            }
            ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge if self.halve(sent) => {}
            code => self.on_refusal(sent, code, answer),
        }
    }

    /// Sends the halves of a batch that is too large for the broker (KIP-126), if it has more than one record.
    fn halve(&mut self, sent: &Sent) -> bool {
        let queue = &mut self.queues[sent.slot];
        if !queue.sent(sent.serial).is_some_and(Batch::is_divisible) {
            return false;
        }
        let Some(mut whole) = queue.taken_apart(sent.serial) else { return false };
        match whole.halve() {
            Ok(halves) => {
                self.core.tally.taken_apart();
                self.flushes.add_part(whole.generation);
                queue.put_parts(halves);
            }
            Err(source) => {
                let error = Error::Unencodable { partition: whole.partition.clone(), source };
                self.fail(whole, error);
            }
        }
        true
    }

    /// A batch is refused for good: only the records that the broker names, if it names some (KIP-467), else all. In a
    /// transaction nothing is left of it that could be committed.
    fn on_refusal(&mut self, sent: &Sent, code: ErrorCode, answer: PartitionProduceResponse) {
        let subject = self.queues[sent.slot].partition.to_string();
        let refused =
            |message| Error::Broker { api: ApiKey::Produce, code, subject: subject.clone(), message };
        let named: BTreeMap<usize, Error> = answer
            .record_errors
            .iter()
            .filter_map(|named| {
                let message = named.batch_index_error_message.clone();
                let message = message.or_else(|| answer.error_message.clone());
                Some((usize::try_from(named.batch_index).ok()?, refused(message)))
            })
            .collect();
        let count =
            self.queues[sent.slot].sent(sent.serial).map_or(0, |batch| batch.records.header().records_count);
        let leaves_some = named.len() < usize::try_from(count).unwrap_or_default()
            && named.last_key_value().is_some_and(|(last, _)| (*last as i64) < i64::from(count));
        if self.core.transaction.is_none() && leaves_some {
            return self.leave_out(sent, named);
        }
        let first = named.into_values().next();
        let error = first.unwrap_or_else(|| refused(answer.error_message));
        self.fail_sent(std::slice::from_ref(sent), &error);
    }

    /// Sends a batch again without the records that the broker named.
    fn leave_out(&mut self, sent: &Sent, named: BTreeMap<usize, Error>) {
        let queue = &mut self.queues[sent.slot];
        let Some(mut whole) = queue.refused(sent.serial) else { return };
        match whole.without(&named.keys().copied().collect()) {
            Ok((rest, waiters)) => {
                queue.put_parts([rest]);
                self.core.tally.taken_apart();
                for error in named.values() {
                    self.core.tally.finish(1, false);
                    self.flushes.note(whole.generation, error);
                }
                for (waiter, error) in waiters.into_iter().zip(named.into_values()) {
                    waiter.tell(Err(error));
                }
            }
            Err(source) => {
                let error = Error::Unencodable { partition: whole.partition.clone(), source };
                self.fail(whole, error);
            }
        }
    }

    pub(super) fn again(&mut self, sent: &[Sent], maybe_written: bool) {
        let now = Instant::now();
        self.core.tally.again(sent.len());
        for sent in sent {
            let queue = &mut self.queues[sent.slot];
            let pause = self.core.retry_pause(queue.attempts(sent.serial));
            queue.again(sent.serial, maybe_written, now + pause);
        }
        if let Some(error) = self.core.transaction_failure() {
            self.give_up_waiting(&error);
        }
    }

    pub(super) fn fail_sent(&mut self, sent: &[Sent], error: &Error) {
        for sent in sent {
            if let Some(batch) = self.queues[sent.slot].refused(sent.serial) {
                self.fail(batch, error.clone());
            }
        }
    }

    /// A batch will not be written, or it is not known whether it was; in a transaction nothing else matters
    /// then.
    pub(super) fn fail(&mut self, batch: Batch, error: Error) {
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

    pub(super) fn give_up_waiting(&mut self, error: &Error) {
        let (busy, queues) = (&self.busy, &mut self.queues);
        let batches: Vec<Batch> = busy.iter().flat_map(|&slot| queues[slot].abandon()).collect();
        for batch in batches {
            self.finish(batch, Err(error.clone()));
        }
    }

    fn acknowledge(&mut self, batch: Batch, base_offset: Option<Offset>, append_time: Option<i64>) {
        let partition = batch.partition.clone();
        self.finish(batch, Ok(BatchAcknowledged { partition, base_offset, append_time }));
    }

    pub(super) fn finish(&mut self, batch: Batch, outcome: Result<BatchAcknowledged>) {
        self.core.memory.give_back(batch.reserved);
        self.core
            .tally
            .finish(u64::from(batch.records.header().records_count.unsigned_abs()), outcome.is_ok());
        let failure = outcome.as_ref().err().cloned();
        // Whoever waits for a flush looks at what has been told of records next.
        if let Some(waiter) = batch.notify {
            waiter.tell(outcome);
        }
        self.flushes.done(batch.generation, failure.as_ref());
    }
}
