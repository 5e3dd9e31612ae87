//! The broker: it serves the partitions of one node to clients, over TCP and in process.
#![allow(dead_code)]

mod config;
mod error;
mod partition;
mod server;

pub use config::BrokerConfig;
pub use error::Error;
pub use server::{AllowAll, Gate, Principal, Verdict};
