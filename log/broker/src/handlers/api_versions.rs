//! ApiVersions: what this broker serves.

use bytestring::ByteString;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::api_versions::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};

use super::{RequestContext, SERVED};

/// The oldest version of Produce that is named. Versions 0 to 2 are refused when they are used, but librdkafka
/// turns compression off where they are not named.
const OLDEST_PRODUCE: i16 = 0;

/// The feature by which producers know that each transaction gets an epoch of its own (KIP-890), and its level.
const TRANSACTION_VERSION: (&str, i16) = ("transaction.version", 2);

/// The feature by which consumers know that the broker assigns to groups (KIP-848), and its level.
const GROUP_VERSION: (&str, i16) = ("group.version", 1);

/// Node ids above this are those of coordinators: clients count them down from the largest number to keep
/// their connections apart from those of the nodes themselves.
const COORDINATOR_IDS: i32 = i32::MAX / 2;

pub(crate) fn handle(context: &RequestContext, request: &ApiVersionsRequest) -> ApiVersionsResponse {
    if context.version >= 3
        && !(is_name(&request.client_software_name) && is_name(&request.client_software_version))
    {
        return ApiVersionsResponse {
            error_code: ErrorCode::InvalidRequest.code(),
            ..served(context.version)
        };
    }
    if is_misrouted(context, request) {
        return ApiVersionsResponse {
            error_code: ErrorCode::RebootstrapRequired.code(),
            ..served(context.version)
        };
    }
    served(context.version)
}

/// The answer, in version 0, to a version of this API that is not known: with it the client can choose one.
pub(crate) fn unsupported() -> ApiVersionsResponse {
    let versions = ApiKey::ApiVersions.versions();
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![ApiVersion {
            api_key: ApiKey::ApiVersions as i16,
            min_version: *versions.start(),
            max_version: *versions.end(),
        }],
        ..Default::default()
    }
}

fn served(version: i16) -> ApiVersionsResponse {
    let api_keys = SERVED.iter().map(|&api_key| ApiVersion {
        api_key: api_key as i16,
        min_version: if api_key == ApiKey::Produce { OLDEST_PRODUCE } else { *api_key.versions().start() },
        max_version: api_key.last_stable_version(),
    });
    let mut response = ApiVersionsResponse { api_keys: api_keys.collect(), ..Default::default() };
    let features = [(ApiKey::ConsumerGroupHeartbeat, GROUP_VERSION), (ApiKey::EndTxn, TRANSACTION_VERSION)];
    for (_, (name, level)) in features.into_iter().filter(|(api_key, _)| SERVED.contains(api_key)) {
        response.finalized_features_epoch = 0;
        response.finalized_features.push(FinalizedFeatureKey {
            name: ByteString::from_static(name),
            max_version_level: level,
            min_version_level: level,
        });
        // Clients before version 4 of this API cannot read a range that begins at 0.
        if version >= 4 {
            response.supported_features.push(SupportedFeatureKey {
                name: ByteString::from_static(name),
                min_version: 0,
                max_version: level,
            });
        }
    }
    response
}

/// Whether the client believes to be talking to another cluster or node.
fn is_misrouted(context: &RequestContext, request: &ApiVersionsRequest) -> bool {
    let cluster_id = context.core.controller.state().cluster_id().to_string();
    let other_cluster = request.cluster_id.as_ref().is_some_and(|id| **id != *cluster_id);
    let node = request.node_id;
    let other_node = (0..COORDINATOR_IDS).contains(&node) && node != context.core.node.0;
    other_cluster || other_node
}

/// Whether `name` is letters, digits, dots and hyphens, the first and the last a letter or digit (KIP-511).
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-')
}
