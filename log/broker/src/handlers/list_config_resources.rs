//! ListConfigResources: what has configs (KIP-1142).

use bytestring::ByteString;
use thalweg_controller::{self as controller, ClusterState};
use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::list_config_resources::{
    ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse,
};

use super::RequestContext;
use super::configs::resource;

pub(crate) fn handle(
    context: &RequestContext,
    request: &ListConfigResourcesRequest,
) -> ListConfigResourcesResponse {
    let wanted: &[i8] = match (context.version, request.resource_types.as_slice()) {
        // The first version knew nothing but client metrics.
        (0, _) => &[resource::CLIENT_METRICS],
        (_, []) => &[resource::TOPIC, resource::NODE, resource::CLIENT_METRICS, resource::GROUP],
        (_, wanted) => wanted,
    };
    let state = context.core.controller.state();
    let mut config_resources = Vec::new();
    let mut seen = Vec::new();
    for &resource_type in wanted {
        if seen.contains(&resource_type) {
            continue;
        }
        seen.push(resource_type);
        let listed = |resource_name| ConfigResource { resource_name, resource_type };
        match resource_type {
            resource::TOPIC => {
                config_resources.extend(state.topics().map(|topic| listed(topic.name.clone())));
            }
            resource::NODE => {
                config_resources.extend(state.nodes().map(|node| listed(node.id.to_string().into())));
            }
            resource::GROUP => config_resources.extend(groups_with_configs(&state).map(listed)),
            // Nobody has subscribed to any.
            resource::CLIENT_METRICS => {}
            _ => return refuse(ErrorCode::UnsupportedVersion),
        }
    }
    ListConfigResourcesResponse { config_resources, ..Default::default() }
}

/// Those that have configs of their own, whether they exist or not.
fn groups_with_configs(state: &ClusterState) -> impl Iterator<Item = ByteString> {
    state.resource_configs().keys().filter_map(|resource| match resource {
        controller::ConfigResource::Group(name) => Some(name.clone()),
        controller::ConfigResource::AllNodes | controller::ConfigResource::Node(_) => None,
    })
}

/// The answer that refuses the request.
pub(crate) fn refuse(code: ErrorCode) -> ListConfigResourcesResponse {
    ListConfigResourcesResponse { error_code: code.code(), ..Default::default() }
}
