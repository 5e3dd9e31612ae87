//! A way to a broker on which requests of one API, or their answers, get lost.

use std::sync::Arc;

use parking_lot::Mutex;
use thalweg_protocol::messages::{ApiKey, Request};
use thalweg_protocol::{Connect, ConnectFuture, Connection, ConnectionError, ResponseFuture};

/// What gets lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Request(ApiKey),
    Answer(ApiKey),
}

#[derive(Clone)]
pub struct Lossy {
    connect: Arc<dyn Connect>,
    loses: Arc<Mutex<Option<Loss>>>,
}

struct LossyConnection {
    connection: Arc<dyn Connection>,
    loses: Arc<Mutex<Option<Loss>>>,
}

impl Lossy {
    pub fn new(connect: Arc<dyn Connect>) -> Self {
        Self { connect, loses: Arc::default() }
    }

    /// What gets lost from now on.
    pub fn lose(&self, loss: Option<Loss>) {
        *self.loses.lock() = loss;
    }
}

impl Connect for Lossy {
    fn connect(&self, host: &str, port: u16) -> ConnectFuture {
        let (connecting, loses) = (self.connect.connect(host, port), Arc::clone(&self.loses));
        Box::pin(async move {
            let connection = connecting.await?;
            Ok(Arc::new(LossyConnection { connection, loses }) as Arc<dyn Connection>)
        })
    }
}

impl Connection for LossyConnection {
    fn send(&self, request: Request, version: i16) -> ResponseFuture {
        let lost = || ConnectionError::Closed { reason: "the test says so".to_owned() };
        let (loses, api) = (*self.loses.lock(), request.api_key());
        if loses == Some(Loss::Request(api)) {
            return Box::pin(async move { Err(lost()) });
        }
        let answer = self.connection.send(request, version);
        Box::pin(async move {
            let answer = answer.await;
            if loses == Some(Loss::Answer(api)) { Err(lost()) } else { answer }
        })
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}
