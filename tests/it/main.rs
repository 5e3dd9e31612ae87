//! Whole-system tests: one binary, since linking is slow.

mod tidy;
