//! The streams crate from outside.

mod cluster;
mod crossing;
mod damage;
mod dsl;
mod exactly_once;
mod hardship;
mod own_program;
mod runtime;
mod windows;
