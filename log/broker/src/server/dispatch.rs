//! The one gate: every request passes here, whichever way it came.

use thalweg_protocol::messages::Request;

use super::gate::Verdict;
use super::metering;
use super::order::Answer;
use crate::handlers::{self, RequestContext};

/// Begins `request`: its effect is there when this returns, unless the answer blocks.
pub(crate) fn begin(context: &RequestContext, request: Request) -> Answer {
    let api_key = request.api_key();
    if !handlers::is_served(api_key, context.version) {
        let reason = format!("{api_key} version {} is not served here", context.version);
        return Answer::Close { reason };
    }
    match context.core.gate.judge(&context.client.principal, &request) {
        Verdict::Admit => {
            let throttle_ms = context.core.gate.throttle_ms(&context.client.principal, &request);
            let answer = match context.core.quotas.is_any() {
                true => metering::begin(context, request),
                false => handlers::begin(context, request),
            };
            if throttle_ms > 0 { answer.throttled(throttle_ms) } else { answer }
        }
        Verdict::Deny => {
            tracing::info!(principal = %context.client.principal, %api_key, "denied");
            handlers::deny(context, request)
        }
    }
}
