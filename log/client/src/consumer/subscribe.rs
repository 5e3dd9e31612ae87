//! Taking part in a group: by topics or a pattern of them, under either protocol.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytestring::ByteString;

use super::Consumer;
use super::coordinated::{Coordinated, Subscription};
use super::membership::{Membership, Phase};
use super::pattern::Pattern;
use crate::config::GroupProtocol;
use crate::error::{Error, Result};

impl Consumer {
    /// Shares these topics with the other members of the group. `poll` joins the group and tells what is
    /// assigned.
    ///
    /// Where the coordinator assigns and will not have the member (an assignor that it lacks, a broker without such
    /// groups), `poll` says so once: unsubscribe, and subscribe otherwise.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) without a group or after `assign`.
    pub fn subscribe<T: Into<ByteString>>(&mut self, topics: impl IntoIterator<Item = T>) -> Result<()> {
        let topics: BTreeSet<ByteString> = topics.into_iter().map(Into::into).collect();
        self.check_subscribable("subscribe")?;
        self.pattern = None;
        self.subscribe_to(Subscription { topics: topics.into_iter().collect(), pattern: None });
        Ok(())
    }

    /// Shares the topics whose whole names match this regular expression, those too that are created later (they are
    /// found within `metadata_max_age_ms`, or as the coordinator looks for them). Topics that the cluster keeps for
    /// itself do not match.
    ///
    /// Under [`GroupProtocol::Classic`](crate::GroupProtocol::Classic) each member looks for its topics, in the syntax
    /// of the `regex` crate; under [`GroupProtocol::Consumer`](crate::GroupProtocol::Consumer) the coordinator does, in
    /// that of RE2. What both know is the usual.
    ///
    /// # Errors
    /// [`Error::Misuse`](crate::Error::Misuse) without a group or after `assign`;
    /// [`Error::Config`](crate::Error::Config) for what is no regular expression.
    pub fn subscribe_pattern(&mut self, pattern: &str) -> Result<()> {
        self.check_subscribable("subscribe_pattern")?;
        match self.config.group_protocol {
            GroupProtocol::Consumer => {
                let pattern = Some(ByteString::from(pattern));
                self.subscribe_to(Subscription { topics: Vec::new(), pattern });
            }
            GroupProtocol::Classic => {
                let pattern = Pattern::new(pattern)?;
                let topics = pattern.topics(&self.cluster.metadata()).into_iter().collect();
                self.pattern = Some((pattern, None));
                self.subscribe_to(Subscription { topics, pattern: None });
            }
        }
        Ok(())
    }

    fn check_subscribable(&self, operation: &'static str) -> Result<()> {
        let misuse = |advice| Err(Error::Misuse { operation, advice });
        if self.config.group.is_none() {
            return misuse("set a group in the configuration");
        }
        if !self.is_member() && !self.partitions.is_empty() {
            return misuse("partitions are assigned: call unsubscribe first");
        }
        Ok(())
    }

    fn subscribe_to(&mut self, subscription: Subscription) {
        let group = self.config.group.clone().unwrap_or_default();
        self.fetcher.wants_metadata = true;
        if self.config.group_protocol == GroupProtocol::Consumer {
            match &self.coordinated {
                Some(coordinated) => coordinated.subscribe(subscription),
                None => {
                    let wake = Arc::clone(&self.wake);
                    let joined = Coordinated::new(&self.cluster, &group, &self.config, subscription, wake);
                    self.coordinated = Some(joined);
                }
            }
            return self.hold_topics();
        }
        let membership = self.membership.get_or_insert_with(|| {
            let (config, assignors) = (self.config.clone(), self.assignors.clone());
            Membership::new(&self.cluster, &group, config, assignors, Arc::clone(&self.wake))
        });
        membership.topics = subscription.topics;
        let is_stable = membership.phase == Phase::Stable;
        self.hold_topics();
        if is_stable {
            self.start_rebalance();
        }
    }

    /// Whether topics are subscribed to.
    pub(super) fn is_member(&self) -> bool {
        self.membership.is_some() || self.coordinated.is_some()
    }

    /// Has the group share its partitions out anew although no member came or went and no topic changed, as
    /// Java's `enforceRebalance`: for an assignor that goes by more than those. A static member that comes back
    /// gets what it had, whatever it subscribes to or tells the leader now; this makes the leader look at it.
    /// Does nothing while a rebalance is under way, nor where the coordinator assigns.
    pub fn enforce_rebalance(&mut self) {
        if self.membership.as_ref().is_some_and(|membership| membership.phase == Phase::Stable) {
            self.start_rebalance();
        }
    }

    /// Leaves the group, or gives up the assignment.
    ///
    /// # Errors
    /// What kept the member from leaving; it is out of the group by the session timeout in any case.
    pub async fn unsubscribe(&mut self) -> Result<()> {
        self.join = None;
        self.partitions.clear();
        self.rebalanced.clear();
        self.pattern = None;
        let (membership, coordinated) = (self.membership.take(), self.coordinated.take());
        self.hold_topics();
        match (membership, coordinated) {
            (Some(mut membership), _) => membership.leave().await,
            (None, Some(mut coordinated)) => coordinated.leave().await,
            (None, None) => Ok(()),
        }
    }

    /// The topics that are subscribed to: by name, or those that are known to match the pattern (none where the
    /// coordinator looks for them).
    pub fn subscription(&self) -> Vec<ByteString> {
        match (&self.membership, &self.coordinated) {
            (Some(membership), _) => membership.topics.clone(),
            (None, Some(coordinated)) => coordinated.subscription().topics,
            (None, None) => Vec::new(),
        }
    }
}
