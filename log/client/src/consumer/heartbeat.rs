//! Staying in a group: heartbeats.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::heartbeat::HeartbeatRequest;
use thalweg_protocol::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::join::Identity;
use super::offsets::GroupMetadata;
use crate::config::ConsumerConfig;
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

    pub(super) fn signal(&self, signal: Signal) {
        self.state.lock().0 = Some(signal);
        self.wake();
    }

    /// Makes the poll that waits look around.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(super) fn since_poll(&self) -> Duration {
        self.state.lock().1.elapsed()
    }
}

/// What beats for a member from the moment it is in a generation, whether or not it is polled: shared by the member
/// and by what takes it from one generation to the next.
pub(super) struct Heart {
    coordinator: Arc<Coordinator>,
    identity: Arc<Identity>,
    pulse: Arc<Pulse>,
    interval: Duration,
    max_poll_interval: Duration,
    /// Guards which task beats, and whether none may any more.
    state: Mutex<HeartState>,
}

#[derive(Default)]
struct HeartState {
    beating: Option<JoinHandle<()>>,
    is_closed: bool,
}

impl Heart {
    pub(super) fn new(
        coordinator: Arc<Coordinator>,
        identity: Arc<Identity>,
        pulse: Arc<Pulse>,
        config: &ConsumerConfig,
    ) -> Self {
        let limit = u64::try_from(config.session_timeout_ms / 3).unwrap_or(u64::MAX);
        Self {
            coordinator,
            identity,
            pulse,
            interval: Duration::from_millis(config.heartbeat_interval_ms.min(limit)),
            max_poll_interval: Duration::from_millis(config.max_poll_interval_ms),
            state: Mutex::default(),
        }
    }

    /// Beats in the generation that the member is in now.
    pub(super) fn start(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        let heart = Arc::clone(self);
        if let Some(before) = state.beating.replace(tokio::spawn(async move { heart.beat().await })) {
            before.abort();
        }
    }

    /// Beats no longer; returns what was found out until then and has not been looked at.
    pub(super) async fn stop(&self) -> Option<Signal> {
        let beating = self.state.lock().beating.take();
        if let Some(beating) = beating {
            beating.abort();
            // It may be about to signal something.
            let _ = beating.await;
        }
        self.pulse.take_signal()
    }

    /// Never beats again.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        if let Some(beating) = state.beating.take() {
            beating.abort();
        }
    }

    /// Sends heartbeats in one generation until something happens.
    async fn beat(&self) {
        let member = self.identity.metadata();
        loop {
            sleep(self.interval).await;
            if self.pulse.since_poll() > self.max_poll_interval {
                tracing::warn!(group = %member.group, "no poll for max_poll_interval_ms: leaving the group");
                // Should that fail, the session timeout does it.
                let _ = leave(&self.coordinator, &member, "max_poll_interval_ms exceeded").await;
                self.identity.forget();
                self.pulse.signal(Signal::Lost);
                return;
            }
            match beat_once(&self.coordinator, &member).await {
                Ok(None) => {}
                Ok(Some(Signal::Rejoin)) => self.pulse.signal(Signal::Rejoin),
                Ok(Some(signal)) => {
                    self.pulse.signal(signal);
                    return;
                }
                Err(error) => tracing::debug!(group = %member.group, %error, "a heartbeat failed"),
            }
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
