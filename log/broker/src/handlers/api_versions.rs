//! ApiVersions: what this broker serves.

use bytestring::ByteString;
use thalweg_controller::FEATURES;
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::ApiKey;
use thalweg_protocol::messages::api_versions::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};

use super::{RequestContext, SERVED};

/// The oldest version of Produce that is named. Versions 0 to 2 are refused when they are used, but librdkafka
/// turns compression off where they are not named.
const OLDEST_PRODUCE: i16 = 0;

/// Node ids above this are those of coordinators: clients count them down from the largest number to keep
/// their connections apart from those of the nodes themselves.
const COORDINATOR_IDS: i32 = i32::MAX / 2;

pub(crate) fn handle(context: &RequestContext, request: &ApiVersionsRequest) -> ApiVersionsResponse {
    if context.version >= 3
        && !(is_name(&request.client_software_name) && is_name(&request.client_software_version))
    {
        return ApiVersionsResponse { error_code: ErrorCode::InvalidRequest.code(), ..served(context) };
    }
    if is_misrouted(context, request) {
        return ApiVersionsResponse { error_code: ErrorCode::RebootstrapRequired.code(), ..served(context) };
    }
    served(context)
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

fn served(context: &RequestContext) -> ApiVersionsResponse {
    let api_keys = SERVED.iter().map(|&api_key| ApiVersion {
        api_key: api_key as i16,
        min_version: if api_key == ApiKey::Produce { OLDEST_PRODUCE } else { *api_key.versions().start() },
        max_version: api_key.last_stable_version(),
    });
    let mut response = ApiVersionsResponse { api_keys: api_keys.collect(), ..Default::default() };
    let state = context.core.controller.state();
    // It rises with every change of the metadata, those of features among them.
    response.finalized_features_epoch = state.offset().0.max(0);
    for feature in FEATURES {
        let level = state.feature_level(feature);
        if level > 0 {
            response.finalized_features.push(FinalizedFeatureKey {
                name: ByteString::from_static(feature.name),
                max_version_level: level,
                min_version_level: level,
            });
        }
        // Clients before version 4 of this API cannot read a range that begins at 0.
        if context.version >= 4 {
            response.supported_features.push(SupportedFeatureKey {
                name: ByteString::from_static(feature.name),
                min_version: feature.min_level,
                max_version: feature.max_level,
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
