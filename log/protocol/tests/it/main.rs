//! The integration tests of the wire.

mod allocations;
mod fuzzed;
mod messages;
#[path = "../../../../fuzz/src/mutation.rs"]
mod mutation;
mod record;
