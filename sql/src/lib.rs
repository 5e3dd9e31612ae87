//! SQL over the topics of a log, and over files.
//!
//! A [`Session`] runs statements: `SELECT` over topics as they stand, joined with CSV and Parquet files, `COPY` into
//! Parquet, and the `CREATE TABLE` that declares what a topic's records are. [`output`] prints what comes out.
//!
//! # Topics as tables
//! A topic is a table under its own name (in double quotes if it has dots, dashes or capitals). A `CREATE TABLE
//! name (…) WITH (topic = '…', format = 'json' | 'text' | 'bytes')` declares its columns. Without one they are
//! inferred from the first 1000 records of each partition ([`SqlConfig::sample_records`]): if more than half of them
//! are JSON objects, their keys are the columns (integers BIGINT, other numbers DOUBLE, booleans BOOLEAN, everything
//! else VARCHAR, objects and arrays as their JSON text); otherwise there is one column `value`, VARCHAR if all of them
//! are UTF-8, else BYTEA. A [`Notice`] says so.
//!
//! Besides, every topic has the columns `_partition`, `_offset`, `_timestamp` (UTC; null for a record without one)
//! and `_key` (VARCHAR if all keys of the sample are UTF-8 or there are none, else BYTEA), which `*` does not name.
//! Comparisons of the first three with constants keep what cannot match from being read: partitions, offsets before
//! and behind a range, and everything before the first record that is late enough. (There is no such bound above a
//! timestamp: what is early may come late.)
//!
//! # Which records are rows
//! Those that are committed and lie before the last stable offset that stood when the statement began. A record
//! that does not decode is no row whatever the query selects, so that `count(*)` and `count(column)` agree: bad
//! JSON, a value that is not of its column's type, null in a NOT NULL column, a JSON topic's tombstone, a text
//! that is not UTF-8. Such records are counted and told with place and reason ([`Undecodable`]).

mod catalog;
mod config;
mod copy;
mod csv_table;
mod ddl;
mod error;
mod file_tables;
mod format;
mod hidden;
mod outcome;
pub mod output;
mod parser;
mod rewrites;
mod scan;
mod session;
mod similar;
mod statement_context;
mod undecodable;

pub use config::SqlConfig;
pub use error::{Error, Position, Result};
pub use outcome::{Created, Outcome, Rows, Written};
pub use parser::Statement;
pub use session::Session;
pub use similar::similar;
pub use statement_context::{LogRead, Notice};
pub use undecodable::{Undecodable, UndecodableRecord};
