// Generated from messages.txt by generate/main.rs; do not edit.

//! The API SaslHandshake.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `SaslHandshake`, versions 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SaslHandshakeRequest {
    pub mechanism: ByteString,
}

impl Wire for SaslHandshakeRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { mechanism: d.string()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.mechanism)?;
        Ok(())
    }
}

/// The response of `SaslHandshake`, versions 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SaslHandshakeResponse {
    pub error_code: i16,
    pub mechanisms: Vec<ByteString>,
}

impl Wire for SaslHandshakeResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self { error_code: d.i16()?, mechanisms: d.array()? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i16(self.error_code);
        e.array(&self.mechanisms)?;
        Ok(())
    }
}
