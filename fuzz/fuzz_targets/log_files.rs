#![no_main]

use thalweg_fuzz::{log_files, sow};

libfuzzer_sys::fuzz_target!(init: sow(log_files::seeds), |input: &[u8]| log_files::check(input));
