//! Frames: a request or response with its header, as it goes over a socket.
//!
//! The functions that decode take a frame without its size prefix; see [`frame_size`](crate::bounds::frame_size)
//! for that. The ones that encode return a [`Frame`] with it.

use std::io;

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;

use crate::LogSlice;
use crate::bounds::DecodeBudget;
use crate::codec::{DecodeError, Decoder, EncodeError, Encoder, NEVER};
use crate::messages::{ApiKey, Request, Response};

/// What stands before every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API that is called.
    pub api_key: ApiKey,
    /// The version of the request, and of the response to it.
    pub api_version: i16,
    /// Comes back with the response.
    pub correlation_id: i32,
    /// The name the client gives itself, for logs and quotas. A slice of the frame.
    pub client_id: Option<ByteString>,
}

/// An encoded frame, its size prefix included.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The frame in order.
    pub parts: Vec<FramePart>,
    /// The bytes of all parts.
    pub len: usize,
}

/// A stretch of a frame.
#[derive(Clone, Debug)]
pub enum FramePart {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Bytes in a segment file, for `sendfile`.
    Slice(LogSlice),
}

impl Frame {
    /// The frame as one piece of memory, stretches of files read and long records copied.
    ///
    /// # Errors
    /// Fails when a segment file cannot be read.
    pub fn into_bytes(mut self) -> io::Result<Bytes> {
        if let (1, Some(FramePart::Bytes(_))) = (self.parts.len(), self.parts.first())
            && let Some(FramePart::Bytes(bytes)) = self.parts.pop()
        {
            return Ok(bytes);
        }
        let mut whole = BytesMut::with_capacity(self.len);
        for part in self.parts {
            match part {
                FramePart::Bytes(bytes) => whole.extend_from_slice(&bytes),
                FramePart::Slice(slice) => whole.extend_from_slice(&slice.read()?),
            }
        }
        Ok(whole.freeze())
    }
}

/// Why a frame is not a request that can be handled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The frame ends within the header, or the header is malformed.
    #[error("malformed request header: {0}")]
    Header(DecodeError),
    /// There is no such API, or it is not for clients.
    #[error("unknown API key {api_key}")]
    UnknownApi {
        /// The key the client sent.
        api_key: i16,
        /// The version the client sent.
        api_version: i16,
        /// The correlation id the client sent.
        correlation_id: i32,
    },
    /// The API has no such version. For ApiVersions a broker answers with version 0 and error 35, so that the
    /// client can choose; for the others it closes the connection.
    #[error("{api_key} has no version {api_version}")]
    UnsupportedVersion {
        /// The API.
        api_key: ApiKey,
        /// The version the client sent.
        api_version: i16,
        /// The correlation id to answer with.
        correlation_id: i32,
    },
    /// The body is not the request that the header announces.
    #[error("malformed {} request, version {}: {error}", header.api_key, header.api_version)]
    Body {
        /// The header of the request.
        header: RequestHeader,
        /// What is wrong.
        error: DecodeError,
    },
}

/// Decodes a request with its header. Strings, bytes and records in it share the memory of `frame`: what is
/// to outlive the request should be copied.
///
/// Bytes behind the last field are passed over, as Kafka does: librdkafka up to 2.16 asks for all topics with four zero
/// bytes where flexible versions of Metadata have a count of one byte, so that its request is whole three bytes before
/// the end of its frame.
///
/// # Errors
/// See [`RequestError`].
pub fn decode_request(frame: Bytes, budget: DecodeBudget) -> Result<(RequestHeader, Request), RequestError> {
    let mut d = Decoder::new(frame, budget);
    let header = decode_request_header(&mut d)?;
    d.set_version(header.api_version, header.api_key.flexible_from());
    match Request::decode(header.api_key, &mut d) {
        Ok(request) => Ok((header, request)),
        Err(error) => Err(RequestError::Body { header, error }),
    }
}

/// Headers of version 2, which end with tagged fields, belong to flexible requests, those of version 1 to the
/// others. The client id's length takes two bytes in both.
fn decode_request_header(d: &mut Decoder) -> Result<RequestHeader, RequestError> {
    let key = d.i16().map_err(RequestError::Header)?;
    let api_version = d.i16().map_err(RequestError::Header)?;
    let correlation_id = d.i32().map_err(RequestError::Header)?;
    let Ok(api_key) = ApiKey::try_from(key) else {
        return Err(RequestError::UnknownApi { api_key: key, api_version, correlation_id });
    };
    if !api_key.versions().contains(&api_version) {
        return Err(RequestError::UnsupportedVersion { api_key, api_version, correlation_id });
    }
    d.set_version(api_version, api_key.flexible_from());
    let client_id = d.short_string().map_err(RequestError::Header)?;
    d.skip_tags().map_err(RequestError::Header)?;
    Ok(RequestHeader { api_key, api_version, correlation_id, client_id })
}

/// Encodes a request in `version` of its API.
///
/// # Errors
/// Fails when the version is unknown, or cannot carry what the request says.
pub fn encode_request(
    request: &Request,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<Frame, EncodeError> {
    let api_key = request.api_key();
    check_version(api_key, version)?;
    let mut e = Encoder::frame();
    e.set_version(version, api_key.flexible_from());
    e.i16(api_key as i16);
    e.i16(version);
    e.i32(correlation_id);
    e.short_string(client_id)?;
    e.no_tags();
    request.encode(&mut e)?;
    e.into_frame()
}

/// Decodes the response to a request of `api_key` in `version`, and the correlation id before it. Strings,
/// bytes and records in it share the memory of `frame`: what is to outlive the response should be copied.
///
/// # Errors
/// Fails when the frame is malformed.
///
/// # Panics
/// In debug builds, when the API has no such version: no request can have been sent in it.
pub fn decode_response(
    api_key: ApiKey,
    version: i16,
    frame: Bytes,
    budget: DecodeBudget,
) -> Result<(i32, Response), DecodeError> {
    debug_assert!(api_key.versions().contains(&version), "{api_key} has no version {version}");
    let mut d = Decoder::new(frame, budget);
    let correlation_id = d.i32()?;
    d.set_version(version, response_header_flexible_from(api_key));
    d.skip_tags()?;
    d.set_version(version, api_key.flexible_from());
    let response = Response::decode(api_key, &mut d)?;
    d.finish()?;
    Ok((correlation_id, response))
}

/// Encodes a response in `version` of its API.
///
/// # Errors
/// Fails when the version is unknown, or cannot carry what the response says.
pub fn encode_response(response: &Response, version: i16, correlation_id: i32) -> Result<Frame, EncodeError> {
    let api_key = response.api_key();
    check_version(api_key, version)?;
    let mut e = Encoder::frame();
    e.i32(correlation_id);
    e.set_version(version, response_header_flexible_from(api_key));
    e.no_tags();
    e.set_version(version, api_key.flexible_from());
    response.encode(&mut e)?;
    e.into_frame()
}

/// Headers of version 1, which end with tagged fields, belong to flexible responses. ApiVersions keeps
/// version 0: the client may not know yet what the broker speaks (KIP-511).
fn response_header_flexible_from(api_key: ApiKey) -> i16 {
    match api_key {
        ApiKey::ApiVersions => NEVER,
        _ => api_key.flexible_from(),
    }
}

fn check_version(api_key: ApiKey, version: i16) -> Result<(), EncodeError> {
    let versions = api_key.versions();
    if versions.contains(&version) {
        return Ok(());
    }
    let (first, last) = (*versions.start(), *versions.end());
    Err(EncodeError::UnknownVersion { message: api_key.name(), version, first, last })
}
