//! Any list of steps or merge strategy of an unfinished rebase: none that runs a program counts as
//! harmless.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| windlass_host::fuzzing::rebase_state(content));
