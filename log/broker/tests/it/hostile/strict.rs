//! Reads a batch as the strictest reader does, with code that has nothing in common with the broker's.

use std::io::Read;

use thalweg_protocol::Compression;

/// The most that a batch may be when decompressed.
const LIMIT: u64 = 64 << 20;

/// What a strict reader finds in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub base_offset: i64,
    pub count: i32,
    /// What the header says is the largest timestamp.
    pub max_timestamp: i64,
    /// What the records say.
    pub newest: i64,
    pub compression: Compression,
}

/// Reads a batch and everything in it. What it says of where the batch lies in a log is anything.
///
/// # Errors
/// The first thing that is wrong.
pub fn read(batch: &[u8]) -> Result<Found, String> {
    let mut header = Reader(batch);
    let base_offset = header.i64()?;
    let length = header.i32()?;
    check(usize::try_from(length).ok() == Some(header.0.len()), "the length")?;
    let _leader_epoch = header.i32()?;
    check(header.take(1)? == [2], "the magic")?;
    let crc = header.i32()? as u32;
    check(crc == crc32c::crc32c(header.0), "the checksum")?;
    let attributes = header.i16()?;
    check(attributes & !0b1_0111 == 0, "the attributes")?;
    let last_offset_delta = header.i32()?;
    let (base_timestamp, max_timestamp) = (header.i64()?, header.i64()?);
    let (producer_id, epoch, sequence) = (header.i64()?, header.i16()?, header.i32()?);
    check(producer_id >= -1, "the producer's id")?;
    check(producer_id == -1 || epoch >= 0 && sequence >= 0, "the producer's epoch and sequence")?;
    check(producer_id >= 0 || attributes & 0b1_0000 == 0, "a transaction of nobody")?;
    let count = header.i32()?;
    check(count >= 1 && count - 1 == last_offset_delta, "the count")?;

    let compression = Compression::from_id(attributes & 7).ok_or("the compression")?;
    let bytes = decompress(compression, header.0)?;
    let mut rest = Reader(&bytes);
    let mut newest = i64::MIN;
    for index in 0..count {
        let length = rest.varint()?;
        let mut record = Reader(rest.take(length)?);
        let _attributes = record.take(1)?;
        let timestamp = base_timestamp.wrapping_add(record.varlong()?);
        check(timestamp >= -1, "a timestamp")?;
        newest = newest.max(timestamp);
        check(record.varint()? == index, "an offset delta")?;
        let (_key, _value) = (record.nullable()?, record.nullable()?);
        let headers = record.varint()?;
        check(headers >= 0, "a count of headers")?;
        for _ in 0..headers {
            record.nullable()?.ok_or("a header without a key")?;
            record.nullable()?;
        }
        check(record.0.is_empty(), "bytes behind a record's last field")?;
    }
    check(rest.0.is_empty(), "bytes behind the last record")?;
    Ok(Found { base_offset, count, max_timestamp, newest, compression })
}

