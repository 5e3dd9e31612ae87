//! The integration tests of the wire.

mod allocations;
mod messages;
mod record;
