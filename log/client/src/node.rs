//! A connection to one broker, with the versions that were negotiated on it.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytestring::ByteString;
use parking_lot::Mutex;
use thalweg_protocol::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use thalweg_protocol::messages::{Api, ApiKey, Request, Response};
use thalweg_protocol::{Connect, Connection, ConnectionError, ErrorCode};
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::{Error, Result};
use crate::throttle::pause_after;

/// The version of ApiVersions that is tried first; every broker since Kafka 2.4 knows it or says what it
/// knows.
const FIRST_API_VERSIONS: i16 = 4;

/// The longest that a broker is obeyed when it wants nothing sent to it: longer than any window of its quotas.
const LONGEST_THROTTLE: Duration = Duration::from_secs(3600);

/// A connection whose broker's versions are known.
pub(crate) struct Node {
    address: String,
    connection: Arc<dyn Connection>,
    offered: Offered,
    request_timeout: Duration,
    /// Set when a request got no answer in time: those behind it would not either.
    is_stuck: AtomicBool,
    /// Guards until when the broker wants nothing sent to it.
    throttled_until: Mutex<Option<Instant>>,
}

/// What a broker offers.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    /// Of the broker, for errors.
    address: String,
    versions: HashMap<i16, (i16, i16)>,
    features: HashMap<ByteString, i16>,
}

impl Offered {
    fn new(address: String, response: ApiVersionsResponse) -> Self {
        let keys = response.api_keys.into_iter();
        let features = response.finalized_features.into_iter();
        Self {
            address,
            versions: keys.map(|key| (key.api_key, (key.min_version, key.max_version))).collect(),
            features: features.map(|feature| (feature.name, feature.max_version_level)).collect(),
        }
    }

    /// The highest version within `ours` that the broker offers.
    pub(crate) fn pick(&self, api: ApiKey, ours: RangeInclusive<i16>) -> Result<i16> {
        let theirs = self.versions.get(&(api as i16)).copied();
        let (ours_min, ours_max) = (*ours.start(), *ours.end());
        if let Some((min, max)) = theirs {
            let best = max.min(ours_max);
            if best >= min.max(ours_min) {
                return Ok(best);
            }
        }
        Err(Error::UnsupportedVersion { broker: self.address.clone(), api, ours_min, ours_max, theirs })
    }

    /// The level of a finalised feature of the cluster, 0 when it has none.
    pub(crate) fn feature(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or_default()
    }
}

impl Node {
    /// Connects to the broker at `host` and `port` and asks what it offers.
    pub(crate) async fn open(
        connector: Arc<dyn Connect>,
        host: &str,
        port: u16,
        request_timeout: Duration,
    ) -> Result<Self> {
        let address = format!("{host}:{port}");
        let failed = |source| Error::Connection { address: address.clone(), source };
        let connection = connector.connect(host, port).await.map_err(failed)?;
        let mut version = FIRST_API_VERSIONS;
        loop {
            let request = ApiVersionsRequest {
                client_software_name: ByteString::from_static("thalweg"),
                client_software_version: ByteString::from_static(env!("CARGO_PKG_VERSION")),
                ..ApiVersionsRequest::default()
            };
            let answer = timeout(request_timeout, connection.send(request.into(), version)).await;
            let answer = answer.unwrap_or_else(|_| Err(timed_out(request_timeout))).map_err(failed)?;
            let response = typed::<ApiVersionsRequest>(answer)?;
            match ErrorCode::from(response.error_code) {
                ErrorCode::None => {
                    let offered = Offered::new(address.clone(), response);
                    let is_stuck = AtomicBool::new(false);
                    let throttled_until = Mutex::default();
                    return Ok(Self {
                        address,
                        connection,
                        offered,
                        request_timeout,
                        is_stuck,
                        throttled_until,
                    });
                }
                ErrorCode::UnsupportedVersion if version > 0 => {
                    let known =
                        response.api_keys.iter().find(|key| key.api_key == ApiKey::ApiVersions as i16);
                    version = known.map_or(0, |key| key.max_version.clamp(0, version - 1));
                }
                code => {
                    let subject = address.clone();
                    return Err(Error::Broker { api: ApiKey::ApiVersions, code, subject, message: None });
                }
            }
        }
    }

