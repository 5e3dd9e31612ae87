//! Topics that there are, and topics that are deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use bytestring::ByteString;
use futures::future::join_all;
use thalweg_protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use thalweg_protocol::messages::{Api, ApiKey};
use thalweg_protocol::{ErrorCode, Uuid};

use super::{Admin, Route, checked, keyed};
use crate::asking::is_lost;
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::TopicMetadata;

/// The first version of DeleteTopics that takes names or ids.
const NAMES_AND_IDS: i16 = 6;

impl Admin {
    /// Deletes a topic with all its records, and waits a moment for the cluster to have forgotten it.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic) when there is none.
    pub async fn delete_topic(&self, name: &str) -> Result<()> {
        let request = |version: i16| DeleteTopicsRequest {
            topics: match version {
                NAMES_AND_IDS.. => vec![DeleteTopicState { name: Some(name.into()), topic_id: Uuid::ZERO }],
                _ => Vec::new(),
            },
            topic_names: if version < NAMES_AND_IDS { vec![name.into()] } else { Vec::new() },
            timeout_ms: self.timeout_ms(),
        };
        let mut retry = self.cluster.retry("deleting a topic");
        let mut may_be_gone = false;
        loop {
            match self.delete_topic_once(name, request).await {
                Ok(()) => break,
                Err(error) if is_unknown_topic(&error) && may_be_gone => break,
                Err(error) if is_unknown_topic(&error) => {
                    return Err(Error::UnknownTopic { topic: ByteString::from(name) });
                }
                Err(error) if error.kind() == ErrorKind::Retry => {
                    may_be_gone |= is_lost(&error) || error.code() == Some(ErrorCode::RequestTimedOut);
                    retry.pause(error).await?;
                    self.look_for(Route::Controller).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.wait_until_gone(&ByteString::from(name)).await;
        Ok(())
    }

    /// Deletes topics with all their records, and waits a moment for the cluster to have forgotten them; each has a
    /// result of its own.
    pub async fn delete_topics(&self, names: &[&str]) -> BTreeMap<ByteString, Result<()>> {
        let names = keyed(names.iter().map(|name| ByteString::from(*name)));
        let deleting = names.into_keys().map(|name| async move {
            let deleted = self.delete_topic(&name).await;
            (name, deleted)
        });
        join_all(deleting).await.into_iter().collect()
    }

    /// All topics with their partitions, internal ones included, in the order of their names.
    ///
    /// # Errors
    /// Whatever keeps the cluster from answering.
    pub async fn list_topics(&self) -> Result<Vec<TopicMetadata>> {
        let metadata = self.cluster.refresh_all().await?;
        Ok(metadata.topics().into_iter().cloned().collect())
    }

    /// One topic with its partitions: leaders, epochs, replicas, in sync or not.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`](crate::Error::UnknownTopic) when there is none.
    pub async fn describe_topic(&self, name: &str) -> Result<TopicMetadata> {
        let name = ByteString::from(name);
        let metadata = self.cluster.look_up(&name).await?;
        metadata.topic(&name).cloned().ok_or(Error::UnknownTopic { topic: name })
    }

    async fn delete_topic_once(
        &self,
        name: &str,
        request: impl Fn(i16) -> DeleteTopicsRequest,
    ) -> Result<()> {
        let node = self.node(Route::Controller).await?;
        let version = node.offered().pick(ApiKey::DeleteTopics, DeleteTopicsRequest::VERSIONS)?;
        let response = node.call_in(version, request(version), Duration::ZERO).await?;
        let missing = Error::BadAnswer { api: ApiKey::DeleteTopics, reason: "the topic is missing from it" };
        let result = response.responses.into_iter().next().ok_or(missing)?;
        let subject = || format!("topic {name}");
        checked(ApiKey::DeleteTopics, result.error_code, result.error_message, subject, ())
    }

    /// A deleted topic may show in a broker's metadata for a moment. One that stays has been created again; and
    /// whether it can be seen or not, it is deleted.
    async fn wait_until_gone(&self, name: &ByteString) {
        let patience = Duration::from_millis(self.cluster.config().unknown_topic_wait_ms);
        let mut retry = self.cluster.retry_within("waiting for a topic to be gone", patience);
        loop {
            self.cluster.want([name]);
            let stays = match self.cluster.refresh().await {
                Ok(metadata) if metadata.topic(name).is_none() => break,
                Ok(_) => Error::UnknownTopic { topic: name.clone() },
                Err(error) => error,
            };
            if retry.pause(stays).await.is_err() {
                break;
            }
        }
        self.cluster.forget(name);
    }
}

fn is_unknown_topic(error: &Error) -> bool {
    error.code() == Some(ErrorCode::UnknownTopicOrPartition)
}
