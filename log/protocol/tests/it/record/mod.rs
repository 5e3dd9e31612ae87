//! Record batches: against Java's bytes, against another implementation, and against hostile bytes.

mod bombs;
mod codecs;
mod golden;
mod hostile;
mod oracle;
mod rewriting;
mod validation;
mod views;

use bytes::Bytes;
use thalweg_protocol::record::{
    BatchBuilder, BatchHeader, BatchProducer, Header, Record, RecordBatch, RecordError, ValidBatch,
    ValidationRules, stamp_max_timestamp, validate,
};
use thalweg_protocol::{Compression, Compressor, ProducerEpoch, ProducerId, Scratch};

/// A record as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plain {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Plain {
    fn new(offset: i64, timestamp: i64, key: Option<&str>, value: Option<&str>) -> Self {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Self { offset, timestamp, key: key.map(bytes), value: value.map(bytes), headers: Vec::new() }
    }

    fn with_header(mut self, key: &str, value: Option<&str>) -> Self {
        self.headers.push((key.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec())));
        self
    }

    fn headers(&self) -> impl Iterator<Item = Header<'_>> + Clone {
        self.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() })
    }
}

fn plain(record: &Record<'_>) -> Plain {
    Plain {
        offset: record.offset.0,
        timestamp: record.timestamp,
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: record
            .headers
            .iter()
            .map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec)))
            .collect(),
    }
}

/// The records of a batch, read in each of the ways there are, which have to agree.
fn records_of(batch: &RecordBatch) -> Result<Vec<Plain>, RecordError> {
    let mut scratch = Scratch::new(64 << 20);
    let views: Result<Vec<Plain>, RecordError> = batch
        .records(&mut scratch)
        .and_then(|records| records.map(|record| record.map(|r| plain(&r))).collect());
    let decoded = match batch.decode(&mut scratch) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert_eq!(views, Err(error), "both ways of decompressing agree");
            return views;
        }
    };
    let lent: Result<Vec<Plain>, RecordError> =
        decoded.iter().map(|record| record.map(|r| plain(&r))).collect();
    assert_eq!(lent, views, "views of a kept batch");
    let owned: Result<Vec<Plain>, RecordError> =
        decoded.clone().into_iter().map(|record| record.map(|r| plain(&r.as_record()))).collect();
    assert_eq!(owned, views, "owned records");
    let mut iter = decoded.into_iter();
    let mut lending = Ok(Vec::new());
    while let Some(record) = iter.next_record() {
        match (record, &mut lending) {
            (Ok(record), Ok(records)) => records.push(plain(&record)),
            (Err(error), _) => lending = Err(error),
            (Ok(_), Err(_)) => panic!("a record after an error"),
        }
    }
    assert_eq!(lending, views, "lent records");
    views
}

fn build(records: &[Plain], compression: Compression, producer: Option<&BatchProducer>) -> RecordBatch {
    let mut builder = BatchBuilder::new(compression, None, 0);
    for record in records {
        builder
            .append(record.timestamp, record.key.as_deref(), record.value.as_deref(), record.headers())
            .expect("the batch is small");
    }
    builder.finish(&mut Compressor::new(), producer)
}

const PRODUCER: BatchProducer =
    BatchProducer { id: ProducerId(7), epoch: ProducerEpoch(3), base_sequence: 40, transactional: true };

fn rules() -> ValidationRules {
    ValidationRules { max_batch_bytes: 64 << 20, timestamps: Some(0..=i64::MAX), allow_control: false }
}

fn validated(batch: &RecordBatch) -> Result<ValidBatch, RecordError> {
    validate(batch, &rules(), &mut Scratch::new(64 << 20))
}

/// A batch whose header says these things about this payload, with the right length and checksum.
fn batch_of(payload: &[u8], change: impl FnOnce(&mut BatchHeader)) -> RecordBatch {
    let mut header = *build(&[Plain::new(0, 0, None, None)], Compression::None, None).header();
    header.batch_length = (BatchHeader::SIZE - BatchHeader::OVERHEAD + payload.len()) as i32;
    change(&mut header);
    let mut bytes = vec![0; BatchHeader::SIZE];
    header.write(bytes.first_chunk_mut().expect("a header's size"));
    bytes.extend_from_slice(payload);
    stamp_max_timestamp(&mut bytes, header.max_timestamp);
    RecordBatch::only(Bytes::from(bytes)).expect("a well-formed header")
}
