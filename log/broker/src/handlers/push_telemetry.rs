//! PushTelemetry: takes a client's metrics (KIP-714). Nobody has asked for any, so that what comes all the same is dropped.

use thalweg_protocol::ErrorCode;
use thalweg_protocol::messages::push_telemetry::{PushTelemetryRequest, PushTelemetryResponse};

/// The id of the only subscription there is: to nothing.
pub(super) const SUBSCRIPTION: i32 = 1;

/// The most bytes of metrics that are taken at once, as Kafka's `telemetry.max.bytes`.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// How metrics may be compressed, the best first: with Zstandard, LZ4, gzip or Snappy.
pub(super) const COMPRESSION_TYPES: [i8; 4] = [4, 3, 1, 2];

/// Metrics that are not compressed.
const UNCOMPRESSED: i8 = 0;

pub(crate) fn handle(request: &PushTelemetryRequest) -> PushTelemetryResponse {
    let code = match request {
        request if request.client_instance_id.is_zero() => ErrorCode::InvalidRequest,
        request if request.subscription_id != SUBSCRIPTION => ErrorCode::UnknownSubscriptionId,
        request if request.metrics.len() > MAX_BYTES => ErrorCode::TelemetryTooLarge,
        PushTelemetryRequest { compression_type, .. }
            if *compression_type != UNCOMPRESSED && !COMPRESSION_TYPES.contains(compression_type) =>
        {
            ErrorCode::UnsupportedCompressionType
        }
        _ => ErrorCode::None,
    };
    refuse(code)
}

/// The answer with this code.
pub(crate) fn refuse(code: ErrorCode) -> PushTelemetryResponse {
    PushTelemetryResponse { error_code: code.code(), ..Default::default() }
}
