//! Requests as a broker reads them: the input is a frame without its size.

use bytes::Bytes;
use thalweg_protocol::bounds::SIZE_PREFIX_BYTES;
use thalweg_protocol::frame;

use super::round_trip::{self, TIGHT, body, messages};
use crate::messages::schema::Kind;

pub fn check(input: &[u8]) {
    let input = Bytes::copy_from_slice(input);
    let encode = |(header, request): &(frame::RequestHeader, _)| {
        let client = header.client_id.as_deref();
        let frame = frame::encode_request(request, header.api_version, header.correlation_id, client);
        frame.map(|frame| {
            let len = frame.len;
            let bytes = frame.into_bytes().expect("it is in memory");
            assert_eq!(bytes.len(), len, "a frame knows how long it is");
            bytes.slice(SIZE_PREFIX_BYTES..)
        })
    };
    let decoded = round_trip::check(&input, TIGHT, frame::decode_request, encode);
    if let Some((header, request)) = decoded {
        assert_eq!(request.api_key(), header.api_key);
        assert!(header.api_key.versions().contains(&header.api_version));
    }
}

/// One of each API and version.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for message in messages().iter().filter(|message| message.kind == Kind::Request) {
        for version in message.versions.first..=message.versions.last {
            let mut seed = Vec::new();
            seed.extend(message.key.expect("requests have a key").to_be_bytes());
            seed.extend(version.to_be_bytes());
            seed.extend(b"\0\0\0\x07\0\x02me");
            if message.flexible.contains(version) {
                seed.push(0);
            }
            seed.extend(body(message, version, version as u8));
            seeds.push(seed);
        }
    }
    seeds
}
