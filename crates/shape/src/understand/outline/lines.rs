//! Outlines without a grammar: the indentation and first words of a line show what it defines.
//! Unusual layouts are missed.

use windlass_contract::insight::Section;

use super::{head, keep};

/// Modifiers that may precede the keyword of a definition.
const MODIFIERS: [&str; 21] = [
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

/// Keywords of statements that otherwise look like functions.
const STATEMENTS: [&str; 11] =
    ["if", "for", "while", "switch", "catch", "return", "else", "do", "try", "using", "lock"];

/// Keywords of a language that define something, each with its section kind.
type DefiningWords = &'static [(&'static str, &'static str)];

fn words(language: &str) -> Option<DefiningWords> {
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

/// Returns the outline of a text. It is empty for an unsupported language.
pub(super) fn outline(language: &str, text: &str) -> Vec<Section> {
    let mut found = Vec::new();
    let Some(words) = words(language) else { return found };
    let braces = matches!(language, "C#" | "C++");
    // Indentation of each definition that encloses this line.
    let mut enclosing: Vec<usize> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = head(line);
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let defined = defined(code, words).or_else(|| function(code).filter(|_| braces));
        let Some((kind, name)) = defined else { continue };
        enclosing.retain(|outer| *outer < indent);
        keep(&mut found, kind, name, number, enclosing.len());
        enclosing.push(indent);
    }
    found
}

/// Returns the kind and name of the definition that a keyword introduces.
fn defined(code: &str, words: DefiningWords) -> Option<(&'static str, &str)> {
    let mut rest = code;
    loop {
        let (word, after) = rest.split_once([' ', '\t'])?;
        let after = after.trim_start();
        if let Some((_, kind)) = words.iter().find(|(known, _)| *known == word) {
            let end = after.find(|c: char| !(c.is_alphanumeric() || "_!?.:".contains(c)));
            let name = after[..end.unwrap_or(after.len())].trim_end_matches(':');
            return (!name.is_empty()).then_some((kind, name));
        }
        if !MODIFIERS.contains(&word) {
            return None;
        }
        rest = after;
    }
}

/// Returns a function without a keyword: a type, a name, parentheses, and a brace at the end of the
/// line.
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
