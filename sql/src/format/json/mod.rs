//! JSON: one object a record.

mod cursor;
mod decoder;
mod infer;

pub(super) use decoder::JsonDecoder;
pub(crate) use infer::{Inferred, infer};
