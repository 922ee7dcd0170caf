//! What a file defines, from top to bottom. Read by lines: how far something is indented and the words it begins with tell
//! what it is, which also holds for files that do not parse. No grammar, so no guess about what is inside a line.

use windlass_contract::Section;

use super::{head, shortened};

/// How many are told.
const SECTIONS: usize = 200;

/// Deeper definitions are details.
const DEEPEST: usize = 2;

/// Words that may stand before what something is.
const BEFORE: [&str; 26] = [
    "pub",
    "async",
    "unsafe",
    "const",
    "extern",
    "\"C\"",
    "default",
    "export",
    "declare",
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
    "synchronized",
    "native",
    "inline",
    "readonly",
];

/// The words of a language that define something, and what that is called.
type Words = &'static [(&'static str, &'static str)];

fn words(language: &str) -> Option<Words> {
    Some(match language {
        "Rust" => &[
            ("fn", "function"),
            ("struct", "struct"),
            ("enum", "enum"),
            ("trait", "trait"),
            ("impl", "impl"),
            ("mod", "module"),
            ("type", "type"),
            ("union", "union"),
            ("macro_rules!", "macro"),
        ],
        "Python" => &[("def", "function"), ("class", "class")],
        "JavaScript" | "TypeScript" => &[
            ("function", "function"),
            ("function*", "function"),
            ("class", "class"),
            ("interface", "interface"),
            ("enum", "enum"),
            ("type", "type"),
            ("namespace", "module"),
        ],
        "Go" => &[("func", "function"), ("type", "type")],
        "Java" | "C#" | "Kotlin" => &[
            ("class", "class"),
            ("interface", "interface"),
            ("enum", "enum"),
            ("record", "class"),
            ("@interface", "interface"),
            ("object", "class"),
            ("fun", "function"),
            ("struct", "struct"),
            ("namespace", "module"),
        ],
        "C" | "C++" => &[
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
pub(super) fn of(language: &str, text: &str) -> Vec<Section> {
    if language == "Markdown" {
        return headings(text);
    }
    let Some(words) = words(language) else { return Vec::new() };
    let braces = matches!(language, "Java" | "C#" | "C" | "C++" | "JavaScript" | "TypeScript");
    let mut found = Vec::new();
    // How far the definitions around this line are indented.
    let mut around: Vec<usize> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = head(line);
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let Some((kind, name)) =
            defined(code, words).or_else(|| braces.then(|| function(code, language, indent)).flatten())
        else {
            continue;
        };
        around.retain(|outer| *outer < indent);
        if around.len() <= DEEPEST {
            let depth = u32::try_from(around.len()).unwrap_or(u32::MAX);
            found.push(Section { name: shortened(name), kind: kind.to_owned(), line: number, depth });
        }
        if found.len() == SECTIONS {
            break;
        }
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
            return Some((kind, name(kind, after)?));
        }
        if let Some((_, kind)) =
            words.iter().find(|(known, kind)| *kind == "impl" && word.starts_with(&format!("{known}<")))
        {
            return Some((kind, name(kind, after)?));
        }
        if !BEFORE.contains(&word) && !word.starts_with("pub(") {
            return None;
        }
        rest = after;
    }
}

/// The name at the beginning of what follows: up to a bracket or space; of an `impl` and of a method of Go, all of it.
fn name<'a>(kind: &str, text: &'a str) -> Option<&'a str> {
    let end = if kind == "impl" {
        text.find(['{', ';'])
    } else if let Some(receiver) = text.strip_prefix('(').and_then(|rest| rest.find(") ")) {
        text[receiver + 3..].find(['(', '[']).map(|end| receiver + 3 + end)
    } else {
        text.find(|c: char| !(c.is_alphanumeric() || "_$!?.:".contains(c)))
    };
    let name = text[..end.unwrap_or(text.len())].trim_end_matches([':', ' ']);
    (!name.is_empty()).then_some(name)
}

