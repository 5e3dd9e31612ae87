//! The seam between a client and a broker: requests go in, responses come out, in order.
//!
//! There are two implementations: TCP (in `thalweg-client`) and in process (in `thalweg-broker`). Whoever
//! holds a [`Connection`] cannot tell which one it is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::messages::{Request, Response};

/// What [`Connection::send`] returns: resolves when the broker has answered.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, ConnectionError>> + Send>>;

/// What [`Connect::connect`] returns.
pub type ConnectFuture = Pin<Box<dyn Future<Output = Result<Arc<dyn Connection>, ConnectionError>> + Send>>;

/// An ordered channel of requests to one broker.
pub trait Connection: Send + Sync + 'static {
    /// Hands over `request`, to be sent as `version` of its API.
    ///
    /// Requests take their place in the connection's order when this is called, not when the future is first
    /// polled; the broker processes them, and their answers arrive, in that order. Dropping the future
    /// abandons the answer, not the request. A Produce request with acks = 0 gets an empty response once it
    /// has been handed over.
    fn send(&self, request: Request, version: i16) -> ResponseFuture;

    /// Whether the connection can no longer carry requests.
    fn is_closed(&self) -> bool;
}

/// Opens connections to brokers.
pub trait Connect: Send + Sync + 'static {
    /// Opens a connection to the broker that advertises `host` and `port`. An in-process implementation
    /// ignores both.
    fn connect(&self, host: &str, port: u16) -> ConnectFuture;
}

/// Why a connection gave no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The connection could not be opened.
    #[error("cannot connect to {address}: {reason}")]
    Refused {
        /// `host:port` as it was asked for.
        address: String,
        /// What the operating system said.
        reason: String,
    },
    /// The connection ended before the answer came: the request may or may not have taken effect.
    #[error("the connection closed before the answer arrived: {reason}")]
    Closed {
        /// Why, as far as this side knows.
        reason: String,
    },
    /// The answer could not be decoded; the connection is closed.
    #[error("the answer could not be decoded: {reason}")]
    Malformed {
        /// What was wrong with it.
        reason: String,
    },
    /// The request cannot be encoded in the version asked for; it was not sent.
    #[error("the request cannot be encoded: {reason}")]
    Unencodable {
        /// Which field and why.
        reason: String,
    },
    /// No answer within the request timeout; the connection is closed.
    #[error("no answer within {timeout_ms} ms")]
    TimedOut {
        /// The timeout in milliseconds.
        timeout_ms: u64,
    },
}
