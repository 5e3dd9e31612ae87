//! Few bytes that decompress to very many.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use thalweg_protocol::{Compression, Compressor, ErrorCode};
use tokio::time::timeout;

use super::PATIENCE;
use super::bad::{Bad, sealed};
use crate::calls::{PRODUCE, batch, only, produce_request};
use crate::harness::Client;
use crate::raw_tcp::RawTcp;

/// How many connections send bombs at once.
const AT_ONCE: usize = 8;

/// How many bombs each of them sends.
const ROUNDS: usize = if cfg!(debug_assertions) { 1 } else { 4 };

/// What a stream of its own decompresses to: more than a batch may have.
const LARGE: usize = 80 << 20;

const CODECS: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// Some hundred bytes of stream that decompress to a mebibyte of zeros, as often as fits into a request: codecs
/// either take the streams together, for hundreds of mebibytes, or find something behind the first.
pub fn repeated(valid: &Bytes) -> Vec<Bad> {
    let bombs = CODECS.map(|compression| {
        let mut stream = Vec::new();
        Compressor::new().compress(compression, None, &vec![0; 1 << 20], &mut stream);
        let mut batch = headed(valid, compression);
        while batch.len() + stream.len() < 900_000 {
            batch.extend_from_slice(&stream);
        }
        let expected = match compression {
            // It makes 22 bytes of one at most.
            Compression::Snappy => ErrorCode::InvalidRecord,
            _ => ErrorCode::MessageTooLarge,
        };
        (format!("a bomb of {compression}"), sealed(batch), expected)
    });
    bombs.into()
}

/// Streams that are bombs by themselves, and such as only say that they are.
fn single(valid: &Bytes) -> Vec<Bad> {
    let mut bombs = Vec::new();
    if !cfg!(debug_assertions) {
        for compression in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
            let mut batch = headed(valid, compression);
            let mut stream = Vec::new();
            Compressor::new().compress(compression, None, &vec![0; LARGE], &mut stream);
            batch.extend_from_slice(&stream);
            assert!(batch.len() < 900_000, "{compression}: {} bytes", batch.len());
            bombs.push((format!("one stream of {compression}"), sealed(batch), ErrorCode::MessageTooLarge));
        }
    }
    // It says that four gibibytes follow, less a byte.
    let mut batch = headed(valid, Compression::Snappy);
    batch.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
    bombs.push(("a claim of snappy".to_owned(), sealed(batch), ErrorCode::InvalidRecord));
    // It says that it holds four gibibytes, and ends.
    let mut batch = headed(valid, Compression::Zstd);
    batch.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0]);
    bombs.push(("a claim of zstd".to_owned(), sealed(batch), ErrorCode::MessageTooLarge));
    bombs
}

fn headed(valid: &Bytes, compression: Compression) -> BytesMut {
    let mut batch = BytesMut::from(&valid[..61]);
    batch[22] = compression as u8;
    batch
}

/// Bombs of all kinds.
pub fn all() -> Vec<Bad> {
    let valid = batch(["first", "second", "third"]);
    let mut bombs = repeated(&valid);
    bombs.extend(single(&valid));
    bombs
}

/// Sends bombs on several connections at once.
pub async fn send_side_by_side(address: SocketAddr, bombs: &[Bad]) {
    let mut senders = Vec::new();
    for sender in 0..AT_ONCE {
        let bombs: Vec<_> = bombs.iter().cycle().skip(sender).take(ROUNDS).cloned().collect();
        senders.push(tokio::spawn(async move {
            let client = Client(RawTcp::connect(address).await);
            for (what, batch, expected) in bombs {
                let request = produce_request("untouched", -1, vec![(0, batch)]);
                let answer = timeout(PATIENCE, client.call(request, PRODUCE)).await;
                let answer = only(answer.unwrap_or_else(|_| panic!("{what} is answered")));
                assert_eq!(ErrorCode::from(answer.error_code), expected, "{what}");
            }
        }));
    }
    for sender in senders {
        sender.await.expect("the broker lives");
    }
}
