//! Where the time of requests goes.

use std::time::{Duration, Instant};

use thalweg_protocol::messages::ApiKey;

use super::histogram::Histogram;
use super::seldom::Seldom;
use crate::handlers::Client;

/// When what happened to a request. The time before `begun` is the client's and the network's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    /// It was there whole, and its handler began.
    pub(crate) begun: Instant,
    /// It had had its effect.
    pub(crate) took_effect: Instant,
    /// Its answer was there.
    pub(crate) answered: Instant,
}

impl Course {
    /// That of a request whose answer is there as soon as it has begun.
    pub(crate) fn at_once(begun: Instant, now: Instant) -> Self {
        Self { begun, took_effect: now, answered: now }
    }

    /// From the beginning to the effect: the handler, and whatever it waited for.
    fn effect(&self) -> Duration {
        self.took_effect.saturating_duration_since(self.begun)
    }

    /// From the effect to the answer: syncs, replicas, data that was not there yet.
    fn wait(&self) -> Duration {
        self.answered.saturating_duration_since(self.took_effect)
    }
}

/// Counts requests by API, and tells of those that took too long.
#[derive(Debug)]
pub(crate) struct Requests {
    /// By key.
    by_api: Vec<OfApi>,
    /// `None` tells of none.
    slow: Option<Duration>,
    told: Seldom,
}

#[derive(Debug, Default)]
pub(super) struct OfApi {
    pub(super) effect: Histogram,
    pub(super) wait: Histogram,
}

impl Requests {
    /// Tells of requests that take `slow_ms` or longer; 0 tells of none.
    pub(crate) fn new(slow_ms: u64) -> Self {
        let most = ApiKey::ALL.iter().map(|api| *api as i16 as usize).max().unwrap_or_default();
        Self {
            by_api: std::iter::repeat_with(OfApi::default).take(most + 1).collect(),
            slow: (slow_ms > 0).then(|| Duration::from_millis(slow_ms)),
            told: Seldom::default(),
        }
    }

    /// Takes note of a request whose answer is about to leave.
    pub(crate) fn note(&self, api: ApiKey, client: &Client, course: &Course) {
        let Some(of_api) = self.by_api.get(api as i16 as usize) else { return };
        let (effect, wait) = (course.effect(), course.wait());
        of_api.effect.count(effect);
        of_api.wait.count(wait);
        let counted = if waits_as_asked(api) { Duration::ZERO } else { effect + wait };
        if self.slow.is_some_and(|slow| counted >= slow)
            && let Some(since) = self.told.due(course.answered)
        {
            tracing::warn!(
                %api,
                client = %client.host(),
                effect_ms = effect.as_millis() as u64,
                wait_ms = wait.as_millis() as u64,
                slow_since_last_told = since,
                "a request took long: effect is the time until it was carried out, wait that until it was synced and replicated"
            );
        }
    }

    /// The APIs that have been called, with what was counted of each.
    pub(super) fn called(&self) -> impl Iterator<Item = (ApiKey, &OfApi)> {
        let all = ApiKey::ALL.iter().filter_map(|&api| Some((api, self.by_api.get(api as i16 as usize)?)));
        all.filter(|(_, of_api)| of_api.effect.counted().count > 0)
    }
}

/// Whether requests of this API take as long as the client, or other members of its group, have them take.
fn waits_as_asked(api: ApiKey) -> bool {
    matches!(api, ApiKey::Fetch | ApiKey::JoinGroup | ApiKey::SyncGroup | ApiKey::ShareFetch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_api_and_by_where_their_time_went() {
        let requests = Requests::new(0);
        let begun = Instant::now();
        let took_effect = begun + Duration::from_millis(2);
        let course = Course { begun, took_effect, answered: took_effect + Duration::from_millis(30) };
        let client = Client::new(None);
        requests.note(ApiKey::Produce, &client, &course);
        requests.note(ApiKey::Produce, &client, &Course::at_once(begun, took_effect));
        let called: Vec<_> = requests.called().collect();
        let [(ApiKey::Produce, produce)] = called[..] else { panic!("{called:?}") };
        assert_eq!(produce.effect.counted().sum_seconds, 0.004);
        assert_eq!(produce.wait.counted().sum_seconds, 0.03);
        assert_eq!((produce.effect.counted().count, produce.wait.counted().count), (2, 2));
    }
}
