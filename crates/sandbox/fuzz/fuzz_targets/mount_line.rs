//! Any mount point: it is read back from `/proc/self/mountinfo` byte by byte. A zero stands between
//! root and mount point.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.split(|byte| *byte == 0);
    let (root, point) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    windlass_sandbox::fuzzing::mount_line(root, point);
});
