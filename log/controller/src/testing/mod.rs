//! A driver that does as it is told, for tests of this crate and of those above it.

mod scripted;

pub use scripted::{Act, ScriptedDriver};
