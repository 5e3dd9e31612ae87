#![no_main]

use thalweg_fuzz::{internal_records, sow};

libfuzzer_sys::fuzz_target!(init: sow(internal_records::seeds), |input: &[u8]| internal_records::check(input));
