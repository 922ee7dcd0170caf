//! Compares the engine with a naive form of the algorithm: patches that it applies must have the
//! same result. The files have one kind of ending and a final newline, and lines match exactly,
//! where both must agree byte for byte.

use proptest::{collection::vec, prelude::*};
use windlass_patch::{ChunkLine, PatchChunk, Text, apply};

/// The old and the new lines of a chunk.
fn sides<'a>(chunk: &PatchChunk<'a>) -> (Vec<&'a str>, Vec<&'a str>) {
    let new = chunk.lines.iter().filter_map(|line| match *line {
        ChunkLine::Keep(text) | ChunkLine::Insert(text) => Some(text),
        ChunkLine::Remove(_) => None,
    });
    (chunk.old_lines().collect(), new.collect())
}

fn seek(file: &[&str], pattern: &[&str], start: usize, at_end: bool) -> Option<usize> {
    let last = file.len().checked_sub(pattern.len())?;
    let start = if at_end { start.max(last) } else { start };
    (start..=last).find(|at| file[*at..].starts_with(pattern))
}

fn plain(file: &[&str], chunks: &[PatchChunk<'_>]) -> Option<String> {
    let mut replacements = Vec::new();
    let mut index = 0;
    for chunk in chunks {
        for context in &chunk.contexts {
            index = seek(file, &[context], index, false)? + 1;
        }
        let (mut old, mut new) = sides(chunk);
        if old.is_empty() {
            let at = if file.last() == Some(&"") { file.len() - 1 } else { file.len() };
            replacements.push((at, 0, new));
            continue;
        }
        let mut found = seek(file, &old, index, chunk.at_end);
        if found.is_none() && old.last() == Some(&"") {
            old.pop();
            new.pop_if(|line| line.is_empty());
            found = seek(file, &old, index, chunk.at_end);
        }
        let at = found?;
        index = at + old.len();
        replacements.push((at, old.len(), new));
    }
    replacements.sort_by_key(|(at, ..)| *at);
    let overlaps = replacements.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0);
    let mut lines = file.to_vec();
    for (at, length, new) in replacements.into_iter().rev() {
        lines.splice(at..at + length, new);
    }
    (!overlaps).then(|| lines.iter().map(|line| format!("{line}\n")).collect())
}

/// A kind of line and its text, for a few texts so that they repeat.
fn chunk_line() -> impl Strategy<Value = (u8, &'static str)> {
    (0u8..3, prop_oneof![Just("a"), Just("b"), Just("c"), Just("")])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn what_the_plain_algorithm_applies_comes_out_the_same(
        file in vec(prop_oneof![Just("a"), Just("b"), Just("c"), Just("")], 0..12),
        chunks in vec((prop::option::of(prop_oneof![Just("a"), Just("b")]), vec(chunk_line(), 1..5), any::<bool>()), 1..4),
    ) {
        let chunks: Vec<PatchChunk<'_>> = chunks
            .iter()
            .map(|(context, lines, at_end)| PatchChunk {
                contexts: context.iter().copied().collect(),
                lines: lines.iter().map(|(kind, text)| [ChunkLine::Keep, ChunkLine::Remove, ChunkLine::Insert][*kind as usize](text)).collect(),
                at_end: *at_end,
                ..PatchChunk::default()
            })
            .collect();
        let content: String = file.iter().map(|line| format!("{line}\n")).collect();
        let text = Text::decode(content.as_bytes()).expect("text");
        if let Some(expected) = plain(&file, &chunks) {
            let applied = apply(&text, &chunks).map(|applied| String::from_utf8_lossy(&applied.bytes).into_owned());
            prop_assert_eq!(applied, Ok(expected));
        }
    }
}
