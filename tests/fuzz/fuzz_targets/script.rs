//! Scripts of any bytes, read and evaluated in both dialects.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| pgmark::script::drive_hostile(text));
