//! gzip (RFC 1952). The members' headers and trailers are read here, so that the inflater is one that can be
//! reset.

use flate2::{Compress, Crc, Decompress, FlushCompress, FlushDecompress, Status};

use super::output::{Fault, Output};

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const HEADER_CHECKSUM: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

const DEFAULT_LEVEL: i32 = 6;

/// A deflater and its level.
#[derive(Default)]
pub(super) struct Compressor(Option<(Compress, u32)>);

impl Compressor {
    pub(super) fn compress(&mut self, level: Option<i32>, input: &[u8], out: &mut Vec<u8>) {
        // Kafka's configuration has −1 for the default.
        let level = level.filter(|&level| level >= 0).unwrap_or(DEFAULT_LEVEL).min(9) as u32;
        if self.0.as_ref().is_none_or(|(_, current)| *current != level) {
            self.0 = None;
        }
        let (deflater, _) =
            self.0.get_or_insert_with(|| (Compress::new(flate2::Compression::new(level), false), level));
        deflater.reset();

        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0xff]);
        out.reserve(input.len() / 2 + 64);
        loop {
            let read = deflater.total_in() as usize;
            let status = deflater
                .compress_vec(&input[read..], out, FlushCompress::Finish)
                .expect("the deflater is in order");
            if status == Status::StreamEnd {
                break;
            }
            out.reserve(out.capacity().max(64));
        }
        let mut crc = Crc::new();
        crc.update(input);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&(input.len() as u32).to_le_bytes());
    }
}

#[derive(Default)]
pub(super) struct Decompressor(Option<Decompress>);

impl Decompressor {
    /// Decompresses one or more members.
    pub(super) fn decompress(&mut self, mut input: &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
        loop {
            self.member(&mut input, out)?;
            if input.is_empty() {
                return Ok(());
            }
        }
    }

    fn member(&mut self, input: &mut &[u8], out: &mut Output<'_>) -> Result<(), Fault> {
        take_header(input)?;
        let inflater = self.0.get_or_insert_with(|| Decompress::new(false));
        inflater.reset(false);
        let mut crc = Crc::new();
        let mut wanted = input.len().saturating_mul(4);
        loop {
            let (_, room) = out.room(wanted);
            let (read, written) = (inflater.total_in(), inflater.total_out());
            let status =
                inflater.decompress(input, room, FlushDecompress::None).map_err(|_| Fault::Corrupt)?;
            let read = (inflater.total_in() - read) as usize;
            let written = (inflater.total_out() - written) as usize;
            crc.update(&room[..written]);
            *input = &input[read..];
            out.advance(written)?;
            match status {
                Status::StreamEnd => break,
                Status::Ok | Status::BufError if read == 0 && written == 0 => return Err(Fault::Corrupt),
                Status::Ok | Status::BufError => wanted = 1,
            }
        }
        let (trailer, rest) = input.split_first_chunk::<8>().ok_or(Fault::Corrupt)?;
        let expected = u64::from(crc.amount()) << 32 | u64::from(crc.sum());
        if u64::from_le_bytes(*trailer) != expected {
            return Err(Fault::Corrupt);
        }
        *input = rest;
        Ok(())
    }
}

fn take_header(input: &mut &[u8]) -> Result<(), Fault> {
    let (header, mut rest) = input.split_first_chunk::<10>().ok_or(Fault::Corrupt)?;
    let flags = header[3];
    if header[..3] != MAGIC || flags & RESERVED != 0 {
        return Err(Fault::Corrupt);
    }
    if flags & EXTRA != 0 {
        let (length, behind) = rest.split_first_chunk::<2>().ok_or(Fault::Corrupt)?;
        rest = behind.get(usize::from(u16::from_le_bytes(*length))..).ok_or(Fault::Corrupt)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|&byte| byte == 0).ok_or(Fault::Corrupt)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & HEADER_CHECKSUM != 0 {
        rest = rest.get(2..).ok_or(Fault::Corrupt)?;
    }
    *input = rest;
    Ok(())
}
