//! All the state of one task: its backend, its stores' places in it, and its checkpoint.

use std::ops::ControlFlow;
use std::sync::Arc;

use thalweg_protocol::record::Record as RawRecord;

use super::backend::{Backend, BackendError, ByteStrings, Found, WriteSet};
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

    fn failed(&self, error: BackendError) -> Error {
        error.of_task(self.task, "", &*self.backend)
    }

    fn read_checkpoint(&self) -> Result<Checkpoint, Error> {
        let (mut keys, mut found) = (ByteStrings::default(), Found::default());
        keys.push_with(|out| out.extend_from_slice(layout::CHECKPOINT));
        self.backend.multi_get(&keys, &mut found).map_err(|error| self.failed(error))?;
        match found.get(0) {
            None => Ok(Checkpoint::default()),
            Some(bytes) => {
                let damaged =
                    |reason| BackendError::Damaged(format!("the checkpoint cannot be read: {reason}"));
                Checkpoint::decode(bytes).map_err(|reason| self.failed(damaged(reason)))
            }
        }
    }

    fn find_places(&mut self, stores: &[StoreSpec]) -> Result<Vec<(StoreSpec, StorePrefix)>, Error> {
        let mut known: Vec<(Vec<u8>, StorePrefix)> = Vec::new();
        let mut end = layout::STORE_NAMES.to_vec();
        end.push(0xff);
        let mut unreadable = false;
        let scanned = self.backend.scan(layout::STORE_NAMES, &end, &mut |key, value| {
            match (key.get(layout::STORE_NAMES.len()..), value.try_into()) {
                (Some(name), Ok(prefix)) => known.push((name.to_vec(), prefix)),
                _ => unreadable = true,
            }
            ControlFlow::Continue(())
        });
        scanned.map_err(|error| self.failed(error))?;
        if unreadable {
            return Err(self.failed(BackendError::Damaged("the place of a store cannot be read".into())));
        }
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
            self.backend.write(&self.changes).map_err(|error| self.failed(error))?;
        }
        Ok(places)
    }

    /// How far the state is.
    pub(crate) fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// What was found to be damaged in it since it was opened, by whoever reads it.
    pub(crate) fn damage(&self) -> Option<Error> {
        let reason = self.backend.damage()?.to_owned();
        Some(Error::StateDamaged { task: self.task, store: String::new(), reason })
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
            let part = StorePart::new(self.task, &self.backend, *prefix, spec.layout());
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
        self.backend.flush().map_err(|error| self.failed(error))
    }

    fn write_with(&mut self, checkpoint: Checkpoint) -> Result<(), Error> {
        self.changes.put(|out| out.extend_from_slice(layout::CHECKPOINT), |out| checkpoint.encode(out));
        self.backend.write(&self.changes).map_err(|error| self.failed(error))?;
        self.checkpoint = checkpoint;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::state::{MemoryBackend, StoreView, StoredValues};

    #[test]
    fn what_does_not_decode_is_damage() {
        let task = TaskId { subtopology: 0, partition: 0 };
        let specs = [StoreSpec::key_value("counts")];
        let place = [layout::STORE_NAMES, b"counts"].concat();
        for (key, value) in [(layout::CHECKPOINT, &b"?"[..]), (place.as_slice(), b"123")] {
            let backend = Arc::new(MemoryBackend::default());
            let mut changes = WriteSet::default();
            changes.put(|out| out.extend_from_slice(key), |out| out.extend_from_slice(value));
            backend.write(&changes).expect("writable");
            let opened = TaskState::open(task, Arc::clone(&backend) as Arc<dyn Backend>, &specs);
            let error = opened.err().expect("it cannot be opened");
            assert!(matches!(error, Error::StateDamaged { .. }), "{error}");
            assert_eq!(error.kind(), ErrorKind::Reopen);
            assert!(backend.damage().is_some(), "it is noted");
        }
    }

    #[test]
    fn a_value_that_is_cut_off_is_damage_to_the_program_and_to_readers() {
        let task = TaskId { subtopology: 0, partition: 0 };
        let backend = Arc::new(MemoryBackend::default());
        let specs = [StoreSpec::key_value("counts")];
        let state = TaskState::open(task, Arc::clone(&backend) as Arc<dyn Backend>, &specs).expect("opened");
        assert!(state.damage().is_none());
        let mut changes = WriteSet::default();
        changes.put(|out| out.extend_from_slice(b"\0\x01key"), |out| out.extend_from_slice(b"short"));
        backend.write(&changes).expect("writable");
        let view = StoreView::new(state.views().map(|(_, part)| part).collect());
        for error in [view.get(b"key").map(drop), view.for_each(|_, _, _| {})] {
            assert!(matches!(error, Err(Error::StateDamaged { .. })), "{error:?}");
        }
        let read = state.stores(0)[0].get(b"key", &mut StoredValues::new()).map(drop);
        assert!(matches!(read, Err(Error::StateDamaged { .. })), "{read:?}");
        assert!(state.damage().is_some());
        drop(state);
        drop(backend);
        assert!(view.get(b"key").expect("it is gone").is_none(), "a view keeps no state open");
    }
}
