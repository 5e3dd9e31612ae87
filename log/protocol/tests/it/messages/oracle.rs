//! Random messages of every API and version, decoded and encoded by this codec and by `kafka-protocol`.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey as TheirApiKey, RequestHeader as TheirRequestHeader, RequestKind,
    ResponseHeader as TheirResponseHeader, ResponseKind,
};
use kafka_protocol::protocol::{Decodable, Encodable};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use thalweg_protocol::bounds::DecodeBudget;
use thalweg_protocol::frame;
use thalweg_protocol::messages::ApiKey;

use super::generated::MESSAGES;
use super::random::{Entropy, Sample};
use super::schema::{self, Kind, Message};

/// The request and the response of one API.
pub struct Pair {
    pub api: ApiKey,
    pub request: Message,
    pub response: Message,
}

pub fn pairs() -> Vec<Pair> {
    let mut messages = schema::parse(MESSAGES);
    messages.retain(|message| matches!(message.kind, Kind::Request | Kind::Response));
    messages
        .chunks_exact(2)
        .map(|pair| Pair {
            api: ApiKey::try_from(pair[0].key.unwrap()).unwrap(),
            request: pair[0].clone(),
            response: pair[1].clone(),
        })
        .collect()
}

/// A request after its header, and the length of the header.
pub fn request_frame(pair: &Pair, version: i16, body: &[u8]) -> Bytes {
    let mut frame = Vec::new();
    frame.extend((pair.api as i16).to_be_bytes());
    frame.extend(version.to_be_bytes());
    frame.extend(77i32.to_be_bytes());
    frame.extend(b"\0\x03me!");
    if pair.request.flexible.contains(version) {
        frame.push(0);
    }
    frame.extend(body);
    frame.into()
}

/// A response after its header.
pub fn response_frame(pair: &Pair, version: i16, body: &[u8]) -> Bytes {
    let mut frame = 77i32.to_be_bytes().to_vec();
    if pair.response.flexible.contains(version) && pair.api != ApiKey::ApiVersions {
        frame.push(0);
    }
    frame.extend(body);
    frame.into()
}

/// A response's structure of the same name as one of the request's has a name of its own.
fn schema_names(text: String) -> String {
    text.replace("[Response", "[").replace("(Response", "(").replace(" Response", " ")
}

fn check(pair: &Pair, version: i16, both: bool, entropy: &[u8]) {
    let api = pair.api;
    let mut entropy = Entropy(entropy);
    let sample = Sample::new(&pair.request, version, &mut entropy);
    let frame = request_frame(pair, version, &sample.bytes());
    let (header, request) = frame::decode_request(frame.clone(), DecodeBudget::REQUEST).unwrap();
    assert_eq!((header.api_key, header.api_version, header.correlation_id), (api, version, 77));
    assert_eq!(header.client_id.as_deref(), Some("me!"));
    assert_eq!(format!("{request:?}"), format!("{}({})", api.name(), sample.text()));
    let again = frame::encode_request(&request, version, 77, Some("me!")).unwrap();
    assert_eq!(again.into_bytes().unwrap().slice(4..), frame, "{api} request {version}");
    if both {
        assert_eq!(theirs_request(api, version, frame.clone()), frame, "{api} request {version}");
    }

    let sample = Sample::new(&pair.response, version, &mut entropy);
    let frame = response_frame(pair, version, &sample.bytes());
    let (id, response) = frame::decode_response(api, version, frame.clone(), DecodeBudget::RESPONSE).unwrap();
    assert_eq!(id, 77);
    assert_eq!(schema_names(format!("{response:?}")), format!("{}({})", api.name(), sample.text()));
    let again = frame::encode_response(&response, version, 77).unwrap();
    assert_eq!(again.into_bytes().unwrap().slice(4..), frame, "{api} response {version}");
    if both {
        assert_eq!(theirs_response(api, version, frame.clone()), frame, "{api} response {version}");
    }
}

