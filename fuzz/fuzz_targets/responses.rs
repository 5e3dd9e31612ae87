#![no_main]

use thalweg_fuzz::{responses, sow};

libfuzzer_sys::fuzz_target!(init: sow(responses::seeds), |input: &[u8]| responses::check(input));
