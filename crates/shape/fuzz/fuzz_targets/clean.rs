//! Any bytes, cut anywhere: cleaning them has the properties that tests ask for, and a line of
//! nothing else takes its time only as it is long (`-timeout=10` tells).
#![no_main]

#[path = "../../tests/cases/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

/// As long as a line is made of one input.
const LINE_BYTES: usize = 16 * 1024;

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (text, cuts) = input;
    let cuts: Vec<_> = cuts.into_iter().map(usize::from).collect();
    properties::hold(&text, &cuts);
    if !text.is_empty() {
        properties::cleaned(&text.repeat(LINE_BYTES / text.len()), &[]);
    }
});
