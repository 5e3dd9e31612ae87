//! Internal records: a structure after two bytes that say which one it is.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::{DecodeError, Decoder, EncodeError, Encoder, NEVER, Wire};
use crate::bounds::DecodeBudget;

/// What to make of bytes behind the last field, and of versions beyond the last one known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trailing {
    /// Errors: the record was written by this cluster.
    Refused,
    /// A later version that is read as the last known one: the record comes from another client.
    Ignored,
}

/// Writes `record` after its version.
pub(crate) fn encode_versioned(
    record: &impl Wire,
    name: &'static str,
    version: i16,
    versions: RangeInclusive<i16>,
    flexible_from: i16,
) -> Result<Bytes, EncodeError> {
    if !versions.contains(&version) {
        let (first, last) = (*versions.start(), *versions.end());
        return Err(EncodeError::UnknownVersion { message: name, version, first, last });
    }
    let mut encoder = Encoder::new();
    encoder.i16(version);
    encoder.set_version(version, flexible_from);
    record.encode(&mut encoder)?;
    Ok(encoder.into_bytes())
}

/// Reads a record that begins with its version.
pub(crate) fn decode_versioned<T: Wire>(
    bytes: Bytes,
    versions: RangeInclusive<i16>,
    flexible_from: i16,
    trailing: Trailing,
) -> Result<T, DecodeError> {
    let mut decoder = Decoder::new(bytes, DecodeBudget::REQUEST);
    let (first, last) = (*versions.start(), *versions.end());
    let mut version = decoder.i16()?;
    if trailing == Trailing::Ignored {
        version = version.min(last);
    }
    if !versions.contains(&version) {
        return Err(DecodeError::RecordVersion { version, first, last });
    }
    decoder.set_version(version, flexible_from);
    let record = T::decode(&mut decoder)?;
    if trailing == Trailing::Refused {
        decoder.finish()?;
    }
    Ok(record)
}

/// Writes a key after the number of its kind.
pub(crate) fn encode_key(record: &impl Wire, kind: i16) -> Result<Bytes, EncodeError> {
    let mut encoder = Encoder::new();
    encoder.i16(kind);
    record.encode(&mut encoder)?;
    Ok(encoder.into_bytes())
}

/// Reads a key that begins with the number of its kind.
pub(crate) fn decode_key<T: Wire>(bytes: Bytes, kind: i16) -> Result<T, DecodeError> {
    let mut decoder = Decoder::new(bytes, DecodeBudget::REQUEST);
    let version = decoder.i16()?;
    if version != kind {
        return Err(DecodeError::RecordVersion { version, first: kind, last: kind });
    }
    decoder.set_version(0, NEVER);
    let record = T::decode(&mut decoder)?;
    decoder.finish()?;
    Ok(record)
}
