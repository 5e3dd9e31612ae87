//! Record batches, format version 2 (KIP-98): header, view, builder and what a broker checks.
//!
//! A batch is read through [`RecordBatch`], a view that shares the bytes it came in, and written with
//! [`BatchBuilder`]. A broker takes a producer's batch after [`validate`] and never rewrites it, but for the two
//! fields that [`patch`] sets and, on some topics, its timestamps ([`stamp_append_time`]). Only a log's cleaner takes
//! batches apart, with [`RawRecords`] and [`BatchRewriter`].

mod batch;
mod builder;
mod control;
mod error;
mod header;
mod iter;
mod raw;
mod rewrite;
mod single;
mod stamp;
mod validate;
mod varint;

pub use batch::{Batches, RecordBatch};
pub use builder::BatchBuilder;
pub use control::{ControlRecord, TransactionMarker};
pub use error::{RecordError, RecordErrorKind, RecordFault};
pub use header::{BatchHeader, patch};
pub use iter::{DecodedBatch, OwnedRecordIter, RecordIter};
pub use raw::{RawRecord, RawRecords};
pub use rewrite::{BatchRewriter, Rewriting, write_without_records};
pub use single::{Header, HeaderIter, Headers, OwnedHeaders, OwnedRecord, Record};
pub use stamp::{BatchProducer, stamp_append_time, stamp_max_timestamp, stamp_producer};
pub use validate::{ValidBatch, ValidationRules, validate};
