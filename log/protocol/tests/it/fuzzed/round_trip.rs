//! What holds of all that is decoded, and random messages to begin with.

use std::fmt::Debug;

use bytes::Bytes;
use thalweg_protocol::bounds::DecodeBudget;

use crate::allocations::peak_of;
use crate::messages::random::{Entropy, Sample};
use crate::messages::schema::{self, Message};

/// So small that the arrays of a hostile message run into it.
pub const TIGHT: DecodeBudget = DecodeBudget::UNAUTHENTICATED;

/// A reference count or two, and what an error keeps.
const SLACK_BYTES: usize = 512;

/// Decodes within a budget and checks what that took. What can be decoded is written in such a way that it can be decoded
/// again, comes out the same, and is then written the same.
pub fn check<T: Debug, E: Debug, F: Debug>(
    input: &Bytes,
    budget: DecodeBudget,
    decode: impl Fn(Bytes, DecodeBudget) -> Result<T, E>,
    encode: impl Fn(&T) -> Result<Bytes, F>,
) -> Option<T> {
    let (decoded, peak) = peak_of(|| decode(input.clone(), budget));
    let limit = budget.bytes(input.len()) + SLACK_BYTES;
    assert!(peak <= limit, "{peak} bytes were allocated for {} bytes of input", input.len());
    let decoded = decoded.ok()?;
    let written = encode(&decoded).expect("what was read can be written");
    let again = decode(written.clone(), DecodeBudget::RESPONSE).expect("what was written can be read");
    // Not by `==`: a number may be none.
    assert_eq!(format!("{again:?}"), format!("{decoded:?}"));
    assert_eq!(encode(&again).expect("as before"), written);
    Some(decoded)
}

/// The messages of the protocol, from their schema.
pub fn messages() -> Vec<Message> {
    schema::parse(include_str!("../../../messages.txt"))
}

/// A random body of this message, the same every time.
pub fn body(message: &Message, version: i16, seed: u8) -> Vec<u8> {
    let entropy: Vec<u8> = (0..200_u8).map(|n| n.wrapping_mul(seed | 1).rotate_left(3) ^ seed).collect();
    Sample::new(message, version, &mut Entropy(&entropy)).bytes()
}
