//! Whole-system tests: one binary, since linking is slow.

mod bad_use;
mod demonstration;
mod interactive;
mod killed;
mod lateness;
mod round_trip;
mod tidy;
