//! Shows a file, a part of it, or a definition in it.

use serde_json::json;

use super::with_rows;
use crate::plan::{
    names::NameLookup,
    parsed_request::LineSelection,
    phrases::AnswerPhrase,
    results::{self, matched_lines},
    run::{NextAction, PlanResult, PlanRun},
    steps::escape_regex,
};

/// Maximum number of definitions that are shown.
const MAX_DEFINITIONS: usize = 3;

/// Maximum length of a definition, in lines.
const MAX_LINES: u64 = 120;

/// Keywords before a name at its definition, in most languages.
const DEFINES: &str = r"\b(fn|def|func|function|class|struct|enum|trait|interface|type|mod|const|static|let|var|val|macro_rules!)\s+(\([^)]*\)\s*)?";

/// Length from which on a line of `read_file` may be cut: the tool keeps 500 bytes, less a part of
/// a character.
const MAX_SHOWN_BYTES: usize = 497;

impl PlanRun<'_> {
    pub(super) fn show_all(&self, names: &[String], part: LineSelection) -> PlanResult<String> {
        let shown = names.iter().map(|name| self.show(name, part)).collect::<PlanResult<Vec<_>>>()?;
        Ok(shown.join("\n\n"))
    }

    pub(super) fn show(&self, name: &str, part: LineSelection) -> PlanResult<String> {
        let file = match self.look_up(name)?.prefer_top_level(name) {
            _ if self.is_path(name)? => name.to_owned(),
            // Ignored files are not listed, but may exist.
            NameLookup::None(_)
                if name.contains(['.', '/']) && results::numbered(self.read(name, 1, 1)?).is_some() =>
            {
                name.to_owned()
            }
            // `show total` may mean a function.
            NameLookup::None(near) if near.is_empty() && !name.contains(['.', '/']) => {
                return self.define(name, true);
            }
            found => self.require_one(name, found, AnswerPhrase::NoFile)?,
        };
        let (offset, limit) = match part {
            LineSelection::Whole => (1, 2000),
            LineSelection::Lines(from, to) => (from, to - from + 1),
            LineSelection::First(count) => (1, count),
            LineSelection::Last(count) => (self.line_count(&file)?.saturating_sub(count) + 1, count),
        };
        self.lines(&file, offset, limit)
    }

    fn read(&self, file: &str, offset: u64, limit: u64) -> PlanResult<&str> {
        let arguments = match offset {
            1 => json!({"file_path": file, "limit": limit}),
            _ => json!({"file_path": file, "offset": offset, "limit": limit}),
        };
        self.call("read_file", &arguments)
    }

    /// Shows some lines of a file with a heading.
    pub(super) fn lines(&self, file: &str, offset: u64, limit: u64) -> PlanResult<String> {
        let output = self.read(file, offset, limit)?;
        match results::numbered(output) {
            Some(rows) => Ok(self.shown(file, &rows)),
            None if output == "offset exceeds file length" && offset == 1 => {
                Ok(self.say(AnswerPhrase::Empty, &[file]))
            }
            None if output == "offset exceeds file length" => {
                Err(NextAction::Say(self.say(AnswerPhrase::TooShort, &[file, &offset.to_string()])))
            }
            None => Err(self.failed(output)),
        }
    }

    fn shown(&self, file: &str, rows: &[(u64, &str)]) -> String {
        self.remember(file, None);
        let heading = match rows {
            [(1, _), _, ..] => self.say(AnswerPhrase::WholeFile, &[file]),
            [(from, _), .., (to, _)] => self.say(AnswerPhrase::FileLines, &[file, &format!("{from}-{to}")]),
            [(line, _)] => self.say(AnswerPhrase::FileLine, &[file, &line.to_string()]),
            [] => self.say(AnswerPhrase::Empty, &[file]),
        };
        let is_cut = rows.iter().any(|(_, text)| text.len() >= MAX_SHOWN_BYTES);
        let note = is_cut.then(|| self.say(AnswerPhrase::LongLinesCut, &[]));
        with_rows(heading, rows.iter().map(|(number, text)| format!("{number:>5}  {text}")).chain(note))
    }

    /// Returns the number of lines of a file.
    pub(super) fn line_count(&self, file: &str) -> PlanResult<u64> {
        let output =
            self.call("grep_files", &json!({"pattern": "^", "path": file, "output_mode": "count"}))?;
        let counts = results::counts(output).ok_or_else(|| self.failed(output))?;
        Ok(counts.lines)
    }

    /// Shows the locations of a definition, or its code.
    pub(super) fn define(&self, name: &str, show: bool) -> PlanResult<String> {
        let last = name.rsplit("::").next().unwrap_or(name);
        let last = escape_regex(last);
        let pattern = format!(r"{DEFINES}{last}\b|^\s*(\w+\s+)?{last}\s*(:\s*\w+\s*)?:?=[^=>]");
        let output =
            self.call("grep_files", &json!({"pattern": pattern, "output_mode": "content", "hidden": true}))?;
        let found = matched_lines(output).ok_or_else(|| self.failed(output))?.rows;
        if found.is_empty() {
            // Languages have more forms of definitions than are known here.
            return Err(self.decline(AnswerPhrase::NotDefined, &[name]));
        }
        if !show || found.len() > MAX_DEFINITIONS {
            let rows = found.iter().map(|hit| self.format_match(hit));
            return Ok(with_rows(self.say(AnswerPhrase::Defined, &[name]), rows));
        }
        let mut shown = Vec::new();
        for hit in found {
            let opens = hit.text.trim_end().ends_with(['{', ':', '(', ',']);
            let path = self.relative_path(hit.path);
            // The block of a line is the one that contains it, so the block of a definition is that
            // of the next line.
            let block = json!({"anchor_line": hit.line.saturating_add(1), "max_levels": 1});
            let arguments =
                json!({"file_path": path, "mode": "indentation", "indentation": block, "limit": MAX_LINES});
            let code =
                if opens { self.call("read_file", &arguments)? } else { self.read(path, hit.line, 1)? };
            let rows = results::numbered(code).ok_or_else(|| self.failed(code))?;
            let rows = definition(&rows, hit.line);
            self.remember(path, None);
            let (from, to) = (rows.first().map_or(0, |row| row.0), rows.last().map_or(0, |row| row.0));
            let heading = self.say(AnswerPhrase::FileLines, &[path, &format!("{from}-{to}")]);
            shown.push(with_rows(heading, rows.iter().map(|(number, text)| format!("{number:>5}  {text}"))));
        }
        Ok(shown.join("\n\n"))
    }
}

