//! The systems that Thalweg is compared with.

pub mod kafka;
