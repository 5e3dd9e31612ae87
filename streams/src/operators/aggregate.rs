//! Counting and other aggregates, by key or by key and window.

use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::program::{Operator, Work};
use super::record::Record;
use super::slots::{Outlet, SlotId, Slots};
use super::windowing::Windowing;
use crate::error::Error;
use crate::serde::Serde;
use crate::state::{ByteStrings, StoredValues};

/// When an aggregate's results come out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// Once per changed key and commit, with the last value: what a table needs. The default.
    #[default]
    PerCommit,
    /// With every record that changes it.
    PerRecord,
}

/// What makes one aggregate different from another.
pub(crate) struct AggregateParts<V, A, I, F> {
    pub(crate) initial: Arc<I>,
    pub(crate) add: Arc<F>,
    pub(crate) emit: Emit,
    pub(crate) of: PhantomData<fn(V) -> A>,
}

impl<V, A, I, F> Clone for AggregateParts<V, A, I, F> {
    fn clone(&self) -> Self {
        Self {
            initial: Arc::clone(&self.initial),
            add: Arc::clone(&self.add),
            emit: self.emit,
            of: PhantomData,
        }
    }
}

/// Folds the records of each key into a value that lies in a store.
///
/// A batch is grouped by key first; each distinct key is looked up once (all of them in one `multi_get`),
/// decoded once, folded in the records' order, and written back once.
pub(crate) struct Aggregate<K, V, A, W: Windowing<K>, KS, AS, I, F> {
    input: SlotId<K, V>,
    store: usize,
    key: KS,
    value: AS,
    windowing: W,
    parts: AggregateParts<V, A, I, F>,
    /// The keys' bytes are those of the run's records: nothing changed them since they were decoded.
    raw_keys: bool,
    stream_time: i64,
    groups: Groups,
    /// Which record belongs to which group, in the records' order.
    members: Vec<(u32, u32)>,
    found: StoredValues,
    folded: Vec<Folded<A>>,
    scratch: Vec<u8>,
    outlet: Outlet<W::Key, A>,
}

/// The value of a group while its records are folded into it.
struct Folded<A> {
    value: A,
    timestamp: i64,
}

impl<K, V, A, W, KS, AS, I, F> Aggregate<K, V, A, W, KS, AS, I, F>
where
    K: Clone + Send + 'static,
    A: Clone + Send + 'static,
    W: Windowing<K>,
{
    #[expect(clippy::too_many_arguments, reason = "one call, in the graph, names them all")]
    pub(crate) fn new(
        input: SlotId<K, V>,
        outputs: &[usize],
        store: usize,
        key: KS,
        value: AS,
        windowing: W,
        parts: AggregateParts<V, A, I, F>,
        raw_keys: bool,
    ) -> Self {
        Self {
            input,
            store,
            key,
            value,
            windowing,
            parts,
            raw_keys,
            stream_time: i64::MIN,
            groups: Groups::default(),
            members: Vec::new(),
            found: StoredValues::new(),
            folded: Vec::new(),
            scratch: Vec::new(),
            outlet: Outlet::new(outputs),
        }
    }
}

