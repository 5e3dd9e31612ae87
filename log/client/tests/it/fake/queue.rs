//! A share group of one member (KIP-932), with a session on each node.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use thalweg_protocol::messages::share_acknowledge::{
    self, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareAcknowledgeTopicResponse,
};
use thalweg_protocol::messages::share_fetch::{
    AcquiredRecords, LeaderIdAndEpoch, PartitionData, ShareFetchRequest, ShareFetchResponse,
    ShareFetchableTopicResponse,
};
use thalweg_protocol::messages::share_group_heartbeat::{
    Assignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, TopicPartitions,
};
use thalweg_protocol::messages::{Request, Response};
use thalweg_protocol::{ErrorCode, Records, Uuid};

use super::{Fake, State};

/// What was said of records: the node it was said to, the partition, the offsets, and what.
pub type SaidTo = (i32, i32, i64, i64, i8);

/// Where the group is.
#[derive(Default)]
pub(super) struct Queue {
    epoch: i32,
    sessions: HashMap<i32, Session>,
    /// What has not been delivered begins here, by partition.
    next: BTreeMap<i32, i64>,
    said: Vec<SaidTo>,
}

#[derive(Default)]
struct Session {
    /// Of the next request.
    epoch: i32,
    partitions: BTreeSet<i32>,
}

impl Fake {
    /// What was said of records, in order.
    pub fn said(&self) -> Vec<SaidTo> {
        self.state.lock().queue.said.clone()
    }
}

/// Whether a refusal is one of the whole request.
fn is_whole(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ShareSessionNotFound
            | ErrorCode::InvalidShareSessionEpoch
            | ErrorCode::ShareSessionLimitReached
            | ErrorCode::GroupAuthorizationFailed
    )
}

impl Queue {
    /// Goes on with the session of a node, opens it or ends it.
    fn enter(&mut self, node: i32, epoch: i32) -> Result<(), ErrorCode> {
        match epoch {
            0 => {
                self.sessions.insert(node, Session { epoch: 1, ..Session::default() });
                return Ok(());
            }
            -1 => return self.sessions.remove(&node).map(|_| ()).ok_or(ErrorCode::ShareSessionNotFound),
            _ => {}
        }
        let session = self.sessions.get_mut(&node).ok_or(ErrorCode::ShareSessionNotFound)?;
        if session.epoch != epoch {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        session.epoch += 1;
        Ok(())
    }
}

impl State {
    pub(super) fn answer_shared(
        &mut self,
        node: i32,
        request: Request,
        refusal: Option<ErrorCode>,
    ) -> Response {
        match request {
            Request::ShareGroupHeartbeat(request) => self.share_heartbeat(request, refusal).into(),
            Request::ShareFetch(request) => self.share_fetch(node, request, refusal).into(),
            Request::ShareAcknowledge(request) => self.share_acknowledge(node, request, refusal).into(),
            other => panic!("the fake does not know {}", other.api_key()),
        }
    }

    fn share_heartbeat(
        &mut self,
        request: ShareGroupHeartbeatRequest,
        refusal: Option<ErrorCode>,
    ) -> ShareGroupHeartbeatResponse {
        if let Some(code) = refusal {
            return ShareGroupHeartbeatResponse { error_code: code.code(), ..Default::default() };
        }
        let joins = request.member_epoch == 0;
        self.queue.epoch += i32::from(joins);
        let partitions = (0..self.partitions.len() as i32).collect();
        let topic = TopicPartitions { topic_id: Uuid([self.created; 16]), partitions };
        ShareGroupHeartbeatResponse {
            member_id: Some(request.member_id),
            member_epoch: if request.member_epoch < 0 { request.member_epoch } else { self.queue.epoch },
            heartbeat_interval_ms: 10,
            assignment: joins.then(|| Assignment { topic_partitions: vec![topic] }),
            ..Default::default()
        }
    }

