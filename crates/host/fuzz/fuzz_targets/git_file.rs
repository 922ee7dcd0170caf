//! Any `.git` file: a path is read there only as git reads it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| windlass_host::fuzzing::git_file(content));