impl<K, V, A, W, KS, AS, I, F> Aggregate<K, V, A, W, KS, AS, I, F>
where
    K: Clone + Send + 'static,
    V: Clone + Send + 'static,
    A: Clone + Send + 'static,
    W: Windowing<K>,
    KS: Serde<K>,
    AS: Serde<A>,
    I: Fn() -> A + Send + Sync,
    F: Fn(&Record<K, V>, &mut A) + Send + Sync,
{
    /// Finds the group of each record; leaves out late ones and those without a key.
    fn group(&mut self, records: &[Record<K, V>], work: &mut Work<'_>) -> Result<(), Error> {
        self.groups.clear();
        self.members.clear();
        for (at, record) in records.iter().enumerate() {
            let Some(key) = &record.key else {
                work.task.counters.without_key += 1;
                continue;
            };
            self.scratch.clear();
            match (self.raw_keys, work.run, record.origin()) {
                (true, Some(run), Some(origin)) => {
                    self.scratch.extend_from_slice(run.record(origin).key.unwrap_or_default());
                }
                _ => self.key.encode(key, &mut self.scratch)?,
            }
            if !self.windowing.place(&mut self.stream_time, record.timestamp, &mut self.scratch) {
                work.task.counters.late += 1;
                continue;
            }
            self.members.push((at as u32, self.groups.find_or_add(&self.scratch)));
        }
        Ok(())
    }

    /// Reads the groups' values so far.
    fn look_up(&mut self, work: &mut Work<'_>) -> Result<(), Error> {
        work.task.stores[self.store].multi_get(self.groups.keys.iter(), &mut self.found)?;
        self.folded.clear();
        for at in 0..self.found.len() {
            self.folded.push(match self.found.get(at) {
                None => Folded { value: (self.parts.initial)(), timestamp: i64::MIN },
                Some(stored) => {
                    Folded { value: self.value.decode(stored.value)?, timestamp: stored.timestamp }
                }
            });
        }
        Ok(())
    }

    fn fold(&mut self, records: &[Record<K, V>]) {
        let add = &*self.parts.add;
        for &(at, group) in &self.members {
            let record = &records[at as usize];
            let folded = &mut self.folded[group as usize];
            add(record, &mut folded.value);
            folded.timestamp = record.timestamp.max(folded.timestamp);
            if self.parts.emit == Emit::PerRecord {
                let key = record.key.clone().map(|key| self.windowing.key(key, record.timestamp));
                self.outlet.records.push(record.derive(key, folded.value.clone(), folded.timestamp));
            }
        }
    }

    fn write_back(&mut self, work: &mut Work<'_>) -> Result<(), Error> {
        let store = &mut work.task.stores[self.store];
        for (key, folded) in self.groups.keys.iter().zip(&self.folded) {
            self.scratch.clear();
            self.value.encode(&folded.value, &mut self.scratch)?;
            store.put(key, folded.timestamp, &self.scratch);
        }
        if self.windowing.is_windowed() {
            store.expire(self.stream_time);
        }
        Ok(())
    }
}

impl<K, V, A, W, KS, AS, I, F> Operator for Aggregate<K, V, A, W, KS, AS, I, F>
where
    K: Clone + Send + 'static,
    V: Clone + Send + 'static,
    A: Clone + Send + 'static,
    W: Windowing<K>,
    KS: Serde<K>,
    AS: Serde<A>,
    I: Fn() -> A + Send + Sync,
    F: Fn(&Record<K, V>, &mut A) + Send + Sync,
{
    fn process(&mut self, slots: &mut Slots, work: &mut Work<'_>) -> Result<(), Error> {
        let records = slots.take(self.input);
        if !records.is_empty() {
            self.group(&records, work)?;
            self.look_up(work)?;
            self.fold(&records);
            self.write_back(work)?;
        }
        slots.give_back(self.input, records);
        self.outlet.deliver(slots);
        Ok(())
    }

    fn before_commit(&mut self, slots: &mut Slots, work: &mut Work<'_>) -> Result<(), Error> {
        if self.parts.emit == Emit::PerRecord {
            return Ok(());
        }
        let store = &work.task.stores[self.store];
        for (key, timestamp, value) in store.changed() {
            let Some(value) = value else { continue };
            let key = self.windowing.decode(&self.key, key)?;
            self.outlet.records.push(Record::new(Some(key), self.value.decode(value)?, timestamp));
        }
        self.outlet.deliver(slots);
        Ok(())
    }

    fn stream_time(&self) -> Option<i64> {
        if self.windowing.is_windowed() { Some(self.stream_time) } else { None }
    }

    fn set_stream_time(&mut self, stream_time: i64) {
        self.stream_time = stream_time;
    }
}

/// The distinct keys of a batch.
#[derive(Default)]
struct Groups {
    hasher: DefaultHashBuilder,
    index: HashTable<(u64, u32)>,
    keys: ByteStrings,
}

impl Groups {
    fn clear(&mut self) {
        self.index.clear();
        self.keys.clear();
    }

    fn find_or_add(&mut self, key: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(key);
        let keys = &self.keys;
        if let Some(&(_, at)) =
            self.index.find(hash, |&(other, at)| other == hash && keys.get(at as usize) == key)
        {
            return at;
        }
        let at = self.keys.len() as u32;
        self.keys.push_with(|out| out.extend_from_slice(key));
        self.index.insert_unique(hash, (hash, at), |&(hash, _)| hash);
        at
    }
}
