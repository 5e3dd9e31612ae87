//! The broker: it serves the partitions of one node to clients, over TCP and in process.
//!
//! A request's way: `server/connection` (or `embedded`) cuts it out and keeps the order, `server/dispatch` is
//! the gate, `handlers/<api>` answers it with what `partitions`, the controller and the coordinators know.

mod broker;
mod config;
mod coordinator;
mod core;
mod descriptors;
mod disk_threads;
mod embedded;
mod error;
mod fetch_session;
mod group;
mod handlers;
mod metrics;
mod node_setting;
mod operations;
mod partition;
mod partitions;
mod pattern;
mod quota;
mod server;
mod share;
mod topic_config;
mod topics;
mod transaction;

pub use broker::Broker;
pub use config::{BrokerConfig, GroupMigrationPolicy};
pub use embedded::InProcess;
pub use error::Error;
pub use server::{AllowAll, Gate, Principal, Verdict};
