//! The named limits on what arrives from the wire.

/// Bytes of the size that stands before every frame.
pub const SIZE_PREFIX_BYTES: usize = 4;

/// The largest frame a broker takes from an authenticated client, as Kafka's `socket.request.max.bytes`.
pub const REQUEST_FRAME_BYTES: usize = 100 << 20;

/// The largest frame a broker takes before the client has authenticated.
pub const UNAUTHENTICATED_FRAME_BYTES: usize = 64 << 10;

/// The largest frame a client takes from a broker: what it asked for by `max.bytes`, and one batch over.
pub const RESPONSE_FRAME_BYTES: usize = 512 << 20;

/// The longest string in bytes, whatever its length prefix could say; Kafka has the same limit.
pub const STRING_BYTES: usize = i16::MAX as usize;

/// Records up to this size are copied between the fields around them; longer ones become a
/// [`FramePart`](crate::frame::FramePart) of their own.
pub const INLINE_RECORDS_BYTES: usize = 1 << 10;

/// How much memory decoding one frame may allocate, apart from the frame itself.
///
/// Strings, bytes and records are slices of the frame and cost nothing. What costs are arrays: a count from
/// the wire, already known to fit into the bytes that remain, times the size of an element in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeBudget {
    /// Bytes any frame may allocate.
    pub base_bytes: usize,
    /// Bytes more for each byte of the frame.
    pub per_frame_byte: usize,
}

impl DecodeBudget {
    /// For a client that has not authenticated: it has no reason to send arrays.
    pub const UNAUTHENTICATED: Self = Self { base_bytes: 64 << 10, per_frame_byte: 2 };

    /// For requests, and for records read from internal topics.
    pub const REQUEST: Self = Self { base_bytes: 16 << 20, per_frame_byte: 2 };

    /// For responses: a client has chosen its broker, and the metadata of a large cluster is large.
    pub const RESPONSE: Self = Self { base_bytes: 64 << 20, per_frame_byte: 8 };

    /// The bytes that a frame of `frame_bytes` may allocate.
    pub fn bytes(self, frame_bytes: usize) -> usize {
        self.per_frame_byte.saturating_mul(frame_bytes).saturating_add(self.base_bytes)
    }
}

/// A size prefix that must not be believed; the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameSizeError {
    /// The size is below zero.
    #[error("a frame of {size} bytes was announced")]
    Negative {
        /// The announced size.
        size: i32,
    },
    /// The size is over the limit of this connection.
    #[error("a frame of {size} bytes was announced, the limit is {limit}")]
    TooLarge {
        /// The announced size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

/// How many bytes follow a size prefix.
///
/// # Errors
/// Refuses a negative size and one over `limit` bytes.
pub fn frame_size(prefix: [u8; SIZE_PREFIX_BYTES], limit: usize) -> Result<usize, FrameSizeError> {
    let size = i32::from_be_bytes(prefix);
    let bytes = usize::try_from(size).map_err(|_| FrameSizeError::Negative { size })?;
    if bytes > limit {
        return Err(FrameSizeError::TooLarge { size: bytes, limit });
    }
    Ok(bytes)
}
