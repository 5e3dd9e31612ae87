//! The messages of the protocol.

/// Any request.
#[derive(Clone, Debug)]
pub enum Request {}

/// Any response.
#[derive(Clone, Debug)]
pub enum Response {}
