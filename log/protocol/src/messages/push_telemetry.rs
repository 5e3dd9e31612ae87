// Generated from messages.txt by generate/main.rs; do not edit.

//! The API PushTelemetry.

use bytes::Bytes;

use crate::Uuid;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `PushTelemetry`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PushTelemetryRequest {
    pub client_instance_id: Uuid,
    pub subscription_id: i32,
    pub terminating: bool,
    pub compression_type: i8,
    pub metrics: Bytes,
}

impl Wire for PushTelemetryRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            client_instance_id: d.uuid()?,
            subscription_id: d.i32()?,
            terminating: d.bool()?,
            compression_type: d.i8()?,
            metrics: d.bytes()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.uuid(self.client_instance_id);
        e.i32(self.subscription_id);
        e.bool(self.terminating);
        e.i8(self.compression_type);
        e.bytes(&self.metrics)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `PushTelemetry`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PushTelemetryResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
}

impl Wire for PushTelemetryResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, error_code: d.i16()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.no_tags();
        Ok(())
    }
}
