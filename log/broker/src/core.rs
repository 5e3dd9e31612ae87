//! What every request of every connection shares.

use std::sync::Arc;
use std::time::Duration;

use thalweg_controller::{Controller, Proposal, ProposeError};
use thalweg_protocol::NodeId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::config::BrokerConfig;
use crate::disk_threads::DiskThreads;
use crate::fetch_session::FetchSessions;
use crate::group::GroupCoordinator;
use crate::metrics::Metrics;
use crate::partitions::Partitions;
use crate::quota::ClientQuotas;
use crate::server::{Gate, MemoryBudget};
use crate::transaction::TransactionCoordinator;

/// The parts of a running broker that requests work with.
pub(crate) struct Core {
    /// The settings.
    pub(crate) config: BrokerConfig,
    /// This node's id.
    pub(crate) node: NodeId,
    /// The cluster's metadata.
    pub(crate) controller: Controller,
    /// The partitions that this node leads.
    pub(crate) partitions: Arc<Partitions>,
    /// The coordinator of the groups whose partitions this node leads.
    pub(crate) groups: Arc<GroupCoordinator>,
    /// The coordinator of the transactional ids whose partitions this node leads.
    pub(crate) transactions: Arc<TransactionCoordinator>,
    /// What consumers read, and know of it already.
    pub(crate) fetch_sessions: FetchSessions,
    /// What clients may use, and have used.
    pub(crate) quotas: Arc<ClientQuotas>,
    /// Who may do what.
    pub(crate) gate: Arc<dyn Gate>,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// The memory budget of requests.
    pub(crate) budget: Arc<MemoryBudget>,
    /// Where reads wait for the disk.
    pub(crate) cold_reads: DiskThreads,
    /// Where records are deleted.
    pub(crate) deletions: DiskThreads,
    /// Every task that holds the core is counted by a copy of this; a shutdown waits until there is none.
    pub(crate) alive: mpsc::Sender<Alive>,
}

/// Never sent: only that senders live is of interest.
pub(crate) enum Alive {}

/// The longest that anything waits for the metadata, as Kafka's brokers wait for their controller.
const LONGEST_PROPOSAL: Duration = Duration::from_secs(30);

/// Proposes a command and waits for its answer without blocking a thread.
///
/// # Errors
/// See [`ProposeError`]. When no answer comes in time, the outcome is unknown.
pub(crate) async fn propose<P: Proposal>(
    controller: &Controller,
    proposal: P,
) -> Result<P::Response, ProposeError> {
    propose_within(controller, proposal, LONGEST_PROPOSAL).await
}

/// As [`propose`], for a request that says how many ms it waits; one that says 0 or less, as some clients do, leaves that to
/// the broker.
///
/// # Errors
/// As for [`propose`].
pub(crate) async fn propose_for<P: Proposal>(
    controller: &Controller,
    proposal: P,
    timeout_ms: i32,
) -> Result<P::Response, ProposeError> {
    let limit = match u64::try_from(timeout_ms) {
        Ok(asked @ 1..) => Duration::from_millis(asked).min(LONGEST_PROPOSAL),
        Ok(0) | Err(_) => LONGEST_PROPOSAL,
    };
    propose_within(controller, proposal, limit).await
}

async fn propose_within<P: Proposal>(
    controller: &Controller,
    proposal: P,
    limit: Duration,
) -> Result<P::Response, ProposeError> {
    let (sender, receiver) = oneshot::channel();
    controller.propose_then(proposal, move |answer| {
        // Whoever asked may have gone; the command takes its course.
        let _ = sender.send(answer);
    });
    match timeout(limit, receiver).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Err(ProposeError::UnknownOutcome),
    }
}
