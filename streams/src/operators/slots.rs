//! The buffers between operators, one in front of each.

use std::any::Any;
use std::marker::PhantomData;

use super::record::Record;

/// The input buffers of a task's operators. Their types differ, so they are kept as `Any`; an operator
/// knows the types of its own input and of those behind it, and looks them up once a batch.
#[derive(Default)]
pub(crate) struct Slots {
    buffers: Vec<Box<dyn Any + Send>>,
}

/// Names a buffer of records of one type.
pub(crate) struct SlotId<K, V> {
    at: usize,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for SlotId<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for SlotId<K, V> {}

impl<K, V> SlotId<K, V> {
    pub(crate) fn new(at: usize) -> Self {
        Self { at, of: PhantomData }
    }
}

impl Slots {
    pub(crate) fn push<K: Send + 'static, V: Send + 'static>(&mut self) {
        self.buffers.push(Box::new(Vec::<Record<K, V>>::new()));
    }

    fn buffer<K: 'static, V: 'static>(&mut self, id: SlotId<K, V>) -> &mut Vec<Record<K, V>> {
        self.buffers[id.at].downcast_mut().expect("the graph gives every slot the type of its operator")
    }

    /// Takes the records out; the allocation comes back with [`give_back`](Self::give_back).
    pub(crate) fn take<K: 'static, V: 'static>(&mut self, id: SlotId<K, V>) -> Vec<Record<K, V>> {
        std::mem::take(self.buffer(id))
    }

    /// Returns the allocation of what was taken.
    pub(crate) fn give_back<K: 'static, V: 'static>(
        &mut self,
        id: SlotId<K, V>,
        mut spent: Vec<Record<K, V>>,
    ) {
        spent.clear();
        let buffer = self.buffer(id);
        if buffer.is_empty() {
            *buffer = spent;
        }
    }
}

/// Where an operator's results go: to the slots of the operators behind it.
pub(crate) struct Outlet<K, V> {
    slots: Vec<SlotId<K, V>>,
    /// What is being collected.
    pub(crate) records: Vec<Record<K, V>>,
}

impl<K: Clone + Send + 'static, V: Clone + Send + 'static> Outlet<K, V> {
    pub(crate) fn new(slots: &[usize]) -> Self {
        Self { slots: slots.iter().map(|&at| SlotId::new(at)).collect(), records: Vec::new() }
    }

    /// Hands over what was collected: moved to the last operator, cloned for the others.
    pub(crate) fn deliver(&mut self, slots: &mut Slots) {
        let Some((last, others)) = self.slots.split_last() else {
            self.records.clear();
            return;
        };
        for &other in others {
            slots.buffer(other).extend_from_slice(&self.records);
        }
        let buffer = slots.buffer(*last);
        if buffer.is_empty() {
            std::mem::swap(buffer, &mut self.records);
        } else {
            buffer.append(&mut self.records);
        }
    }
}
