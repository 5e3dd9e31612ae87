//! The page of metrics and the broker's health over HTTP, for Prometheus and whoever watches over processes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::{Connections, exposition, scrape};
use crate::core::Core;
use crate::error::Error;
use crate::server::listener;

/// Connections at once; further ones are closed.
const MAX_CONNECTIONS: usize = 16;

/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Binds `address`, which must be one of this machine's own: nobody has to log in.
///
/// # Errors
/// As for the addresses that clients connect to; [`Error::Config`] for one that others can reach.
pub(crate) fn bind(address: &str) -> Result<Vec<TcpListener>, Error> {
    let listeners = listener::bind(address)?;
    let reachable = |socket: &TcpListener| socket.local_addr().is_ok_and(|local| !local.ip().is_loopback());
    if listeners.iter().any(reachable) {
        let reason = format!(
            "{address} can be reached from other machines, and nobody has to log in: listen on localhost"
        );
        return Err(Error::Config { name: "metrics_listen", reason });
    }
    Ok(listeners)
}

/// Answers requests on `listeners` until `stop` says so.
pub(crate) fn serve(core: &Arc<Core>, listeners: Vec<TcpListener>, stop: &watch::Receiver<bool>) {
    let caps = listener::ConnectionCaps::new(MAX_CONNECTIONS, MAX_CONNECTIONS);
    for socket in listeners {
        let (core, caps, stop) = (Arc::clone(core), Arc::clone(&caps), stop.clone());
        let mut stopped = stop.clone();
        tokio::spawn(async move {
            let _alive = core.alive.clone();
            // The figures are those of the log's clients.
            let uncounted = Connections::default();
            let accepting = listener::accept(socket, caps, &uncounted, |socket, peer, place| {
                let (core, mut stop) = (Arc::clone(&core), stop.clone());
                tokio::spawn(async move {
                    let _alive = core.alive.clone();
                    tokio::select! {
                        () = converse(&core, socket, peer) => {}
                        _ = stop.changed() => {}
                    }
                    drop(place);
                });
            });
            tokio::select! {
                () = accepting => {}
                _ = stopped.changed() => {}
            }
        });
    }
}

async fn converse(core: &Arc<Core>, socket: TcpStream, peer: SocketAddr) {
    let answer = service_fn(|request: Request<_>| {
        let (core, method, path) =
            (Arc::clone(core), request.method().clone(), request.uri().path().to_owned());
        async move { Ok::<_, Infallible>(answer(core, method, path).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        // Each request has a connection of its own, so that an idle one takes no place.
        .keep_alive(false)
        .serve_connection(TokioIo::new(socket), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%peer, %error, "a connection to the metrics ended");
    }
}

async fn answer(core: Arc<Core>, method: Method, path: String) -> Response<Full<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n");
    }
    match path.as_str() {
        "/metrics" => {
            // With many partitions it takes a while to write.
            let page = spawn_blocking(move || scrape::page(&core)).await;
            match page {
                Ok(page) => body(StatusCode::OK, exposition::CONTENT_TYPE, page),
                Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made\n"),
            }
        }
        "/health/live" => text(StatusCode::OK, "alive\n"),
        "/health/ready" => match scrape::trouble(&core) {
            None => text(StatusCode::OK, "ready\n"),
            Some(trouble) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
        },
        _ => text(StatusCode::NOT_FOUND, "there are /metrics, /health/live and /health/ready\n"),
    }
}

fn text(status: StatusCode, text: impl Into<String>) -> Response<Full<Bytes>> {
    body(status, "text/plain; charset=utf-8", text.into())
}

fn body(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}
