//! LZ4 frames (version 1.6.x of the frame format), written as Java's client does: independent blocks of 64 KiB,
//! no checksums but the header's. Everything the format allows is read, but for dictionaries.

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, decompress_into_with_dict,
    get_maximum_output_size,
};
use twox_hash::XxHash32;

use super::output::{Fault, Output};

const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184d_2a50..=0x184d_2a5f;

const VERSION: u8 = 0b0100_0000;
const VERSION_MASK: u8 = 0b1100_0000;
const INDEPENDENT: u8 = 1 << 5;
const BLOCK_CHECKSUMS: u8 = 1 << 4;
const CONTENT_SIZE: u8 = 1 << 3;
const CONTENT_CHECKSUM: u8 = 1 << 2;
const RESERVED: u8 = 1 << 1;
const DICTIONARY: u8 = 1;

/// In a block's size: the block is stored as it is.
const STORED: u32 = 1 << 31;
/// How far back linked blocks may refer.
const WINDOW: usize = 64 << 10;
/// The size of the blocks that are written, and its code in the frame's header.
const BLOCK: usize = 64 << 10;
const BLOCK_CODE: u8 = 4 << 4;
/// A byte that extends a match gives at most this many.
const MOST_PER_BYTE: usize = 255;

#[derive(Default)]
pub(super) struct Compressor(Option<CompressTable>);

impl Compressor {
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) {
        // The table for small inputs takes less than a block; a large one takes any.
        let table = self.0.get_or_insert_with(CompressTable::large);
        let descriptor = [VERSION | INDEPENDENT, BLOCK_CODE];
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&descriptor);
        out.push(header_checksum(&descriptor));
        for block in input.chunks(BLOCK) {
            let start = out.len();
            out.resize(start + 4 + get_maximum_output_size(block.len()), 0);
            let size = compress_into_with_table(block, &mut out[start + 4..], table)
                .expect("the output has the size that any block fits in");
            let field = if size < block.len() {
                out.truncate(start + 4 + size);
                size as u32
            } else {
                out.truncate(start + 4);
                out.extend_from_slice(block);
                block.len() as u32 | STORED
            };
            out[start..start + 4].copy_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&[0; 4]);
    }
}

/// What a frame's header says.
struct Frame {
    flags: u8,
    block_size: usize,
    content_size: Option<u64>,
}

pub(super) fn decompress(mut input: &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
    let mut frames = 0;
    while !input.is_empty() {
        let (magic, behind) = input.split_first_chunk::<4>().ok_or(Fault::Corrupt)?;
        if SKIPPABLE.contains(&u32::from_le_bytes(*magic)) {
            input = behind;
            let length = take_u32(&mut input)? as usize;
            input = input.get(length..).ok_or(Fault::Corrupt)?;
            continue;
        }
        if *magic != MAGIC {
            return Err(Fault::Corrupt);
        }
        input = behind;
        let frame = take_header(&mut input)?;
        take_blocks(&frame, &mut input, out)?;
        frames += 1;
    }
    if frames == 0 { Err(Fault::Corrupt) } else { Ok(()) }
}

/// Whether `input`, which can be decompressed, is what Java's client reads: one frame of blocks that do not refer to each
/// other, with nothing before or behind it. Of several it takes the first for all.
pub(super) fn is_read_by_all(input: &[u8]) -> bool {
    let only_frame = || {
        let mut rest = input.strip_prefix(&MAGIC)?;
        let Frame { flags, .. } = take_header(&mut rest).ok()?;
        let checksum = |flag| if flags & flag != 0 { 4 } else { 0 };
        loop {
            let field = take_u32(&mut rest).ok()?;
            if field == 0 {
                break;
            }
            rest = rest.get((field & !STORED) as usize + checksum(BLOCK_CHECKSUMS)..)?;
        }
        Some(flags & INDEPENDENT != 0 && rest.len() == checksum(CONTENT_CHECKSUM))
    };
    only_frame().unwrap_or(false)
}

fn take_header(input: &mut &[u8]) -> Result<Frame, Fault> {
    let (&[flags, block], mut rest) = input.split_first_chunk::<2>().ok_or(Fault::Corrupt)?;
    let codes = (block >> 4) & 7;
    if flags & VERSION_MASK != VERSION
        || flags & (RESERVED | DICTIONARY) != 0
        || block & 0x8f != 0
        || codes < 4
    {
        return Err(Fault::Corrupt);
    }
    let mut content_size = None;
    if flags & CONTENT_SIZE != 0 {
        let (size, behind) = rest.split_first_chunk::<8>().ok_or(Fault::Corrupt)?;
        content_size = Some(u64::from_le_bytes(*size));
        rest = behind;
    }
    let descriptor = &input[..input.len() - rest.len()];
    let (&checksum, rest) = rest.split_first().ok_or(Fault::Corrupt)?;
    if checksum != header_checksum(descriptor) {
        return Err(Fault::Corrupt);
    }
    *input = rest;
    // 64 KiB, 256 KiB, 1 MiB or 4 MiB.
    let block_size = BLOCK << (2 * (codes - 4));
    Ok(Frame { flags, block_size, content_size })
}

fn take_blocks(frame: &Frame, input: &mut &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
    if let Some(size) = frame.content_size {
        out.fits(size)?;
    }
    let start = out.len();
    loop {
        let field = take_u32(input)?;
        if field == 0 {
            break;
        }
        let size = (field & !STORED) as usize;
        if size > frame.block_size {
            return Err(Fault::Corrupt);
        }
        let (block, behind) = input.split_at_checked(size).ok_or(Fault::Corrupt)?;
        *input = behind;
        if frame.flags & BLOCK_CHECKSUMS != 0 && take_u32(input)? != XxHash32::oneshot(0, block) {
            return Err(Fault::Corrupt);
        }
        if field & STORED != 0 {
            out.extend(block)?;
        } else {
            decompress_block(frame, start, block, out)?;
        }
    }
    let (written, _) = out.room(0);
    let content = &written[start..];
    if frame.content_size.is_some_and(|size| size != content.len() as u64) {
        return Err(Fault::Corrupt);
    }
    if frame.flags & CONTENT_CHECKSUM != 0 && take_u32(input)? != XxHash32::oneshot(0, content) {
        return Err(Fault::Corrupt);
    }
    Ok(())
}

fn decompress_block(frame: &Frame, start: usize, block: &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
    let most = frame.block_size.min(block.len().saturating_mul(MOST_PER_BYTE));
    let (written, room) = out.room(most);
    let fits = room.len() >= most;
    let room = if fits { &mut room[..most] } else { room };
    let content = &written[start..];
    let result = if frame.flags & INDEPENDENT != 0 || content.is_empty() {
        decompress_into(block, room)
    } else {
        decompress_into_with_dict(block, room, &content[content.len().saturating_sub(WINDOW)..])
    };
    match result {
        Ok(size) => out.advance(size),
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if !fits => Err(Fault::TooLarge),
        Err(_) => Err(Fault::Corrupt),
    }
}

fn take_u32(input: &mut &[u8]) -> Result<u32, Fault> {
    let (bytes, rest) = input.split_first_chunk::<4>().ok_or(Fault::Corrupt)?;
    *input = rest;
    Ok(u32::from_le_bytes(*bytes))
}

fn header_checksum(descriptor: &[u8]) -> u8 {
    (XxHash32::oneshot(0, descriptor) >> 8) as u8
}
