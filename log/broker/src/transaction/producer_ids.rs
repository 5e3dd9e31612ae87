//! Producer ids: handed out from blocks that the controller reserves for this node.

use std::ops::Range;

use parking_lot::Mutex;
use thalweg_controller::{AllocateProducerIds, Controller};
use thalweg_protocol::{ErrorCode, NodeId, ProducerId};

use crate::core::propose;

/// Hands out producer ids, each once in the life of the cluster.
pub(crate) struct ProducerIds {
    controller: Controller,
    node: NodeId,
    /// Guards what is left of the node's block; held to take one id or to put in a new block.
    left: Mutex<Range<i64>>,
}

impl ProducerIds {
    /// Ids for `node`, with no block yet.
    pub(crate) fn new(controller: Controller, node: NodeId) -> Self {
        Self { controller, node, left: Mutex::new(0..0) }
    }

    /// An id that nobody has had. Never 0, which some clients send where they have none.
    ///
    /// # Errors
    /// COORDINATOR_LOAD_IN_PROGRESS when the controller reserves no block now: then clients ask this node again. A producer
    /// without a transactional id has no coordinator that it could look for.
    pub(crate) async fn next(&self) -> Result<ProducerId, ErrorCode> {
        loop {
            if let Some(id) = self.take() {
                return Ok(id);
            }
            let block = self.reserve().await?;
            let mut left = self.left.lock();
            // Another request may have put in a block meanwhile; then this one's ids stay unused.
            if left.is_empty() {
                *left = block;
            }
        }
    }

    fn take(&self) -> Option<ProducerId> {
        let mut left = self.left.lock();
        left.find(|id| *id != 0).map(ProducerId)
    }

    async fn reserve(&self) -> Result<Range<i64>, ErrorCode> {
        let state = self.controller.state();
        let epoch = state.node(self.node).ok_or(ErrorCode::CoordinatorLoadInProgress)?.epoch;
        match propose(&self.controller, AllocateProducerIds { node: self.node, epoch }).await {
            Ok(Ok(block)) => Ok(block.first.0..block.first.0.saturating_add(i64::from(block.len))),
            Ok(Err(rejection)) => {
                tracing::error!(%rejection, "the controller reserves no producer ids");
                Err(ErrorCode::CoordinatorLoadInProgress)
            }
            Err(error) => {
                tracing::warn!(%error, "the controller reserves no producer ids");
                Err(ErrorCode::CoordinatorLoadInProgress)
            }
        }
    }
}
