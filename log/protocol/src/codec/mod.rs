//! Reading and writing the fields of messages. The generated code in [`crate::messages`] calls this.

mod decoder;
mod encoder;
mod error;
mod versioned;
mod wire;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;
pub use error::{DecodeError, EncodeError};
pub(crate) use versioned::{Trailing, decode_key, decode_versioned, encode_key, encode_versioned};
pub(crate) use wire::Wire;

/// `flexible_from` of a message that has no flexible version.
pub(crate) const NEVER: i16 = i16::MAX;