/// A function that no word announces: a name right before brackets, and a brace at the end of the line.
fn function<'a>(code: &'a str, language: &str, indent: usize) -> Option<(&'static str, &'a str)> {
    let code = code.trim_end();
    let body = code.ends_with('{') || (language == "C" && indent == 0 && code.ends_with(')'));
    if !body {
        return None;
    }
    if let Some((left, _)) = code.split_once("=>").or_else(|| code.split_once("= function")) {
        let left = left.split_once('=').map_or(left, |(left, _)| left).split(':').next()?.trim();
        let name = left.rsplit(' ').next()?;
        let declared = ["const ", "let ", "var ", "export "].iter().any(|word| left.starts_with(word));
        return (declared && is_name(name)).then_some(("function", name));
    }
    let (before, _) = code.split_once('(')?;
    let name = before.trim_end().rsplit([' ', '*', '&', '\t']).next()?;
    let statement =
        ["if", "for", "while", "switch", "catch", "return", "else", "do", "try", "function", "using", "lock"];
    let begins = before.split([' ', '(']).next()?;
    // In C a function has a type before its name; a call does not.
    let typed = before.trim_end().len() > name.len() || matches!(language, "JavaScript" | "TypeScript");
    let usable = is_name(name)
        && typed
        && !statement.contains(&name)
        && !statement.contains(&begins)
        && !before.contains(['=', '.', '"']);
    usable.then_some(("function", name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '$' || c == '#' || c == ':' || c == '~')
}

/// The headings of a page, but not the comments of code in it.
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
        if found.len() == SECTIONS {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outline(language: &str, text: &str) -> Vec<String> {
        let sections = of(language, text);
        sections
            .iter()
            .map(|section| format!("{} {} {} {}", section.line, section.depth, section.kind, section.name))
            .collect()
    }

    #[test]
    fn every_language_has_its_definitions() {
        assert_eq!(
            outline(
                "Rust",
                "use a;\npub(crate) struct Till<T> {\n    a: T,\n}\n\nimpl<T> Till<T> {\n    pub async fn sum(&self) {\n        let f = 1;\n    }\n}\nmod tests;\n"
            ),
            ["2 0 struct Till", "6 0 impl Till<T>", "7 1 function sum", "11 0 module tests"]
        );
        assert_eq!(
            outline(
                "Python",
                "class Till(Base):\n    def sum(self):\n        pass\n\nasync def main():\n    x = defer\n"
            ),
            ["1 0 class Till", "2 1 function sum", "5 0 function main"]
        );
        assert_eq!(
            outline(
                "TypeScript",
                "export default class Till {\n  sum(a: number): number {\n    if (a) {\n    }\n  }\n}\nexport const add = (a: number) => {\n};\nfunction main() {}\n"
            ),
            ["1 0 class Till", "2 1 function sum", "7 0 function add", "9 0 function main"]
        );
        assert_eq!(
            outline(
                "Go",
                "package a\n\ntype Till struct {\n}\n\nfunc (t *Till) Sum() int {\n}\nfunc main() {}\n"
            ),
            ["3 0 type Till", "6 0 function (t *Till) Sum", "8 0 function main"]
        );
        assert_eq!(
            outline(
                "Java",
                "package a;\npublic final class Till {\n    private int sum(int a) {\n        for (int i : a) {\n        }\n        return add(1);\n    }\n}\n"
            ),
            ["2 0 class Till", "3 1 function sum"]
        );
        assert_eq!(
            outline(
                "C",
                "struct till {\n    int a;\n};\n\nstatic int sum(int a)\n{\n    add(a);\n    if (a) {\n    }\n}\nint main(void) {\n}\n"
            ),
            ["1 0 struct till", "5 0 function sum", "11 0 function main"]
        );
        assert_eq!(
            outline("Markdown", "# A\n```\n# no\n```\n## B\n#!x\n"),
            ["1 0 heading A", "5 1 heading B"]
        );
        assert!(of("COBOL", "x").is_empty());
    }

    proptest! {
        #[test]
        fn any_text_has_an_outline(text in "(fn|impl|class|\\PC|[ \n\t(){}<=>]){0,200}") {
            for language in ["Rust", "Python", "TypeScript", "Go", "Java", "C", "Markdown"] {
                let lines = text.lines().count();
                prop_assert!(of(language, &text).iter().all(|section| section.line as usize <= lines));
            }
        }
    }
}
