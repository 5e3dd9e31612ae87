// Generated from messages.txt by generate/main.rs; do not edit.

//! The API FindCoordinator.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `FindCoordinator`, versions 0 to 6, flexible from 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FindCoordinatorRequest {
    /// To version 3.
    pub key: ByteString,
    /// From version 1.
    pub key_type: i8,
    /// From version 4.
    pub coordinator_keys: Vec<ByteString>,
}

impl Wire for FindCoordinatorRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            key: if version <= 3 { d.string()? } else { ByteString::new() },
            key_type: if version >= 1 { d.i8()? } else { 0 },
            coordinator_keys: if version >= 4 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version <= 3 {
            e.string(&self.key)?;
        } else {
            e.absent(!self.key.is_empty(), "FindCoordinatorRequest::key")?;
        }
        if version >= 1 {
            e.i8(self.key_type);
        } else {
            e.absent(self.key_type != 0, "FindCoordinatorRequest::key_type")?;
        }
        if version >= 4 {
            e.array(&self.coordinator_keys)?;
        } else {
            e.absent(!self.coordinator_keys.is_empty(), "FindCoordinatorRequest::coordinator_keys")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `FindCoordinator`, versions 0 to 6, flexible from 3.
#[derive(Clone, Debug, PartialEq)]
pub struct FindCoordinatorResponse {
    /// From version 1. Left out of others.
    pub throttle_time_ms: i32,
    /// To version 3.
    pub error_code: i16,
    /// In versions 1 to 3. Left out of others.
    pub error_message: Option<ByteString>,
    /// To version 3.
    pub node_id: i32,
    /// To version 3.
    pub host: ByteString,
    /// To version 3.
    pub port: i32,
    /// From version 4.
    pub coordinators: Vec<Coordinator>,
}

impl Default for FindCoordinatorResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: Some(ByteString::new()),
            node_id: 0,
            host: ByteString::new(),
            port: 0,
            coordinators: Vec::new(),
        }
    }
}

impl Wire for FindCoordinatorResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: if version >= 1 { d.i32()? } else { 0 },
            error_code: if version <= 3 { d.i16()? } else { 0 },
            error_message: if (1..=3).contains(&version) {
                d.option_string(true)?
            } else {
                Some(ByteString::new())
            },
            node_id: if version <= 3 { d.i32()? } else { 0 },
            host: if version <= 3 { d.string()? } else { ByteString::new() },
            port: if version <= 3 { d.i32()? } else { 0 },
            coordinators: if version >= 4 { d.array()? } else { Vec::new() },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        if version >= 1 {
            e.i32(self.throttle_time_ms);
        }
        if version <= 3 {
            e.i16(self.error_code);
        } else {
            e.absent(self.error_code != 0, "FindCoordinatorResponse::error_code")?;
        }
        if (1..=3).contains(&version) {
            e.option_string(self.error_message.as_deref(), true, "FindCoordinatorResponse::error_message")?;
        }
        if version <= 3 {
            e.i32(self.node_id);
            e.string(&self.host)?;
            e.i32(self.port);
        } else {
            e.absent(self.node_id != 0, "FindCoordinatorResponse::node_id")?;
            e.absent(!self.host.is_empty(), "FindCoordinatorResponse::host")?;
            e.absent(self.port != 0, "FindCoordinatorResponse::port")?;
        }
        if version >= 4 {
            e.array(&self.coordinators)?;
        } else {
            e.absent(!self.coordinators.is_empty(), "FindCoordinatorResponse::coordinators")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// See [`FindCoordinatorResponse::coordinators`].
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinator {
    pub key: ByteString,
    pub node_id: i32,
    pub host: ByteString,
    pub port: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
}

impl Default for Coordinator {
    fn default() -> Self {
        Self {
            key: ByteString::new(),
            node_id: 0,
            host: ByteString::new(),
            port: 0,
            error_code: 0,
            error_message: Some(ByteString::new()),
        }
    }
}

impl Wire for Coordinator {
    fn min_size(_: i16, _: bool) -> usize {
        14
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let value = Self {
            key: d.string()?,
            node_id: d.i32()?,
            host: d.string()?,
            port: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.string(&self.key)?;
        e.i32(self.node_id);
        e.string(&self.host)?;
        e.i32(self.port);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "Coordinator::error_message")?;
        e.no_tags();
        Ok(())
    }
}
