//! The TCP connection against sockets that misbehave.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use thalweg_client::TcpConnector;
use thalweg_protocol::bounds::DecodeBudget;
use thalweg_protocol::frame::{RequestHeader, decode_request, encode_response};
use thalweg_protocol::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use thalweg_protocol::messages::produce::ProduceRequest;
use thalweg_protocol::messages::{Request, Response};
use thalweg_protocol::{Connect, Connection, ConnectionError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A connection and the other end of it.
async fn pair() -> (std::sync::Arc<dyn Connection>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let connector = TcpConnector::new("test", Duration::from_secs(5));
    let (connection, accepted) = tokio::join!(connector.connect("127.0.0.1", port), listener.accept());
    (connection.expect("somebody listens"), accepted.expect("somebody connects").0)
}

/// Reads the next request.
async fn next_request(stream: &mut TcpStream) -> (RequestHeader, Request) {
    let size = stream.read_i32().await.expect("a frame comes");
    let mut frame = BytesMut::zeroed(size as usize);
    stream.read_exact(&mut frame).await.expect("it comes whole");
    decode_request(frame.freeze(), DecodeBudget::REQUEST).expect("it is a request")
}

fn heartbeat(number: i32) -> Request {
    HeartbeatRequest { generation_id: number, ..HeartbeatRequest::default() }.into()
}

/// The bytes of an answer that carries `number` for the test to know it by.
fn answer(header: &RequestHeader, number: i32) -> Vec<u8> {
    let response: Response =
        HeartbeatResponse { throttle_time_ms: number, ..HeartbeatResponse::default() }.into();
    let frame =
        encode_response(&response, header.api_version, header.correlation_id).expect("it is encodable");
    frame.into_bytes().expect("it is in memory").to_vec()
}

fn number_of(response: Result<Response, ConnectionError>) -> i32 {
    match response.expect("it is answered") {
        Response::Heartbeat(response) => response.throttle_time_ms,
        other => panic!("an answer to {}", other.api_key()),
    }
}

#[tokio::test]
async fn requests_are_pipelined_and_answers_find_their_way() {
    let (connection, mut stream) = pair().await;
    let answers: Vec<_> = (0..50).map(|number| connection.send(heartbeat(number), 4)).collect();
    let mut bytes = Vec::new();
    for number in 0..50 {
        let (header, request) = next_request(&mut stream).await;
        assert_eq!(header.client_id.as_deref(), Some("test"));
        assert_eq!(request, heartbeat(number), "all come before the first answer, in order");
        bytes.extend(answer(&header, number));
    }
    // In pieces that cut frames anywhere.
    for piece in bytes.chunks(7) {
        stream.write_all(piece).await.expect("it is read");
        tokio::task::yield_now().await;
    }
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(number_of(answer.await), number as i32);
    }
    assert!(!connection.is_closed());
}

#[tokio::test]
async fn a_dropped_future_abandons_its_answer_only() {
    let (connection, mut stream) = pair().await;
    drop(connection.send(heartbeat(0), 4));
    let second = connection.send(heartbeat(1), 4);
    for number in 0..2 {
        let (header, _) = next_request(&mut stream).await;
        stream.write_all(&answer(&header, number)).await.expect("it is read");
    }
    assert_eq!(number_of(second.await), 1);
}

#[tokio::test]
async fn without_acks_nothing_is_waited_for() {
    let (connection, mut stream) = pair().await;
    let silent = ProduceRequest { acks: 0, timeout_ms: 1, ..ProduceRequest::default() };
    let produced = connection.send(silent.into(), 9).await;
    assert!(matches!(produced, Ok(Response::Produce(_))));
    let next = connection.send(heartbeat(1), 4);
    let (_, first) = next_request(&mut stream).await;
    assert!(matches!(first, Request::Produce(_)));
    let (header, _) = next_request(&mut stream).await;
    stream.write_all(&answer(&header, 1)).await.expect("it is read");
    assert_eq!(number_of(next.await), 1);
}

