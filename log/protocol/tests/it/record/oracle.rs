//! Random batches, encoded by one implementation and decoded by the other.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression as TheirCompression, Record as TheirRecord, RecordBatchDecoder, RecordBatchEncoder,
    RecordEncodeOptions, TimestampType,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use thalweg_protocol::record::{BatchProducer, RecordBatch};
use thalweg_protocol::{Compression, LeaderEpoch, Offset, ProducerEpoch, ProducerId};

use super::{Plain, build, records_of, validated};

fn bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        1 => Just(None),
        4 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Some),
        1 => (any::<u8>(), 0_usize..9000).prop_map(|(byte, count)| Some(vec![byte; count])),
    ]
}

/// Header keys do not repeat: the other implementation loses all but one. They are in order, as its map has them.
fn headers() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    prop::collection::btree_map("[a-zé]{0,6}".prop_map(String::into_bytes), bytes(), 0..4)
        .prop_map(|map| map.into_iter().collect())
}

prop_compose! {
    fn record()(timestamp in -1_i64..1 << 45, key in bytes(), value in bytes(), headers in headers()) -> Plain {
        Plain { offset: 0, timestamp, key, value, headers }
    }
}

prop_compose! {
    fn records()(base in 0_i64..1 << 40, mut records in prop::collection::vec(record(), 1..30)) -> Vec<Plain> {
        for (record, offset) in records.iter_mut().zip(base..) {
            record.offset = offset;
        }
        records
    }
}

fn producer() -> impl Strategy<Value = Option<BatchProducer>> {
    prop::option::of((0_i64..1 << 40, 0_i16..i16::MAX, 0..i32::MAX - 100, any::<bool>()).prop_map(
        |(id, epoch, base_sequence, transactional)| BatchProducer {
            id: ProducerId(id),
            epoch: ProducerEpoch(epoch),
            base_sequence,
            transactional,
        },
    ))
}

fn compression() -> impl Strategy<Value = Compression> {
    prop::sample::select(&Compression::ALL[..])
}

fn theirs(compression: Compression) -> TheirCompression {
    match compression {
        Compression::None => TheirCompression::None,
        Compression::Gzip => TheirCompression::Gzip,
        Compression::Snappy => TheirCompression::Snappy,
        Compression::Lz4 => TheirCompression::Lz4,
        Compression::Zstd => TheirCompression::Zstd,
    }
}

fn to_theirs(records: &[Plain], producer: Option<&BatchProducer>) -> Vec<TheirRecord> {
    let base_sequence = producer.map_or(-1, |producer| producer.base_sequence);
    (0..)
        .zip(records)
        .map(|(index, record)| TheirRecord {
            transactional: producer.is_some_and(|producer| producer.transactional),
            control: false,
            delete_horizon: false,
            partition_leader_epoch: 5,
            producer_id: producer.map_or(-1, |producer| producer.id.0),
            producer_epoch: producer.map_or(-1, |producer| producer.epoch.0),
            timestamp_type: TimestampType::Creation,
            offset: record.offset,
            sequence: base_sequence.wrapping_add(index),
            timestamp: record.timestamp,
            key: record.key.clone().map(Bytes::from),
            value: record.value.clone().map(Bytes::from),
            headers: record
                .headers
                .iter()
                .map(|(key, value)| {
                    let key = String::from_utf8(key.clone()).expect("made of characters");
                    (StrBytes::from_string(key), value.clone().map(Bytes::from))
                })
                .collect(),
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2013),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_we_build_they_read(records in records(), compression in compression(), producer in producer()) {
        let batch = build(&records, compression, producer.as_ref())
            .at(Offset(records[0].offset), LeaderEpoch(5));
        let decoded = RecordBatchDecoder::decode(&mut batch.bytes().clone()).expect("they read it");
        prop_assert_eq!(decoded.compression, theirs(compression));
        prop_assert_eq!(decoded.records, to_theirs(&records, producer.as_ref()));
        prop_assert_eq!(records_of(&batch), Ok(records));
    }

    #[test]
    fn what_they_build_we_read(records in records(), compression in compression(), producer in producer()) {
        let mut bytes = BytesMut::new();
        let options = RecordEncodeOptions { version: 2, compression: theirs(compression) };
        let their_records = to_theirs(&records, producer.as_ref());
        RecordBatchEncoder::encode(&mut bytes, &their_records, &options).expect("they build it");
        let batch = RecordBatch::only(bytes.freeze()).expect("one batch");
        batch.verify().expect("verified");
        let valid = validated(&batch).expect("valid");
        prop_assert_eq!(valid.record_count as usize, records.len());
        let max = records.iter().map(|record| record.timestamp).max().expect("there are records");
        let at = records.iter().position(|record| record.timestamp == max).expect("it is there");
        prop_assert_eq!((valid.max_timestamp, valid.max_timestamp_delta as usize), (max, at));
        let keyless = records.iter().position(|record| record.key.is_none());
        prop_assert_eq!(valid.first_keyless.map(|index| index as usize), keyless);
        prop_assert_eq!(records_of(&batch), Ok(records));
    }
}
