//! Cuts what arrives on a socket into frames.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::budget::{MemoryBudget, Reservation, SMALL};

/// Frames up to this size in bytes are cut out of the connection's read buffer; a larger one gets a buffer of
/// its own, so that its bytes are read where they stay.
const READ_BUFFER: usize = SMALL;

/// The size that stands before each frame, in bytes.
const PREFIX: usize = 4;

/// A whole frame and what it holds of the memory budget.
pub(crate) struct Frame {
    /// The bytes after the size.
    pub(crate) bytes: Bytes,
    /// Its share of the memory budget.
    pub(crate) reservation: Reservation,
}

/// Why no further frame can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    /// The client has closed the connection between two frames.
    #[error("closed by the client")]
    End,
    /// The client has closed the connection within a frame.
    #[error("closed by the client in the middle of a request")]
    Torn,
    #[error("a request of {size} bytes; at most {limit} are allowed")]
    Size { size: i32, limit: u32 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads frames from a socket. Dropping a call of [`Input::next`] loses nothing: all progress is kept here.
pub(crate) struct Input {
    limit: u32,
    budget: Arc<MemoryBudget>,
    buffer: BytesMut,
    stage: Stage,
    /// When the first bytes of the frame that is being read arrived.
    since: Option<Instant>,
}

enum Stage {
    /// Waiting for the size of a frame.
    Size,
    /// Reading a frame that fits the read buffer. It counts for the memory budget only once it is there: halves of frames
    /// are to keep nobody out.
    Small { size: usize },
    /// Waiting for the memory budget: a small frame that is there, or a large one that is to be read.
    Budget { size: usize, waiting: Pin<Box<dyn Future<Output = Reservation> + Send>> },
    /// Reading a frame into a buffer of its own.
    Large { size: usize, frame: BytesMut, reservation: Reservation },
}

impl Input {
    pub(crate) fn new(limit: u32, budget: Arc<MemoryBudget>) -> Self {
        Self { limit, budget, buffer: BytesMut::new(), stage: Stage::Size, since: None }
    }

    /// Since when a frame is being awaited of which a part has arrived, and its size in bytes as far as that is
    /// known. A frame that waits for the memory budget does not count: that is not the client's doing.
    pub(crate) fn partial(&self) -> Option<(Instant, usize)> {
        let size = match &self.stage {
            Stage::Size => 0,
            Stage::Budget { .. } => return None,
            Stage::Small { size } | Stage::Large { size, .. } => *size,
        };
        self.since.map(|since| (since, size))
    }

    /// Nothing was read for a while, which is not the client's doing either: what it has begun gets its time anew.
    pub(crate) fn restart_clock(&mut self) {
        if let Some(since) = &mut self.since {
            *since = Instant::now();
        }
    }

    fn is_partial(&self) -> bool {
        !matches!(self.stage, Stage::Size) || !self.buffer.is_empty()
    }

    /// Waits for the next frame.
    ///
    /// # Errors
    /// See [`InputError`]; the connection is to be closed after any.
    pub(crate) async fn next(&mut self, socket: &TcpStream) -> Result<Frame, InputError> {
        loop {
            match &mut self.stage {
                Stage::Size => match self.buffered_size()? {
                    Some(size) if size <= READ_BUFFER => {
                        self.stage = Stage::Small { size };
                        continue;
                    }
                    Some(size) => {
                        if let Some(frame) = self.reserve(size) {
                            return Ok(frame);
                        }
                        continue;
                    }
                    None => {}
                },
                Stage::Small { size } => {
                    let size = *size;
                    if self.buffer.len() >= size {
                        if let Some(frame) = self.reserve(size) {
                            return Ok(frame);
                        }
                        continue;
                    }
                }
                Stage::Budget { size, waiting } => {
                    let reservation = waiting.as_mut().await;
                    let size = *size;
                    self.since = Some(Instant::now());
                    if let Some(frame) = self.reserved(size, reservation) {
                        return Ok(frame);
                    }
                    continue;
                }
                Stage::Large { size, frame, .. } => {
                    if frame.len() == *size {
                        let bytes = std::mem::take(frame).freeze();
                        let Stage::Large { reservation, .. } =
                            std::mem::replace(&mut self.stage, Stage::Size)
                        else {
                            unreachable!("it was a moment ago")
                        };
                        return Ok(self.finish(bytes, reservation));
                    }
                }
            }
            self.fill(socket).await?;
        }
    }

    fn buffered_size(&mut self) -> Result<Option<usize>, InputError> {
        if self.buffer.len() < PREFIX {
            return Ok(None);
        }
        let size = self.buffer.get_i32();
        match u32::try_from(size) {
            Ok(bytes) if bytes <= self.limit => Ok(Some(bytes as usize)),
            _ => Err(InputError::Size { size, limit: self.limit }),
        }
    }

    /// Takes `size` out of the budget, or begins to wait for it. Returns the frame if it is there.
    fn reserve(&mut self, size: usize) -> Option<Frame> {
        if let Some(reservation) = self.budget.try_reserve(size) {
            return self.reserved(size, reservation);
        }
        let budget = Arc::clone(&self.budget);
        let waiting = Box::pin(async move { budget.reserve(size).await });
        self.stage = Stage::Budget { size, waiting };
        None
    }

    /// Returns a small frame, which is there, or begins to read a large one.
    fn reserved(&mut self, size: usize, reservation: Reservation) -> Option<Frame> {
        if size <= READ_BUFFER {
            let bytes = self.buffer.split_to(size).freeze();
            self.stage = Stage::Size;
            return Some(self.finish(bytes, reservation));
        }
        // The memory is reserved, and the system backs it with pages only as they are written.
        let mut frame = BytesMut::with_capacity(size);
        let here = self.buffer.len().min(size);
        frame.extend_from_slice(&self.buffer[..here]);
        self.buffer.advance(here);
        self.stage = Stage::Large { size, frame, reservation };
        None
    }

    fn finish(&mut self, bytes: Bytes, reservation: Reservation) -> Frame {
        self.since = (!self.buffer.is_empty()).then(Instant::now);
        Frame { bytes, reservation }
    }

    /// Reads once from the socket, as much as is there and fits.
    async fn fill(&mut self, socket: &TcpStream) -> Result<(), InputError> {
        loop {
            socket.readable().await?;
            let read = match &mut self.stage {
                Stage::Large { size, frame, .. } => {
                    let rest = *size - frame.len();
                    socket.try_read_buf(&mut frame.limit(rest))
                }
                Stage::Size | Stage::Budget { .. } | Stage::Small { .. } => {
                    let room = READ_BUFFER + PREFIX - self.buffer.len();
                    self.buffer.reserve(room);
                    socket.try_read_buf(&mut (&mut self.buffer).limit(room))
                }
            };
            match read {
                Ok(0) if self.is_partial() => return Err(InputError::Torn),
                Ok(0) => return Err(InputError::End),
                Ok(_) => {
                    self.since.get_or_insert_with(Instant::now);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
