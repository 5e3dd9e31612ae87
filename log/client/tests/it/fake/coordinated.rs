//! A group of one member that the coordinator assigns to (KIP-848).

use thalweg_protocol::Uuid;
use thalweg_protocol::messages::consumer_group_heartbeat::{
    Assignment, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};

use super::{Fake, State};

/// Where the group is.
#[derive(Default)]
pub(super) struct Coordinated {
    epoch: i32,
    /// What the member is to have, if that is not all partitions.
    assigned: Option<Vec<i32>>,
    /// The member has not been told.
    is_news: bool,
}

impl Fake {
    /// The member is to have these partitions from now on.
    pub fn assign(&self, partitions: &[i32]) {
        let mut state = self.state.lock();
        state.coordinated.epoch += 1;
        state.coordinated.assigned = Some(partitions.to_vec());
        state.coordinated.is_news = true;
    }
}

impl State {
    pub(super) fn heartbeat(
        &mut self,
        request: ConsumerGroupHeartbeatRequest,
        code: i16,
    ) -> ConsumerGroupHeartbeatResponse {
        let mut response =
            ConsumerGroupHeartbeatResponse { error_code: code, ..ConsumerGroupHeartbeatResponse::default() };
        if code != 0 {
            return response;
        }
        let group = &mut self.coordinated;
        if request.member_epoch == 0 {
            group.epoch += 1;
            group.is_news = true;
        }
        let all = (0..self.partitions.len() as i32).collect();
        if request.member_epoch >= 0 && std::mem::take(&mut group.is_news) {
            let partitions = group.assigned.clone().unwrap_or(all);
            let topic = TopicPartitions { topic_id: Uuid([self.created; 16]), partitions };
            response.assignment = Some(Assignment { topic_partitions: vec![topic] });
        }
        response.member_id = Some(request.member_id);
        response.member_epoch = if request.member_epoch < 0 { request.member_epoch } else { group.epoch };
        response.heartbeat_interval_ms = 10;
        response
    }
}
