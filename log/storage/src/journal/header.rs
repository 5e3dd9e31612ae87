//! The header of a file of the journal; see `docs/formats/journal.md`.

use super::fields::Fields;
use super::record::BLOCK;
use super::round::JournalRound;

const MAGIC: &[u8; 8] = b"TWJOURNL";
/// From here on the checksum covers it.
const CHECKSUMMED: usize = 16;
const SIZE: usize = 48;

/// What a file says of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// The size of the file.
    pub(crate) file_bytes: u64,
    /// The round of the first record.
    pub(crate) first_round: JournalRound,
    /// The first round of the process that wrote it.
    pub(crate) run: JournalRound,
    /// What every record of this use repeats.
    pub(crate) salt: u64,
}

/// What a block that should be a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderBlock {
    Good(FileHeader),
    /// Of a format that this version does not know.
    Newer(u32),
    /// Nothing was ever written there.
    Zeros,
    Bad,
}

impl FileHeader {
    /// The newest format that this version reads, and the one it writes.
    pub(crate) const VERSION: u32 = 1;

    pub(crate) fn encode(&self, block: &mut [u8; BLOCK]) {
        block.fill(0);
        let Self { file_bytes, first_round, run, salt } = *self;
        let numbers = [file_bytes, first_round.0, run.0, salt].map(u64::to_be_bytes);
        block[..8].copy_from_slice(MAGIC);
        block[8..12].copy_from_slice(&Self::VERSION.to_be_bytes());
        block[CHECKSUMMED..SIZE].copy_from_slice(numbers.as_flattened());
        let crc = crc32c::crc32c(&block[CHECKSUMMED..SIZE]);
        block[12..CHECKSUMMED].copy_from_slice(&crc.to_be_bytes());
    }
}

impl HeaderBlock {
    pub(crate) fn parse(block: &[u8; BLOCK]) -> Self {
        if block.iter().all(|&b| b == 0) {
            return Self::Zeros;
        }
        parse(block).unwrap_or(Self::Bad)
    }
}

fn parse(block: &[u8; BLOCK]) -> Option<HeaderBlock> {
    let mut fields = Fields(block);
    if fields.array()? != *MAGIC {
        return None;
    }
    let (version, crc) = (fields.u32()?, fields.u32()?);
    if crc != crc32c::crc32c(&block[CHECKSUMMED..SIZE]) {
        return None;
    }
    if version != FileHeader::VERSION {
        return Some(HeaderBlock::Newer(version));
    }
    let [file_bytes, first_round, run, salt] = [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?];
    let (first_round, run) = (JournalRound::read(first_round)?, JournalRound::read(run)?);
    Some(HeaderBlock::Good(FileHeader { file_bytes, first_round, run, salt }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written_and_not_otherwise() {
        let (first_round, run) = (JournalRound(4711), JournalRound(4000));
        let header = FileHeader { file_bytes: 32 << 20, first_round, run, salt: 0x0123_4567_89ab_cdef };
        let mut block = [7; BLOCK];
        assert_eq!(HeaderBlock::parse(&block), HeaderBlock::Bad);
        header.encode(&mut block);
        assert_eq!(HeaderBlock::parse(&block), HeaderBlock::Good(header));
        for at in (0..8).chain(12..SIZE) {
            let mut flipped = block;
            flipped[at] ^= 1;
            assert_eq!(HeaderBlock::parse(&flipped), HeaderBlock::Bad, "bit flipped in byte {at}");
        }
        block[8..12].copy_from_slice(&2_u32.to_be_bytes());
        assert_eq!(HeaderBlock::parse(&block), HeaderBlock::Newer(2));
        assert_eq!(HeaderBlock::parse(&[0; BLOCK]), HeaderBlock::Zeros);
    }
}
