//! Whole-system tests: one binary, since linking is slow.

mod bad_use;
mod demonstration;
mod killed;
mod lateness;
mod round_trip;
mod tidy;