    fn share_fetch(
        &mut self,
        node: i32,
        request: ShareFetchRequest,
        refusal: Option<ErrorCode>,
    ) -> ShareFetchResponse {
        let whole = |code: ErrorCode| ShareFetchResponse { error_code: code.code(), ..Default::default() };
        if let Some(code) = refusal.filter(|code| is_whole(*code)) {
            self.queue.sessions.remove(&node);
            return whole(code);
        }
        if let Err(code) = self.queue.enter(node, request.share_session_epoch) {
            return whole(code);
        }
        let mut acknowledged = BTreeSet::new();
        for asked in request.topics.iter().flat_map(|topic| &topic.partitions) {
            let session = self.queue.sessions.get_mut(&node).expect("it is open");
            session.partitions.insert(asked.partition_index);
            for batch in &asked.acknowledgement_batches {
                acknowledged.insert(asked.partition_index);
                let (first, last) = (batch.first_offset, batch.last_offset);
                let what = batch.acknowledge_types[0];
                self.queue.said.push((node, asked.partition_index, first, last, what));
            }
        }
        let gone = request.forgotten_topics_data.iter().flat_map(|topic| &topic.partitions);
        let session = self.queue.sessions.get_mut(&node).expect("it is open");
        gone.for_each(|partition| assert!(session.partitions.remove(partition)));
        let partitions: Vec<i32> = session.partitions.iter().copied().collect();
        let answers = partitions.into_iter().filter_map(|partition| {
            let answer = self.deliver(node, partition, refusal);
            (!answer.acquired_records.is_empty()
                || answer.error_code != 0
                || acknowledged.contains(&partition))
            .then_some(answer)
        });
        let answers: Vec<PartitionData> = answers.collect();
        let topic_id = Uuid([self.created; 16]);
        ShareFetchResponse {
            acquisition_lock_timeout_ms: 30_000,
            responses: vec![ShareFetchableTopicResponse { topic_id, partitions: answers }],
            ..Default::default()
        }
    }

    fn deliver(&mut self, node: i32, index: i32, refusal: Option<ErrorCode>) -> PartitionData {
        let partition = &self.partitions[index as usize];
        let mut answer = PartitionData { partition_index: index, ..Default::default() };
        if partition.leader != node {
            answer.error_code = ErrorCode::NotLeaderOrFollower.code();
            answer.current_leader =
                LeaderIdAndEpoch { leader_id: partition.leader, leader_epoch: partition.epoch };
            return answer;
        }
        if let Some(code) = refusal {
            answer.error_code = code.code();
            return answer;
        }
        let next = self.queue.next.entry(index).or_default();
        let new = partition.log.iter().filter(|batch| batch.header().base_offset.0 >= *next);
        let bytes: Vec<u8> = new.flat_map(|batch| batch.bytes().to_vec()).collect();
        if *next < partition.end {
            let (first_offset, last_offset) = (*next, partition.end - 1);
            answer.acquired_records = vec![AcquiredRecords { first_offset, last_offset, delivery_count: 1 }];
        }
        answer.records = Some(Records::Bytes(Bytes::from(bytes)));
        *next = partition.end;
        answer
    }

    fn share_acknowledge(
        &mut self,
        node: i32,
        request: ShareAcknowledgeRequest,
        refusal: Option<ErrorCode>,
    ) -> ShareAcknowledgeResponse {
        let whole =
            |code: ErrorCode| ShareAcknowledgeResponse { error_code: code.code(), ..Default::default() };
        if let Some(code) = refusal.filter(|code| is_whole(*code)) {
            self.queue.sessions.remove(&node);
            return whole(code);
        }
        if let Err(code) = self.queue.enter(node, request.share_session_epoch) {
            return whole(code);
        }
        let mut responses = Vec::new();
        for topic in request.topics {
            let mut partitions = Vec::new();
            for asked in topic.partitions {
                let error_code = refusal.unwrap_or(ErrorCode::None).code();
                let partition_index = asked.partition_index;
                partitions.push(share_acknowledge::PartitionData {
                    partition_index,
                    error_code,
                    ..Default::default()
                });
                for batch in asked.acknowledgement_batches.iter().filter(|_| refusal.is_none()) {
                    let (first, last) = (batch.first_offset, batch.last_offset);
                    self.queue.said.push((node, partition_index, first, last, batch.acknowledge_types[0]));
                }
            }
            responses.push(ShareAcknowledgeTopicResponse { topic_id: topic.topic_id, partitions });
        }
        ShareAcknowledgeResponse { responses, ..Default::default() }
    }
}