    pub(crate) fn offered(&self) -> &Offered {
        &self.offered
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed) || self.connection.is_closed()
    }

    /// Until when the broker wants nothing sent to it, because a quota is used up (KIP-219). Who sends without waiting
    /// has to look at it; [`Node::call_in`] and what goes through it wait.
    pub(crate) fn throttled_until(&self) -> Option<Instant> {
        let mut until = self.throttled_until.lock();
        *until = until.filter(|until| *until > Instant::now());
        *until
    }

    fn note_throttle(&self, response: &Response) {
        if let Some(pause) = pause_after(response) {
            let until = Instant::now() + pause.min(LONGEST_THROTTLE);
            let mut known = self.throttled_until.lock();
            *known = Some(known.map_or(until, |known| known.max(until)));
        }
    }

    /// Calls an API in the highest version that both sides know.
    pub(crate) async fn call<A: Api>(self: &Arc<Self>, request: A) -> Result<A::Response> {
        self.call_within(request, A::VERSIONS, Duration::ZERO).await
    }

    /// Calls an API in the highest version that the broker knows of `versions`; the broker may wait for
    /// `extra` before it answers.
    pub(crate) async fn call_within<A: Api>(
        self: &Arc<Self>,
        request: A,
        versions: RangeInclusive<i16>,
        extra: Duration,
    ) -> Result<A::Response> {
        let version = self.offered.pick(A::KEY, versions)?;
        self.call_in(version, request, extra).await
    }

    /// Calls an API in a version that has been picked.
    pub(crate) async fn call_in<A: Api>(
        self: &Arc<Self>,
        version: i16,
        request: A,
        extra: Duration,
    ) -> Result<A::Response> {
        while let Some(until) = self.throttled_until() {
            sleep_until(until).await;
        }
        let response = self.send(request.into_request(), version, extra).await?;
        typed::<A>(response)
    }

    /// Puts a request in the connection's line now; the future is its answer.
    pub(crate) fn send(
        self: &Arc<Self>,
        request: Request,
        version: i16,
        extra: Duration,
    ) -> impl Future<Output = Result<Response>> + Send + 'static + use<> {
        let answer = self.connection.send(request, version);
        let node = Arc::clone(self);
        async move {
            let limit = node.request_timeout + extra;
            let answer = timeout(limit, answer).await.unwrap_or_else(|_| {
                node.is_stuck.store(true, Ordering::Relaxed);
                Err(timed_out(limit))
            });
            if let Ok(response) = &answer {
                node.note_throttle(response);
            }
            answer.map_err(|source| Error::Connection { address: node.address.clone(), source })
        }
    }
}

fn timed_out(limit: Duration) -> ConnectionError {
    ConnectionError::TimedOut { timeout_ms: limit.as_millis() as u64 }
}

/// The response as the one of `A`.
pub(crate) fn typed<A: Api>(response: Response) -> Result<A::Response> {
    A::Response::try_from(response)
        .map_err(|_| Error::BadAnswer { api: A::KEY, reason: "it is the answer to another API" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_picked() {
        let offered = Offered {
            address: "b:1".to_owned(),
            versions: HashMap::from([(0, (3, 9)), (1, (14, 20)), (66, (1, 1))]),
            features: HashMap::new(),
        };
        assert_eq!(offered.pick(ApiKey::Produce, 3..=13).ok(), Some(9));
        assert_eq!(offered.pick(ApiKey::Produce, 3..=5).ok(), Some(5));
        assert_eq!(offered.pick(ApiKey::Fetch, 4..=18).ok(), Some(18));
        let error = offered.pick(ApiKey::Fetch, 4..=13).expect_err("no version in common");
        assert_eq!(
            error.to_string(),
            "b:1 does not offer Fetch in a version from 4 to 13, only from 14 to 20"
        );
        let error = offered.pick(ApiKey::ListTransactions, 2..=2).expect_err("no version in common");
        assert_eq!(
            error.to_string(),
            "b:1 does not offer ListTransactions in a version from 2 to 2, only from 1 to 1; Apache Kafka has \
             ListTransactions since 3.0 (its version 2 since 4.1): ask a broker that does, or do without"
        );
        assert!(offered.pick(ApiKey::EndTxn, 0..=5).is_err());
    }
}
