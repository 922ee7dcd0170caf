//! Any list of settings from git: it is read and written without loss, and nothing that runs a
//! program is allowed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|listed: &[u8]| windlass_host::fuzzing::git_settings(listed));
