//! The schema of the protocol and random messages of it, for seeds.

#[path = "../../log/protocol/tests/it/messages/random.rs"]
pub mod random;
#[path = "../../log/protocol/generate/schema.rs"]
pub mod schema;
#[path = "../../log/protocol/generate/structure.rs"]
pub mod structure;
