//! Where the log ended when the node was last stopped in order. The layout is drawn in docs/formats/metadata-log.md.
//!
//! The log is only ever appended to, so that it holds what was there then for as long as it is the newest: the file need not be
//! removed when the log grows on, and once a newer log has begun it says nothing any more.

use thalweg_protocol::Offset;

/// Bytes of the file.
const SIZE: usize = 32;

const MAGIC: [u8; 8] = *b"THALSTOP";
const VERSION: u32 = 1;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    /// The offset that the log begins with.
    pub(super) first: Offset,
    /// How many bytes the log had, all of them synced.
    pub(super) length: u64,
}

/// Why the file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoppedFault {
    Newer { found: u32 },
    Corrupt { what: &'static str },
}

impl Stopped {
    /// The newest version that is read.
    pub(super) const VERSION: u32 = VERSION;

    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SIZE);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend(self.first.0.to_be_bytes());
        bytes.extend(self.length.to_be_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StoppedFault> {
        let corrupt = |what| StoppedFault::Corrupt { what };
        let mut fields = Fields(bytes);
        let cut = || corrupt("it is cut");
        if fields.take::<8>().ok_or_else(cut)? != MAGIC {
            return Err(corrupt("it does not begin as it should"));
        }
        let version = u32::from_be_bytes(fields.take().ok_or_else(cut)?);
        if version > VERSION {
            return Err(StoppedFault::Newer { found: version });
        }
        let first = Offset(i64::from_be_bytes(fields.take().ok_or_else(cut)?));
        let length = u64::from_be_bytes(fields.take().ok_or_else(cut)?);
        let checksum = u32::from_be_bytes(fields.take().ok_or_else(cut)?);
        if !fields.0.is_empty() {
            return Err(corrupt("there is more in it than there should be"));
        }
        if bytes.get(..SIZE - 4).map(crc32c::crc32c) != Some(checksum) {
            return Err(corrupt("its checksum does not fit"));
        }
        Ok(Self { first, length })
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written_and_no_damage_passes() {
        let stopped = Stopped { first: Offset(4711), length: 123_456_789 };
        let bytes = stopped.encode();
        assert_eq!((bytes.len(), Stopped::decode(&bytes)), (SIZE, Ok(stopped)));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Stopped::decode(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(Stopped::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Stopped::decode(&longer).is_err());
    }
}
