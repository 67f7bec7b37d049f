//! Connection strings, service files and password files of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pgmark::conninfo::drive_hostile(data));
