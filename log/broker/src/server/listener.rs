//! Binds the listen addresses and accepts connections, within their caps.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::error::Error;
use crate::metrics::{Connections, Seldom};

/// How many connections the system queues for one listener until they are accepted.
const BACKLOG: i32 = 1024;

/// How long to wait after the system has run out of descriptors or memory.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// How often another port is tried when the one the system chose is taken on the other address of localhost.
const PORT_TRIES: usize = 16;

/// Binds `address`, which is `host:port`. `localhost` yields a listener on each of its addresses.
///
/// # Errors
/// [`Error::ListenAddress`] when it is not an address, [`Error::Listen`] when it cannot be bound.
pub(crate) fn bind(address: &str) -> Result<Vec<TcpListener>, Error> {
    let bad = |reason: &str| Error::ListenAddress { address: address.to_owned(), reason: reason.to_owned() };
    let (host, port) = address.rsplit_once(':').ok_or_else(|| bad("it has no port"))?;
    let port: u16 = port.parse().map_err(|_| bad("its port is not a number up to 65535"))?;
    if host == "localhost" {
        return bind_localhost(address, port);
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let resolved = (host, port).to_socket_addrs().map_err(|error| bad(&error.to_string()))?;
    let first = resolved.into_iter().next().ok_or_else(|| bad("the host has no address"))?;
    Ok(vec![open(first).map_err(|source| Error::Listen { address: address.to_owned(), source })?])
}

/// Clients try ::1 first and 127.0.0.1 next, or the other way round, so both have to answer on one port.
fn bind_localhost(address: &str, port: u16) -> Result<Vec<TcpListener>, Error> {
    let failed = |source| Error::Listen { address: address.to_owned(), source };
    let mut tries = 0;
    loop {
        let v4 = open(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(failed)?;
        let bound = v4.local_addr().map_err(failed)?.port();
        match open(SocketAddr::from((Ipv6Addr::LOCALHOST, bound))) {
            Ok(v6) => return Ok(vec![v4, v6]),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tries += 1;
                if port != 0 || tries == PORT_TRIES {
                    return Err(failed(error));
                }
            }
            Err(error) => {
                tracing::debug!(%error, "no IPv6 on this machine: listening on 127.0.0.1 alone");
                return Ok(vec![v4]);
            }
        }
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Counts the open connections, in all and by address.
#[derive(Debug)]
pub(crate) struct ConnectionCaps {
    max: usize,
    max_per_address: usize,
    open: Mutex<Open>,
    refusals: Seldom,
}

/// How many connections are open, and how many of them from each address.
#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The place of one connection under the caps; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    caps: Arc<ConnectionCaps>,
    address: IpAddr,
}

impl ConnectionCaps {
    pub(crate) fn new(max: usize, max_per_address: usize) -> Arc<Self> {
        Arc::new(Self { max, max_per_address, open: Mutex::default(), refusals: Seldom::default() })
    }

    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut open = self.open.lock();
        let here = open.by_address.get(&address).copied().unwrap_or(0);
        if open.total >= self.max || here >= self.max_per_address {
            return None;
        }
        open.total += 1;
        open.by_address.insert(address, here + 1);
        Some(Place { caps: Arc::clone(self), address })
    }

    /// Tells of a connection that was refused, unless that has just been done.
    fn tell_refused(&self, peer: SocketAddr) {
        if let Some(refused) = self.refusals.due(Instant::now()) {
            let (max, max_per_address) = (self.max, self.max_per_address);
            tracing::warn!(%peer, refused, max, max_per_address, "refusing connections: too many are open");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.caps.open.lock();
        open.total -= 1;
        let here = open.by_address.get(&self.address).copied().unwrap_or(1);
        if here > 1 {
            open.by_address.insert(self.address, here - 1);
        } else {
            open.by_address.remove(&self.address);
        }
    }
}

/// Accepts connections for ever and hands each to `serve`, with its place under the caps.
pub(crate) async fn accept(
    listener: TcpListener,
    caps: Arc<ConnectionCaps>,
    counted: &Connections,
    serve: impl Fn(TcpStream, SocketAddr, Place),
) {
    let failures = Seldom::default();
    loop {
        match listener.accept().await {
            Ok((socket, peer)) => match caps.enter(peer.ip()) {
                Some(place) => serve(socket, peer, place),
                None => {
                    counted.refuse();
                    caps.tell_refused(peer);
                }
            },
            Err(error) if is_of_one_connection(&error) => {
                tracing::debug!(%error, "a connection ended before it was accepted");
            }
            Err(error) => {
                if failures.due(Instant::now()).is_some() {
                    tracing::warn!(%error, "cannot accept connections for the moment");
                }
                tokio::time::sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
}

/// Whether the error concerns the connection that was about to be accepted and not the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptors;

    #[test]
    fn an_address_does_not_keep_the_others_out() {
        let (max, per_address) = descriptors::for_connections(8192, 8192, 1024);
        let caps = ConnectionCaps::new(max, per_address);
        let flood: Vec<_> = std::iter::from_fn(|| caps.enter(Ipv4Addr::LOCALHOST.into())).collect();
        assert_eq!(flood.len(), 480);
        assert!(caps.enter(Ipv6Addr::LOCALHOST.into()).is_some(), "others get in");
        drop(flood);
        assert!(caps.enter(Ipv4Addr::LOCALHOST.into()).is_some());
    }
}
