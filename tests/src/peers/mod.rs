//! The systems that Thalweg is compared and tested with.

use std::net::TcpListener;

pub mod kafka;
pub mod postgres;

/// One on loopback that nothing listens on now.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
