//! Counts names, doc comments and sizes of the code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use crate::tidy::Source;

/// Core terms, for which one plain noun is enough.
const CORE_NAMES: [&str; 22] = [
    "Agent", "Answer", "Approver", "Batch", "Call", "Content", "Cx", "Denial", "Effects", "Event", "Gate",
    "Grant", "Host", "Item", "Journal", "Outcome", "Output", "Receipt", "Sandbox", "Tool", "Turn", "Verdict",
];

/// Words that doc comments should not open with: the sentence has no subject then.
const OPENINGS: [&str; 4] = ["What", "Whether", "Who", "How"];

/// The numbers of the code that ships: no tests, no benches, no tools of the workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeReport {
    /// Every type by name, with the files that define it.
    types: BTreeMap<String, BTreeSet<String>>,
    doc_comments: usize,
    doc_openings: usize,
    files: usize,
    lines: usize,
    longest_file: (usize, String),
    wide_lines: usize,
    crate_lines: BTreeMap<String, usize>,
}

impl CodeReport {
    pub(crate) fn new(sources: &[Source]) -> Self {
        let mut report = Self::default();
        for source in sources.iter().filter(|source| source.is_product()) {
            report.add(&source.path, source.product_code());
        }
        report
    }

    fn add(&mut self, path: &str, code: &str) {
        let count = code.lines().count();
        self.files += 1;
        self.lines += count;
        self.longest_file = self.longest_file.clone().max((count, path.to_owned()));
        let crate_name = path.split('/').nth(1).unwrap_or_default();
        *self.crate_lines.entry(crate_name.to_owned()).or_default() += count;
        let openings = doc_openings(code);
        self.doc_comments += openings.len();
        self.doc_openings += openings.iter().filter(|(_, word)| OPENINGS.contains(word)).count();
        for line in code.lines() {
            self.wide_lines += usize::from(line.chars().count() > 100);
            if let Some(name) = defined_type(line.trim_start()) {
                self.types.entry(name.to_owned()).or_default().insert(path.to_owned());
            }
        }
    }

    fn one_word_types(&self) -> impl Iterator<Item = &str> {
        let names = self.types.keys().map(String::as_str);
        names.filter(|name| is_one_word(name) && !CORE_NAMES.contains(name))
    }

    /// Returns the types that several files define, with those files.
    pub(crate) fn repeated_types(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        let types = self.types.iter().map(|(name, files)| (name.as_str(), files));
        types.filter(|(_, files)| files.len() > 1)
    }

    /// The report as a page.
    pub(crate) fn page(&self) -> String {
        let (types, one_word) = (self.types.len(), self.one_word_types().count());
        let repeated = self.repeated_types().count();
        let mut page = format!(
            "# The code in numbers\n\nMade by `cargo xtask tidy --report`. Code that ships, without tests.\n\n\
             | | count | of | share | at most |\n|---|---|---|---|---|\n\
             | type names of one word, core names aside | {one_word} | {types} | {} | 30 % |\n\
             | type names defined in several files | {repeated} | {types} | {} | 5 % |\n\
             | doc comments that open with {} | {} | {} | {} | 3 % |\n\
             | lines wider than 100 columns | {} | {} | {} | |\n\
             | files, and lines of the longest (`{}`) | {} | {} | | 500 lines |\n\n\
             | crate | lines |\n|---|---|\n",
            share(one_word, types),
            share(repeated, types),
            OPENINGS.join(", "),
            self.doc_openings,
            self.doc_comments,
            share(self.doc_openings, self.doc_comments),
            self.wide_lines,
            self.lines,
            share(self.wide_lines, self.lines),
            self.longest_file.1,
            self.files,
            self.longest_file.0,
        );
        for (name, lines) in &self.crate_lines {
            let _ = writeln!(page, "| `{name}` | {lines} |");
        }
        page
    }

    /// The names behind the numbers.
    pub(crate) fn names(&self) -> String {
        let mut text = String::from("\nOne word:");
        for name in self.one_word_types() {
            let files = self.types.get(name).map(BTreeSet::len).unwrap_or_default();
            let _ = write!(text, " {name}{}", if files > 1 { format!("×{files}") } else { String::new() });
        }
        text.push_str("\n\nSeveral files:\n");
        for (name, files) in self.repeated_types() {
            let files: Vec<_> = files.iter().map(String::as_str).collect();
            let _ = writeln!(text, "  {name}: {}", files.join(" "));
        }
        text
    }
}

/// Returns the first word of each doc comment, with its line number.
pub(crate) fn doc_openings(code: &str) -> Vec<(usize, &str)> {
    let mut openings = Vec::new();
    let mut in_doc_comment = false;
    for (at, line) in code.lines().enumerate() {
        let text = line.trim_start();
        let doc = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
        if let (Some(doc), false) = (doc, in_doc_comment) {
            openings.push((at + 1, doc.split_whitespace().next().unwrap_or_default()));
        }
        in_doc_comment = doc.is_some();
    }
    openings
}

/// The name of a type that a line begins to define.
fn defined_type(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    };
    let rest = ["struct ", "enum ", "trait ", "union ", "unsafe trait "]
        .iter()
        .find_map(|keyword| line.strip_prefix(keyword))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

/// One capital letter at the beginning and none after it.
fn is_one_word(name: &str) -> bool {
    !name.chars().skip(1).any(char::is_uppercase)
}

fn share(part: usize, whole: usize) -> String {
    let tenths = (part * 1000).checked_div(whole).unwrap_or_default();
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_where_they_are_defined() {
        for (line, name) in [
            ("pub struct Walls {", Some("Walls")),
            ("pub(crate) enum FileKind<'a> {", Some("FileKind")),
            ("struct Unit;", Some("Unit")),
            ("trait Look: Send {", Some("Look")),
            ("impl Look for X {", None),
            ("let struct_name = 1;", None),
        ] {
            assert_eq!(defined_type(line), name, "{line}");
        }
    }

    #[test]
    fn names_and_openings_are_counted() {
        let mut report = CodeReport::default();
        report.add(
            "crates/a/src/lib.rs",
            "/// What it is.\n/// More.\nstruct Walls;\n/// A file.\nstruct FileKind;\n",
        );
        report.add("crates/b/src/lib.rs", "struct Walls;\nstruct Gate;\n");
        assert_eq!(report.one_word_types().collect::<Vec<_>>(), ["Walls"]);
        assert_eq!(report.repeated_types().map(|(name, _)| name).collect::<Vec<_>>(), ["Walls"]);
        assert_eq!((report.doc_comments, report.doc_openings), (2, 1));
        assert!(report.page().contains("| 1 | 3 | 33.3 % | 30 % |"), "{}", report.page());
    }
}
