//! The storage engine as its users see it, on a simulated disk where that is the point.

mod append;
#[allow(dead_code)]
mod harness;
mod recovery;
mod sweep;
