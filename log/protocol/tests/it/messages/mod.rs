//! The messages against their schema, against another codec, and against hostile bytes.

mod frames;
mod generated;
mod hostile;
mod internal_records;
mod oracle;
pub(crate) mod random;
#[path = "../../../generate/rust.rs"]
mod rust;
#[path = "../../../generate/schema.rs"]
pub(crate) mod schema;
#[path = "../../../generate/structure.rs"]
mod structure;
