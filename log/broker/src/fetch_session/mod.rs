//! Fetch sessions (KIP-227): the broker remembers which partitions a client reads and what it has told of each, so that a
//! fetch names only what has changed for the client, and an answer only what has changed in the logs.
//!
//! `session` decides, without I/O or clock. `cache` holds the sessions of all clients. The driver is
//! `handlers/fetch/incremental`.

mod cache;
mod epoch;
mod session;

pub(crate) use cache::{FetchSessions, OpenSession, SessionLimits, SessionState};
pub(crate) use epoch::{Phase, SessionEpoch, SessionId};
pub(crate) use session::{Found, Look, Session, TopicKey};
