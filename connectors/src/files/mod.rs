//! Records from files: text, JSON lines and CSV; plain, gzip or Zstandard.

mod csv_table;
mod input;
mod json_fields;
mod record_line;
mod source;

pub use input::{Columns, Input, InputFormat, InputRecord};
pub use source::{Source, open};
