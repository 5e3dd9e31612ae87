//! Frames byte by byte, headers, what is refused when encoding, and what is not copied.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use thalweg_protocol::bounds::{self, DecodeBudget, FrameSizeError};
use thalweg_protocol::frame::{self, FramePart, RequestError, RequestHeader};
use thalweg_protocol::messages::api_versions::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey,
};
use thalweg_protocol::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchableTopicResponse, PartitionData,
    ReplicaState,
};
use thalweg_protocol::messages::metadata::{MetadataRequest, MetadataResponse};
use thalweg_protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use thalweg_protocol::messages::{Api, ApiKey, Request, Response};
use thalweg_protocol::{ByteString, EncodeError, LogSlice, Records, Uuid};

/// Checks a frame after its size against bytes that were taken from Kafka 4.4, in hexadecimal with spaces between
/// fields.
fn check_bytes(frame: frame::Frame, expected: &str) {
    let expected = expected.replace([' ', '\n'], "");
    let len = frame.len;
    let bytes = frame.into_bytes().unwrap();
    assert_eq!(bytes.len(), len);
    assert_eq!(bytes[..4], (len as u32 - 4).to_be_bytes());
    assert_eq!(hex(&bytes[4..]), expected);
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn requests_are_kafkas_byte_for_byte() {
    let request = ApiVersionsRequest {
        client_software_name: ByteString::from_static("lib"),
        client_software_version: ByteString::from_static("1.0"),
        ..ApiVersionsRequest::default()
    };
    let frame = frame::encode_request(&request.into_request(), 3, 7, Some("me")).unwrap();
    check_bytes(frame, "0012 0003 00000007 0002 6d65 00  04 6c6962 04 312e30 00");

    let request = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let frame = frame::encode_request(&request.clone().into_request(), 1, 7, None).unwrap();
    check_bytes(frame, "0003 0001 00000007 ffff  ffffffff");
    let frame = frame::encode_request(&request.into_request(), 12, 7, None).unwrap();
    check_bytes(frame, "0003 000c 00000007 ffff 00  00 01 00 00");

    let request = FetchRequest {
        cluster_id: Some(ByteString::from_static("c")),
        replica_state: ReplicaState { replica_id: 2, replica_epoch: 3 },
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        isolation_level: 1,
        topics: vec![FetchTopic {
            topic_id: Uuid([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]),
            partitions: vec![FetchPartition {
                partition: 1,
                fetch_offset: 5,
                partition_max_bytes: 100,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    let frame = frame::encode_request(&request.into_request(), 15, 7, Some("")).unwrap();
    check_bytes(
        frame,
        "0001 000f 00000007 0000 00
         000001f4 00000001 00100000 01 00000000 ffffffff
         02 00000000000000010000000000000002
         02 00000001 ffffffff 0000000000000005 ffffffff ffffffffffffffff 00000064 00 00
         01 01 02 00 02 02 63 01 0d 00000002 0000000000000003 00",
    );
}

/// Whoever asks for a version of ApiVersions that the broker lacks must understand the answer, so that its
/// header never has tagged fields.
#[test]
fn the_header_of_api_versions_stays_at_version_0() {
    let mut response = ApiVersionsResponse {
        error_code: 35,
        api_keys: vec![ApiVersion { api_key: 18, min_version: 0, max_version: 4 }],
        ..ApiVersionsResponse::default()
    };
    let frame = frame::encode_response(&response.clone().into(), 0, 9).unwrap();
    check_bytes(frame, "00000009  0023 00000001 0012 0000 0004");
    response.finalized_features_epoch = 6;
    response.finalized_features = vec![FinalizedFeatureKey {
        name: ByteString::from_static("f"),
        max_version_level: 2,
        min_version_level: 1,
    }];
    let frame = frame::encode_response(&response.into(), 3, 9).unwrap();
    check_bytes(
        frame,
        "00000009  0023 02 0012 0000 0004 00 00000000
         02 01 08 0000000000000006 02 08 02 02 66 0002 0001 00",
    );
    let response = Response::from(MetadataResponse::default());
    let frame = frame::encode_response(&response, 9, 9).unwrap();
    check_bytes(frame, "00000009 00  00000000 01 00 ffffffff 01 80000000 00");
}

#[test]
fn the_records_of_a_request_are_not_copied() {
    let records = Bytes::from(vec![7; 5000]);
    let request = ProduceRequest {
        acks: -1,
        topic_data: vec![TopicProduceData {
            name: ByteString::from_static("flights"),
            partition_data: vec![PartitionProduceData {
                index: 1,
                records: Some(Records::Bytes(records.clone())),
            }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    for version in ProduceRequest::VERSIONS {
        let frame = frame::encode_request(&request.clone().into(), version, 1, Some("me")).unwrap();
        let apart = frame.parts.iter().filter(|part| match part {
            FramePart::Bytes(bytes) => bytes.as_ptr() == records.as_ptr() && bytes.len() == 5000,
            FramePart::Slice(_) => false,
        });
        assert_eq!(apart.count(), 1);

        let bytes = frame.into_bytes().unwrap().slice(bounds::SIZE_PREFIX_BYTES..);
        let (_, decoded) = frame::decode_request(bytes.clone(), DecodeBudget::REQUEST).unwrap();
        let Request::Produce(mut decoded) = decoded else { panic!("{decoded:?}") };
        let mut partition = decoded.topic_data.remove(0).partition_data.remove(0);
        let Some(Records::Bytes(decoded)) = partition.records.take() else { panic!("{partition:?}") };
        assert_eq!(decoded, records);
        assert!(bytes.as_ptr_range().contains(&decoded.as_ptr()), "the records were copied");
    }
}

#[test]
fn slices_of_segment_files_become_parts_of_the_frame() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"0123456789").unwrap();
    let slice = LogSlice { file: Arc::new(file), position: 3, len: 4 };
    let partition = |records| PartitionData { records, ..PartitionData::default() };
    let response = |slice: Records| {
        let first = partition(Some(slice));
        let others = [partition(Some(Records::Bytes(Bytes::from_static(b"short")))), partition(None)];
        let topic = FetchableTopicResponse {
            partitions: [first].into_iter().chain(others).collect(),
            ..FetchableTopicResponse::default()
        };
        Response::from(FetchResponse { responses: vec![topic], ..FetchResponse::default() })
    };
    for version in FetchRequest::VERSIONS {
        let frame = frame::encode_response(&response(Records::Slice(slice.clone())), version, 1).unwrap();
        let [FramePart::Bytes(before), FramePart::Slice(part), FramePart::Bytes(after)] = &frame.parts[..]
        else {
            panic!("{:?}", frame.parts);
        };
        assert_eq!((part.position, part.len), (3, 4));
        assert_eq!(before.len() + 4 + after.len(), frame.len);
        let in_memory = response(Records::Bytes(Bytes::from_static(b"3456")));
        let expected = frame::encode_response(&in_memory, version, 1).unwrap().into_bytes().unwrap();
        assert_eq!(frame.into_bytes().unwrap(), expected, "version {version}");
    }
}

#[test]
fn a_frame_may_end_with_records() {
    let mut response = FetchResponse::default();
    let records = Records::Bytes(Bytes::from(vec![1; bounds::INLINE_RECORDS_BYTES + 1]));
    let partition = PartitionData { records: Some(records), ..PartitionData::default() };
    response.responses =
        vec![FetchableTopicResponse { partitions: vec![partition], ..FetchableTopicResponse::default() }];
    let frame = frame::encode_response(&response.clone().into(), 4, 1).unwrap();
    assert_eq!(frame.parts.len(), 2);
    let bytes = frame.into_bytes().unwrap().slice(4..);
    let (id, decoded) = frame::decode_response(ApiKey::Fetch, 4, bytes, DecodeBudget::RESPONSE).unwrap();
    assert_eq!((id, decoded), (1, Response::Fetch(response)));
}

#[test]
fn what_a_version_cannot_say_is_refused_unless_it_may_be_left_out() {
    let check = |request: Request, version: i16, expected: Result<(), EncodeError>| {
        let result = frame::encode_request(&request, version, 1, None).map(|_| ());
        assert_eq!(result, expected);
    };
    let fetch = FetchRequest::default;
    let field = "FetchRequest::replica_state";
    let replica_state = ReplicaState { replica_id: 1, replica_epoch: 1 };
    check(
        FetchRequest { replica_state, ..fetch() }.into(),
        14,
        Err(EncodeError::FieldAbsent { field, version: 14 }),
    );
    check(FetchRequest { session_epoch: 5, ..fetch() }.into(), 4, Ok(()));
    let metadata = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let field = "MetadataRequest::topics";
    check(metadata.clone().into(), 0, Err(EncodeError::Null { field, version: 0 }));
    check(metadata.clone().into(), 1, Ok(()));
    let unknown = |version| EncodeError::UnknownVersion { message: "Metadata", version, first: 0, last: 13 };
    check(metadata.clone().into(), 14, Err(unknown(14)));
    check(metadata.into(), -1, Err(unknown(-1)));
    for version in [3, 9] {
        let named = |length: usize| ProduceRequest {
            transactional_id: Some("x".repeat(length).into()),
            ..ProduceRequest::default()
        };
        check(named(32_767).into(), version, Ok(()));
        check(named(32_768).into(), version, Err(EncodeError::StringTooLong { length: 32_768 }));
    }
}

#[test]
fn broken_headers_are_told_apart() {
    let check = |frame: &[u8], expected: &dyn Fn(RequestError) -> bool| {
        let error = frame::decode_request(Bytes::copy_from_slice(frame), DecodeBudget::REQUEST).unwrap_err();
        assert!(expected(error.clone()), "{error:?}");
    };
    check(b"\0\x12\0", &|error| matches!(error, RequestError::Header(_)));
    check(b"\0\x04\0\0\0\0\0\x09", &|error| {
        error == RequestError::UnknownApi { api_key: 4, api_version: 0, correlation_id: 9 }
    });
    check(b"\0\x12\0\x63\0\0\0\x09whatever", &|error| {
        let api_key = ApiKey::ApiVersions;
        error == RequestError::UnsupportedVersion { api_key, api_version: 99, correlation_id: 9 }
    });
    check(b"\0\0\0\x02\0\0\0\x09", &|error| {
        matches!(error, RequestError::UnsupportedVersion { api_key: ApiKey::Produce, api_version: 2, .. })
    });
    check(b"\0\x03\0\x01\0\0\0\x09\0\x01m!", &|error| {
        let RequestError::Body { header: RequestHeader { correlation_id, client_id, .. }, .. } = error else {
            return false;
        };
        (correlation_id, client_id.as_deref()) == (9, Some("m"))
    });
}

#[test]
fn sizes_are_checked_before_anything_is_read() {
    let limit = bounds::UNAUTHENTICATED_FRAME_BYTES;
    assert_eq!(bounds::frame_size(65_536i32.to_be_bytes(), limit), Ok(65_536));
    let too_large = FrameSizeError::TooLarge { size: 65_537, limit };
    assert_eq!(bounds::frame_size(65_537i32.to_be_bytes(), limit), Err(too_large));
    assert_eq!(bounds::frame_size([0xff; 4], limit), Err(FrameSizeError::Negative { size: -1 }));
}

#[test]
fn a_response_is_only_taken_for_one_of_its_own_api() {
    let response = Response::from(FetchResponse::default());
    assert_eq!(FetchResponse::try_from(response.clone()), Ok(FetchResponse::default()));
    let error = <MetadataRequest as Api>::Response::try_from(response).unwrap_err();
    assert_eq!(error.to_string(), "a response of Fetch instead of one of Metadata");
}

#[test]
fn keys_are_found_by_number() {
    for key in i16::MIN..=i16::MAX {
        match ApiKey::try_from(key) {
            Ok(api) => assert_eq!(api as i16, key),
            Err(unknown) => assert_eq!(unknown.0, key),
        }
    }
    assert_eq!(ApiKey::ALL.len(), 79);
    assert_eq!((ApiKey::InitProducerId.versions(), ApiKey::InitProducerId.last_stable_version()), (0..=6, 5));
    assert_eq!((ApiKey::Fetch.last_stable_version(), ApiKey::Fetch.flexible_from()), (18, 12));
}
