//! All the state of one task: its backend, its stores' places in it, and its checkpoint.

use std::ops::ControlFlow;
use std::sync::Arc;

use thalweg_protocol::record::Record as RawRecord;

use super::backend::{Backend, ByteStrings, Found, WriteSet};
use super::checkpoint::Checkpoint;
use super::layout::{self, StorePrefix};
use super::store::{StateStore, StoreSpec};
use super::view::StorePart;
use crate::error::Error;
use crate::program::TaskId;

/// The state of a task as it lies below the overlays.
pub(crate) struct TaskState {
    task: TaskId,
    backend: Arc<dyn Backend>,
    stores: Vec<(StoreSpec, StorePrefix)>,
    checkpoint: Checkpoint,
    changes: WriteSet,
}

impl TaskState {
    /// Reads the checkpoint and finds, or makes, the places of `stores`.
    pub(crate) fn open(task: TaskId, backend: Arc<dyn Backend>, stores: &[StoreSpec]) -> Result<Self, Error> {
        let mut state = Self {
            task,
            backend,
            stores: Vec::new(),
            checkpoint: Checkpoint::default(),
            changes: WriteSet::default(),
        };
        state.checkpoint = state.read_checkpoint()?;
        state.stores = state.find_places(stores)?;
        Ok(state)
    }

    fn failed(&self, reason: String) -> Error {
        Error::State { task: self.task, store: String::new(), reason }
    }

    fn read_checkpoint(&self) -> Result<Checkpoint, Error> {
        let (mut keys, mut found) = (ByteStrings::default(), Found::default());
        keys.push_with(|out| out.extend_from_slice(layout::CHECKPOINT));
        self.backend.multi_get(&keys, &mut found).map_err(|reason| self.failed(reason))?;
        match found.get(0) {
            None => Ok(Checkpoint::default()),
            Some(bytes) => Checkpoint::decode(bytes).map_err(|reason| self.failed(reason)),
        }
    }

    fn find_places(&mut self, stores: &[StoreSpec]) -> Result<Vec<(StoreSpec, StorePrefix)>, Error> {
        let mut known: Vec<(Vec<u8>, StorePrefix)> = Vec::new();
        let mut end = layout::STORE_NAMES.to_vec();
        end.push(0xff);
        let scanned = self.backend.scan(layout::STORE_NAMES, &end, &mut |key, value| {
            if let (Some(name), Ok(prefix)) = (key.get(layout::STORE_NAMES.len()..), value.try_into()) {
                known.push((name.to_vec(), prefix));
            }
            ControlFlow::Continue(())
        });
        scanned.map_err(|reason| self.failed(reason))?;
        let mut places = Vec::new();
        self.changes.clear();
        for spec in stores {
            let prefix = match known.iter().find(|(name, _)| name == spec.name.as_bytes()) {
                Some(&(_, prefix)) => prefix,
                None => {
                    let last = known.iter().map(|&(_, prefix)| u16::from_be_bytes(prefix)).max().unwrap_or(0);
                    let prefix = (last + 1).to_be_bytes();
                    known.push((spec.name.clone().into_bytes(), prefix));
                    self.changes.put(
                        |out| {
                            out.extend_from_slice(layout::STORE_NAMES);
                            out.extend_from_slice(spec.name.as_bytes());
                        },
                        |out| out.extend_from_slice(&prefix),
                    );
                    prefix
                }
            };
            places.push((spec.clone(), prefix));
        }
        if !self.changes.is_empty() {
            self.backend.write(&self.changes).map_err(|reason| self.failed(reason))?;
        }
        Ok(places)
    }

    /// How far the state is.
    pub(crate) fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Makes the stores that the program works with.
    pub(crate) fn stores(&self, cache_bytes: usize) -> Vec<StateStore> {
        let make = |(spec, prefix): &(StoreSpec, StorePrefix)| {
            StateStore::new(self.task, spec.clone(), *prefix, Arc::clone(&self.backend), cache_bytes)
        };
        self.stores.iter().map(make).collect()
    }

    /// The committed contents of each store, for other threads to read.
    pub(crate) fn views(&self) -> impl Iterator<Item = (&str, StorePart)> {
        self.stores.iter().map(|(spec, prefix)| {
            let part = StorePart::new(self.task, Arc::clone(&self.backend), *prefix, spec.layout());
            (spec.name.as_str(), part)
        })
    }

    /// Writes the stores' changes and `checkpoint` as one.
    pub(crate) fn commit(&mut self, stores: &mut [StateStore], checkpoint: Checkpoint) -> Result<(), Error> {
        self.changes.clear();
        for store in &mut *stores {
            store.collect(&mut self.changes);
        }
        self.write_with(checkpoint)?;
        for store in stores {
            store.committed();
        }
        Ok(())
    }

    /// Takes records of the changelog of the store with this index into the state, together with how far
    /// the changelog is read then.
    pub(crate) fn restore<'r>(
        &mut self,
        store: usize,
        records: impl Iterator<Item = RawRecord<'r>>,
        next_offset: i64,
    ) -> Result<(), Error> {
        let (spec, prefix) = &self.stores[store];
        let (layout, prefix) = (spec.layout(), *prefix);
        let mut checkpoint = self.checkpoint.clone();
        checkpoint.set_changelog(&spec.name, next_offset);
        self.changes.clear();
        for record in records {
            let Some(key) = record.key else { continue };
            let place = |out: &mut Vec<u8>| layout.place(prefix, key, out);
            match record.value {
                Some(value) => self.changes.put(place, |out| layout::stored(record.timestamp, value, out)),
                None => self.changes.delete(place),
            }
        }
        self.write_with(checkpoint)
    }

    /// Notes that everything up to the commit that `committed` describes is in the state.
    pub(crate) fn restored(&mut self, committed: Checkpoint) -> Result<(), Error> {
        self.changes.clear();
        self.write_with(committed)
    }

    /// Makes what was written survive a loss of memory. The commit does not need it: the log has it all.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.backend.flush().map_err(|reason| self.failed(reason))
    }

    fn write_with(&mut self, checkpoint: Checkpoint) -> Result<(), Error> {
        self.changes.put(|out| out.extend_from_slice(layout::CHECKPOINT), |out| checkpoint.encode(out));
        self.backend.write(&self.changes).map_err(|reason| self.failed(reason))?;
        self.checkpoint = checkpoint;
        Ok(())
    }
}
