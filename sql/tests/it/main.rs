//! Tests of SQL over an embedded broker.

mod arrow_count;
mod copy;
mod errors;
mod flights;
mod ground;
mod printing;
mod pruning;
mod tables;
mod undecodable;
mod visibility;
