// Generated from messages.txt by generate/main.rs; do not edit.

//! The API DescribeCluster.

use bytestring::ByteString;

use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, Wire};

/// The request of `DescribeCluster`, versions 0 to 2, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeClusterRequest {
    pub include_cluster_authorized_operations: bool,
    /// From version 1.
    pub endpoint_type: i8,
    /// From version 2.
    pub include_fenced_brokers: bool,
}

impl Default for DescribeClusterRequest {
    fn default() -> Self {
        Self { include_cluster_authorized_operations: false, endpoint_type: 1, include_fenced_brokers: false }
    }
}

impl Wire for DescribeClusterRequest {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            include_cluster_authorized_operations: d.bool()?,
            endpoint_type: if version >= 1 { d.i8()? } else { 1 },
            include_fenced_brokers: if version >= 2 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.bool(self.include_cluster_authorized_operations);
        if version >= 1 {
            e.i8(self.endpoint_type);
        } else {
            e.absent(self.endpoint_type != 1, "DescribeClusterRequest::endpoint_type")?;
        }
        if version >= 2 {
            e.bool(self.include_fenced_brokers);
        } else {
            e.absent(self.include_fenced_brokers, "DescribeClusterRequest::include_fenced_brokers")?;
        }
        e.no_tags();
        Ok(())
    }
}

/// The response of `DescribeCluster`, versions 0 to 2, flexible from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeClusterResponse {
    pub throttle_time_ms: i32,
    pub error_code: i16,
    pub error_message: Option<ByteString>,
    /// From version 1.
    pub endpoint_type: i8,
    pub cluster_id: ByteString,
    pub controller_id: i32,
    pub brokers: Vec<DescribeClusterBroker>,
    pub cluster_authorized_operations: i32,
}

impl Default for DescribeClusterResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            error_message: None,
            endpoint_type: 1,
            cluster_id: ByteString::new(),
            controller_id: -1,
            brokers: Vec::new(),
            cluster_authorized_operations: i32::MIN,
        }
    }
}

impl Wire for DescribeClusterResponse {
    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            throttle_time_ms: d.i32()?,
            error_code: d.i16()?,
            error_message: d.option_string(true)?,
            endpoint_type: if version >= 1 { d.i8()? } else { 1 },
            cluster_id: d.string()?,
            controller_id: d.i32()?,
            brokers: d.array()?,
            cluster_authorized_operations: d.i32()?,
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.throttle_time_ms);
        e.i16(self.error_code);
        e.option_string(self.error_message.as_deref(), true, "DescribeClusterResponse::error_message")?;
        if version >= 1 {
            e.i8(self.endpoint_type);
        } else {
            e.absent(self.endpoint_type != 1, "DescribeClusterResponse::endpoint_type")?;
        }
        e.string(&self.cluster_id)?;
        e.i32(self.controller_id);
        e.array(&self.brokers)?;
        e.i32(self.cluster_authorized_operations);
        e.no_tags();
        Ok(())
    }
}

/// See [`DescribeClusterResponse::brokers`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DescribeClusterBroker {
    pub broker_id: i32,
    pub host: ByteString,
    pub port: i32,
    pub rack: Option<ByteString>,
    /// From version 2.
    pub is_fenced: bool,
}

impl Wire for DescribeClusterBroker {
    fn min_size(version: i16, _: bool) -> usize {
        match version {
            ..=1 => 11,
            _ => 12,
        }
    }

    fn decode(d: &mut Decoder) -> Result<Self, DecodeError> {
        let version = d.version();
        let value = Self {
            broker_id: d.i32()?,
            host: d.string()?,
            port: d.i32()?,
            rack: d.option_string(true)?,
            is_fenced: if version >= 2 { d.bool()? } else { false },
        };
        d.skip_tags()?;
        Ok(value)
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        let version = e.version();
        e.i32(self.broker_id);
        e.string(&self.host)?;
        e.i32(self.port);
        e.option_string(self.rack.as_deref(), true, "DescribeClusterBroker::rack")?;
        if version >= 2 {
            e.bool(self.is_fenced);
        } else {
            e.absent(self.is_fenced, "DescribeClusterBroker::is_fenced")?;
        }
        e.no_tags();
        Ok(())
    }
}
