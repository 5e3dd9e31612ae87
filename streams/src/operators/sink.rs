//! Encoding: from typed records to a topic.

use std::marker::PhantomData;

use thalweg_protocol::record::Headers;

use super::program::{Operator, Work};
use super::slots::{SlotId, Slots};
use crate::error::Error;
use crate::output::PartitionChoice;
use crate::serde::Serde;

/// Writes the records of a stream to a topic, with the headers of those that they come from.
pub(crate) struct Sink<K, V, KS, VS> {
    pub(crate) input: SlotId<K, V>,
    pub(crate) sink: usize,
    pub(crate) key: KS,
    pub(crate) value: VS,
    /// Drops records without a key, and counts them: for a topic that is grouped by it.
    pub(crate) needs_key: bool,
    pub(crate) scratch: Scratch,
    pub(crate) of: PhantomData<fn() -> (K, V)>,
}

/// The bytes of the record that is being encoded.
#[derive(Default)]
pub(crate) struct Scratch {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<K, V, KS, VS> Operator for Sink<K, V, KS, VS>
where
    K: Clone + Send + 'static,
    V: Clone + Send + 'static,
    KS: Serde<K>,
    VS: Serde<V>,
{
    fn process(&mut self, slots: &mut Slots, work: &mut Work<'_>) -> Result<(), Error> {
        let records = slots.take(self.input);
        let Scratch { key: key_bytes, value: value_bytes } = &mut self.scratch;
        for record in &records {
            key_bytes.clear();
            value_bytes.clear();
            let key = match &record.key {
                Some(key) if !self.key.is_null(key) => {
                    self.key.encode(key, key_bytes)?;
                    Some(key_bytes.as_slice())
                }
                _ => None,
            };
            if self.needs_key && key.is_none() {
                work.task.counters.without_key += 1;
                continue;
            }
            let value = match self.value.is_null(&record.value) {
                true => None,
                false => {
                    self.value.encode(&record.value, value_bytes)?;
                    Some(value_bytes.as_slice())
                }
            };
            let headers = match (work.run, record.origin()) {
                (Some(run), Some(origin)) => run.record(origin).headers,
                _ => Headers::default(),
            };
            let to = PartitionChoice::ByKey;
            work.task.output.send(self.sink, to, record.timestamp, key, value, headers);
        }
        slots.give_back(self.input, records);
        Ok(())
    }
}
