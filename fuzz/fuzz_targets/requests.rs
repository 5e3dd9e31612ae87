#![no_main]

use thalweg_fuzz::{requests, sow};

libfuzzer_sys::fuzz_target!(init: sow(requests::seeds), |input: &[u8]| requests::check(input));
