#![no_main]

use thalweg_fuzz::{metadata_files, sow};

libfuzzer_sys::fuzz_target!(init: sow(metadata_files::seeds), |input: &[u8]| metadata_files::check(input));
