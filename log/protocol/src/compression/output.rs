//! Where decompressed bytes go.

/// Why bytes could not be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They are not what the codec writes.
    Corrupt,
    /// They have more than the limit's bytes.
    TooLarge,
}

/// A buffer that grows by doubling, as it is filled, up to a limit. What was once initialised is not so again.
pub(super) struct Output<'a> {
    buffer: &'a mut Vec<u8>,
    len: usize,
    limit: usize,
}

/// The buffer grows in steps of at least this many bytes.
const SMALLEST_STEP: usize = 4096;

impl<'a> Output<'a> {
    /// Writes over `buffer`, to at most `limit` bytes. An empty buffer is given room for `expected` bytes.
    pub(super) fn new(buffer: &'a mut Vec<u8>, expected: usize, limit: usize) -> Self {
        if buffer.is_empty() {
            // Zeroed by the allocator, which may know that it already is.
            *buffer = vec![0; expected.min(limit)];
        }
        Self { buffer, len: 0, limit }
    }

    /// How many bytes have been written.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What has been written, and room for at least `wanted` more bytes or as many as one more than the limit
    /// allows: a codec that fills even that one has more than it may. Never empty.
    pub(super) fn room(&mut self, wanted: usize) -> (&[u8], &mut [u8]) {
        let most = self.limit.saturating_add(1);
        let needed = self.len.saturating_add(wanted.max(1)).min(most);
        if self.buffer.len() < needed {
            let doubled = self.buffer.len() * 2;
            self.buffer.resize(needed.max(doubled).max(SMALLEST_STEP).min(most), 0);
        }
        // The buffer may be left over from a larger limit.
        let end = self.buffer.len().min(most);
        let (written, room) = self.buffer[..end].split_at_mut(self.len);
        (written, room)
    }

    /// Says that the first `count` bytes of the room have been written.
    pub(super) fn advance(&mut self, count: usize) -> Result<(), Fault> {
        self.len += count;
        if self.len > self.limit { Err(Fault::TooLarge) } else { Ok(()) }
    }

    /// Writes `bytes` as they are.
    pub(super) fn extend(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.fits(bytes.len() as u64)?;
        let (_, room) = self.room(bytes.len());
        room[..bytes.len()].copy_from_slice(bytes);
        self.advance(bytes.len())
    }

    /// Whether `count` more bytes are allowed.
    pub(super) fn fits(&self, count: u64) -> Result<(), Fault> {
        if count > (self.limit - self.len) as u64 { Err(Fault::TooLarge) } else { Ok(()) }
    }
}
