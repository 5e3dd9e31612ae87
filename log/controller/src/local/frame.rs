//! The bytes of the metadata log. The layout is drawn in docs/formats/metadata-log.md.

use thalweg_protocol::{Offset, Uuid};

pub(super) const FORMAT_VERSION: u32 = 3;

/// Bytes of a log's header.
pub(super) const HEADER: usize = 40;

/// Bytes of a frame without its command.
pub(super) const FRAME: usize = 25;

/// Bytes of a frame that its length does not count.
const UNCOUNTED: usize = 8;

const MAGIC: [u8; 8] = *b"THALMETA";
const COMMAND: u8 = 1;
const MARK: u8 = 2;

/// What a log's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// That of its format.
    pub(super) version: u32,
    pub(super) cluster_id: Uuid,
    pub(super) first: Offset,
}

/// Why a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFault {
    Newer { found: u32 },
    Corrupt { position: usize, what: &'static str },
}

/// A whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// The command; `None` for a mark.
    pub(super) command: Option<&'a [u8]>,
    /// The command's offset, or that of the next one.
    pub(super) offset: Offset,
    /// Everything before this position had been synced when the frame was written.
    pub(super) synced: u64,
    /// Bytes of the whole frame.
    pub(super) size: usize,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend(MAGIC);
        bytes.extend(self.version.to_be_bytes());
        bytes.extend(self.cluster_id.0);
        bytes.extend(self.first.0.to_be_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, HeaderFault> {
        let corrupt = |position, what| HeaderFault::Corrupt { position, what };
        let header: &[u8; HEADER] =
            bytes.first_chunk().ok_or(corrupt(bytes.len(), "it ends within its header"))?;
        if header[..8] != MAGIC {
            return Err(corrupt(0, "it does not begin as a metadata log does"));
        }
        let version = u32::from_be_bytes(array(header, 8));
        if version > FORMAT_VERSION {
            return Err(HeaderFault::Newer { found: version });
        }
        if array(header, 36) != crc32c::crc32c(&header[..36]).to_be_bytes() {
            return Err(corrupt(36, "the checksum of the header does not fit"));
        }
        let first = Offset(i64::from_be_bytes(array(header, 28)));
        Ok(Self { version, cluster_id: Uuid(array(header, 12)), first })
    }
}

/// Appends a frame with a command to `out`.
pub(super) fn write_command(out: &mut Vec<u8>, offset: Offset, synced: u64, command: &[u8]) {
    write(out, COMMAND, offset, synced, command);
}

/// Appends a mark to `out`.
pub(super) fn write_mark(out: &mut Vec<u8>, next: Offset, synced: u64) {
    write(out, MARK, next, synced, &[]);
}

fn write(out: &mut Vec<u8>, kind: u8, offset: Offset, synced: u64, command: &[u8]) {
    let start = out.len();
    let length = u32::try_from(FRAME - UNCOUNTED + command.len()).expect("the size of a command is limited");
    out.extend(length.to_be_bytes());
    out.extend([0; 4]);
    out.push(kind);
    out.extend(offset.0.to_be_bytes());
    out.extend(synced.to_be_bytes());
    out.extend(command);
    let crc = checksum(&out[start..]);
    out[start + 4..start + UNCOUNTED].copy_from_slice(&crc.to_be_bytes());
}

/// The whole frame at the beginning of `bytes`; `None` if there is none.
pub(super) fn read(bytes: &[u8]) -> Option<Frame<'_>> {
    let head: &[u8; FRAME] = bytes.first_chunk()?;
    let size = usize::try_from(u32::from_be_bytes(array(head, 0))).ok()?.checked_add(UNCOUNTED)?;
    let frame = bytes.get(..size).filter(|frame| frame.len() >= FRAME)?;
    let command = match head[8] {
        COMMAND => Some(&frame[FRAME..]),
        MARK if size == FRAME => None,
        _ => return None,
    };
    let offset = Offset(i64::from_be_bytes(array(head, 9)));
    let synced = u64::from_be_bytes(array(head, 17));
    (array(head, 4) == checksum(frame).to_be_bytes()).then_some(Frame { command, offset, synced, size })
}

/// Whether a whole frame anywhere in `bytes` after `bad` was written when `bad` had been synced. Looks at
/// every byte, because nothing says where the next frame begins after one that cannot be read.
pub(super) fn was_synced(bytes: &[u8], bad: usize) -> bool {
    let later = |at: usize| {
        let synced = bytes.get(at + 17..at + FRAME).map(|field| u64::from_be_bytes(array(field, 0)));
        // The field is looked at before the checksum, which would cost the whole file at every byte.
        synced.is_some_and(|synced| synced > bad as u64 && synced <= at as u64)
            && read(&bytes[at..]).is_some()
    };
    (bad + 1..bytes.len()).any(later)
}

/// Of everything but the checksum itself.
fn checksum(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..4]), &frame[UNCOUNTED..])
}

/// `N` bytes at `at`, where the caller knows that there are as many.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice has the length it was cut to")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written_and_no_flipped_bit_passes() {
        let cluster_id = Uuid(*b"0123456789abcdef");
        let header = Header { version: FORMAT_VERSION, cluster_id, first: Offset(4711) };
        let bytes = header.encode();
        assert_eq!(bytes.len(), HEADER);
        assert_eq!(Header::decode(&bytes), Ok(header));
        for bit in 0..HEADER * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..HEADER {
            assert!(Header::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_frame_is_read_as_it_was_written_and_no_flipped_bit_passes() {
        let mut bytes = Vec::new();
        write_command(&mut bytes, Offset(7), 40, b"{}");
        let expected = Frame { command: Some(b"{}"), offset: Offset(7), synced: 40, size: 27 };
        assert_eq!(read(&bytes), Some(expected));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&flipped), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), None, "{length} bytes");
        }
        let mut mark = Vec::new();
        write_mark(&mut mark, Offset(8), 67);
        assert_eq!(read(&mark), Some(Frame { command: None, offset: Offset(8), synced: 67, size: 25 }));
    }

    #[test]
    fn only_a_frame_that_came_after_a_sync_speaks_for_it() {
        let mut bytes = vec![0; HEADER];
        write_command(&mut bytes, Offset(0), 40, b"first");
        write_command(&mut bytes, Offset(1), 40, b"of the same round");
        let next = bytes.len();
        assert!(!was_synced(&bytes, HEADER));
        write_command(&mut bytes, Offset(2), next as u64, b"of the next round");
        assert!(was_synced(&bytes, HEADER));
        assert!(!was_synced(&bytes, next));
    }
}
