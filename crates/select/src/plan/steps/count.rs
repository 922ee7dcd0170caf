//! Counts lines, files and functions.

use serde_json::json;

use super::{below, search::MOST};
use crate::plan::{
    phrases::Phrase,
    reading::Scope,
    results::{Counts, counts, hits},
    run::{Planned, Run},
};

/// Where a function begins, in most languages.
const FUNCTIONS: &str = r"^\s*(pub(\([a-z]+\))?\s+)?(async\s+|const\s+|unsafe\s+|static\s+|export\s+|default\s+)*(fn|def|func|function)\s+(\([^)]*\)\s*)?([A-Za-z_]\w*)";

/// Where a test begins, in most languages.
const TESTS: &str = r"^\s*(#\[(\w+::)?test\b|(async )?def test_|func Test[A-Z]|(it|test)\(|@Test\b)";

impl Run<'_> {
    pub(super) fn count_lines(&self, scope: &Scope) -> Planned<String> {
        let found = self.counted_in(scope, "^")?;
        if let [(path, count)] = found.rows.as_slice() {
            self.tell(path, None);
            return Ok(self.say(Phrase::CountLines, &[self.short(path), &count.to_string()]));
        }
        let [lines, files] = [found.lines, found.files].map(|count| self.number(&count, found.more));
        Ok(self.say(Phrase::CountAllLines, &[&lines, &files]))
    }

    pub(super) fn count_files(&self, scope: &Scope) -> Planned<String> {
        let files = self.files_in(scope)?;
        if files.rows.is_empty() && !self.is_certain(scope) {
            return Err(self.ends(Phrase::NoFilesFound, &[]));
        }
        let number = self.number(&files.rows.len(), files.more);
        Ok(self.say(Phrase::CountFiles, &[&number, &self.shown_scope(scope)]))
    }

    pub(super) fn count_functions(&self, scope: &Scope) -> Planned<String> {
        let mut arguments = self.within(scope)?;
        for (key, value) in
            [("pattern", json!(FUNCTIONS)), ("output_mode", json!("content")), ("limit", json!(MOST))]
        {
            arguments[key] = value;
        }
        let output = self.call("grep_files", &arguments)?;
        let found = hits(output).ok_or_else(|| self.failed(output))?;
        if found.rows.is_empty() {
            return Err(self.ends(Phrase::NoFunctions, &[&self.shown_scope(scope)]));
        }
        let number = self.number(&found.rows.len(), found.more);
        let heading = self.say(Phrase::CountFunctions, &[&number, &self.shown_scope(scope)]);
        Ok(below(heading, found.rows.iter().map(|hit| self.place_of(hit))))
    }

    pub(super) fn count_tests(&self, scope: &Scope) -> Planned<String> {
        let found = self.counted_in(scope, TESTS)?;
        let within = self.shown_scope(scope);
        if found.rows.is_empty() {
            return Err(self.ends(Phrase::NoTests, &[&within]));
        }
        let [tests, number] = [found.lines, found.files].map(|count| self.number(&count, found.more));
        let heading = self.say(Phrase::CountTests, &[&tests, &number, &within]);
        Ok(below(heading, found.rows.iter().map(|file| self.file_count(file))))
    }

    /// How many lines of each file fit a pattern.
    pub(super) fn counted_in(&self, scope: &Scope, pattern: &str) -> Planned<Counts<'_>> {
        let mut arguments = self.within(scope)?;
        for (key, value) in
            [("pattern", json!(pattern)), ("output_mode", json!("count")), ("limit", json!(MOST))]
        {
            arguments[key] = value;
        }
        let output = self.call("grep_files", &arguments)?;
        counts(output).ok_or_else(|| self.failed(output))
    }
}
