//! Batches from which records are taken.

use bytes::Bytes;
use thalweg_protocol::record::{
    BatchHeader, BatchRewriter, RawRecord, RawRecords, RecordBatch, RecordError, stamp_append_time,
    write_without_records,
};
use thalweg_protocol::{Compression, LeaderEpoch, Offset, Scratch};

use super::{PRODUCER, Plain, build, records_of};
use crate::allocations::allocations_of;

const BASE: i64 = 5_000_000_000;
const EPOCH: LeaderEpoch = LeaderEpoch(9);

fn some() -> Vec<Plain> {
    let long = "long ".repeat(300);
    vec![
        Plain::new(BASE, 1_000_000, Some("a"), Some(&long))
            .with_header("h", Some("1"))
            .with_header("h", None),
        Plain::new(BASE + 1, 999_000, None, Some("two")),
        Plain::new(BASE + 2, -1, Some(""), None),
        Plain::new(BASE + 3, 2_000_000, Some(&long), Some("")),
        Plain::new(BASE + 4, 1_000_001, Some("e"), None).with_header("", Some(&long)),
    ]
}

/// The batch without the records for which `keep` has no bit.
fn rewritten(batch: &RecordBatch, keep: u32, horizon: Option<i64>) -> RecordBatch {
    let header = batch.header();
    let mut scratch = Scratch::new(1 << 20);
    let payload = &batch.bytes()[BatchHeader::SIZE..];
    let records = scratch.decompress(header.compression().expect("known"), payload).expect("good");
    let raw: Vec<RawRecord<'_>> =
        RawRecords::new(header, records).collect::<Result<_, _>>().expect("good records");
    let mut rewriter = BatchRewriter::new();
    let mut rewriting = rewriter.begin(header, horizon);
    raw.iter()
        .enumerate()
        .filter(|(at, _)| keep & 1 << at != 0)
        .for_each(|(_, record)| rewriting.keep(record));
    let mut out = b"before".to_vec();
    let written = rewriting.finish(&mut out);
    let batch = RecordBatch::only(Bytes::from(out.split_off(6))).expect("a whole batch");
    assert_eq!(*batch.header(), written);
    batch.verify().expect("a good batch");
    batch
}

#[test]
fn what_is_kept_is_what_it_was() {
    const HORIZON: i64 = 1_700_000_000_000;
    for compression in Compression::ALL {
        for append_time in [None, Some(77)] {
            let mut bytes =
                build(&some(), compression, Some(&PRODUCER)).at(Offset(BASE), EPOCH).bytes().to_vec();
            if let Some(time) = append_time {
                stamp_append_time(&mut bytes, time);
            }
            let batch = RecordBatch::only(Bytes::from(bytes)).expect("a batch");
            let all = records_of(&batch).expect("good records");
            for keep in 1..32 {
                let kept = |(at, record): (usize, &Plain)| (keep & 1 << at != 0).then(|| record.clone());
                let expected: Vec<Plain> = all.iter().enumerate().filter_map(kept).collect();
                let once = rewritten(&batch, keep, None);
                let horizon = rewritten(&batch, 31, Some(HORIZON));
                let both = rewritten(&batch, keep, Some(HORIZON));
                let after = rewritten(&horizon, keep, None);
                for (batch, has_horizon) in [(&once, false), (&both, true), (&after, true)] {
                    assert_eq!(records_of(batch).expect("good records"), expected, "{compression} {keep:b}");
                    let (old, new) = (all_but_new(batch.header()), batch.header());
                    assert_eq!(old, all_but_new(once.header()));
                    assert_eq!(new.last_offset(), Offset(BASE + 4), "whatever is left");
                    assert_eq!(new.last_sequence(), 44);
                    assert_eq!(new.has_delete_horizon(), has_horizon);
                    assert_eq!(new.base_timestamp, if has_horizon { HORIZON } else { 1_000_000 });
                    let newest = expected.iter().map(|record| record.timestamp).max();
                    assert_eq!(Some(new.max_timestamp), newest);
                }
            }
        }
    }
}

/// The header without what rewriting changes.
fn all_but_new(header: &BatchHeader) -> BatchHeader {
    BatchHeader {
        batch_length: 0,
        crc: 0,
        base_timestamp: 0,
        attributes: header.attributes & !0x40,
        ..*header
    }
}

#[test]
fn a_batch_without_records_still_says_whose_it_was() {
    for compression in Compression::ALL {
        let batch = build(&some(), compression, Some(&PRODUCER)).at(Offset(BASE), EPOCH);
        let batch = rewritten(&batch, 31, Some(1_700_000_000_000));
        let mut out = Vec::new();
        let header = write_without_records(batch.header(), &mut out);
        assert_eq!(out.len(), BatchHeader::SIZE);
        let empty = RecordBatch::only(Bytes::from(out)).expect("a batch");
        empty.verify().expect("a good batch");
        assert_eq!(*empty.header(), header);
        assert_eq!(records_of(&empty), Ok(Vec::new()));
        assert_eq!((header.base_offset, header.last_offset()), (Offset(BASE), Offset(BASE + 4)));
        assert_eq!((header.base_sequence, header.last_sequence()), (40, 44));
        assert_eq!((header.producer_id, header.producer_epoch), (PRODUCER.id, PRODUCER.epoch));
        assert_eq!((header.max_timestamp, header.base_timestamp), (2_000_000, -1));
        assert!(header.is_transactional() && !header.has_delete_horizon());
        assert_eq!(header.compression(), Ok(Compression::None));
    }
}

#[test]
fn damage_is_an_error_and_the_end() {
    let batch = build(&some(), Compression::None, None);
    let (header, payload) = (batch.header(), &batch.bytes()[BatchHeader::SIZE..]);
    for cut in 0..payload.len() {
        let found: Vec<_> = RawRecords::new(header, &payload[..cut]).collect();
        assert!(matches!(found.last(), Some(Err(RecordError::Record { .. }))), "cut at {cut}: {found:?}");
        assert_eq!(found.iter().filter(|record| record.is_err()).count(), 1);
    }
    let longer = [payload, &[0]].concat();
    assert_eq!(RawRecords::new(header, &longer).last(), Some(Err(RecordError::TrailingBytes { extra: 1 })));
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let mut damaged = payload.to_vec();
        damaged[random.usize(..payload.len())] = random.u8(..);
        for record in RawRecords::new(header, &damaged) {
            let Ok(record) = record else { continue };
            assert!((header.base_offset..=header.last_offset()).contains(&record.offset));
        }
    }
}

#[test]
fn nothing_is_allocated_per_record() {
    let records: Vec<Plain> = (0..1000).map(|at| Plain::new(at, at, Some("key"), Some("value"))).collect();
    let batch = build(&records, Compression::None, None);
    let payload = &batch.bytes()[BatchHeader::SIZE..];
    let mut rewriter = BatchRewriter::new();
    let mut out = Vec::new();
    let mut round = || {
        out.clear();
        let (_, count) = allocations_of(|| {
            let mut rewriting = rewriter.begin(batch.header(), Some(5));
            for record in RawRecords::new(batch.header(), payload) {
                rewriting.keep(&record.expect("a good record"));
            }
            rewriting.finish(&mut out)
        });
        count
    };
    round();
    assert_eq!(round(), 0);
}
