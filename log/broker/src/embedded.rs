//! Connections from within the process: requests go straight into the dispatch, typed and not serialised.
//!
//! Everything else is as over TCP: the gate, the memory budget, and one order for each connection.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use thalweg_protocol::bounds::{DecodeBudget, SIZE_PREFIX_BYTES};
use thalweg_protocol::frame::{self, Frame};
use thalweg_protocol::messages::produce::ProduceResponse;
use thalweg_protocol::messages::{ApiKey, Request, Response};
use thalweg_protocol::{Connect, ConnectFuture, Connection, ConnectionError, Records, ResponseFuture};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep_until;

use crate::core::Core;
use crate::handlers::{Client, RequestContext};
use crate::metrics::Course;
use crate::server::{Departure, MemoryBudget, Order, Reservation, dispatch};

/// Requests that may wait on one connection before they begin. A client that hands over more is cut off: over
/// TCP its socket would have filled up long before.
const MAX_WAITING: usize = 4096;

/// What a request without records counts for in the memory budget, in bytes.
const SMALL_REQUEST: usize = 1024;

/// Opens connections to a broker in the same process. It does not keep the broker running.
#[derive(Clone)]
pub struct InProcess {
    core: Weak<Core>,
    runtime: Handle,
    stop: watch::Receiver<bool>,
}

/// A request on its way, and where its answer goes.
struct Handed {
    request: Request,
    version: i16,
    answer: oneshot::Sender<Result<Response, ConnectionError>>,
}

struct InProcessConnection {
    requests: mpsc::Sender<Handed>,
    is_cut_off: AtomicBool,
}

/// Where the answer to a request goes, and what is needed to make it.
struct Ticket {
    api_key: ApiKey,
    version: i16,
    answer: oneshot::Sender<Result<Response, ConnectionError>>,
}

impl InProcess {
    pub(crate) fn new(core: &Arc<Core>, runtime: Handle, stop: watch::Receiver<bool>) -> Self {
        Self { core: Arc::downgrade(core), runtime, stop }
    }

    /// Opens a connection; `None` when the broker has shut down.
    pub fn open(&self) -> Option<Arc<dyn Connection>> {
        if *self.stop.borrow() {
            return None;
        }
        let (requests, handed) = mpsc::channel(MAX_WAITING);
        self.runtime.spawn(serve(self.core.upgrade()?, handed, self.stop.clone()));
        Some(Arc::new(InProcessConnection { requests, is_cut_off: AtomicBool::new(false) }))
    }
}

impl Connect for InProcess {
    fn connect(&self, host: &str, port: u16) -> ConnectFuture {
        let opened = self.open().ok_or_else(|| ConnectionError::Refused {
            address: format!("{host}:{port}"),
            reason: "the broker has shut down".to_owned(),
        });
        Box::pin(async move { opened })
    }
}

impl Connection for InProcessConnection {
    fn send(&self, request: Request, version: i16) -> ResponseFuture {
        let (answer, answered) = oneshot::channel();
        let handed_over = if self.is_cut_off.load(Ordering::Acquire) {
            Err(closed("the connection is closed"))
        } else {
            self.requests.try_send(Handed { request, version, answer }).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => {
                    self.is_cut_off.store(true, Ordering::Release);
                    closed(&format!("more than {MAX_WAITING} requests wait"))
                }
                mpsc::error::TrySendError::Closed(_) => closed("the broker has closed the connection"),
            })
        };
        Box::pin(async move {
            handed_over?;
            answered.await.unwrap_or_else(|_| Err(closed("the broker has closed the connection")))
        })
    }

    fn is_closed(&self) -> bool {
        self.is_cut_off.load(Ordering::Acquire) || self.requests.is_closed()
    }
}

fn closed(reason: &str) -> ConnectionError {
    ConnectionError::Closed { reason: reason.to_owned() }
}

