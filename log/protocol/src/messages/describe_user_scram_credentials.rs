// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeUserScramCredentials.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeUserScramCredentials`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeUserScramCredentialsRequest {
    pub users: Option<Vec<UserName>>,
}

impl Default for DescribeUserScramCredentialsRequest {
    fn default() -> Self {
        Self { users: Some(Vec::new()) }
    }
}

impl Wire for DescribeUserScramCredentialsRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { users: d.option_array(true)? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.option_array(self.users.as_deref(), true, "DescribeUserScramCredentialsRequest::users")?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeUserScramCredentialsRequest::users`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserName {
    pub name: ByteString,
}

impl Wire for UserName {
    fn min_size(_: i16, _: bool) -> usize {
        2
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { name: d.string()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.name)?;
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeUserScramCredentials`, version 0, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeUserScramCredentialsResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub results: Vec<DescribeUserScramCredentialsResult>,
}

impl Default for DescribeUserScramCredentialsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: Some(ByteString::new()),
            results: Vec::new(),
        }
    }
}

impl Wire for DescribeUserScramCredentialsResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            results: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "DescribeUserScramCredentialsResponse::error_message",
        )?;
        e.array(&self.results)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeUserScramCredentialsResponse::results`].
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeUserScramCredentialsResult {
    pub user: ByteString,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    pub credential_infos: Vec<CredentialInfo>,
}

impl Default for DescribeUserScramCredentialsResult {
    fn default() -> Self {
        Self {
            user: ByteString::new(),
            error_code: 0,
            error_message: Some(ByteString::new()),
            credential_infos: Vec::new(),
        }
    }
}

impl Wire for DescribeUserScramCredentialsResult {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            user: d.string()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            credential_infos: d.array()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.user)?;
        e.i16(self.error_code);
        e.option_string(
            self.error_message.as_deref(),
            true,
            "DescribeUserScramCredentialsResult::error_message",
        )?;
        e.array(&self.credential_infos)?;
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeUserScramCredentialsResult::credential_infos`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CredentialInfo {
    pub mechanism: i8,
    pub iterations: i32,
}

impl Wire for CredentialInfo {
    fn min_size(_: i16, _: bool) -> usize {
        6
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self { mechanism: d.i8()?, iterations: d.i32()? };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.i8(self.mechanism);
        e.i32(self.iterations);
        e.no_tags();
        Ok(())
    }
}
