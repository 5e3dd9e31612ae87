//! Decoding: from raw records to typed ones.

use super::program::{Operator, Work};
use super::record::Record;
use super::slots::{Outlet, Slots};
use crate::error::Error;
use crate::serde::{Serde, SerdeError};

/// Decodes the records of one input. What does not decode becomes a dead letter.
pub(crate) struct Source<K, V, KS, VS> {
    pub(crate) key: KS,
    pub(crate) value: VS,
    pub(crate) outlet: Outlet<K, V>,
}

impl<K, V, KS, VS> Operator for Source<K, V, KS, VS>
where
    K: Clone + Send + 'static,
    V: Clone + Send + 'static,
    KS: Serde<K>,
    VS: Serde<V>,
{
    fn process(&mut self, slots: &mut Slots, work: &mut Work<'_>) -> Result<(), Error> {
        let Some(run) = work.run else { return Ok(()) };
        self.outlet.records.reserve(run.len());
        for (at, record) in run.iter().enumerate() {
            let key = record.key.map(|bytes| self.key.decode(bytes)).transpose();
            let value = match record.value {
                Some(bytes) => self.value.decode(bytes),
                None => self.value.decode_null(),
            };
            let (key, value) = match (key, value) {
                (Ok(key), Ok(value)) => (key, value),
                (Err(error), _) => {
                    work.task.output.dead_letter(run.input(), &record, &Reason { part: "key", error })?;
                    continue;
                }
                (_, Err(error)) => {
                    work.task.output.dead_letter(run.input(), &record, &Reason { part: "value", error })?;
                    continue;
                }
            };
            self.outlet.records.push(Record::with_origin(key, value, record.timestamp, at));
        }
        self.outlet.deliver(slots);
        Ok(())
    }
}

/// Why a record is a dead letter.
#[derive(Debug, thiserror::Error)]
#[error("the {part} does not decode: {error}")]
struct Reason {
    part: &'static str,
    error: SerdeError,
}