/// Serves one connection until the client drops it or the broker stops.
async fn serve(core: Arc<Core>, mut handed: mpsc::Receiver<Handed>, mut stop: watch::Receiver<bool>) {
    let _alive = core.alive.clone();
    let mut server = Server {
        client: Arc::new(Client::new(None)),
        order: Order::new(core.config.max_in_flight_requests),
        core,
    };
    let mut next: Option<Handed> = None;
    let mut has_client = true;
    // The stop is looked at here, since a client can keep the other arms ready. An error says that the broker was dropped.
    while (has_client || !server.order.is_empty()) && !stop.has_changed().unwrap_or(true) {
        let muted_until = server.client.muted_until();
        let may_begin = server.order.may_begin() && muted_until.is_none();
        let has_begun = !server.order.is_empty();
        tokio::select! {
            biased;
            departed = server.order.next(), if has_begun => {
                if let Some((ticket, course, departure)) = departed
                    && server.depart(ticket, &course, departure).is_break()
                {
                    return;
                }
            }
            reservation = reserve(&server.core.budget, next.as_ref()), if may_begin && next.is_some() => {
                if let Some(handed) = next.take() {
                    server.begin(handed, reservation);
                }
            }
            received = handed.recv(), if has_client && may_begin && next.is_none() => {
                has_client = received.is_some();
                next = received;
            }
            () = sleep_until(muted_until.unwrap_or_else(tokio::time::Instant::now)), if muted_until.is_some() => {}
            _ = stop.changed() => return,
        }
    }
}

async fn reserve(budget: &MemoryBudget, handed: Option<&Handed>) -> Option<Reservation> {
    match handed {
        Some(handed) => Some(budget.reserve(size_in_memory(&handed.request)).await),
        None => None,
    }
}

/// About how many bytes a request holds.
fn size_in_memory(request: &Request) -> usize {
    let Request::Produce(produce) = request else { return SMALL_REQUEST };
    let partitions = produce.topic_data.iter().flat_map(|topic| &topic.partition_data);
    partitions.map(|partition| partition.records.as_ref().map_or(0, Records::len)).sum::<usize>()
        + SMALL_REQUEST
}

struct Server {
    core: Arc<Core>,
    client: Arc<Client>,
    order: Order<Ticket>,
}

impl Server {
    fn begin(&mut self, handed: Handed, reservation: Option<Reservation>) {
        let begun = Instant::now();
        let Handed { request, version, answer } = handed;
        let ticket = Ticket { api_key: request.api_key(), version, answer };
        let request = match self.core.config.in_process_through_bytes {
            true => through_bytes(&request, version),
            false => Ok(request),
        };
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                // Whoever asked may have gone.
                let _ = ticket.answer.send(Err(error));
                return;
            }
        };
        let context = RequestContext {
            core: Arc::clone(&self.core),
            client: Arc::clone(&self.client),
            client_id: None,
            version,
        };
        let answer = dispatch::begin(&context, request);
        self.order.push(ticket, begun, answer, reservation);
    }

    fn depart(&mut self, ticket: Ticket, course: &Course, departure: Departure) -> ControlFlow<()> {
        self.core.metrics.requests.note(ticket.api_key, &self.client, course);
        let (result, flow) = match departure {
            Departure::Response(response) => (self.respond(&ticket, response), ControlFlow::Continue(())),
            Departure::Silent => (Ok(ProduceResponse::default().into()), ControlFlow::Continue(())),
            Departure::Close { reason } => (Err(closed(&reason)), ControlFlow::Break(())),
        };
        // Whoever asked may have gone.
        let _ = ticket.answer.send(result);
        flow
    }

    fn respond(&self, ticket: &Ticket, response: Response) -> Result<Response, ConnectionError> {
        if !self.core.config.in_process_through_bytes {
            return Ok(response);
        }
        let malformed = |reason: String| ConnectionError::Malformed { reason };
        let frame = frame::encode_response(&response, ticket.version, 0);
        let bytes = frame
            .map_err(|error| malformed(error.to_string()))
            .and_then(|frame| into_body(frame).map_err(|error| malformed(error.to_string())))?;
        frame::decode_response(ticket.api_key, ticket.version, bytes, DecodeBudget::RESPONSE)
            .map(|(_, response)| response)
            .map_err(|error| malformed(error.to_string()))
    }
}

/// The request as it comes out of its own bytes.
fn through_bytes(request: &Request, version: i16) -> Result<Request, ConnectionError> {
    let unencodable = |reason: String| ConnectionError::Unencodable { reason };
    let frame =
        frame::encode_request(request, version, 0, None).map_err(|error| unencodable(error.to_string()))?;
    let bytes = into_body(frame).map_err(|error| unencodable(error.to_string()))?;
    let (_, request) = frame::decode_request(bytes, DecodeBudget::REQUEST)
        .map_err(|error| unencodable(error.to_string()))?;
    Ok(request)
}

/// The bytes of a frame behind its size.
fn into_body(frame: Frame) -> io::Result<Bytes> {
    Ok(frame.into_bytes()?.slice(SIZE_PREFIX_BYTES..))
}
