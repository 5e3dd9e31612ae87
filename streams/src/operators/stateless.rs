//! Operators that look at one record at a time.

use std::sync::Arc;

use super::program::{Operator, Work};
use super::record::Record;
use super::slots::{Outlet, SlotId, Slots};
use crate::error::Error;

/// Keeps the records that a predicate holds for.
pub(crate) struct Filter<K, V, F> {
    pub(crate) input: SlotId<K, V>,
    pub(crate) keep: Arc<F>,
    pub(crate) outlet: Outlet<K, V>,
}

impl<K, V, F> Operator for Filter<K, V, F>
where
    K: Clone + Send + 'static,
    V: Clone + Send + 'static,
    F: Fn(&Record<K, V>) -> bool + Send + Sync,
{
    fn process(&mut self, slots: &mut Slots, _work: &mut Work<'_>) -> Result<(), Error> {
        let mut records = slots.take(self.input);
        let keep = &*self.keep;
        self.outlet.records.extend(records.drain(..).filter(keep));
        slots.give_back(self.input, records);
        self.outlet.deliver(slots);
        Ok(())
    }
}

/// Makes any number of records from each; `map` and its like make exactly one.
pub(crate) struct FlatMap<K, V, K2, V2, F> {
    pub(crate) input: SlotId<K, V>,
    pub(crate) change: Arc<F>,
    pub(crate) outlet: Outlet<K2, V2>,
}

impl<K, V, K2, V2, F, I> Operator for FlatMap<K, V, K2, V2, F>
where
    K: Send + 'static,
    V: Send + 'static,
    K2: Clone + Send + 'static,
    V2: Clone + Send + 'static,
    I: IntoIterator<Item = Record<K2, V2>>,
    F: Fn(Record<K, V>) -> I + Send + Sync,
{
    fn process(&mut self, slots: &mut Slots, _work: &mut Work<'_>) -> Result<(), Error> {
        let mut records = slots.take(self.input);
        let change = &*self.change;
        self.outlet.records.reserve(records.len());
        for record in records.drain(..) {
            self.outlet.records.extend(change(record));
        }
        slots.give_back(self.input, records);
        self.outlet.deliver(slots);
        Ok(())
    }
}

/// Shows the records to a function and passes them on.
pub(crate) struct Peek<K, V, F> {
    pub(crate) input: SlotId<K, V>,
    pub(crate) look: Arc<F>,
    pub(crate) outlet: Outlet<K, V>,
}

impl<K, V, F> Operator for Peek<K, V, F>
where
    K: Clone + Send + 'static,
    V: Clone + Send + 'static,
    F: Fn(&Record<K, V>) + Send + Sync,
{
    fn process(&mut self, slots: &mut Slots, _work: &mut Work<'_>) -> Result<(), Error> {
        let mut records = slots.take(self.input);
        records.iter().for_each(&*self.look);
        self.outlet.records.append(&mut records);
        slots.give_back(self.input, records);
        self.outlet.deliver(slots);
        Ok(())
    }
}

/// Passes the records on: where streams are merged.
pub(crate) struct Relay<K, V> {
    pub(crate) input: SlotId<K, V>,
    pub(crate) outlet: Outlet<K, V>,
}

impl<K: Clone + Send + 'static, V: Clone + Send + 'static> Operator for Relay<K, V> {
    fn process(&mut self, slots: &mut Slots, _work: &mut Work<'_>) -> Result<(), Error> {
        let mut records = slots.take(self.input);
        self.outlet.records.append(&mut records);
        slots.give_back(self.input, records);
        self.outlet.deliver(slots);
        Ok(())
    }
}
