//! Connections: what arrives on a socket or from within the process, in order, through one gate.

mod budget;
mod connection;
pub(crate) mod dispatch;
mod gate;
mod input;
pub(crate) mod listener;
mod metering;
mod order;
mod output;
mod page_cache;
mod sendfile;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::core::Core;
use crate::descriptors;

pub(crate) use budget::{MemoryBudget, Reservation};
pub use gate::{AllowAll, Gate, Principal, Verdict};
pub(crate) use order::{Answer, Departure, Order};

/// Accepts connections on `listeners` and serves each on a task of its own, until `stop` says so.
pub(crate) fn start(core: &Arc<Core>, listeners: Vec<TcpListener>, stop: &watch::Receiver<bool>) {
    let (max, max_per_address) = descriptors::for_connections(
        core.config.max_connections,
        core.config.max_connections_per_address,
        descriptors::of_process(),
    );
    let caps = listener::ConnectionCaps::new(max, max_per_address);
    for socket in listeners {
        let (core, caps, stop) = (Arc::clone(core), Arc::clone(&caps), stop.clone());
        let mut stopped = stop.clone();
        tokio::spawn(async move {
            let _alive = core.alive.clone();
            let accepting =
                listener::accept(socket, caps, &core.metrics.connections, |socket, peer, place| {
                    tokio::spawn(connection::serve(Arc::clone(&core), socket, peer, place, stop.clone()));
                });
            tokio::select! {
                () = accepting => {}
                _ = stopped.changed() => {}
            }
        });
    }
}
