//! GetTelemetrySubscriptions: which of its metrics a client is to push here (KIP-714). None: clients ask once in a while
//! whether it is still so, and are quiet otherwise.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::get_telemetry_subscriptions::{
    GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse,
};

use super::push_telemetry::{COMPRESSION_TYPES, MAX_BYTES, SUBSCRIPTION};
use crate::topics;

/// How often clients ask again, in ms: as often as Kafka has them push by default.
const INTERVAL_MS: i32 = 300_000;

pub(crate) fn handle(request: &GetTelemetrySubscriptionsRequest) -> GetTelemetrySubscriptionsResponse {
    let client_instance_id = match request.client_instance_id.is_zero() {
        true => topics::random_id(),
        false => request.client_instance_id,
    };
    GetTelemetrySubscriptionsResponse {
        client_instance_id,
        subscription_id: SUBSCRIPTION,
        accepted_compression_types: COMPRESSION_TYPES.to_vec(),
        push_interval_ms: INTERVAL_MS,
        telemetry_max_bytes: MAX_BYTES as i32,
        delta_temporality: true,
        requested_metrics: Vec::new(),
        ..Default::default()
    }
}

/// The answer that refuses the request.
pub(crate) fn refuse(code: ErrorCode) -> GetTelemetrySubscriptionsResponse {
    GetTelemetrySubscriptionsResponse { error_code: code.code(), ..Default::default() }
}