/// Whether `kafka-protocol` can read this version, too. What it says about its versions is true of responses;
/// of requests it must be asked.
fn both_know(api: ApiKey, version: i16) -> bool {
    let Ok(theirs) = TheirApiKey::try_from(api as i16) else {
        return false;
    };
    let versions = theirs.valid_versions();
    let answer = RequestKind::decode(theirs, &mut Bytes::new(), version);
    let refused = answer.is_err_and(|error| format!("{error:#}").contains("version not supported"));
    (versions.min..=versions.max).contains(&version) && !refused
}

fn theirs_request(api: ApiKey, version: i16, mut frame: Bytes) -> Bytes {
    let key = TheirApiKey::try_from(api as i16).unwrap();
    let header_version = key.request_header_version(version);
    let header = TheirRequestHeader::decode(&mut frame, header_version).unwrap();
    let request = RequestKind::decode(key, &mut frame, version).unwrap();
    assert!(frame.is_empty(), "{api} request {version}: {} bytes left", frame.len());
    let mut out = BytesMut::new();
    header.encode(&mut out, header_version).unwrap();
    request.encode(&mut out, version).unwrap();
    out.freeze()
}

fn theirs_response(api: ApiKey, version: i16, mut frame: Bytes) -> Bytes {
    let key = TheirApiKey::try_from(api as i16).unwrap();
    let header_version = key.response_header_version(version);
    let header = TheirResponseHeader::decode(&mut frame, header_version).unwrap();
    let response = ResponseKind::decode(key, &mut frame, version).unwrap();
    assert!(frame.is_empty(), "{api} response {version}: {} bytes left", frame.len());
    let mut out = BytesMut::new();
    header.encode(&mut out, header_version).unwrap();
    response.encode(&mut out, version).unwrap();
    out.freeze()
}

/// Every message of every version says the same to the schema, to this codec and to `kafka-protocol`: bytes
/// made up from the schema are decoded to the values they were made from, and both codecs give them back.
#[test]
fn messages_agree_with_the_schema_and_with_kafka_protocol() {
    let pairs = pairs();
    assert_eq!(pairs.len(), ApiKey::ALL.len());
    for pair in &pairs {
        let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let entropy = proptest::collection::vec(any::<u8>(), 0..1500);
        let versions: Vec<(i16, bool)> = pair.api.versions().map(|v| (v, both_know(pair.api, v))).collect();
        let result = runner.run(&entropy, |entropy| {
            for &(version, both) in &versions {
                check(pair, version, both, &entropy);
            }
            Ok(())
        });
        if let Err(error) = result {
            panic!("{}: {error}", pair.api);
        }
    }
}

#[test]
fn only_the_newest_versions_lack_a_second_opinion() {
    let alone: Vec<(ApiKey, i16)> = ApiKey::ALL
        .iter()
        .flat_map(|&api| api.versions().map(move |version| (api, version)))
        .filter(|&(api, version)| !both_know(api, version))
        .collect();
    let expected = [
        (ApiKey::ListOffsets, 11),
        (ApiKey::OffsetCommit, 10),
        (ApiKey::OffsetFetch, 10),
        (ApiKey::ApiVersions, 5),
        (ApiKey::InitProducerId, 6),
        (ApiKey::WriteTxnMarkers, 2),
        (ApiKey::TxnOffsetCommit, 6),
        (ApiKey::DescribeLogDirs, 5),
        (ApiKey::DeleteGroups, 3),
        (ApiKey::ShareFetch, 2),
        (ApiKey::ShareAcknowledge, 2),
        (ApiKey::AddRaftVoter, 1),
        (ApiKey::WriteShareGroupState, 1),
        (ApiKey::ReadShareGroupStateSummary, 1),
        (ApiKey::StreamsGroupHeartbeat, 0),
        (ApiKey::StreamsGroupHeartbeat, 1),
        (ApiKey::StreamsGroupDescribe, 0),
        (ApiKey::StreamsGroupDescribe, 1),
        (ApiKey::DescribeShareGroupOffsets, 1),
        (ApiKey::StreamsGroupTopologyDescriptionUpdate, 0),
        (ApiKey::UnregisterController, 0),
    ];
    assert_eq!(alone, expected);
}
