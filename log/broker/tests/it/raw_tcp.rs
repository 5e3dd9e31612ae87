//! A bare client: frames over a socket, answers matched to requests by their order alone.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use thalweg_protocol::bounds::DecodeBudget;
use thalweg_protocol::frame::{decode_response, encode_request};
use thalweg_protocol::messages::produce::ProduceResponse;
use thalweg_protocol::messages::{ApiKey, Request, Response};
use thalweg_protocol::{Connection, ConnectionError, ResponseFuture};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{mpsc, oneshot};

/// A connection that sends without waiting.
pub struct RawTcp {
    sent: Mutex<Sent>,
    frames: mpsc::UnboundedSender<Bytes>,
    is_closed: Arc<AtomicBool>,
}

type Waiting = Arc<Mutex<VecDeque<Expected>>>;

struct Sent {
    correlation_id: i32,
    waiting: Waiting,
}

struct Expected {
    api_key: ApiKey,
    version: i16,
    correlation_id: i32,
    answer: oneshot::Sender<Response>,
}

impl RawTcp {
    pub async fn connect(address: SocketAddr) -> Arc<dyn Connection> {
        Self::over(TcpStream::connect(address).await.expect("the broker listens"))
    }

    /// Over a socket that is connected already.
    pub fn over(socket: TcpStream) -> Arc<dyn Connection> {
        socket.set_nodelay(true).expect("a fresh socket");
        let (read, mut write) = socket.into_split();
        let (frames, mut queued) = mpsc::unbounded_channel::<Bytes>();
        tokio::spawn(async move {
            while let Some(frame) = queued.recv().await {
                if write.write_all(&frame).await.is_err() {
                    return;
                }
            }
        });
        let waiting = Waiting::default();
        let is_closed = Arc::new(AtomicBool::new(false));
        tokio::spawn(receive(read, Arc::clone(&waiting), Arc::clone(&is_closed)));
        Arc::new(Self { sent: Mutex::new(Sent { correlation_id: 0, waiting }), frames, is_closed })
    }
}

impl Connection for RawTcp {
    fn send(&self, request: Request, version: i16) -> ResponseFuture {
        let (answer, answered) = oneshot::channel();
        let mut sent = self.sent.lock().expect("nobody panics with it");
        sent.correlation_id += 1;
        let correlation_id = sent.correlation_id;
        let frame = match encode_request(&request, version, correlation_id, Some("it")) {
            Ok(frame) => frame.into_bytes().expect("requests are in memory"),
            Err(error) => {
                let error = ConnectionError::Unencodable { reason: error.to_string() };
                return Box::pin(async move { Err(error) });
            }
        };
        let api_key = request.api_key();
        if matches!(&request, Request::Produce(produce) if produce.acks == 0) {
            let _ = answer.send(ProduceResponse::default().into());
        } else {
            let expected = Expected { api_key, version, correlation_id, answer };
            let mut waiting = sent.waiting.lock().expect("nobody panics with it");
            // Nobody would answer any more; dropping `expected` says so.
            if !self.is_closed.load(Ordering::Acquire) {
                waiting.push_back(expected);
            }
        }
        let _ = self.frames.send(frame);
        let is_closed = Arc::clone(&self.is_closed);
        Box::pin(async move {
            answered.await.map_err(|_| {
                is_closed.store(true, Ordering::Release);
                ConnectionError::Closed { reason: "the broker closed".to_owned() }
            })
        })
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

async fn receive(mut read: OwnedReadHalf, waiting: Waiting, is_closed: Arc<AtomicBool>) {
    while let Ok(size) = read.read_i32().await {
        let mut frame = BytesMut::zeroed(size as usize);
        if read.read_exact(&mut frame).await.is_err() {
            break;
        }
        let expected = waiting.lock().expect("nobody panics with it").pop_front();
        let Expected { api_key, version, correlation_id, answer } =
            expected.expect("only what was asked is answered");
        let (echoed, response) = decode_response(api_key, version, frame.freeze(), DecodeBudget::RESPONSE)
            .unwrap_or_else(|error| panic!("{api_key} version {version}: {error}"));
        assert_eq!(echoed, correlation_id, "answers come in the order of their requests");
        let _ = answer.send(response);
    }
    let mut waiting = waiting.lock().expect("nobody panics with it");
    is_closed.store(true, Ordering::Release);
    waiting.clear();
}
