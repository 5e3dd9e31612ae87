//! A connection over TCP: one task writes, one reads, requests are pipelined.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use thalweg_protocol::bounds::{DecodeBudget, RESPONSE_FRAME_BYTES, SIZE_PREFIX_BYTES, frame_size};
use thalweg_protocol::frame::{Frame, FramePart, decode_response, encode_request};
use thalweg_protocol::messages::produce::ProduceResponse;
use thalweg_protocol::messages::{ApiKey, Request, Response};
use thalweg_protocol::{Connect, ConnectFuture, Connection, ConnectionError, ErrorCode, ResponseFuture};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

/// How many buffers one system call writes at most; Linux takes 1024.
const MAX_SLICES: usize = 64;

/// How many bytes are read at once at least; frames that are larger get a buffer of their size.
const READ_BYTES: usize = 64 << 10;

/// Opens connections over TCP.
#[derive(Clone, Debug)]
pub struct TcpConnector {
    client_id: Arc<str>,
    connect_timeout: Duration,
}

impl TcpConnector {
    /// A connector whose requests carry `client_id`.
    pub fn new(client_id: &str, connect_timeout: Duration) -> Self {
        Self { client_id: Arc::from(client_id), connect_timeout }
    }
}

impl Connect for TcpConnector {
    fn connect(&self, host: &str, port: u16) -> ConnectFuture {
        let (host, client_id, limit) = (host.to_owned(), Arc::clone(&self.client_id), self.connect_timeout);
        Box::pin(async move {
            let refused =
                |reason: String| ConnectionError::Refused { address: format!("{host}:{port}"), reason };
            let connected = tokio::time::timeout(limit, TcpStream::connect((host.as_str(), port))).await;
            let stream = connected
                .map_err(|_| refused(format!("no connection within {} ms", limit.as_millis())))?
                .map_err(|error| refused(error.to_string()))?;
            stream.set_nodelay(true).map_err(|error| refused(error.to_string()))?;
            Ok(Arc::new(TcpConnection::new(stream, client_id)) as Arc<dyn Connection>)
        })
    }
}

/// A connection whose two tasks end when it is dropped.
struct TcpConnection {
    shared: Arc<Shared>,
    client_id: Arc<str>,
    tasks: [AbortHandle; 2],
}

struct Shared {
    /// Guards the order of requests: a correlation id is drawn, the frame queued and the answer awaited as
    /// one.
    queue: Mutex<Queue>,
    written: Notify,
}

#[derive(Default)]
struct Queue {
    next_correlation_id: i32,
    frames: Vec<Frame>,
    pending: VecDeque<Pending>,
    closed: Option<String>,
}

/// A request that waits for its answer.
struct Pending {
    correlation_id: i32,
    api_key: ApiKey,
    version: i16,
    answer: oneshot::Sender<Result<Response, ConnectionError>>,
}

impl TcpConnection {
    fn new(stream: TcpStream, client_id: Arc<str>) -> Self {
        let (reader, writer) = stream.into_split();
        let shared = Arc::new(Shared { queue: Mutex::new(Queue::default()), written: Notify::new() });
        let reading = tokio::spawn(read_answers(reader, Arc::clone(&shared)));
        let writing = tokio::spawn(write_requests(writer, Arc::clone(&shared)));
        Self { shared, client_id, tasks: [reading.abort_handle(), writing.abort_handle()] }
    }
}

impl Connection for TcpConnection {
    fn send(&self, request: Request, version: i16) -> ResponseFuture {
        let awaits_answer = !matches!(&request, Request::Produce(produce) if produce.acks == 0);
        let api_key = request.api_key();
        let mut queue = self.shared.queue.lock();
        if let Some(reason) = &queue.closed {
            let reason = reason.clone();
            return Box::pin(async move { Err(ConnectionError::Closed { reason }) });
        }
        let correlation_id = queue.next_correlation_id;
        let frame = match encode_request(&request, version, correlation_id, Some(&self.client_id)) {
            Ok(frame) => frame,
            Err(error) => {
                let reason = error.to_string();
                return Box::pin(async move { Err(ConnectionError::Unencodable { reason }) });
            }
        };
        queue.next_correlation_id = correlation_id.wrapping_add(1);
        queue.frames.push(frame);
        if !awaits_answer {
            drop(queue);
            self.shared.written.notify_one();
            return Box::pin(async { Ok(Response::Produce(ProduceResponse::default())) });
        }
        let (answer, answered) = oneshot::channel();
        queue.pending.push_back(Pending { correlation_id, api_key, version, answer });
        drop(queue);
        self.shared.written.notify_one();
        Box::pin(async move {
            let closed = || Err(ConnectionError::Closed { reason: "it was dropped".to_owned() });
            answered.await.unwrap_or_else(|_| closed())
        })
    }

    fn is_closed(&self) -> bool {
        self.shared.queue.lock().closed.is_some()
    }
}

impl Drop for TcpConnection {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.close("it was dropped", |_| closed_error("it was dropped"));
    }
}

fn closed_error(reason: &str) -> ConnectionError {
    ConnectionError::Closed { reason: reason.to_owned() }
}

