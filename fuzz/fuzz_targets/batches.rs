#![no_main]

use thalweg_fuzz::{batches, sow};

libfuzzer_sys::fuzz_target!(init: sow(batches::seeds), |input: &[u8]| batches::check(input));
