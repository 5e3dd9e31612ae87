#![no_main]

use thalweg_fuzz::{codecs, sow};

libfuzzer_sys::fuzz_target!(init: sow(codecs::seeds), |input: &[u8]| codecs::check(input));
