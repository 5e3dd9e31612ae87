//! Records from files: text, JSON lines and CSV; plain, gzip or Zstandard.

mod csv_table;
mod input;

pub use input::{Columns, Input, InputFormat, InputRecord, open};
