//! The batches of a read, by their headers alone: the batches themselves go to the client as they lie in the file.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::FileExt;

use thalweg_protocol::record::BatchHeader;
use thalweg_protocol::{LogSlice, Offset, ProducerId};
use thalweg_storage::AbortedTransaction;

use super::partition::Span;

/// How many bytes are read at a time to look for headers: several small batches, or the header of a large one.
const WINDOW: usize = 4 << 10;

/// The batches that were found in a slice of a log.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) spans: Vec<Span>,
    /// How many offsets for consumers they have from where the read began.
    pub(crate) offsets: u64,
    /// Where in the slice each of them ends.
    ends: Vec<u32>,
}

impl Found {
    /// How many bytes of the slice they take.
    pub(crate) fn size_in_bytes(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// The part of `slice` that holds the batches with the offsets from `first` to `last`.
    pub(crate) fn part(&self, slice: &LogSlice, first: Offset, last: Offset) -> LogSlice {
        let before = self.spans.iter().take_while(|span| span.last < first).count();
        let through = self.spans.iter().take_while(|span| span.first <= last).count();
        let end_of =
            |count: usize| count.checked_sub(1).and_then(|at| self.ends.get(at)).copied().unwrap_or(0);
        let (begin, end) = (end_of(before), end_of(through).max(end_of(before)));
        LogSlice { file: slice.file.clone(), position: slice.position + u64::from(begin), len: end - begin }
    }
}

/// Finds the batches of `slice`, as many as it takes to hold `wanted` offsets from `from` on. The records of `aborted`
/// transactions, and of control batches, are not for consumers. A read ends at a number of bytes: a batch that is cut there
/// is left out.
///
/// # Errors
/// When the file cannot be read, or does not hold batches there.
pub(crate) fn find_spans(
    slice: &LogSlice,
    aborted: &[AbortedTransaction],
    from: Offset,
    wanted: u64,
) -> io::Result<Found> {
    let mut found = Found::default();
    let mut open: HashSet<ProducerId> = HashSet::new();
    let mut begun = aborted.iter().peekable();
    let mut window = Window { slice, begin: 0, bytes: Vec::new() };
    let mut at = 0u32;
    while (slice.len - at) as usize >= BatchHeader::SIZE && found.offsets < wanted {
        let header = window.header(at)?;
        let Some(end) = at.checked_add(header.size_in_bytes() as u32).filter(|end| *end <= slice.len) else {
            break;
        };
        let (first, last) = (header.base_offset, header.last_offset());
        while let Some(transaction) = begun.next_if(|transaction| transaction.first_offset <= last) {
            open.insert(transaction.producer_id);
        }
        let is_aborted = header.is_transactional() && open.contains(&header.producer_id);
        if header.is_control() && is_aborted {
            open.remove(&header.producer_id);
        }
        let is_for_consumers = !header.is_control() && !is_aborted;
        found.spans.push(Span { first, last, is_for_consumers });
        found.ends.push(end);
        at = end;
        if is_for_consumers {
            found.offsets += u64::try_from(last.0 - first.0.max(from.0) + 1).unwrap_or(0);
        }
    }
    Ok(found)
}

/// The bytes of a slice that were read last.
struct Window<'a> {
    slice: &'a LogSlice,
    begin: u32,
    bytes: Vec<u8>,
}

impl Window<'_> {
    fn header(&mut self, at: u32) -> io::Result<BatchHeader> {
        let end = self.begin as usize + self.bytes.len();
        if at < self.begin || at as usize + BatchHeader::SIZE > end {
            self.begin = at;
            self.bytes.resize(WINDOW.min((self.slice.len - at) as usize), 0);
            self.slice.file.read_exact_at(&mut self.bytes, self.slice.position + u64::from(at))?;
        }
        let header = self.bytes.get((at - self.begin) as usize..).unwrap_or_default();
        BatchHeader::parse(header).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use thalweg_protocol::record::{BatchBuilder, BatchProducer};
    use thalweg_protocol::{Compression, Compressor, LeaderEpoch, ProducerEpoch};

    use super::*;

    /// Where the low byte of a batch's attributes is, and the bit in it that says that it is a control batch.
    const ATTRIBUTES: usize = 22;
    const CONTROL: u8 = 1 << 5;

    /// A batch of `records` records from `first` on; of a transaction if a producer is given.
    fn batch(first: i64, records: usize, producer: Option<i64>, is_control: bool) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Compression::None, None, 64);
        for _ in 0..records {
            builder.append(1, None, Some(&[0; 100]), []).expect("small");
        }
        let producer = producer.map(|id| BatchProducer {
            id: ProducerId(id),
            epoch: ProducerEpoch(0),
            base_sequence: 0,
            transactional: true,
        });
        let batch = builder.finish(&mut Compressor::new(), producer.as_ref());
        let mut bytes = batch.at(Offset(first), LeaderEpoch(0)).into_bytes().to_vec();
        if is_control {
            bytes[ATTRIBUTES] |= CONTROL;
        }
        bytes
    }

    fn slice(batches: &[Vec<u8>]) -> LogSlice {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&[0; 10]).and_then(|()| file.write_all(&batches.concat())).expect("it can be written");
        let len = batches.iter().map(Vec::len).sum::<usize>() as u32;
        LogSlice { file: Arc::new(file), position: 10, len }
    }

    #[test]
    fn batches_are_found_and_what_is_not_for_consumers_told() {
        let batches = [
            batch(5, 3, None, false),
            batch(8, 60, Some(1), false),
            batch(68, 1, Some(2), false),
            batch(69, 1, Some(1), true),
            batch(70, 2, Some(1), false),
        ];
        let slice = slice(&batches);
        let aborted = [AbortedTransaction { producer_id: ProducerId(1), first_offset: Offset(8) }];
        let shown = |found: &Found| -> Vec<(i64, i64, bool)> {
            found.spans.iter().map(|span| (span.first.0, span.last.0, span.is_for_consumers)).collect()
        };
        let found = find_spans(&slice, &aborted, Offset(6), u64::MAX).expect("it can be read");
        let all = [(5, 7, true), (8, 67, false), (68, 68, true), (69, 69, false), (70, 71, true)];
        assert_eq!((shown(&found).as_slice(), found.offsets), (&all[..], 5));
        // Without the aborted transactions only what ends them is left out.
        let uncommitted = find_spans(&slice, &[], Offset(6), 3).expect("it can be read");
        assert_eq!((shown(&uncommitted), uncommitted.offsets), (vec![(5, 7, true), (8, 67, true)], 62));
        let part = found.part(&slice, Offset(68), Offset(70));
        assert_eq!(part.read().expect("it can be read"), batches[2..].concat());
        assert_eq!(found.part(&slice, Offset(6), Offset(6)).read().expect("readable"), batches[0]);
        // Within the records of the last batch, within its header, and right behind it.
        let last = batches[4].len() as u32;
        for missing in [1, last - BatchHeader::SIZE as u32, last - 1, last] {
            let cut = LogSlice { len: slice.len - missing, ..slice.clone() };
            let found = find_spans(&cut, &aborted, Offset(6), u64::MAX).expect("it can be read");
            assert_eq!((shown(&found).as_slice(), found.offsets), (&all[..4], 3), "{missing} are missing");
            assert_eq!(found.size_in_bytes(), batches[..4].concat().len());
        }
        let nothing = LogSlice { len: batches[0].len() as u32 - 1, ..slice };
        assert!(find_spans(&nothing, &[], Offset(6), u64::MAX).expect("it can be read").spans.is_empty());
    }
}
