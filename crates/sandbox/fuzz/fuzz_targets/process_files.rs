//! Any name of a process: the numbers in files of `/proc` are found. Six of them come first.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((numbers, name)) = bytes.split_first_chunk::<24>() else { return };
    let (numbers, _) = numbers.as_chunks::<4>();
    let mut numbers = numbers.iter().map(|number| u32::from_le_bytes(*number));
    windlass_sandbox::fuzzing::process_files(name, [0; 6].map(|_: u32| numbers.next().unwrap_or(0)));
});
