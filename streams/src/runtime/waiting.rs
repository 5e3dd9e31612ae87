//! Waiting on a thread for what the client does on the runtime.

use thalweg_client::Result;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::client_error::translate;
use crate::error::Error;

/// Blocks threads on calls of the client, but not once the application has failed: what they wait for may
/// never come then, or only after minutes of retries.
#[derive(Clone)]
pub(super) struct Waiting {
    handle: Handle,
    failed: watch::Receiver<bool>,
}

impl Waiting {
    pub(super) fn new(handle: Handle, failed: watch::Receiver<bool>) -> Self {
        Self { handle, failed }
    }

    /// Blocks on `call`; its error is one of `action`.
    pub(super) fn on<T>(
        &self,
        action: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> std::result::Result<T, Error> {
        let mut failed = self.failed.clone();
        self.handle.block_on(async {
            tokio::select! {
                biased;
                // An error means that the application is gone altogether.
                _failed = failed.wait_for(|failed| *failed) => {
                    Err(Error::Unavailable { reason: format!("{action}: the application has failed") })
                }
                called = call => called.map_err(translate(action)),
            }
        })
    }
}
