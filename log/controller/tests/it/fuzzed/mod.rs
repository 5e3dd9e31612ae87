//! What the fuzz targets in `fuzz/` check, on a number of inputs that is the same every time; and inputs that failed.
//!
//! Each file here but this one is one target: `check` takes any bytes, and `seeds` gives some that are in order.

mod cases;
mod metadata_commands;
mod metadata_files;

use crate::mutation::sweep;

#[test]
fn files_of_the_metadata() {
    sweep(&metadata_files::seeds(), 300, metadata_files::check);
}

#[test]
fn commands_of_the_metadata() {
    sweep(&metadata_commands::seeds(), 500, metadata_commands::check);
}
