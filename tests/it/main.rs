//! Whole-system tests: one binary, since linking is slow.

mod bad_use;
mod command_line;
mod command_line_records;
mod demonstration;
mod history;
mod interactive;
mod killed;
mod lateness;
mod readme;
mod round_trip;
mod tidy;
