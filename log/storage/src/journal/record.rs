//! A record of the journal: what one write makes last of several logs; see `docs/formats/journal.md`.

use std::ops::Range;

use thalweg_protocol::{Offset, TopicPartition, Uuid};

use super::fields::Fields;
use super::round::JournalRound;
use crate::error::Error;

/// Everything in the journal begins and ends at a multiple of this many bytes.
pub(crate) const BLOCK: usize = 4096;

/// A record has at most this many bytes: the memory that writing one takes.
pub(crate) const MOST_RECORD_BYTES: usize = 2 << 20;

const MAGIC: &[u8; 4] = b"TWJR";
/// From here on the checksum covers it.
const CHECKSUMMED: usize = 8;
/// The bytes before the first entry.
pub(crate) const HEADER_SIZE: usize = 32;
/// An entry without the topic's name.
const ENTRY_SIZE: usize = 46;

/// What a record says of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) topic_id: Uuid,
    pub(crate) partition: TopicPartition,
    /// The name of the segment.
    pub(crate) base_offset: Offset,
    /// Where in the segment the bytes stand.
    pub(crate) position: u32,
    pub(crate) len: u32,
    /// Where the log ends after them.
    pub(crate) end: Offset,
}

impl Entry {
    /// How much room it takes in a record.
    pub(crate) fn size(&self) -> usize {
        ENTRY_SIZE + self.partition.topic.len() + self.len as usize
    }

    fn write(&self, out: &mut [u8]) -> usize {
        let topic = self.partition.topic.as_bytes();
        let name_len = u16::try_from(topic.len()).expect("a topic's name has at most 249 bytes");
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.topic_id.0);
        put(&self.partition.partition.to_be_bytes());
        put(&self.base_offset.0.to_be_bytes());
        put(&self.position.to_be_bytes());
        put(&self.len.to_be_bytes());
        put(&self.end.0.to_be_bytes());
        put(&name_len.to_be_bytes());
        put(topic);
        at
    }

    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        let topic_id = Uuid(fields.array()?);
        let partition = i32::try_from(fields.u32()?).ok()?;
        let base_offset = Offset(i64::try_from(fields.u64()?).ok()?);
        let (position, len) = (fields.u32()?, fields.u32()?);
        let end = Offset(i64::try_from(fields.u64()?).ok()?);
        let name_len = fields.u16()?;
        let topic = std::str::from_utf8(fields.bytes(usize::from(name_len))?).ok()?;
        let partition = TopicPartition::new(topic.to_owned(), partition);
        Some(Self { topic_id, partition, base_offset, position, len, end })
    }
}

/// How many of these entries, the first of which always fits, go into one record.
pub(crate) fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let mut total = HEADER_SIZE;
    sizes
        .take_while(|size| {
            total += size;
            total <= MOST_RECORD_BYTES
        })
        .count()
        .max(1)
}

/// The bytes of a record of entries of these sizes, with the zeros behind it.
pub(crate) fn padded_len(sizes: impl Iterator<Item = usize>) -> usize {
    (HEADER_SIZE + sizes.sum::<usize>()).next_multiple_of(BLOCK)
}

/// Writes a record into `out`, which has exactly [`padded_len`] bytes. `fill` gives the bytes of an entry; `begin` is called
/// when they are all there.
pub(crate) fn encode(
    out: &mut [u8],
    salt: u64,
    entries: &[Entry],
    mut fill: impl FnMut(usize, &mut [u8]) -> Result<(), Error>,
    begin: impl FnOnce() -> JournalRound,
) -> Result<(), Error> {
    let mut at = HEADER_SIZE;
    for entry in entries {
        at += entry.write(&mut out[at..]);
    }
    for (index, entry) in entries.iter().enumerate() {
        let to = at + entry.len as usize;
        fill(index, &mut out[at..to])?;
        at = to;
    }
    out[at..].fill(0);
    let number = |n: usize| u32::try_from(n).expect("a record is smaller than 4 GiB").to_be_bytes();
    out[..4].copy_from_slice(MAGIC);
    out[8..12].copy_from_slice(&number(at));
    out[12..16].copy_from_slice(&number(entries.len()));
    out[16..24].copy_from_slice(&begin().0.to_be_bytes());
    out[24..HEADER_SIZE].copy_from_slice(&salt.to_be_bytes());
    let crc = crc32c::crc32c(&out[CHECKSUMMED..at]);
    out[4..CHECKSUMMED].copy_from_slice(&crc.to_be_bytes());
    Ok(())
}

/// The beginning of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    crc: u32,
    len: u32,
    count: u32,
    pub(crate) round: JournalRound,
}

