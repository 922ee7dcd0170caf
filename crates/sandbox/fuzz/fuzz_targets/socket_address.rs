//! Any address of a local socket: its path leads where it leads the caller. The thread comes first.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((thread, address)) = bytes.split_first_chunk() else { return };
    windlass_sandbox::fuzzing::socket_address(u32::from_le_bytes(*thread), address);
});
