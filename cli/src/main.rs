//! The `thalweg` program.

mod advice;
mod offset_range;
mod template;

fn main() {}