impl RecordHeader {
    /// Parses the first bytes of a block; `None` when it is not the beginning of a record with this salt.
    pub(crate) fn parse(block: &[u8], salt: u64) -> Option<Self> {
        let mut fields = Fields(block);
        if fields.array()? != *MAGIC {
            return None;
        }
        let (crc, len, count) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let round = JournalRound::read(fields.u64()?)?;
        let is_possible = (HEADER_SIZE..=MOST_RECORD_BYTES).contains(&(len as usize));
        (fields.u64()? == salt && is_possible).then_some(Self { crc, len, count, round })
    }

    /// Without the zeros behind it.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// With the zeros behind it.
    pub(crate) fn padded_len(&self) -> u64 {
        u64::from(self.len).next_multiple_of(BLOCK as u64)
    }

    /// The entries of the record whose bytes these are, each with the place of its bytes in them; `None` when they are not
    /// what was written.
    pub(crate) fn entries(&self, record: &[u8]) -> Option<Vec<(Entry, Range<usize>)>> {
        if record.len() != self.len() || crc32c::crc32c(&record[CHECKSUMMED..]) != self.crc {
            return None;
        }
        let mut fields = Fields(&record[HEADER_SIZE..]);
        let mut entries = Vec::new();
        for _ in 0..self.count {
            entries.push(Entry::parse(&mut fields)?);
        }
        let mut at = record.len() - fields.0.len();
        let mut placed = Vec::with_capacity(entries.len());
        for entry in entries {
            let to = at + entry.len as usize;
            placed.push((entry, at..to));
            at = to;
        }
        (at == record.len()).then_some(placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u64 = 0xfeed_0000_0000_beef;
    const ROUND: JournalRound = JournalRound(77);

    fn entry(topic: &str, len: u32) -> Entry {
        Entry {
            topic_id: Uuid(*b"0123456789abcdef"),
            partition: TopicPartition::new(topic.to_owned(), 3),
            base_offset: Offset(4000),
            position: 1 << 30,
            len,
            end: Offset(4711),
        }
    }

    fn encoded(entries: &[Entry]) -> Vec<u8> {
        let mut out = vec![9; padded_len(entries.iter().map(Entry::size))];
        let fill = |index: usize, bytes: &mut [u8]| {
            bytes.fill(b'a' + index as u8);
            Ok(())
        };
        encode(&mut out, SALT, entries, fill, || ROUND).expect("nothing fails");
        out
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let longest = "x".repeat(249);
        for entries in [
            vec![entry("a", 0)],
            vec![entry("a", 100), entry(&longest, 5000)],
            (0..50).map(|n| entry("many", 90 + n)).collect(),
        ] {
            let bytes = encoded(&entries);
            let header = RecordHeader::parse(&bytes, SALT).expect("a header");
            assert_eq!((header.round, header.padded_len()), (ROUND, bytes.len() as u64));
            let found = header.entries(&bytes[..header.len()]).expect("good");
            assert_eq!(found.iter().map(|(entry, _)| entry.clone()).collect::<Vec<_>>(), entries);
            for (index, (entry, place)) in found.into_iter().enumerate() {
                assert_eq!(bytes[place], vec![b'a' + index as u8; entry.len as usize]);
            }
            assert!(bytes[header.len()..].iter().all(|&b| b == 0));
            assert_eq!(RecordHeader::parse(&bytes, SALT + 1), None, "a record of somebody else");
        }
    }

    #[test]
    fn what_is_not_as_it_was_written_is_no_record() {
        let bytes = encoded(&[entry("a", 30), entry("b", 20)]);
        let len = RecordHeader::parse(&bytes, SALT).expect("a header").len();
        for at in 0..len {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            let is_good = RecordHeader::parse(&flipped, SALT).is_some_and(|header| {
                flipped.get(..header.len()).is_some_and(|record| header.entries(record).is_some())
            });
            assert!(!is_good, "bit flipped in byte {at}");
        }
        // A right checksum over numbers that lie.
        for (at, lie) in [(12, 3_u32), (12, u32::MAX), (HEADER_SIZE + 32, 31), (HEADER_SIZE + 32, u32::MAX)] {
            let mut forged = bytes.clone();
            forged[at..at + 4].copy_from_slice(&lie.to_be_bytes());
            let crc = crc32c::crc32c(&forged[CHECKSUMMED..len]);
            forged[4..8].copy_from_slice(&crc.to_be_bytes());
            let header = RecordHeader::parse(&forged, SALT).expect("a header");
            assert_eq!(header.entries(&forged[..len]), None, "{lie} at {at}");
        }
    }

    #[test]
    fn records_have_a_largest_size() {
        let room = MOST_RECORD_BYTES - HEADER_SIZE;
        let cases: [(&[usize], usize); 6] = [
            (&[100], 1),
            (&[100, 200, 300], 3),
            (&[room], 1),
            (&[room - 1, 1, 1], 2),
            (&[room, 1], 1),
            (&[2 * room, 1], 1),
        ];
        for (sizes, expected) in cases {
            assert_eq!(fitting(sizes.iter().copied()), expected, "{sizes:?}");
        }
    }
}
