//! What both coordinators of a node are given.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::Clocks;
use crate::partitions::Partitions;

/// What both coordinators of a node are given.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The partitions that this node leads.
    pub(crate) partitions: Arc<Partitions>,
    pub(crate) clocks: Clocks,
    /// Where what has to be seen through runs.
    pub(crate) runtime: Handle,
    /// Says when the broker stops.
    pub(crate) stop: watch::Receiver<bool>,
}

impl Setting {
    /// Runs `work` beside the requests, until it is done or the broker stops. Whatever it leaves undone must follow
    /// from what is in the log.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut stop = self.stop.clone();
        self.runtime.spawn(async move {
            tokio::select! {
                () = work => {}
                // An error says that the broker has been dropped.
                _ = stop.wait_for(|stops| *stops) => {}
            }
        });
    }

    /// Resolves when the broker stops.
    pub(crate) async fn stopped(&self) {
        let mut stop = self.stop.clone();
        let _ = stop.wait_for(|stops| *stops).await;
    }
}