impl Shared {
    /// Fails what is pending and refuses what comes; `error` says how, given the place in the line.
    fn close(&self, reason: &str, error: impl Fn(usize) -> ConnectionError) {
        let pending = {
            let mut queue = self.queue.lock();
            if queue.closed.is_none() {
                queue.closed = Some(reason.to_owned());
            }
            queue.frames.clear();
            std::mem::take(&mut queue.pending)
        };
        for (place, pending) in pending.into_iter().enumerate() {
            // Nobody may be waiting any more, which is fine.
            let _ = pending.answer.send(Err(error(place)));
        }
        self.written.notify_one();
    }
}

async fn write_requests(mut writer: OwnedWriteHalf, shared: Arc<Shared>) {
    let mut frames = Vec::new();
    loop {
        {
            let mut queue = shared.queue.lock();
            if queue.closed.is_some() {
                return;
            }
            std::mem::swap(&mut queue.frames, &mut frames);
        }
        if frames.is_empty() {
            shared.written.notified().await;
            continue;
        }
        if let Err(error) = write_frames(&mut writer, &mut frames).await {
            let reason = error.to_string();
            shared.close(&reason, |_| closed_error(&reason));
            return;
        }
    }
}

/// Writes all frames with as few system calls as the socket allows, and leaves none.
async fn write_frames(writer: &mut OwnedWriteHalf, frames: &mut Vec<Frame>) -> io::Result<()> {
    let mut parts = VecDeque::new();
    for part in frames.drain(..).flat_map(|frame| frame.parts) {
        match part {
            FramePart::Bytes(bytes) => parts.push_back(bytes),
            FramePart::Slice(slice) => parts.push_back(slice.read()?),
        }
    }
    while !parts.is_empty() {
        let slices: Vec<IoSlice<'_>> = parts.iter().take(MAX_SLICES).map(|part| IoSlice::new(part)).collect();
        let written = writer.write_vectored(&slices).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        skip(&mut parts, written);
    }
    Ok(())
}

fn skip(parts: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(first) = parts.front_mut() {
        if first.len() > written {
            first.advance(written);
            return;
        }
        written -= first.len();
        parts.pop_front();
    }
}

async fn read_answers(mut reader: OwnedReadHalf, shared: Arc<Shared>) {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    loop {
        match read_answer(&mut reader, &mut buffer, &shared).await {
            Ok(()) => {}
            Err(ConnectionError::Malformed { reason }) => {
                // The answer at the head of the line is the malformed one; those behind it are merely lost.
                shared.close(&reason, |place| match place {
                    0 => ConnectionError::Malformed { reason: reason.clone() },
                    _ => closed_error(&reason),
                });
                return;
            }
            Err(error) => {
                shared.close(&error.to_string(), |_| error.clone());
                return;
            }
        }
    }
}

/// Reads the next frame and hands its answer to whoever waits for it.
async fn read_answer(
    reader: &mut OwnedReadHalf,
    buffer: &mut BytesMut,
    shared: &Shared,
) -> Result<(), ConnectionError> {
    let malformed = |reason: String| ConnectionError::Malformed { reason };
    fill(reader, buffer, SIZE_PREFIX_BYTES).await?;
    let prefix = *buffer.first_chunk::<SIZE_PREFIX_BYTES>().expect("filled to the size of a prefix");
    let size = frame_size(prefix, RESPONSE_FRAME_BYTES).map_err(|error| malformed(error.to_string()))?;
    buffer.advance(SIZE_PREFIX_BYTES);
    fill(reader, buffer, size).await?;
    let frame = buffer.split_to(size).freeze();
    let (api_key, version, expected) = {
        let queue = shared.queue.lock();
        let first =
            queue.pending.front().ok_or_else(|| malformed("an answer that nobody asked for".to_owned()))?;
        (first.api_key, first.version, first.correlation_id)
    };
    let (correlation_id, response) = decode(api_key, version, frame).map_err(malformed)?;
    if correlation_id != expected {
        return Err(malformed(format!("an answer to request {correlation_id}, not {expected}")));
    }
    let pending = shared.queue.lock().pending.pop_front();
    if let Some(pending) = pending {
        // Whoever asked may have stopped waiting.
        let _ = pending.answer.send(Ok(response));
    }
    Ok(())
}

/// Decodes an answer. A broker that does not know the version of an ApiVersions request answers in version 0.
fn decode(api_key: ApiKey, version: i16, frame: Bytes) -> Result<(i32, Response), String> {
    let is_version_zero = api_key == ApiKey::ApiVersions
        && version > 0
        && frame.get(4..6) == Some(&ErrorCode::UnsupportedVersion.code().to_be_bytes()[..]);
    let decoded = match decode_response(api_key, version, frame.clone(), DecodeBudget::RESPONSE) {
        Err(_) if is_version_zero => decode_response(api_key, 0, frame, DecodeBudget::RESPONSE),
        decoded => decoded,
    };
    decoded.map_err(|error| format!("{api_key} version {version}: {error}"))
}

/// Reads until `buffer` holds at least `size` bytes.
async fn fill(reader: &mut OwnedReadHalf, buffer: &mut BytesMut, size: usize) -> Result<(), ConnectionError> {
    while buffer.len() < size {
        let missing = size - buffer.len();
        if buffer.capacity() - buffer.len() < missing.min(READ_BYTES / 4) || buffer.capacity() < size {
            buffer.reserve(missing.max(READ_BYTES));
        }
        match reader.read_buf(buffer).await {
            Ok(0) => return Err(closed_error("the broker closed it")),
            Ok(_) => {}
            Err(error) => return Err(closed_error(&error.to_string())),
        }
    }
    Ok(())
}
