//! ListConfigResources: what has configs (KIP-1142).

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::list_config_resources::{
    ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse,
};

use super::RequestContext;

/// The kinds of resources, by the numbers of the protocol.
mod resource {
    pub(super) const TOPIC: i8 = 2;
    pub(super) const NODE: i8 = 4;
    pub(super) const CLIENT_METRICS: i8 = 16;
    pub(super) const GROUP: i8 = 32;
}

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
            // Neither has configs of its own here.
            resource::CLIENT_METRICS | resource::GROUP => {}
            _ => return refuse(ErrorCode::UnsupportedVersion),
        }
    }
    ListConfigResourcesResponse { config_resources, ..Default::default() }
}

/// The answer that refuses the request.
pub(crate) fn refuse(code: ErrorCode) -> ListConfigResourcesResponse {
    ListConfigResourcesResponse { error_code: code.code(), ..Default::default() }
}