#[tokio::test]
async fn whoever_waits_hears_of_the_end() {
    let (connection, mut stream) = pair().await;
    let (first, second) = (connection.send(heartbeat(0), 4), connection.send(heartbeat(1), 4));
    let (header, _) = next_request(&mut stream).await;
    let bytes = answer(&header, 0);
    stream.write_all(&bytes[..bytes.len() - 1]).await.expect("it is read");
    drop(stream);
    for waiting in [first, second] {
        assert!(matches!(waiting.await, Err(ConnectionError::Closed { .. })));
    }
    assert!(connection.is_closed());
    assert!(matches!(connection.send(heartbeat(2), 4).await, Err(ConnectionError::Closed { .. })));
}

/// The bytes that answer a request.
type Case<'a> = &'a dyn Fn(&RequestHeader) -> Vec<u8>;

#[tokio::test]
async fn answers_that_make_no_sense_close_the_connection() {
    let wrong_id = |header: &RequestHeader| {
        answer(&RequestHeader { correlation_id: header.correlation_id + 1, ..header.clone() }, 0)
    };
    let cut_short = |header: &RequestHeader| {
        let mut bytes = answer(header, 0);
        bytes.truncate(bytes.len() - 2);
        let size = (bytes.len() - 4) as i32;
        bytes[..4].copy_from_slice(&size.to_be_bytes());
        bytes
    };
    let huge = |_: &RequestHeader| i32::MAX.to_be_bytes().to_vec();
    let negative = |_: &RequestHeader| (-1_i32).to_be_bytes().to_vec();
    let cases: [Case<'_>; 4] = [&wrong_id, &cut_short, &huge, &negative];
    for (case, bytes) in cases.iter().enumerate() {
        let (connection, mut stream) = pair().await;
        let (first, second) = (connection.send(heartbeat(0), 4), connection.send(heartbeat(1), 4));
        let (header, _) = next_request(&mut stream).await;
        stream.write_all(&bytes(&header)).await.expect("it is read");
        assert!(matches!(first.await, Err(ConnectionError::Malformed { .. })), "case {case}");
        assert!(matches!(second.await, Err(ConnectionError::Closed { .. })), "case {case}");
        assert!(connection.is_closed());
    }
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_closes_the_connection() {
    let (connection, mut stream) = pair().await;
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0]).await.expect("it is read");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.expect("the client closes");
    assert!(connection.is_closed());
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_dropped_connection_closes_its_socket() {
    let (connection, mut stream) = pair().await;
    drop(connection);
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read_u8()).await;
    assert!(read.expect("it is closed at once").is_err());
}

#[tokio::test]
async fn what_cannot_be_encoded_is_refused_and_the_connection_lives() {
    let (connection, mut stream) = pair().await;
    let refused = connection.send(heartbeat(0), 99).await;
    assert!(matches!(refused, Err(ConnectionError::Unencodable { .. })));
    let next = connection.send(heartbeat(1), 4);
    let (header, request) = next_request(&mut stream).await;
    assert_eq!(request, heartbeat(1));
    stream.write_all(&answer(&header, 1)).await.expect("it is read");
    assert_eq!(number_of(next.await), 1);
}

#[tokio::test]
async fn nobody_listening_is_told_with_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    drop(listener);
    let refused = TcpConnector::new("test", Duration::from_secs(5)).connect("127.0.0.1", port).await;
    match refused.err() {
        Some(ConnectionError::Refused { address, .. }) => assert_eq!(address, format!("127.0.0.1:{port}")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn large_frames_arrive_whole() {
    let (connection, mut stream) = pair().await;
    let first = connection.send(heartbeat(0), 4);
    let (header, _) = next_request(&mut stream).await;
    let second = connection.send(heartbeat(1), 4);
    let (other, _) = next_request(&mut stream).await;
    // A frame may be longer than what it holds: unknown tagged fields are skipped.
    let mut padded = answer(&header, 7);
    padded.pop();
    padded.extend([1, 99]);
    let length = 1_000_000_usize;
    let mut varint = length;
    while varint >= 0x80 {
        padded.push((varint as u8) | 0x80);
        varint >>= 7;
    }
    padded.push(varint as u8);
    padded.extend(vec![0; length]);
    let size = (padded.len() - 4) as i32;
    padded[..4].copy_from_slice(&size.to_be_bytes());
    padded.extend(answer(&other, 8));
    let mut bytes = &padded[..];
    while bytes.has_remaining() {
        stream.write_buf(&mut bytes).await.expect("it is read");
    }
    assert_eq!((number_of(first.await), number_of(second.await)), (7, 8));
}
