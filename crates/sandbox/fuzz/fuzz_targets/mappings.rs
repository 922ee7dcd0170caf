//! Any names of mapped files: none is read as a mapping. Separated by zeros; each is repeated as
//! often as its first byte says, since long ones are cut; the first says how much is read at once.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut names = bytes.split(|byte| *byte == 0);
    let pieces: Vec<_> = names.next().unwrap_or_default().iter().map(|byte| u16::from(*byte) * 40).collect();
    let names: Vec<_> = names.map(|name| name.repeat(usize::from(*name.first().unwrap_or(&0)))).collect();
    windlass_sandbox::fuzzing::mappings(&names, &pieces);
});