/// Returns the rows of a definition that begins in this line: comments and attributes above, and
/// the indented lines up to the closing one.
fn definition<'a>(rows: &'a [(u64, &'a str)], line: u64) -> &'a [(u64, &'a str)] {
    let Some(at) = rows.iter().position(|(number, _)| *number == line) else { return rows };
    let indent = |text: &str| text.len() - text.trim_start().len();
    let own = indent(rows[at].1);
    let is_above = |text: &str| indent(text) == own && text.trim_start().starts_with(['/', '#', '@', '*']);
    let above = rows[..at].iter().rev().take_while(|(_, text)| is_above(text)).count();
    let mut end = at + 1;
    for (index, (_, text)) in rows.iter().enumerate().skip(at + 1) {
        let is_closing = text.trim_start().starts_with(['}', ')', ']']);
        if text.trim().is_empty() {
            continue;
        }
        if indent(text) <= own && !is_closing {
            break;
        }
        end = index + 1;
        // `) -> u64 {` closes only the parameters.
        if indent(text) <= own && !text.trim_end().ends_with(['{', ':', '(']) {
            break;
        }
    }
    &rows[at - above..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, line: u64) -> (u64, u64) {
        let rows: Vec<_> = (1..).zip(text.lines()).collect();
        let found = definition(&rows, line);
        (found[0].0, found[found.len() - 1].0)
    }

    #[test]
    fn a_definition_ends_where_the_next_one_begins() {
        let python = "x = 1\n\n@cached\ndef a(b):\n    c = b\n\n    return c\n\n\ndef d():\n    pass\nif x:\n    d()\n";
        assert_eq!((lines(python, 4), lines(python, 10)), ((3, 7), (10, 11)));
        let rust =
            "/// Adds.\nfn add(\n    a: u8,\n) -> u8 {\n    if a > 1 {\n    }\n    a\n}\nfn other() {\n}\n";
        assert_eq!((lines(rust, 2), lines(rust, 9)), ((1, 8), (9, 10)));
        let class = "class A:\n    def __init__(self):\n        self.a = 1\n\n    def run(self):\n        go()\n\nmain()\n";
        assert_eq!((lines(class, 1), lines(class, 5)), ((1, 6), (5, 6)));
    }
}
