//! Result files of any bytes, read and reported.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pgmark::archive::drive_hostile(data));
