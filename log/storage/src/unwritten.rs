//! The memory that gathers batches before they are written.

use parking_lot::Mutex;

/// So much of one file is gathered at most. Where twice as much is, or half, a write costs about the same per byte.
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

impl UnwrittenMemory {
    /// An empty buffer, unless all are taken.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        if state.taken == MOST_BUFFERS {
            return None;
        }
        state.taken += 1;
        let free = state.free.pop();
        drop(state);
        Some(free.unwrap_or_else(|| Vec::with_capacity(GATHERED_BYTES)))
    }

    /// Takes back a buffer that [`take`](Self::take) gave, whatever is in it.
    pub(crate) fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut state = self.state.lock();
        state.taken -= 1;
        state.free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_buffers_and_they_are_used_again() {
        let memory = UnwrittenMemory::default();
        let mut taken: Vec<Vec<u8>> = std::iter::from_fn(|| memory.take()).collect();
        assert_eq!(taken.len(), MOST_BUFFERS);
        let mut one = taken.pop().expect("there are some");
        one.extend_from_slice(b"bytes");
        let address = one.as_ptr();
        memory.give_back(one);
        let again = memory.take().expect("one is free");
        assert_eq!((again.len(), again.as_ptr(), again.capacity()), (0, address, GATHERED_BYTES));
        assert!(memory.take().is_none());
    }
}
