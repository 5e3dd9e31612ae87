//! Snappy: in Xerial's framing, which Java's clients write and read, and raw, which some others write.
//!
//! The framing is a header of 16 bytes (magic, version, lowest compatible version) and then blocks, each an i32
//! with the length of the compressed block and the block.

use super::output::{Fault, Output};

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// What Java's client compresses at a time.
const BLOCK: usize = 32 << 10;
/// Three bytes give at most 64, a copy with a two-byte offset.
const MOST_PER_BYTE: usize = 22;

#[derive(Default)]
pub(super) struct Compressor(Option<snap::raw::Encoder>);

impl Compressor {
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let encoder = self.0.get_or_insert_with(snap::raw::Encoder::new);
        out.extend_from_slice(&HEADER);
        for block in input.chunks(BLOCK) {
            let start = out.len();
            out.resize(start + 4 + snap::raw::max_compress_len(block.len()), 0);
            let size = encoder
                .compress(block, &mut out[start + 4..])
                .expect("the output has the size that any block fits in");
            out[start..start + 4].copy_from_slice(&(size as u32).to_be_bytes());
            out.truncate(start + 4 + size);
        }
    }
}

pub(super) fn decompress(input: &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
    if !input.starts_with(&MAGIC) {
        return decompress_block(input, out);
    }
    let mut rest = input;
    while !rest.is_empty() {
        // Concatenated streams have a header each.
        if rest.starts_with(&MAGIC) {
            rest = rest.get(HEADER.len()..).ok_or(Fault::Corrupt)?;
            continue;
        }
        let (length, behind) = rest.split_first_chunk::<4>().ok_or(Fault::Corrupt)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (block, behind) = behind.split_at_checked(length).ok_or(Fault::Corrupt)?;
        decompress_block(block, out)?;
        rest = behind;
    }
    Ok(())
}

/// Whether `input`, which can be decompressed, is what Java's client reads: it refuses a version before the first one.
pub(super) fn is_read_by_all(input: &[u8]) -> bool {
    match input.strip_prefix(&MAGIC).and_then(|rest| rest.split_first_chunk::<4>()) {
        Some((version, _)) => i32::from_be_bytes(*version) >= 1,
        None => true,
    }
}

fn decompress_block(block: &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
    // The block claims its size. Don't believe what so few bytes cannot make.
    let claimed = snap::raw::decompress_len(block).map_err(|_| Fault::Corrupt)?;
    if claimed > block.len().saturating_mul(MOST_PER_BYTE) {
        return Err(Fault::Corrupt);
    }
    out.fits(claimed as u64)?;
    let (_, room) = out.room(claimed);
    let written =
        snap::raw::Decoder::new().decompress(block, &mut room[..claimed]).map_err(|_| Fault::Corrupt)?;
    out.advance(written)
}
