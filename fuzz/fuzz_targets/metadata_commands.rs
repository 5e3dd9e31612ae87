#![no_main]

use thalweg_fuzz::{metadata_commands, sow};

libfuzzer_sys::fuzz_target!(init: sow(metadata_commands::seeds), |input: &[u8]| metadata_commands::check(input));
