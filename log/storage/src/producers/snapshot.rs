//! The snapshot file of the producers, as `docs/formats/producer-snapshot.md` draws it.

use std::collections::HashMap;

use thalweg_protocol::{Offset, ProducerEpoch, ProducerId};

use super::states::{Appended, Producer, ProducerStates};

const VERSION: i16 = 1;
/// Version, CRC and count.
const HEAD: usize = 10;
/// Where the part that the CRC covers begins.
const CHECKSUMMED: usize = 6;
const ENTRY: usize = 46;

/// The file's bytes.
pub(crate) fn encode(states: &ProducerStates) -> Vec<u8> {
    let mut ids: Vec<ProducerId> = states.producers.keys().copied().collect();
    ids.sort();
    let mut out = Vec::with_capacity(HEAD + ids.len() * ENTRY);
    out.extend(VERSION.to_be_bytes());
    out.extend([0; 4]);
    out.extend((ids.len() as i32).to_be_bytes());
    for id in ids {
        let producer = &states.producers[&id];
        let (last_sequence, last_offset, delta) = match producer.last_batch() {
            Some(b) => (b.last_sequence, b.last_offset.0, (b.last_offset.0 - b.first_offset.0) as i32),
            None => (-1, -1, 0),
        };
        out.extend(id.0.to_be_bytes());
        out.extend(producer.epoch.0.to_be_bytes());
        out.extend(last_sequence.to_be_bytes());
        out.extend(last_offset.to_be_bytes());
        out.extend(delta.to_be_bytes());
        out.extend(producer.last_active_ms.to_be_bytes());
        out.extend(producer.coordinator_epoch.to_be_bytes());
        out.extend(producer.transaction_start.map_or(-1, |o| o.0).to_be_bytes());
    }
    let crc = crc32c::crc32c(&out[CHECKSUMMED..]);
    out[2..CHECKSUMMED].copy_from_slice(&crc.to_be_bytes());
    out
}

/// What [`encode`] wrote of a log that ended at `end`; `None` when the bytes are not that, or not whole.
pub(crate) fn decode(bytes: &[u8], end: Offset) -> Option<ProducerStates> {
    let mut fields = Fields(bytes);
    if i16::from_be_bytes(fields.take()?) != VERSION {
        return None;
    }
    if u32::from_be_bytes(fields.take()?) != crc32c::crc32c(bytes.get(CHECKSUMMED..)?) {
        return None;
    }
    let count = usize::try_from(i32::from_be_bytes(fields.take()?)).ok()?;
    if fields.0.len() != count.checked_mul(ENTRY)? {
        return None;
    }
    let mut producers = HashMap::with_capacity(count);
    for _ in 0..count {
        let (id, producer) = take_producer(&mut fields, end)?;
        producers.insert(id, producer);
    }
    Some(ProducerStates::from_producers(producers))
}

/// An entry; `None` when it names offsets that the log did not have.
fn take_producer(fields: &mut Fields<'_>, end: Offset) -> Option<(ProducerId, Producer)> {
    let id = ProducerId(i64::from_be_bytes(fields.take()?));
    let epoch = ProducerEpoch(i16::from_be_bytes(fields.take()?));
    let last_sequence = i32::from_be_bytes(fields.take()?);
    let last_offset = i64::from_be_bytes(fields.take()?);
    let delta = i32::from_be_bytes(fields.take()?);
    let last_active_ms = i64::from_be_bytes(fields.take()?);
    let mut producer = Producer::new(epoch, last_active_ms);
    producer.coordinator_epoch = i32::from_be_bytes(fields.take()?);
    let transaction_start = i64::from_be_bytes(fields.take()?);
    producer.transaction_start = (transaction_start >= 0).then_some(Offset(transaction_start));
    if producer.transaction_start.is_some_and(|start| start >= end) {
        return None;
    }
    if last_sequence >= 0 {
        if delta < 0 || !(i64::from(delta)..end.0).contains(&last_offset) {
            return None;
        }
        producer.push(Appended {
            // Sequence numbers wrap from the largest to 0.
            first_sequence: last_sequence.wrapping_sub(delta) & i32::MAX,
            last_sequence,
            first_offset: Offset(last_offset - i64::from(delta)),
            last_offset: Offset(last_offset),
            append_time_ms: last_active_ms,
        });
    }
    Some((id, producer))
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}
