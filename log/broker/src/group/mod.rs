//! Groups: membership by the classic protocol, and committed offsets.
#![allow(dead_code, unused_imports)]

mod classic;
mod offsets;
