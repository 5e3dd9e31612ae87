//! The wire: messages and frames of the Kafka protocol, record batches, compression and error codes, and
//! the seam ([`Connection`]) between a client and a broker.
//!
//! Nothing here does I/O except [`LogSlice::read`]; nothing knows tokio.

pub mod bounds;
mod codec;
mod compression;
mod connection;
mod error_code;
pub mod frame;
mod ids;
mod log_slice;
pub mod messages;
mod partition_hash;
pub mod record;

pub use bytestring::ByteString;
pub use codec::{DecodeError, EncodeError};
pub use compression::{Compression, Compressor, Scratch};
pub use connection::{Connect, ConnectFuture, Connection, ConnectionError, ResponseFuture};
pub use error_code::ErrorCode;
pub use ids::{LeaderEpoch, NodeId, Offset, ProducerEpoch, ProducerId, TopicPartition, Uuid};
pub use log_slice::{LogSlice, Records};
pub use partition_hash::{murmur2, partition_for_key};
