//! Reading topics: from a table over one to batches of its rows.
//!
//! A statement reads each topic up to the offsets that stood when it began ([`crate::statement_context`]). The
//! filters on hidden columns say which part of the log can hold rows ([`bounds`]); the plan reads that part, one
//! partition of the topic in each of its own ([`exec`]), batch by batch ([`reader`]).

mod bounds;
mod exec;
mod reader;
mod sample;
mod table;

pub(crate) use sample::{Sample, sample};
pub(crate) use table::TopicTable;
