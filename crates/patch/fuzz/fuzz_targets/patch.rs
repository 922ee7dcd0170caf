//! Applies any patch to any file: no panic, bounded time, and unchanged text round-trips.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_patch::{ApplyError, FileOperation, ReplaceCount, Text, apply, diff, edit, parse, recognise};

fuzz_target!(|input: (String, Vec<u8>, String)| {
    let (patch, file, script) = input;
    let argv = ["sh".to_owned(), "-c".to_owned(), script.clone()];
    if let Some(Ok(found)) = recognise(&argv) {
        assert!(script.contains(found.patch));
    }
    let wrapped = format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch");
    let Ok(text) = Text::decode(&file) else { return };
    assert_eq!(text.encode(text.content()).as_ref(), Ok(&file));
    drop(edit(&text, &patch, &script, ReplaceCount::All));
    for patch in [parse(&patch), parse(&wrapped)].into_iter().flatten() {
        for operation in &patch.operations {
            let FileOperation::Update { chunks, .. } = operation else { continue };
            match apply(&text, chunks) {
                Ok(applied) => {
                    let side = |bytes| Some(windlass_patch::Side { path: "f", bytes, executable: false });
                    drop(diff(side(&file), side(&applied.bytes)));
                }
                Err(ApplyError::Miss(miss)) => drop(miss.describe("f")),
                Err(ApplyError::Unencodable(_) | ApplyError::TooMuchWork) => {}
            }
        }
    }
});
