#![no_main]

use thalweg_fuzz::{directory_files, sow};

libfuzzer_sys::fuzz_target!(init: sow(directory_files::seeds), |input: &[u8]| directory_files::check(input));
