//! Files of values of any bytes, read and handed out.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pgmark::values::drive_hostile(data));
