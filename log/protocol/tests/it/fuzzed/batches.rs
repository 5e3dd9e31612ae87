//! Record batches: the input is a byte that says whether lengths and checksums are made right, and batches in a row.

use bytes::Bytes;
use thalweg_protocol::record::{
    BatchBuilder, BatchHeader, BatchProducer, BatchRewriter, Batches, ControlRecord, Header, RawRecords,
    Record, RecordBatch, RecordError, TransactionMarker, ValidationRules, stamp_max_timestamp, validate,
    write_without_records,
};
use thalweg_protocol::{Compression, Compressor, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Scratch};

/// What records may have decompressed, in bytes.
const LIMIT: usize = 64 << 10;

/// More records than this are not copied about.
const MANY: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Plain {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Plain {
    fn of(record: &Record<'_>) -> Self {
        let header = |header: Header<'_>| (header.key.to_vec(), header.value.map(<[u8]>::to_vec));
        Self {
            offset: record.offset.0,
            timestamp: record.timestamp,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record.headers.iter().map(header).collect(),
        }
    }
}

pub fn check(input: &[u8]) {
    let Some((&how, rest)) = input.split_first() else { return };
    let mut bytes = rest.to_vec();
    if how % 2 == 1 {
        mend(&mut bytes);
    }
    check_all(Bytes::from(bytes));
}

/// Gives every batch a length that fits and a good checksum, as somebody would who means harm.
fn mend(bytes: &mut [u8]) {
    let mut rest = bytes;
    while rest.len() >= BatchHeader::SIZE {
        let whole = rest.len() - BatchHeader::OVERHEAD;
        let least = BatchHeader::SIZE - BatchHeader::OVERHEAD;
        let length = i32::from_be_bytes(rest[8..12].try_into().expect("four bytes"));
        let fits = usize::try_from(length).ok().filter(|length| (least..=whole).contains(length));
        let length = fits.unwrap_or(whole);
        rest[8..12].copy_from_slice(&(length as i32).to_be_bytes());
        let (batch, behind) = rest.split_at_mut(length + BatchHeader::OVERHEAD);
        let max_timestamp = i64::from_be_bytes(batch[35..43].try_into().expect("eight bytes"));
        stamp_max_timestamp(batch, max_timestamp);
        rest = behind;
    }
}

/// Walks through batches as a consumer does that looks at everything.
pub fn check_all(bytes: Bytes) {
    let mut batches = Batches::new(bytes.clone());
    let mut taken = 0;
    while let Some(Ok(batch)) = batches.next() {
        assert_eq!(bytes.slice(taken..taken + batch.size_in_bytes()), *batch.bytes());
        taken += batch.size_in_bytes();
        check_batch(&batch);
    }
    assert_eq!(bytes.len() - taken, batches.remainder().len());
    assert!(batches.next().is_none(), "what has ended goes on");
}

fn check_batch(batch: &RecordBatch) {
    let header = *batch.header();
    let mut written = [0; BatchHeader::SIZE];
    header.write(&mut written);
    assert_eq!(written[..], batch.bytes()[..BatchHeader::SIZE]);
    let _ = (header.last_offset(), header.next_offset(), header.last_sequence());
    let mut scratch = Scratch::new(LIMIT);
    let verified = batch.verify();
    let records = records_of(batch, &mut scratch);
    check_validation(batch, &records, &mut scratch);
    let Ok(records) = records else { return };
    for record in batch.records(&mut scratch).expect("as before").flatten() {
        let _ = ControlRecord::parse(&record);
    }
    if verified.is_err() || records.len() > MANY {
        return;
    }
    if !records.is_empty() {
        check_rewriting(batch, &records, &mut scratch);
        check_building(&records, header.compression().expect("it is verified"), &mut scratch);
    }
    let mut emptied = Vec::new();
    let kept = write_without_records(&header, &mut emptied);
    assert_eq!(kept.last_offset(), header.last_offset());
    let emptied = RecordBatch::only(Bytes::from(emptied)).expect("a batch");
    emptied.verify().expect("a good one");
    assert_eq!(records_of(&emptied, &mut scratch), Ok(Vec::new()));
    let moved = batch.clone().at(Offset(4711), LeaderEpoch(3)).appended_at(42);
    moved.verify().expect("a good one");
    let moved = records_of(&moved, &mut scratch).expect("the records are the same");
    assert!(moved.len() == records.len() && moved.iter().all(|record| record.timestamp == 42));
}

/// The records, read in each of the ways there are, which have to agree.
fn records_of(batch: &RecordBatch, scratch: &mut Scratch) -> Result<Vec<Plain>, RecordError> {
    let views: Result<Vec<Plain>, RecordError> = batch
        .records(scratch)
        .and_then(|records| records.map(|record| record.map(|record| Plain::of(&record))).collect());
    let decoded = match batch.decode(scratch) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert_eq!(views, Err(error), "both ways of decompressing agree");
            return views;
        }
    };
    let owned = decoded.clone().into_iter().map(|record| record.map(|record| Plain::of(&record.as_record())));
    assert_eq!(owned.collect::<Result<Vec<_>, _>>(), views, "owned records");
    let mut lent = decoded.clone().into_iter();
    let mut count = 0;
    while let Some(record) = lent.next_record() {
        match (record, &views) {
            (Ok(record), Ok(views)) => assert_eq!(Plain::of(&record), views[count]),
            (Ok(_), Err(_)) => {}
            (Err(error), views) => assert_eq!(views.as_ref().err(), Some(&error)),
        }
        count += 1;
    }
    if let Ok(views) = &views {
        assert_eq!(count, views.len());
        let raw: Result<Vec<_>, _> = RawRecords::new(batch.header(), decoded.bytes()).collect();
        let raw = raw.expect("whoever copies records is less strict");
        let seen = raw.iter().map(|raw| (raw.offset.0, raw.timestamp, raw.key, raw.has_value));
        let expected = views.iter().map(|r| (r.offset, r.timestamp, r.key.as_deref(), r.value.is_some()));
        assert!(seen.eq(expected), "raw records");
    }
    views
}

