//! Many things asked for at once, each with an answer of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::{ConnectionError, ErrorCode, NodeId};
use tokio::time::Instant;

use crate::cluster::{Cluster, Retry};
use crate::error::{Error, ErrorKind, Result};
use crate::node::Node;

/// What a broker said of each thing that it was asked about.
pub(crate) type Answers<K, R> = Result<Vec<(K, Result<R>)>>;

/// What is still asked for, and what has been answered.
///
/// A refusal that passes leaves its thing open for the next attempt. That a topic is unknown passes only for the time
/// that [`ClientConfig::unknown_topic_wait_ms`](crate::ClientConfig::unknown_topic_wait_ms) gives it.
pub(crate) struct Asking<K, T, R> {
    api: ApiKey,
    open: BTreeMap<K, T>,
    found: BTreeMap<K, Result<R>>,
    /// How the newest attempt failed for what is open.
    failures: BTreeMap<K, Error>,
    /// What an attempt may have done though its answer did not come.
    may_be_done: BTreeSet<K>,
    retry: Retry,
    unknown_until: Instant,
}

impl<K: Ord + Clone, T: Clone, R> Asking<K, T, R> {
    pub(crate) fn new(cluster: &Cluster, api: ApiKey, operation: &'static str, open: BTreeMap<K, T>) -> Self {
        let patience = Duration::from_millis(cluster.config().unknown_topic_wait_ms);
        Self {
            api,
            open,
            found: BTreeMap::new(),
            failures: BTreeMap::new(),
            may_be_done: BTreeSet::new(),
            retry: cluster.retry(operation),
            unknown_until: Instant::now() + patience,
        }
    }

    /// What has no answer yet.
    pub(crate) fn open(&self) -> &BTreeMap<K, T> {
        &self.open
    }

    /// Whether an attempt may have done this before, though its answer did not come.
    pub(crate) fn may_be_done(&self, key: &K) -> bool {
        self.may_be_done.contains(key)
    }

    /// Takes in what was said of one thing.
    pub(crate) fn settle(&mut self, key: K, answer: Result<R>) {
        if !self.open.contains_key(&key) {
            return;
        }
        match answer {
            Err(error) if self.passes(&error) => {
                if is_lost(&error) || error.code() == Some(ErrorCode::RequestTimedOut) {
                    self.may_be_done.insert(key.clone());
                }
                self.failures.insert(key, error);
            }
            answer => {
                self.open.remove(&key);
                self.found.insert(key, answer);
            }
        }
    }

    /// Takes in what was said of some things, or why nothing was said of them.
    pub(crate) fn settle_all(&mut self, asked: impl IntoIterator<Item = K>, answers: Answers<K, R>) {
        match answers {
            Ok(answers) => answers.into_iter().for_each(|(key, answer)| self.settle(key, answer)),
            Err(error) => asked.into_iter().for_each(|key| self.settle(key, Err(error.clone()))),
        }
    }

    /// Whether something has been refused for good.
    pub(crate) fn has_failed(&self) -> bool {
        self.found.values().any(Result::is_err)
    }

    fn passes(&self, error: &Error) -> bool {
        let is_unknown = matches!(error, Error::UnknownTopic { .. })
            || matches!(error.code(), Some(ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId));
        match is_unknown {
            true => Instant::now() < self.unknown_until,
            false => error.kind() == ErrorKind::Retry,
        }
    }

    /// Waits before the next attempt. `false` when there is none to be made: everything has its answer then.
    pub(crate) async fn pause(&mut self) -> bool {
        // What an answer left out will not be in the next one.
        let api = self.api;
        for key in self.open.keys().filter(|key| !self.failures.contains_key(key)) {
            let missing = Error::BadAnswer { api, reason: "what was asked for is missing from it" };
            self.found.insert(key.clone(), Err(missing));
        }
        self.open.retain(|key, _| self.failures.contains_key(key));
        if self.open.is_empty() {
            return false;
        }
        let has_time = self.retry.wait().await;
        let failures = std::mem::take(&mut self.failures);
        if !has_time {
            self.open.clear();
            for (key, failure) in failures {
                self.found.insert(key, Err(self.retry.timed_out(failure)));
            }
        }
        has_time
    }

    pub(crate) fn finish(self) -> BTreeMap<K, Result<R>> {
        self.found
    }
}

/// Whether a request may have taken effect though its answer did not come.
pub(crate) fn is_lost(error: &Error) -> bool {
    match error {
        Error::Connection { source, .. } => !matches!(source, ConnectionError::Refused { .. }),
        _ => false,
    }
}

/// Asks brokers, each the same, until each has answered.
pub(crate) async fn ask_brokers<T: Clone, R>(
    cluster: &Arc<Cluster>,
    api: ApiKey,
    operation: &'static str,
    brokers: BTreeMap<NodeId, T>,
    ask: impl Fn(Arc<Node>, T) -> BoxFuture<'static, Result<R>>,
) -> BTreeMap<NodeId, Result<R>> {
    let mut asking = Asking::new(cluster, api, operation, brokers);
    loop {
        let calls = asking.open().clone().into_iter().map(|(id, what)| {
            let ask = &ask;
            async move {
                let answer = match cluster.find_node(id).await {
                    Ok(node) => ask(node, what).await,
                    Err(error) => Err(error),
                };
                (id, answer)
            }
        });
        for (id, answer) in join_all(calls).await {
            asking.settle(id, answer);
        }
        if !asking.pause().await {
            return asking.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_was_sent_can_be_lost() {
        let connection = |source| Error::Connection { address: "b:1".to_owned(), source };
        let refused = ConnectionError::Refused { address: "b:1".to_owned(), reason: "down".to_owned() };
        let closed = ConnectionError::Closed { reason: "gone".to_owned() };
        for (error, lost) in [
            (connection(refused), false),
            (connection(closed), true),
            (connection(ConnectionError::TimedOut { timeout_ms: 1 }), true),
            (Error::Closed, false),
        ] {
            assert_eq!(is_lost(&error), lost, "{error}");
        }
    }
}
