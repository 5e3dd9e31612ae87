// Generated from messages.txt by generate/main.rs; do not edit.

//! The API GetTelemetrySubscriptions.

use bytestring::ByteString;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `GetTelemetrySubscriptions`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetTelemetrySubscriptionsRequest {
    pub client_instance_id: Uuid,
}

impl Wire for GetTelemetrySubscriptionsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { client_instance_id: d.uuid()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.uuid(self.client_instance_id);
        e.no_tags();
        Ok(())
    }
}

/// The response of `GetTelemetrySubscriptions`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetTelemetrySubscriptionsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub client_instance_id: Uuid,
    pub subscription_id: i32,
    pub accepted_compression_types: Vec<i8>,
    pub push_interval_ms: i32,
    pub telemetry_max_bytes: i32,
    pub delta_temporality: bool,
    pub requested_metrics: Vec<ByteString>,
}

impl Wire for GetTelemetrySubscriptionsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            client_instance_id: d.uuid()?,
            subscription_id: d.i32()?,
            accepted_compression_types: d.array()?,
            push_interval_ms: d.i32()?,
            telemetry_max_bytes: d.i32()?,
            delta_temporality: d.bool()?,
            requested_metrics: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.uuid(self.client_instance_id);
        e.i32(self.subscription_id);
        e.array(&self.accepted_compression_types)?;
        e.i32(self.push_interval_ms);
        e.i32(self.telemetry_max_bytes);
        e.bool(self.delta_temporality);
        e.array(&self.requested_metrics)?;
        e.no_tags();
        Ok(())
    }
}
