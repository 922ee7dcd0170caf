//! Any control data of a message: the kernel finds what was there, and the credentials of the
//! caller.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| windlass_sandbox::fuzzing::control_data(bytes));
