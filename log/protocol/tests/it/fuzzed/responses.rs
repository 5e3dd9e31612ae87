//! Responses as a client reads them: the input is a byte for the API, one for the version, and a frame without its size.

use bytes::Bytes;
use thalweg_protocol::bounds::SIZE_PREFIX_BYTES;
use thalweg_protocol::messages::{ApiKey, Response};
use thalweg_protocol::{Records, frame};

use super::batches;
use super::round_trip::{self, TIGHT, body, messages};
use crate::messages::schema::Kind;

pub fn check(input: &[u8]) {
    let &[api, version, ref rest @ ..] = input else { return };
    let Ok(api) = ApiKey::try_from(i16::from(api)) else { return };
    let version = i16::from(version);
    if !api.versions().contains(&version) {
        return;
    }
    let decode = |bytes, budget| frame::decode_response(api, version, bytes, budget);
    let encode = |(id, response): &(i32, Response)| {
        let frame = frame::encode_response(response, version, *id);
        frame.map(|frame| frame.into_bytes().expect("it is in memory").slice(SIZE_PREFIX_BYTES..))
    };
    let decoded = round_trip::check(&Bytes::copy_from_slice(rest), TIGHT, decode, encode);
    let Some((_, response)) = decoded else { return };
    assert_eq!(response.api_key(), api);
    for records in records_in(response) {
        batches::check_all(records.into_bytes().expect("they are in memory"));
    }
}

fn records_in(response: Response) -> Vec<Records> {
    match response {
        Response::Fetch(fetch) => {
            let partitions = fetch.responses.into_iter().flat_map(|topic| topic.partitions);
            partitions.filter_map(|partition| partition.records).collect()
        }
        Response::ShareFetch(fetch) => {
            let partitions = fetch.responses.into_iter().flat_map(|topic| topic.partitions);
            partitions.filter_map(|partition| partition.records).collect()
        }
        _ => Vec::new(),
    }
}

/// One of each API and version.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for message in messages().iter().filter(|message| message.kind == Kind::Response) {
        let key = message.key.expect("responses have a key");
        for version in message.versions.first..=message.versions.last {
            let mut seed = vec![key as u8, version as u8, 0, 0, 0, 7];
            if message.flexible.contains(version) && key != ApiKey::ApiVersions as i16 {
                seed.push(0);
            }
            seed.extend(body(message, version, version as u8));
            seeds.push(seed);
        }
    }
    seeds
}
