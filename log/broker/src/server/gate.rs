//! The one gate that every request passes, whichever way it came.

use std::fmt;
use std::net::IpAddr;

use bytestring::ByteString;
use thalweg_protocol::messages::Request;

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The kind of principal; `User` for all that authentication yields.
    pub kind: &'static str,
    /// Its name; `ANONYMOUS` where nobody has authenticated.
    pub name: ByteString,
    /// Where it connects from; `None` in process.
    pub address: Option<IpAddr>,
}

impl Principal {
    /// Whoever has not authenticated.
    pub fn anonymous(address: Option<IpAddr>) -> Self {
        Self { kind: "User", name: ByteString::from_static("ANONYMOUS"), address }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// What a [`Gate`] says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may pass.
    Admit,
    /// It may not: the answer says so in its API's own way and nothing else happens.
    Deny,
}

/// Decides which requests may pass. Authorisation by ACL and a test's refusals are implementations of it.
pub trait Gate: Send + Sync + 'static {
    /// Judges `request` of `principal`.
    fn judge(&self, principal: &Principal, request: &Request) -> Verdict;

    /// For how many ms the client is asked to hold back after this request, by its quota.
    fn throttle_ms(&self, _principal: &Principal, _request: &Request) -> i32 {
        0
    }
}

/// Admits everything: what stands at the gate while no authorisation is configured.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Gate for AllowAll {
    fn judge(&self, _principal: &Principal, _request: &Request) -> Verdict {
        Verdict::Admit
    }
}
