//! Keeps the time for a coordinator: wakes it when something is due.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Setting;

/// Waits for deadlines that may come nearer meanwhile, and for a check at regular times.
pub(crate) struct Timekeeper<'a> {
    setting: &'a Setting,
    /// Says that a deadline has come nearer.
    wake: &'a Arc<Notify>,
    check_every: Duration,
    next_check: Instant,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Deadlines have come.
    Deadlines,
    /// Deadlines may have come, and it is time for the regular check.
    Check,
}

impl<'a> Timekeeper<'a> {
    pub(crate) fn new(setting: &'a Setting, wake: &'a Arc<Notify>, check_every: Duration) -> Self {
        Self { setting, wake, check_every, next_check: Instant::now() + check_every }
    }

    /// Waits until something is due; `None` when the broker stops. `deadline` tells the earliest one, in monotonic
    /// ms; it is asked again whenever the coordinator is woken.
    pub(crate) async fn wait(&mut self, deadline: impl Fn() -> Option<u64>) -> Option<Due> {
        loop {
            let at = deadline().map(|deadline| self.setting.clocks.at(deadline));
            let wake_at = at.map_or(self.next_check, |at| at.min(self.next_check));
            tokio::select! {
                () = sleep_until(wake_at) => break,
                () = self.wake.notified() => {}
                () = self.setting.stopped() => return None,
            }
        }
        let now = Instant::now();
        if now < self.next_check {
            return Some(Due::Deadlines);
        }
        self.next_check = now + self.check_every;
        Some(Due::Check)
    }
}
