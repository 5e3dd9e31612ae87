//! The memory that gathers batches before they are written.

use std::sync::Arc;

use parking_lot::Mutex;

/// So much of one file is gathered at most. Twice as much gained nothing: it does not stay in the
/// processor's cache.
pub(crate) const GATHERED_BYTES: usize = 128 << 10;

/// What the files of a data directory gather in all: 16 MiB. Where that is taken, batches are written one by one.
const MOST_BUFFERS: usize = 128;

/// Buffers of [`GATHERED_BYTES`] for all files of a data directory.
#[derive(Debug, Default)]
pub struct UnwrittenMemory {
    /// Guards the buffers; held for a few instructions.
    state: Mutex<Buffers>,
}

#[derive(Debug, Default)]
struct Buffers {
    free: Vec<Vec<u8>>,
    taken: usize,
}

/// A buffer of [`GATHERED_BYTES`], given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    memory: Arc<UnwrittenMemory>,
}

impl UnwrittenMemory {
    /// An empty buffer, unless all are taken.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Buffer> {
        let mut state = self.state.lock();
        if state.taken == MOST_BUFFERS {
            return None;
        }
        state.taken += 1;
        let free = state.free.pop();
        drop(state);
        let bytes = free.unwrap_or_else(|| Vec::with_capacity(GATHERED_BYTES));
        Some(Buffer { bytes, memory: Arc::clone(self) })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut state = self.memory.state.lock();
        state.taken -= 1;
        state.free.push(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_buffers_and_they_are_used_again() {
        let memory = Arc::new(UnwrittenMemory::default());
        let mut taken: Vec<Buffer> = std::iter::from_fn(|| memory.take()).collect();
        assert_eq!(taken.len(), MOST_BUFFERS);
        let mut one = taken.pop().expect("there are some");
        one.bytes.extend_from_slice(b"bytes");
        let address = one.bytes.as_ptr();
        drop(one);
        let again = memory.take().expect("one is free");
        assert_eq!((again.bytes.len(), again.bytes.as_ptr()), (0, address));
        assert!(again.bytes.capacity() >= GATHERED_BYTES);
        assert!(memory.take().is_none());
    }
}
