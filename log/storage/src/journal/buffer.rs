//! Memory as direct writes demand it.

use super::record::BLOCK;

/// Bytes that begin at a multiple of [`BLOCK`].
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
}

impl AlignedBuffer {
    /// `len` bytes with any content; allocated when more are asked for than ever before.
    pub(crate) fn get(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len + BLOCK {
            // Not resized: what is in it need not be copied.
            self.bytes = vec![0; len + BLOCK];
        }
        let address = self.bytes.as_ptr() as usize;
        let skipped = address.next_multiple_of(BLOCK) - address;
        &mut self.bytes[skipped..skipped + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_aligned_however_large() {
        let mut buffer = AlignedBuffer::default();
        for len in [BLOCK, 5 * BLOCK, BLOCK, 0, 300 * BLOCK] {
            let bytes = buffer.get(len);
            assert_eq!((bytes.as_ptr() as usize % BLOCK, bytes.len()), (0, len));
        }
    }
}
