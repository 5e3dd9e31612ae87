//! Reading the stores of a running application from outside: the committed view.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};

use super::backend::{Backend, BackendError, ByteStrings, Found};
use super::layout::{self, KeyLayout, StorePrefix};
use crate::error::Error;
use crate::program::TaskId;
use crate::serde::Serde;

/// A store as the last commit left it, over all tasks of this instance that hold a part of it. What is not
/// committed does not show, so a reader never sees what a crash would take back. The part of a task that has been
/// closed since, because it moved or was opened again, does not show either: take a new view then.
pub struct StoreView {
    parts: Vec<StorePart>,
}

/// One task's part of a store.
#[derive(Clone)]
pub(crate) struct StorePart {
    task: TaskId,
    /// Does not keep it open: a task's state can only be opened again when nobody has it open.
    backend: Weak<dyn Backend>,
    prefix: StorePrefix,
    layout: KeyLayout,
}

impl StorePart {
    pub(super) fn new(
        task: TaskId,
        backend: &Arc<dyn Backend>,
        prefix: StorePrefix,
        layout: KeyLayout,
    ) -> Self {
        Self { task, backend: Arc::downgrade(backend), prefix, layout }
    }

    fn get(&self, backend: &dyn Backend, key: &[u8]) -> Result<Option<OwnedValue>, BackendError> {
        let (mut keys, mut found) = (ByteStrings::default(), Found::default());
        keys.push_with(|out| self.layout.place(self.prefix, key, out));
        backend.multi_get(&keys, &mut found)?;
        let Some(stored) = found.get(0) else { return Ok(None) };
        let (timestamp, value) = layout::split_stored(stored)?;
        Ok(Some(OwnedValue { timestamp, value: value.to_vec() }))
    }

    fn for_each(
        &self,
        backend: &dyn Backend,
        visit: &mut impl FnMut(&[u8], i64, &[u8]),
    ) -> Result<(), BackendError> {
        let mut read = Ok(());
        let end = layout::end_of(self.prefix);
        backend.scan(&self.prefix, &end, &mut |place, stored| match layout::split_stored(stored) {
            Ok((timestamp, value)) => {
                visit(self.layout.key(place), timestamp, value);
                ControlFlow::Continue(())
            }
            Err(error) => {
                read = Err(error);
                ControlFlow::Break(())
            }
        })?;
        read
    }
}

/// A value read through a [`StoreView`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedValue {
    /// The timestamp it was put with, in ms.
    pub timestamp: i64,
    /// Its bytes.
    pub value: Vec<u8>,
}

impl StoreView {
    pub(crate) fn new(parts: Vec<StorePart>) -> Self {
        Self { parts }
    }

    /// The tasks of this instance that hold a part of the store.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.parts.iter().map(|part| part.task)
    }

    /// The value of `key`, if this instance holds it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<OwnedValue>, Error> {
        for part in &self.parts {
            let Some(backend) = part.backend.upgrade() else { continue };
            let found = part.get(&*backend, key);
            if let Some(value) = found.map_err(|error| error.of_task(part.task, "", &*backend))? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Every key with its value and timestamp, decoded.
    ///
    /// # Errors
    /// When the store cannot be read, or holds something else.
    pub fn entries<K, V>(
        &self,
        key: &impl Serde<K>,
        value: &impl Serde<V>,
    ) -> Result<Vec<(K, V, i64)>, Error> {
        let mut entries = Vec::new();
        let mut failure = None;
        self.for_each(|key_bytes, timestamp, value_bytes| {
            match (key.decode(key_bytes), value.decode(value_bytes)) {
                (Ok(key), Ok(value)) => entries.push((key, value, timestamp)),
                (Err(error), _) | (_, Err(error)) => failure = Some(error),
            }
        })?;
        match failure {
            None => Ok(entries),
            Some(error) => Err(error.into()),
        }
    }

    /// Visits every key with its timestamp and value, task by task, in the order of the keys (of a window
    /// store: by time, roughly). A write in between may show or not.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], i64, &[u8])) -> Result<(), Error> {
        for part in &self.parts {
            let Some(backend) = part.backend.upgrade() else { continue };
            let visited = part.for_each(&*backend, &mut visit);
            visited.map_err(|error| error.of_task(part.task, "", &*backend))?;
        }
        Ok(())
    }
}
