//! Lists the definitions of a file in order: by tree-sitter grammar where one is built in,
//! otherwise by line patterns.

mod lines;
mod tree;

use windlass_contract::insight::Section;

use super::{head, shortened};

/// Maximum number of sections in an outline.
const MAX_SECTIONS: usize = 200;

/// Maximum nesting of a listed definition.
const MAX_DEPTH: usize = 2;

/// Returns the outline of a text. It is empty for an unsupported language.
pub(super) fn sections(language: &str, text: &str) -> Vec<Section> {
    if language == "Markdown" {
        return headings(text);
    }
    match tree::OutlineGrammar::for_language(language) {
        Some(grammar) => grammar.outline(text),
        None => lines::outline(language, text),
    }
}

/// Adds a definition, unless it is nested too deep or the outline is full.
fn keep(found: &mut Vec<Section>, kind: &str, name: &str, line: u32, depth: usize) {
    if depth <= MAX_DEPTH && found.len() < MAX_SECTIONS {
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        found.push(Section { name: shortened(name), kind: kind.to_owned(), line, depth });
    }
}

/// Returns the headings of a Markdown page. Comments in code blocks do not count.
fn headings(text: &str) -> Vec<Section> {
    let mut in_code = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        in_code ^= line.trim_start().starts_with("```");
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if in_code || !(1..=6).contains(&level) {
            continue;
        }
        if let Some(name) = line[level..].strip_prefix(' ') {
            let depth = u32::try_from(level - 1).unwrap_or(0);
            found.push(Section { name: shortened(name), kind: "heading".to_owned(), line: number, depth });
        }
        if found.len() == MAX_SECTIONS {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn outline(language: &str, text: &str) -> Vec<String> {
        let sections = sections(language, text);
        sections
            .iter()
            .map(|section| format!("{} {} {} {}", section.line, section.depth, section.kind, section.name))
            .collect()
    }

    #[test]
    fn headings_are_told_from_comments_in_code() {
        assert_eq!(
            outline("Markdown", "# A\n```\n# no\n```\n## B\n#!x\n"),
            ["1 0 heading A", "5 1 heading B"]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_text_has_an_outline(text in "(fn|impl|class|\\PC|[ \n\t(){}<=>]){0,200}") {
            for language in ["Rust", "Python", "TypeScript", "Go", "Java", "C", "C++", "Ruby", "Markdown"] {
                // A grammar sees the beginning of a line behind the last break.
                let lines = text.lines().count() + 1;
                prop_assert!(sections(language, &text).iter().all(|section| section.line as usize <= lines));
            }
        }
    }
}
