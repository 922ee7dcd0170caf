//! House rules about names, comments and documents that a machine can check.

use std::{fs, ops::RangeInclusive, path::Path};

use crate::{
    report::{CodeReport, doc_openings},
    tidy::Source,
};

/// Maximum number of columns of comments and Markdown prose.
const MAX_COLUMNS: usize = 100;

/// Words that a doc comment does not open with: the sentence has no subject then.
const REFUSED_OPENINGS: [&str; 6] = ["How", "What", "Where", "Whether", "Who", "Why"];

/// The crate of the tools. There, the doc comments of a type with a JSON Schema are not for readers
/// of the code: models read them as descriptions of arguments (`Whether to replace every
/// occurrence.`).
const TOOLS_CRATE: &str = "crates/tools/src/";

/// Words in the name of a constant that is a bound, whose name should begin with `MAX_` instead.
const BOUND_WORDS: [&str; 4] = ["LARGEST", "LIMIT", "LONGEST", "MOST"];

/// Parts of constant names in which `LIMIT` is right: a default, or the usual term.
const LIMIT_TERMS: [&str; 3] = ["DEFAULT_LIMIT", "TIME_LIMIT", "A_LIMIT"];

/// Names of modules that say nothing of their content, or say it in a metaphor.
const REFUSED_MODULES: [&str; 12] = [
    "below", "brought", "common", "core", "ground", "helpers", "keyhole", "manager", "misc", "shelf",
    "utils", "warden",
];

/// Types that several files define: one for each platform, or names that still have to change.
const REPEATED_TYPES: [&str; 6] = ["Change", "Mechanisms", "Reason", "Text", "Usage", "Zygotes"];

/// Returns the violations of the rules in all sources and documents.
pub(crate) fn problems(root: &Path, sources: &[Source]) -> Vec<String> {
    let mut problems: Vec<_> = sources.iter().flat_map(source_problems).collect();
    problems.extend(repeated_types(&CodeReport::new(sources)));
    for path in documents(root) {
        let text = fs::read_to_string(root.join(&path)).unwrap_or_default();
        let lines = wide_prose(&text).into_iter();
        problems.extend(lines.map(|line| format!("{path}:{line}: wider than {MAX_COLUMNS} columns")));
    }
    problems
}

fn source_problems(source: &Source) -> Vec<String> {
    let Source { path, text } = source;
    let mut problems = Vec::new();
    let lines = wide_comments(text).into_iter();
    problems.extend(lines.map(|line| format!("{path}:{line}: wider than {MAX_COLUMNS} columns")));
    let module = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    if REFUSED_MODULES.contains(&module) {
        problems.push(format!("{path}: name the module after what it knows, not `{module}`"));
    }
    if !source.is_product() {
        return problems;
    }
    let code = source.product_code();
    let described = if path.starts_with(TOOLS_CRATE) { schema_types(code) } else { Vec::new() };
    let is_description = |line: &usize| described.iter().any(|lines| lines.contains(line));
    let openings = doc_openings(code).into_iter().filter(|(line, _)| !is_description(line));
    let refused =
        openings.filter(|(_, word)| REFUSED_OPENINGS.contains(&word.trim_end_matches(['.', ',', ':', ';'])));
    problems.extend(refused.map(|(line, word)| {
        format!("{path}:{line}: begin the doc comment with a verb or the thing, not `{word}`")
    }));
    let constants = source.product_code().lines().filter_map(defined_constant);
    let bounds = constants.filter(|name| is_misnamed_bound(name));
    problems.extend(bounds.map(|name| format!("{path}: `{name}` is a bound; call it `MAX_…`")));
    problems
}

/// Returns the line numbers of each type that derives `JsonSchema`, with its doc comment.
fn schema_types(code: &str) -> Vec<RangeInclusive<usize>> {
    let lines: Vec<_> = code.lines().collect();
    let derives = lines.iter().enumerate().filter(|(_, line)| {
        line.strip_prefix("#[derive(").is_some_and(|traits| traits.contains("JsonSchema"))
    });
    let spans = derives.map(|(at, _)| {
        let comment = lines[..at].iter().rev().take_while(|line| line.starts_with("///")).count();
        let end = lines[at..].iter().position(|line| line.starts_with('}') || line.ends_with(';'));
        at + 1 - comment..=end.map_or(lines.len(), |length| at + 1 + length)
    });
    spans.collect()
}

fn repeated_types(report: &CodeReport) -> Vec<String> {
    let repeated = report.repeated_types().filter(|(name, _)| !REPEATED_TYPES.contains(name));
    let described = repeated.map(|(name, files)| {
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        format!("several files define a type `{name}`: {}", files.join(", "))
    });
    described.collect()
}