fn check(is_right: bool, what: &str) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(what.to_owned()) }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: impl TryInto<usize>) -> Result<&'a [u8], String> {
        let length = length.try_into().map_err(|_| "a negative length")?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn i16(&mut self) -> Result<i16, String> {
        Ok(i16::from_be_bytes(self.take(2)?.try_into().expect("two bytes")))
    }

    fn i32(&mut self) -> Result<i32, String> {
        Ok(i32::from_be_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    fn i64(&mut self) -> Result<i64, String> {
        Ok(i64::from_be_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }

    /// In at most `bytes` bytes, of 7 bits each.
    fn unsigned(&mut self, bytes: u32) -> Result<u128, String> {
        let mut value = 0;
        for at in 0..bytes {
            let [byte] = self.take(1)? else { unreachable!("one byte") };
            value |= u128::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number that does not end".to_owned())
    }

    fn varint(&mut self) -> Result<i32, String> {
        let value = u32::try_from(self.unsigned(5)?).map_err(|_| "a number of more than 32 bits")?;
        Ok((value >> 1) as i32 ^ -((value & 1) as i32))
    }

    fn varlong(&mut self) -> Result<i64, String> {
        let value = u64::try_from(self.unsigned(10)?).map_err(|_| "a number of more than 64 bits")?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn nullable(&mut self) -> Result<Option<&'a [u8]>, String> {
        match self.varint()? {
            -1 => Ok(None),
            length => self.take(length).map(Some),
        }
    }
}

fn decompress(compression: Compression, input: &[u8]) -> Result<Vec<u8>, String> {
    match compression {
        Compression::None => Ok(input.to_vec()),
        Compression::Gzip => to_end(flate2::bufread::MultiGzDecoder::new(input)),
        Compression::Zstd => {
            let decoder =
                zstd::stream::read::Decoder::with_buffer(input).map_err(|error| error.to_string())?;
            to_end(decoder)
        }
        Compression::Snappy => snappy(input),
        Compression::Lz4 => lz4(input),
    }
}

fn to_end(decoder: impl Read) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    decoder.take(LIMIT + 1).read_to_end(&mut out).map_err(|error| error.to_string())?;
    check(out.len() as u64 <= LIMIT, "the size when decompressed")?;
    Ok(out)
}

/// Raw, or in blocks behind Xerial's header.
fn snappy(input: &[u8]) -> Result<Vec<u8>, String> {
    const MAGIC: &[u8] = b"\x82SNAPPY\0";
    let block = |block: &[u8]| {
        let length = snap::raw::decompress_len(block).map_err(|error| error.to_string())?;
        check(length as u64 <= LIMIT, "the size when decompressed")?;
        snap::raw::Decoder::new().decompress_vec(block).map_err(|error| error.to_string())
    };
    if !input.starts_with(MAGIC) {
        return block(input);
    }
    let (mut rest, mut out) = (Reader(input), Vec::new());
    while !rest.0.is_empty() {
        if rest.0.starts_with(MAGIC) {
            rest.take(8)?;
            check(rest.i32()? >= 1, "the version of Xerial's header")?;
            rest.take(4)?;
            continue;
        }
        let length = rest.i32()?;
        out.extend(block(rest.take(length)?)?);
        check(out.len() as u64 <= LIMIT, "the size when decompressed")?;
    }
    Ok(out)
}

/// One frame, as Java's client reads it: of blocks that do not refer to each other, with nothing behind it.
fn lz4(input: &[u8]) -> Result<Vec<u8>, String> {
    let mut rest = Reader(input);
    check(rest.take(4)? == [0x04, 0x22, 0x4d, 0x18], "the magic of LZ4")?;
    let descriptor = rest.0;
    let [flags, block] = *rest.take(2)? else { unreachable!("two bytes") };
    check(flags & 0b1110_0011 == 0b0110_0000, "the flags of LZ4")?;
    check(block & 0b1000_1111 == 0 && block >> 4 >= 4, "the block size of LZ4")?;
    let block_size = 1 << (8 + 2 * (block >> 4));
    let content_size = if flags & 8 != 0 { Some(rest.take(8)?) } else { None };
    let descriptor = &descriptor[..if content_size.is_some() { 10 } else { 2 }];
    check(rest.take(1)? == [(twox_hash::XxHash32::oneshot(0, descriptor) >> 8) as u8], "the header of LZ4")?;
    let mut out = Vec::new();
    let little = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    loop {
        let size = little(rest.take(4)?);
        if size == 0 {
            break;
        }
        let stored = rest.take(size as i32 & i32::MAX)?;
        if flags & 16 != 0 {
            let checksum = little(rest.take(4)?);
            check(checksum == twox_hash::XxHash32::oneshot(0, stored), "the checksum of a block")?;
        }
        if size >> 31 == 1 {
            check(stored.len() <= block_size, "the size of a block")?;
            out.extend_from_slice(stored);
        } else {
            let block = lz4_flex::block::decompress(stored, block_size).map_err(|error| error.to_string())?;
            out.extend(block);
        }
        check(out.len() as u64 <= LIMIT, "the size when decompressed")?;
    }
    if flags & 4 != 0 {
        check(little(rest.take(4)?) == twox_hash::XxHash32::oneshot(0, &out), "the checksum of LZ4")?;
    }
    if let Some(size) = content_size {
        check(
            u64::from_le_bytes(size.try_into().expect("eight bytes")) == out.len() as u64,
            "the size in LZ4",
        )?;
    }
    check(rest.0.is_empty(), "bytes behind the frame of LZ4")?;
    Ok(out)
}
