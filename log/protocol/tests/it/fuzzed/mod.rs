//! What the fuzz targets in `fuzz/` check, on a number of inputs that are the same every time.
//!
//! Each file here but this one is one target: `check` takes any bytes, and `seeds` gives some that are in order.

mod batches;
mod codecs;
mod internal_records;
mod requests;
mod responses;
mod round_trip;

use crate::mutation::sweep;

#[test]
fn requests() {
    sweep(&requests::seeds(), 20_000, requests::check);
}

#[test]
fn responses() {
    sweep(&responses::seeds(), 20_000, responses::check);
}

#[test]
fn internal_records() {
    sweep(&internal_records::seeds(), 30_000, internal_records::check);
}

#[test]
fn batches() {
    sweep(&batches::seeds(), 5_000, batches::check);
}

#[test]
fn codecs() {
    sweep(&codecs::seeds(), 5_000, codecs::check);
}
