//! Outlines without a grammar: how far a line is indented and the words it begins with tell what it defines. Unusual layouts are
//! missed.

use windlass_contract::insight::Section;

use super::{head, keep};

/// Words that may stand before what something is.
const BEFORE: [&str; 21] = [
    "async",
    "unsafe",
    "const",
    "extern",
    "export",
    "abstract",
    "public",
    "private",
    "protected",
    "static",
    "final",
    "override",
    "virtual",
    "internal",
    "sealed",
    "partial",
    "open",
    "data",
    "inline",
    "readonly",
    "suspend",
];

/// Words that begin statements, which look like functions otherwise.
const STATEMENTS: [&str; 11] =
    ["if", "for", "while", "switch", "catch", "return", "else", "do", "try", "using", "lock"];

/// The words of a language that define something, and what that is called.
type Words = &'static [(&'static str, &'static str)];

fn words(language: &str) -> Option<Words> {
    Some(match language {
        "C#" | "Kotlin" => &[
            ("class", "class"),
            ("interface", "interface"),
            ("enum", "enum"),
            ("record", "class"),
            ("object", "class"),
            ("fun", "function"),
            ("struct", "struct"),
            ("namespace", "module"),
        ],
        "C++" => &[
            ("struct", "struct"),
            ("enum", "enum"),
            ("union", "union"),
            ("class", "class"),
            ("namespace", "module"),
        ],
        "Ruby" => &[("def", "function"), ("class", "class"), ("module", "module")],
        "PHP" => {
            &[("function", "function"), ("class", "class"), ("interface", "interface"), ("trait", "trait")]
        }
        _ => return None,
    })
}

/// The outline of a text in this language; empty for a language that is not known here.
pub(super) fn outline(language: &str, text: &str) -> Vec<Section> {
    let mut found = Vec::new();
    let Some(words) = words(language) else { return found };
    let braces = matches!(language, "C#" | "C++");
    // How far the definitions around this line are indented.
    let mut around: Vec<usize> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = head(line);
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let defined = defined(code, words).or_else(|| function(code).filter(|_| braces));
        let Some((kind, name)) = defined else { continue };
        around.retain(|outer| *outer < indent);
        keep(&mut found, kind, name, number, around.len());
        around.push(indent);
    }
    found
}

/// What a line defines by a word of the language, and its name.
fn defined(code: &str, words: Words) -> Option<(&'static str, &str)> {
    let mut rest = code;
    loop {
        let (word, after) = rest.split_once([' ', '\t'])?;
        let after = after.trim_start();
        if let Some((_, kind)) = words.iter().find(|(known, _)| *known == word) {
            let end = after.find(|c: char| !(c.is_alphanumeric() || "_!?.:".contains(c)));
            let name = after[..end.unwrap_or(after.len())].trim_end_matches(':');
            return (!name.is_empty()).then_some((kind, name));
        }
        if !BEFORE.contains(&word) {
            return None;
        }
        rest = after;
    }
}

/// A function that no word announces: a name behind a type and right before brackets, and a brace at the end of the line.
fn function(code: &str) -> Option<(&'static str, &str)> {
    let (before, _) = code.trim_end().strip_suffix('{')?.split_once('(')?;
    let before = before.trim_end();
    let name = before.rsplit([' ', '*', '&', '\t']).next()?;
    let begins = before.split([' ', '(']).next()?;
    let usable = is_name(name)
        && before.len() > name.len()
        && ![name, begins].iter().any(|word| STATEMENTS.contains(word))
        && !before.contains(['=', '.', '"']);
    usable.then_some(("function", name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '~')
}

#[cfg(test)]
mod tests {
    use super::super::tests::outline;

    #[test]
    fn languages_without_a_grammar_have_their_definitions() {
        let cpp = "namespace shop {\nclass Till : Base {\n  int sum(int a) const {\n    if (a) {\n    }\n  }\n};\n}\nstatic int shop::Till::sum(int a) {\n}\n";
        assert_eq!(
            outline("C++", cpp),
            ["1 0 module shop", "2 0 class Till", "3 1 function sum", "9 0 function shop::Till::sum"]
        );
        let kotlin = "data class Till(val a: Int)\n\nobject Shop {\n    suspend fun sum(): Int = 1\n}\n";
        assert_eq!(outline("Kotlin", kotlin), ["1 0 class Till", "3 0 class Shop", "4 1 function sum"]);
        let ruby = "module Shop\n  class Till\n    def sum?(a)\n    end\n  end\nend\n";
        assert_eq!(outline("Ruby", ruby), ["1 0 module Shop", "2 1 class Till", "3 2 function sum?"]);
        let php = "<?php\nfinal class Till {\n    public function sum($a) {\n    }\n}\n";
        assert_eq!(outline("PHP", php), ["2 0 class Till", "3 1 function sum"]);
        assert!(outline("COBOL", "x").is_empty());
    }
}
