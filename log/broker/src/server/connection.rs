//! One TCP connection: frames in, requests through the dispatch, answers out in order.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytestring::ByteString;
use thalweg_protocol::EncodeError;
use thalweg_protocol::bounds::DecodeBudget;
use thalweg_protocol::frame::{RequestError, decode_request, encode_response};
use thalweg_protocol::messages::ApiKey;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::dispatch;
use super::input::{Frame, Input, InputError};
use super::listener::Place;
use super::order::{Answer, Departure, Order};
use super::output::Output;
use crate::core::Core;
use crate::handlers::{Client, RequestContext, api_versions};
use crate::metrics::Course;

/// The slowest that a request may arrive once its time is up, in bytes a second: large requests get longer.
const SLOWEST_ARRIVAL: u64 = 1 << 20;

/// How long an answer that is there when the broker stops may take to leave.
const PARTING: Duration = Duration::from_millis(100);

/// Answers are gathered up to this many bytes in memory before they are written.
const GATHER: usize = 256 * 1024;

/// So many requests that have arrived begin one after the other before anything else is looked at.
const MOST_AT_ONCE: usize = 16;

/// When beginning requests has taken so long, other connections have their turn.
const TURN: Duration = Duration::from_millis(1);

/// Where the answer to a request goes.
struct Ticket {
    correlation_id: i32,
    api_key: ApiKey,
    /// The version to encode the answer in.
    version: i16,
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    #[error("{0}")]
    Request(#[from] RequestError),
    #[error("cannot encode the answer: {0}")]
    Answer(#[from] EncodeError),
    #[error("{0}")]
    Closed(String),
    #[error("nothing was asked for {0:?}")]
    Idle(Duration),
    #[error("a request did not arrive whole within {0:?}")]
    Partial(Duration),
    #[error("answers were not read for {0:?}")]
    Unread(Duration),
    #[error("the broker shuts down")]
    Shutdown,
}

impl End {
    /// Whether this is how connections end every day.
    fn is_usual(&self) -> bool {
        matches!(self, Self::Input(InputError::End) | Self::Idle(_) | Self::Shutdown | Self::Output(_))
            || matches!(self, Self::Input(InputError::Io(error)) if error.kind() == io::ErrorKind::ConnectionReset)
    }
}

/// Serves `socket` until either side ends it. `_place` is given back then.
pub(crate) async fn serve(
    core: Arc<Core>,
    socket: TcpStream,
    peer: SocketAddr,
    _place: Place,
    stop: watch::Receiver<bool>,
) {
    let _alive = core.alive.clone();
    let mut stopping = stop.clone();
    tokio::select! {
        () = hold_back(&core, peer) => {}
        _ = stopping.changed() => return,
    }
    let _open = core.metrics.connections.open();
    let end = match socket.set_nodelay(true) {
        Ok(()) => {
            let mut connection = Connection::new(Arc::clone(&core), socket, peer);
            let Err(end) = connection.run(stop).await;
            end
        }
        Err(error) => error.into(),
    };
    if end.is_usual() {
        tracing::debug!(%peer, %end, "connection closed");
    } else {
        tracing::warn!(%peer, %end, "connection closed");
    }
}

/// Waits as long as the quota of its address has a new connection wait (KIP-612).
async fn hold_back(core: &Core, peer: SocketAddr) {
    if core.quotas.is_any() {
        let address = ByteString::from(peer.ip().to_string());
        sleep(core.quotas.charge_connection(&address, Instant::now())).await;
    }
}

struct Connection {
    core: Arc<Core>,
    client: Arc<Client>,
    socket: TcpStream,
    input: Input,
    order: Order<Ticket>,
    output: Output,
    /// Why nothing more is read: the connection ends so when the answers that are still due have left.
    ending: Option<End>,
    /// When the last request came or the last answer left.
    last_activity: Instant,
}

impl Connection {
    fn new(core: Arc<Core>, socket: TcpStream, peer: SocketAddr) -> Self {
        Self {
            client: Arc::new(Client::new(Some(peer.ip()))),
            input: Input::new(core.config.max_request_bytes, Arc::clone(&core.budget)),
            order: Order::new(core.config.max_in_flight_requests),
            output: Output::new(core.cold_reads.clone(), Arc::clone(&core.metrics.segment_bytes)),
            ending: None,
            last_activity: Instant::now(),
            socket,
            core,
        }
    }

    async fn run(&mut self, mut stop: watch::Receiver<bool>) -> Result<Infallible, End> {
        let mut timer = pin!(sleep(self.tick()));
        loop {
            if self.order.is_empty()
                && let Some(end) = self.ending.take()
            {
                return Err(end);
            }
            // Looked at here, since a client can keep the other arms ready. An error says that the broker was dropped.
            if stop.has_changed().unwrap_or(true) {
                return self.part().await;
            }
            let muted_until = self.client.muted_until();
            let may_begin = self.may_begin();
            let has_begun = !self.order.is_empty();
            tokio::select! {
                biased;
                departed = self.order.next(), if has_begun => {
                    self.last_activity = Instant::now();
                    if let Some((ticket, course, departure)) = departed {
                        let departed = self.depart(ticket, &course, departure).and_then(|()| self.depart_ready());
                        self.flush(&mut stop).await?;
                        departed?;
                    }
                    self.input.restart_clock();
                }
                frame = self.input.next(&self.socket), if may_begin => {
                    self.last_activity = Instant::now();
                    self.begin_all(frame)?;
                    if self.last_activity.elapsed() > TURN {
                        yield_now().await;
                    }
                }
                () = sleep_until(muted_until.unwrap_or_else(Instant::now)), if muted_until.is_some() => {
                    self.input.restart_clock();
                }
                () = &mut timer => {
                    self.check_deadlines()?;
                    timer.as_mut().reset(Instant::now() + self.tick());
                }
                _ = stop.changed() => return self.part().await,
            }
        }
    }

    /// Sends what is there, as far as the client takes it at once.
    async fn part(&mut self) -> Result<Infallible, End> {
        let departed = self.depart_ready();
        match timeout(PARTING, self.output.flush(&self.socket)).await {
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(())) | Err(_) => departed.and(Err(End::Shutdown)),
        }
    }

    /// Whether the next request may begin now.
    fn may_begin(&self) -> bool {
        self.order.may_begin() && self.ending.is_none() && self.client.muted_until().is_none()
    }

    /// Begins a request, and those behind it that have arrived as well: what they append shares a round of syncs. One that
    /// cannot be read ends the connection, but those before it are answered.
    fn begin_all(&mut self, first: Result<Frame, InputError>) -> Result<(), End> {
        let core = Arc::clone(&self.core);
        let _hold = core.partitions.hold_round();
        let mut context = Context::from_waker(Waker::noop());
        let mut frame = first;
        for left in (0..MOST_AT_ONCE).rev() {
            match frame {
                Ok(frame) => self.ending = self.begin(frame).err().map(End::from),
                Err(InputError::Io(error)) => return Err(InputError::from(error).into()),
                Err(error) => self.ending = Some(error.into()),
            }
            if left == 0 || !self.may_begin() || self.last_activity.elapsed() > TURN {
                break;
            }
            match pin!(self.input.next(&self.socket)).poll(&mut context) {
                Poll::Ready(next) => frame = next,
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    fn begin(&mut self, frame: Frame) -> Result<(), RequestError> {
        let Frame { bytes, reservation } = frame;
        let begun = self.last_activity.into_std();
        let (ticket, answer) = match decode_request(bytes, DecodeBudget::REQUEST) {
            Ok((header, request)) => {
                let (api_key, version) = (request.api_key(), header.api_version);
                let ticket = Ticket { correlation_id: header.correlation_id, api_key, version };
                let context = RequestContext {
                    core: Arc::clone(&self.core),
                    client: Arc::clone(&self.client),
                    client_id: header.client_id,
                    version: header.api_version,
                };
                (ticket, dispatch::begin(&context, request))
            }
            Err(RequestError::UnsupportedVersion {
                api_key: ApiKey::ApiVersions, correlation_id, ..
            }) => (
                Ticket { correlation_id, api_key: ApiKey::ApiVersions, version: 0 },
                Answer::now(api_versions::unsupported()),
            ),
            Err(error) => return Err(error),
        };
        self.order.push(ticket, begun, answer, Some(reservation));
        Ok(())
    }

    fn depart(&mut self, ticket: Ticket, course: &Course, departure: Departure) -> Result<(), End> {
        self.core.metrics.requests.note(ticket.api_key, &self.client, course);
        match departure {
            Departure::Response(response) => {
                let frame = encode_response(&response, ticket.version, ticket.correlation_id)?;
                self.output.push(frame);
                Ok(())
            }
            Departure::Silent => Ok(()),
            Departure::Close { reason } => Err(End::Closed(reason)),
        }
    }

    /// Takes along the answers that are there already, so that they leave in one write.
    fn depart_ready(&mut self) -> Result<(), End> {
        let mut context = Context::from_waker(Waker::noop());
        while !self.order.is_empty() && self.output.bytes_in_memory() < GATHER {
            let Poll::Ready(departed) = self.order.poll_next(&mut context) else { break };
            if let Some((ticket, course, departure)) = departed {
                self.depart(ticket, &course, departure)?;
            }
        }
        Ok(())
    }

    /// Writes everything; ends when the client does not read it, or when the broker stops meanwhile. A client that reads slowly
    /// has its time for each stretch.
    async fn flush(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), End> {
        let limit = Duration::from_millis(self.core.config.idle_connection_ms);
        while !self.output.is_empty() {
            tokio::select! {
                biased;
                written = timeout(limit, self.output.write_next(&self.socket)) => match written {
                    Ok(written) => written?,
                    Err(_) => return Err(End::Unread(limit)),
                },
                _ = stop.changed() => return Err(End::Shutdown),
            }
        }
        Ok(())
    }

    /// How often deadlines are looked at: often enough to be about right, rarely enough to cost nothing.
    fn tick(&self) -> Duration {
        let shortest = self.core.config.partial_request_ms.min(self.core.config.idle_connection_ms);
        Duration::from_millis((shortest / 2).max(10))
    }

    fn check_deadlines(&self) -> Result<(), End> {
        let now = Instant::now();
        // Only while the rest is read: a client that is kept waiting is not a slow one.
        if self.order.may_begin()
            && self.client.muted_until().is_none()
            && let Some((since, size)) = self.input.partial()
        {
            let limit = Duration::from_millis(self.core.config.partial_request_ms)
                + Duration::from_secs(size as u64 / SLOWEST_ARRIVAL);
            if now - since >= limit {
                return Err(End::Partial(limit));
            }
        }
        let limit = Duration::from_millis(self.core.config.idle_connection_ms);
        if (self.order.is_empty() || self.ending.is_some()) && now - self.last_activity >= limit {
            return Err(End::Idle(limit));
        }
        Ok(())
    }
}