/// Returns the line numbers of comments that are too wide. Tables, code and addresses may be.
fn wide_comments(text: &str) -> Vec<usize> {
    let mut in_code = false;
    let mut wide = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        if comment.starts_with("```") {
            in_code = !in_code;
        }
        if !in_code && is_wide(line) && !comment.starts_with('|') && !comment.contains("://") {
            wide.push(at + 1);
        }
    }
    wide
}

/// Returns the line numbers of prose in Markdown that is too wide. Tables, code and links may be.
fn wide_prose(text: &str) -> Vec<usize> {
    let mut in_code = false;
    let mut wide = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            in_code = !in_code;
        }
        let is_exempt = in_code || start.starts_with('|') || line.contains("](") || line.contains("://");
        if is_wide(line) && !is_exempt {
            wide.push(at + 1);
        }
    }
    wide
}

fn is_wide(line: &str) -> bool {
    line.chars().count() > MAX_COLUMNS
}

/// The name of a constant that a line begins to define.
fn defined_constant(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let (name, _) = line.strip_prefix("const ").or_else(|| line.strip_prefix("static "))?.split_once(':')?;
    Some(name.trim())
}

fn is_misnamed_bound(name: &str) -> bool {
    let has_bound_word = name.split('_').any(|word| BOUND_WORDS.contains(&word));
    has_bound_word && !name.starts_with("MAX_") && !LIMIT_TERMS.iter().any(|term| name.contains(term))
}

/// Returns the paths of all Markdown files, except the data of tests.
fn documents(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let is_skipped = name == "target" || name == "tests" || name.to_string_lossy().starts_with('.');
            if path.is_dir() && !is_skipped {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned());
            }
        }
    }
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn prose_is_held_to_its_width_and_tables_code_and_links_are_not() {
        let (wide, words) = ("x".repeat(101), "x ".repeat(51));
        let page = format!("{words}\n| {wide} |\n```\n{wide}\n```\n[a](b) {wide}\n{}\n", "é".repeat(100));
        assert_eq!(wide_prose(&page), [1]);
        let code = format!("// {wide}\nlet x = \"{wide}\";\n/// | {wide}\n/// ```\n/// {wide}\n/// ```\n");
        assert_eq!(wide_comments(&code), [1]);
    }

    #[test]
    fn bounds_are_told_by_their_names() {
        for (line, is_refused) in [
            ("const MOST_BYTES: usize = 1;", true),
            ("pub(crate) const NAME_LIMIT_BYTES: usize = 1;", true),
            ("pub static LONGEST: u8 = 1;", true),
            ("const MAX_LARGEST: usize = 1;", false),
            ("const TIME_LIMIT: Duration = D;", false),
            ("const ALMOST: usize = 1;", false),
            ("let limit = 1;", false),
        ] {
            assert_eq!(defined_constant(line).is_some_and(is_misnamed_bound), is_refused, "{line}");
        }
    }

    #[test]
    fn names_and_openings_are_refused_where_they_ship() {
        let problems = source_problems(&source(
            "crates/files/src/utils.rs",
            "//! Whether it works.\n\n/// A file.\nconst MOST: u8 = 1;\n/// What it is.\nstruct A;\n",
        ));
        assert_eq!(
            problems,
            [
                "crates/files/src/utils.rs: name the module after what it knows, not `utils`",
                "crates/files/src/utils.rs:1: begin the doc comment with a verb or the thing, not `Whether`",
                "crates/files/src/utils.rs:5: begin the doc comment with a verb or the thing, not `What`",
                "crates/files/src/utils.rs: `MOST` is a bound; call it `MAX_…`",
            ]
        );
        assert!(
            source_problems(&source("crates/files/tests/a.rs", "/// What it is.\nfn a() {}\n")).is_empty()
        );
    }

    #[test]
    fn descriptions_of_arguments_may_open_as_they_are() {
        let code = "/// How far.\n#[derive(Debug, JsonSchema)]\nstruct A {\n    /// Whether.\n    b: bool,\n}\n\n\
                    /// Why not.\n#[derive(Debug)]\nstruct C {\n    /// Where.\n    d: bool,\n}\n";
        let lines = |path: &str| -> Vec<_> {
            let problems = source_problems(&source(path, code)).into_iter();
            problems.map(|problem| problem.split(':').nth(1).unwrap().parse::<usize>().unwrap()).collect()
        };
        assert_eq!(lines("crates/tools/src/a.rs"), [8, 11]);
        assert_eq!(lines("crates/files/src/a.rs"), [1, 4, 8, 11]);
    }

    #[test]
    fn a_type_name_is_defined_once() {
        let sources = [
            source("crates/a/src/lib.rs", "struct Walls;\nstruct Zygotes;\n"),
            source("crates/b/src/lib.rs", "struct Walls;\nstruct Zygotes;\n"),
        ];
        assert_eq!(
            repeated_types(&CodeReport::new(&sources)),
            ["several files define a type `Walls`: crates/a/src/lib.rs, crates/b/src/lib.rs"]
        );
    }
}