/// What a broker takes every reader can read.
fn check_validation(batch: &RecordBatch, records: &Result<Vec<Plain>, RecordError>, scratch: &mut Scratch) {
    let client =
        ValidationRules { max_batch_bytes: 1 << 20, timestamps: Some(0..=i64::MAX), allow_control: false };
    let coordinator = ValidationRules { timestamps: None, allow_control: true, ..client.clone() };
    let strict = validate(batch, &client, scratch);
    let Ok(valid) = validate(batch, &coordinator, scratch) else {
        assert!(strict.is_err(), "a client may do what a coordinator may not");
        return;
    };
    if let Ok(strict) = strict {
        assert_eq!(strict, valid);
    }
    batch.verify().expect("what is valid is whole");
    let records = records.as_ref().expect("what is valid can be read");
    assert_eq!(records.len(), valid.record_count as usize);
    let base = batch.header().base_offset.0;
    assert!((0..).zip(records).all(|(n, record)| record.offset == base.wrapping_add(n)));
    let newest = records.iter().map(|record| record.timestamp).max();
    assert_eq!(newest, Some(valid.max_timestamp));
    assert_eq!(records[valid.max_timestamp_delta as usize].timestamp, valid.max_timestamp);
    let keyless = records.iter().position(|record| record.key.is_none());
    assert_eq!(keyless, valid.first_keyless.map(|delta| delta as usize));
}

/// A cleaner that keeps everything, or every other record, leaves these as they are.
fn check_rewriting(batch: &RecordBatch, records: &[Plain], scratch: &mut Scratch) {
    let decoded = batch.decode(scratch).expect("as before");
    let mut rewriter = BatchRewriter::new();
    for (horizon, step) in [(None, 1), (Some(1_357_016_400_000), 1), (Some(i64::MAX), 2)] {
        let mut out = Vec::new();
        let mut rewriting = rewriter.begin(batch.header(), horizon);
        for raw in RawRecords::new(batch.header(), decoded.bytes()).step_by(step) {
            rewriting.keep(&raw.expect("as before"));
        }
        let header = rewriting.finish(&mut out);
        let rewritten = RecordBatch::only(Bytes::from(out)).expect("a batch");
        assert_eq!(*rewritten.header(), header);
        rewritten.verify().expect("a good one");
        let expected: Vec<Plain> = records.iter().step_by(step).cloned().collect();
        assert_eq!(records_of(&rewritten, &mut Scratch::new(2 * LIMIT)), Ok(expected));
    }
}

/// What was read can be written again.
fn check_building(records: &[Plain], compression: Compression, scratch: &mut Scratch) {
    let mut builder = BatchBuilder::new(compression, None, 0);
    for record in records {
        let headers = record.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder.append(record.timestamp, key, value, headers).expect("it is small");
    }
    let built = builder.finish(&mut Compressor::new(), None);
    let mut expected = records.to_vec();
    (0..).zip(&mut expected).for_each(|(n, record)| record.offset = n);
    assert_eq!(records_of(&built, scratch), Ok(expected));
}

/// A batch of each codec, with a mistake to be mended and without; a marker; two batches in a row; one that was cleaned.
pub fn seeds() -> Vec<Vec<u8>> {
    let producer =
        BatchProducer { id: ProducerId(7), epoch: ProducerEpoch(3), base_sequence: 40, transactional: true };
    let build = |compression, producer: Option<&BatchProducer>| {
        let mut builder = BatchBuilder::new(compression, None, 0);
        let trace = [Header::new("trace", Some(b"one")), Header::new("trace", None)];
        let mut append = |time, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header<'static>]| {
            builder.append(time, key, value, headers.iter().copied()).expect("it is small");
        };
        append(1_357_016_400_000, Some(b"N14228"), Some(b"carrier UA, flight 1545"), &trace);
        append(1_357_016_400_500, None, Some(b""), &[]);
        append(1_357_016_399_000, Some(b"tombstone"), None, &[]);
        builder.finish(&mut Compressor::new(), producer).into_bytes()
    };
    let mut seeds = Vec::new();
    for compression in Compression::ALL {
        for mended in [0, 1] {
            seeds.push([&[mended][..], &build(compression, Some(&producer))].concat());
        }
    }
    let marker = TransactionMarker { commit: true, coordinator_epoch: 5 };
    let marker = marker.to_batch(ProducerId(7), ProducerEpoch(3), 1_357_016_400_000);
    seeds.push([&[1][..], &build(Compression::None, None), marker.bytes()].concat());
    let mut emptied = vec![1];
    write_without_records(marker.header(), &mut emptied);
    seeds.push(emptied);
    seeds
}
