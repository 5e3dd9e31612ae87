// Generated from messages.txt by generate/main.rs; do not edit.

//! The API AlterUserScramCredentials.

use bytes::Bytes;
use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `AlterUserScramCredentials`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterUserScramCredentialsRequest {
    pub deletions: Vec<ScramCredentialDeletion>,
    pub upsertions: Vec<ScramCredentialUpsertion>,
}

impl Wire for AlterUserScramCredentialsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { deletions: d.array()?, upsertions: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.array(&self.deletions)?;
        e.array(&self.upsertions)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterUserScramCredentialsRequest::deletions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScramCredentialDeletion {
    pub name: ByteString,
    pub mechanism: i8,
}

impl Wire for ScramCredentialDeletion {
    fn min_size(_: i16, _: bool) -> usize {
        3
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()?, mechanism: d.i8()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i8(self.mechanism);
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterUserScramCredentialsRequest::upsertions`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScramCredentialUpsertion {
    pub name: ByteString,
    pub mechanism: i8,
    pub iterations: i32,
    pub salt: Bytes,
    pub salted_password: Bytes,
}

impl Wire for ScramCredentialUpsertion {
    fn min_size(_: i16, _: bool) -> usize {
        9
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            name: d.string()?,
            mechanism: d.i8()?,
            iterations: d.i32()?,
            salt: d.bytes()?,
            salted_password: d.bytes()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.i8(self.mechanism);
        e.i32(self.iterations);
        e.bytes(&self.salt)?;
        e.bytes(&self.salted_password)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `AlterUserScramCredentials`, version 0, flexible from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlterUserScramCredentialsResponse {
    pub throttle_time_ms: i32,
    pub results: Vec<AlterUserScramCredentialsResult>,
}

impl Wire for AlterUserScramCredentialsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { throttle_time_ms: d.i32()?, results: d.array()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.array(&self.results)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`AlterUserScramCredentialsResponse::results`].
#[derive(Clone, Debug, PartialEq)]
pub struct AlterUserScramCredentialsResult {
    pub user: ByteString,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for AlterUserScramCredentialsResult {
    fn default() -> Self {
        Self { user: ByteString::new(), error_code: 0, error_message: Some(ByteString::new()) }
    }
}

impl Wire for AlterUserScramCredentialsResult {
    fn min_size(_: i16, _: bool) -> usize {
        5
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { user: d.string()?, error_code: d.i16()?, error_message: d.option_string(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.user)?;
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "AlterUserScramCredentialsResult::error_message",
        )?;
        e.no_tags();
        Ok(())
    }
}
