// Generated from messages.txt by generate/main.rs; do not edit.

//! The API UnregisterController.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `UnregisterController`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnregisterControllerRequest {
    pub controller_id: i32,
}

impl Wire for UnregisterControllerRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { controller_id: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.controller_id);
        e.no_tags();
        Ok(())
    }
}

/// The response of `UnregisterController`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct UnregisterControllerResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for UnregisterControllerResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, error_code: 0, error_message: Some(ByteString::new()) }
    }
}

impl Wire for UnregisterControllerResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value =
            Self { throttle_time_ms: d.i32()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "UnregisterControllerResponse::error_message")?;
        e.no_tags();
        Ok(())
    }
}
