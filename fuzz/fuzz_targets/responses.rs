//! libFuzzer's way into [`candor_fuzz_bodies::responses`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| candor_fuzz_bodies::responses(data));
