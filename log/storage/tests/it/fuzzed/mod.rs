//! What the fuzz targets in `fuzz/` check, on a number of inputs that is the same every time; and inputs that failed.
//!
//! `log_files` and `directory_files` are a target each: `check` takes any bytes, and `seeds` gives some that are in order.

mod cases;
mod directory_files;
mod log_files;
mod mending;
mod place;
mod readers;

use crate::mutation::sweep;

#[test]
fn files_of_a_log() {
    sweep(&log_files::seeds(), 150, log_files::check);
}

#[test]
fn files_of_a_directory() {
    sweep(&directory_files::seeds(), 50, directory_files::check);
}
