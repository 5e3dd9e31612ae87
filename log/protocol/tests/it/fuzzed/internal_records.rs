//! The records that coordinators keep and what clients hide in opaque bytes: the input is a byte for the kind, and a record.

use std::fmt::Debug;
use std::ops::RangeInclusive;

use bytes::Bytes;
use thalweg_protocol::bounds::DecodeBudget;
use thalweg_protocol::messages::records as known;
use thalweg_protocol::{DecodeError, EncodeError};

use super::round_trip::{self, body, messages};
use crate::messages::schema::Kind;

/// A kind of record by its name in the schema, and what is checked of it.
type Check = (&'static str, fn(Bytes));

/// Keys are written in one way, values in several versions.
macro_rules! kinds {
    (keys: $($key:ident)*; values: $($value:ident)*;) => {
        const KINDS: &[Check] = &[
            $((stringify!($key), |input| {
                check_record(input, 0..=0, known::$key::from_bytes, |record, _| record.to_bytes())
            }),)*
            $((stringify!($value), |input| {
                let versions = known::$value::VERSIONS;
                check_record(input, versions, known::$value::from_bytes, known::$value::to_bytes)
            }),)*
        ];
    };
}

kinds! {
    keys:
        ConsumerGroupCurrentMemberAssignmentKey ConsumerGroupMemberMetadataKey ConsumerGroupMetadataKey
        ConsumerGroupRegularExpressionKey ConsumerGroupTargetAssignmentMemberKey
        ConsumerGroupTargetAssignmentMetadataKey GroupMetadataKey OffsetCommitKey
        ShareGroupCurrentMemberAssignmentKey ShareGroupMemberMetadataKey ShareGroupMetadataKey
        ShareGroupTargetAssignmentMemberKey ShareGroupTargetAssignmentMetadataKey ShareSnapshotKey ShareUpdateKey
        TransactionLogKey;
    values:
        AbortedTxn ConsumerGroupCurrentMemberAssignmentValue ConsumerGroupMemberMetadataValue
        ConsumerGroupMetadataValue ConsumerGroupRegularExpressionValue ConsumerGroupTargetAssignmentMemberValue
        ConsumerGroupTargetAssignmentMetadataValue ConsumerProtocolAssignment ConsumerProtocolSubscription
        ControlRecordTypeSchema EndTxnMarker GroupMetadataValue OffsetCommitValue ProducerSnapshot
        ShareGroupCurrentMemberAssignmentValue ShareGroupMemberMetadataValue ShareGroupMetadataValue
        ShareGroupTargetAssignmentMemberValue ShareGroupTargetAssignmentMetadataValue ShareSnapshotValue
        ShareUpdateValue TransactionLogValue;
}

pub fn check(input: &[u8]) {
    let Some((&kind, record)) = input.split_first() else { return };
    let (_, check) = KINDS[usize::from(kind) % KINDS.len()];
    check(Bytes::copy_from_slice(record));
}

fn check_record<T: Debug>(
    input: Bytes,
    versions: RangeInclusive<i16>,
    from_bytes: impl Fn(Bytes) -> Result<T, DecodeError>,
    to_bytes: impl Fn(&T, i16) -> Result<Bytes, EncodeError>,
) {
    // A version that is not known yet is read, where it is, as the last one that is.
    let version = input.first_chunk().map_or(0, |&head| i16::from_be_bytes(head)).min(*versions.end());
    let decode = |bytes, _| from_bytes(bytes);
    round_trip::check(&input, DecodeBudget::REQUEST, decode, |record| to_bytes(record, version));
}

/// One of each kind and version.
pub fn seeds() -> Vec<Vec<u8>> {
    let messages = messages();
    let mut seeds = Vec::new();
    for (at, (name, _)) in KINDS.iter().enumerate() {
        let message = messages.iter().find(|message| message.name == *name).expect("the schema has it");
        for version in message.versions.first..=message.versions.last {
            let first = match message.kind {
                Kind::Key => message.key.expect("keys have a number"),
                _ => version,
            };
            let mut seed = vec![at as u8];
            seed.extend(first.to_be_bytes());
            seed.extend(body(message, version, at as u8));
            seeds.push(seed);
        }
    }
    seeds
}
