//! What a server may send, in any state of a session.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pgmark::protocol::drive_hostile(data));
