//! The streams crate from outside.

mod dsl;
mod exactly_once;
mod own_program;
mod windows;
