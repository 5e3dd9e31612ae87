//! Cuts what arrives on a socket into frames.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::budget::{MemoryBudget, Reservation};

/// Frames up to this size in bytes are cut out of the connection's read buffer; a larger one gets a buffer of
/// its own, so that its bytes are read where they stay.
const READ_BUFFER: usize = 16 * 1024;

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
    /// Waiting for the memory budget.
    Budget { size: usize, waiting: Pin<Box<dyn Future<Output = Reservation> + Send>> },
    /// Reading a frame that fits the read buffer.
    Small { size: usize, reservation: Reservation },
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
            Stage::Small { size, .. } | Stage::Large { size, .. } => *size,
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
                Stage::Size => {
                    if let Some(size) = self.buffered_size()? {
                        self.stage = match self.budget.try_reserve(size) {
                            Some(reservation) => self.start(size, reservation),
                            None => {
                                let budget = Arc::clone(&self.budget);
                                let waiting = Box::pin(async move { budget.reserve(size).await });
                                Stage::Budget { size, waiting }
                            }
                        };
                        continue;
                    }
                }
                Stage::Budget { size, waiting } => {
                    let reservation = waiting.as_mut().await;
                    let size = *size;
                    self.since = Some(Instant::now());
                    self.stage = self.start(size, reservation);
                    continue;
                }
                Stage::Small { size, .. } => {
                    if self.buffer.len() >= *size {
                        let bytes = self.buffer.split_to(*size).freeze();
                        return Ok(self.finish(bytes));
                    }
                }
                Stage::Large { size, frame, .. } => {
                    if frame.len() == *size {
                        let bytes = std::mem::take(frame).freeze();
                        return Ok(self.finish(bytes));
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

    fn start(&mut self, size: usize, reservation: Reservation) -> Stage {
        if size <= READ_BUFFER {
            return Stage::Small { size, reservation };
        }
        // The memory is reserved, and the system backs it with pages only as they are written.
        let mut frame = BytesMut::with_capacity(size);
        let here = self.buffer.len().min(size);
        frame.extend_from_slice(&self.buffer[..here]);
        self.buffer.advance(here);
        Stage::Large { size, frame, reservation }
    }

    fn finish(&mut self, bytes: Bytes) -> Frame {
        self.since = (!self.buffer.is_empty()).then(Instant::now);
        match std::mem::replace(&mut self.stage, Stage::Size) {
            Stage::Small { reservation, .. } | Stage::Large { reservation, .. } => {
                Frame { bytes, reservation }
            }
            Stage::Size | Stage::Budget { .. } => unreachable!("a frame is finished only while it is read"),
        }
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
                    self.buffer.reserve(READ_BUFFER);
                    let room = READ_BUFFER + PREFIX;
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
