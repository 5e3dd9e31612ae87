//! A running application.

use crossbeam_channel::Receiver;
use thalweg_client::ClientConfig;

use super::events::{Committed, Event};
use crate::config::StreamsConfig;
use crate::error::Error;
use crate::state::StoreView;
use crate::topology::Topology;

/// A running streams application: its threads, and what they share. Dropping it closes it.
pub struct Streams {
    _private: (),
}

impl Streams {
    /// Checks the topology against the cluster, makes the internal topics, and starts the threads. History is
    /// processed first, then what arrives live; [`events`](Self::events) tell how far it is.
    ///
    /// `client` says where the cluster is: over TCP, or a broker embedded in this process.
    ///
    /// # Errors
    /// When the configuration or the topology cannot work, a topic is missing, the state directory is in use,
    /// or the cluster cannot be reached.
    pub fn start(topology: Topology, config: StreamsConfig, client: ClientConfig) -> Result<Self, Error> {
        let _ = (topology, config, client);
        unfinished()
    }

    /// What happens from now on. There is one queue: of several receivers, each event reaches one. Of events
    /// that nobody takes, the latest thousand are kept.
    pub fn events(&self) -> Receiver<Event> {
        unfinished()
    }

    /// Whether history is done: [`Event::Live`] has been said.
    pub fn is_live(&self) -> bool {
        unfinished()
    }

    /// What all commits since the start covered together.
    pub fn committed(&self) -> Committed {
        unfinished()
    }

    /// A store as the last commit left it, over the tasks of this instance.
    pub fn store(&self, name: &str) -> StoreView {
        let _ = name;
        unfinished()
    }

    /// Waits until the application has ended by itself, which only an error makes it do.
    ///
    /// # Errors
    /// That error.
    pub fn wait(&self) -> Result<(), Error> {
        unfinished()
    }

    /// Commits what is processed, and ends.
    ///
    /// # Errors
    /// What the last commit failed with, or what had ended the application before.
    pub fn close(self) -> Result<(), Error> {
        unfinished()
    }
}

fn unfinished() -> ! {
    panic!("not built yet")
}
