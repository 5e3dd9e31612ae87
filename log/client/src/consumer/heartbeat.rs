//! Staying in a group: the task that sends heartbeats.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::heartbeat::HeartbeatRequest;
use thalweg_protocol::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::join::Identity;
use super::offsets::GroupMetadata;
use crate::coordinator::Coordinator;
use crate::error::{Error, Result};

/// What the heartbeats have found out, for the next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// The group rebalances.
    Rejoin,
    /// The member is out of the group.
    Lost,
    /// Another member has taken over the instance id.
    Fenced,
}

/// What poll and the heartbeats tell each other.
pub(super) struct Pulse {
    /// Guards the signal and the time of the last poll.
    state: Mutex<(Option<Signal>, Instant)>,
    /// Wakes a poll that waits.
    wake: Arc<Notify>,
}

impl Pulse {
    pub(super) fn new(wake: Arc<Notify>) -> Self {
        Self { state: Mutex::new((None, Instant::now())), wake }
    }

    pub(super) fn polled(&self) {
        self.state.lock().1 = Instant::now();
    }

    pub(super) fn take_signal(&self) -> Option<Signal> {
        self.state.lock().0.take()
    }

    pub(super) fn has_signal(&self) -> bool {
        self.state.lock().0.is_some()
    }

    fn signal(&self, signal: Signal) {
        self.state.lock().0 = Some(signal);
        self.wake.notify_one();
    }

    fn since_poll(&self) -> Duration {
        self.state.lock().1.elapsed()
    }
}

/// Sends heartbeats in one generation until something happens.
pub(super) async fn beat(
    coordinator: Arc<Coordinator>,
    identity: Arc<Identity>,
    pulse: Arc<Pulse>,
    interval: Duration,
    max_poll_interval: Duration,
) {
    let member = identity.metadata();
    loop {
        sleep(interval).await;
        if pulse.since_poll() > max_poll_interval {
            tracing::warn!(group = %member.group, "no poll for max_poll_interval_ms: leaving the group");
            // Should that fail, the session timeout does it.
            let _ = leave(&coordinator, &member, "max_poll_interval_ms exceeded").await;
            identity.forget();
            pulse.signal(Signal::Lost);
            return;
        }
        match beat_once(&coordinator, &member).await {
            Ok(None) => {}
            Ok(Some(Signal::Rejoin)) => pulse.signal(Signal::Rejoin),
            Ok(Some(signal)) => {
                pulse.signal(signal);
                return;
            }
            Err(error) => tracing::debug!(group = %member.group, %error, "a heartbeat failed"),
        }
    }
}

async fn beat_once(coordinator: &Coordinator, member: &GroupMetadata) -> Result<Option<Signal>> {
    let request = HeartbeatRequest {
        group_id: member.group.clone(),
        generation_id: member.generation,
        member_id: member.member_id.clone(),
        group_instance_id: member.instance_id.clone(),
    };
    let response = coordinator.call(request, i16::MAX, Duration::ZERO).await?;
    match ErrorCode::from(response.error_code) {
        ErrorCode::None => Ok(None),
        ErrorCode::RebalanceInProgress => Ok(Some(Signal::Rejoin)),
        ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => Ok(Some(Signal::Lost)),
        ErrorCode::FencedInstanceId => Ok(Some(Signal::Fenced)),
        code => Err(coordinator.refused(ApiKey::Heartbeat, code)),
    }
}

/// Leaves the group.
pub(super) async fn leave(
    coordinator: &Coordinator,
    member: &GroupMetadata,
    reason: &'static str,
) -> Result<()> {
    let node = coordinator.node().await?;
    let version = node.offered().pick(ApiKey::LeaveGroup, 0..=5)?;
    let mut request = LeaveGroupRequest { group_id: member.group.clone(), ..LeaveGroupRequest::default() };
    if version >= 3 {
        request.members = vec![MemberIdentity {
            member_id: member.member_id.clone(),
            group_instance_id: member.instance_id.clone(),
            reason: Some(ByteString::from_static(reason)),
        }];
    } else {
        request.member_id = member.member_id.clone();
    }
    let response = node.call_in(version, request, Duration::ZERO).await?;
    let of_member = response.members.first().map_or(0, |member| member.error_code);
    match [response.error_code, of_member].map(ErrorCode::from) {
        [ErrorCode::None, ErrorCode::None | ErrorCode::UnknownMemberId] => Ok(()),
        [ErrorCode::UnknownMemberId, _] => Ok(()),
        [ErrorCode::None, code] | [code, _] => Err(Error::Broker {
            api: ApiKey::LeaveGroup,
            code,
            subject: coordinator.subject(),
            message: None,
        }),
    }
}
