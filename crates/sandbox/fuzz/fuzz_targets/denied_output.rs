//! Any output of a failed command: what is guessed from it is named there, and really held.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|output: &[u8]| windlass_sandbox::fuzzing::denied_output(output));
