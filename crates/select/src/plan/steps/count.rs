//! Counts lines, files and functions.

use serde_json::json;

use super::below;
use crate::plan::{
    phrases::Phrase,
    reading::Scope,
    results::{counts, hits, total},
    run::{Planned, Run},
};

/// How many files are counted at most.
const MOST: usize = 2000;

/// Where a function begins, in most languages.
const FUNCTIONS: &str = r"^\s*(pub(\([a-z]+\))?\s+)?(async\s+|const\s+|unsafe\s+|static\s+|export\s+|default\s+)*(fn|def|func|function)\s+(\([^)]*\)\s*)?([A-Za-z_]\w*)";

/// Where a test begins, in most languages.
const TESTS: &str = r"^\s*(#\[(\w+::)?test\b|(async )?def test_|func Test[A-Z]|(it|test)\(|@Test\b)";

impl Run<'_> {
    pub(super) fn count_lines(&self, scope: &Scope) -> Planned<String> {
        let mut arguments = self.within(scope)?;
        arguments["pattern"] = "^".into();
        arguments["output_mode"] = "count".into();
        arguments["limit"] = MOST.into();
        let files = counts(self.call("grep_files", &arguments)?);
        let total = total(&files);
        Ok(match files.as_slice() {
            [(path, count)] => self.say(Phrase::CountLines, &[self.short(path), &count.to_string()]),
            files => self.say(Phrase::CountAllLines, &[&total.to_string(), &files.len().to_string()]),
        })
    }

    pub(super) fn count_files(&self, scope: &Scope) -> Planned<String> {
        let files = self.files_in(scope)?;
        Ok(self.say(Phrase::CountFiles, &[&files.len().to_string(), &self.shown_scope(scope)]))
    }

    pub(super) fn count_functions(&self, scope: &Scope) -> Planned<String> {
        let mut arguments = self.within(scope)?;
        for (key, value) in
            [("pattern", json!(FUNCTIONS)), ("output_mode", json!("content")), ("limit", json!(MOST))]
        {
            arguments[key] = value;
        }
        let found = hits(self.call("grep_files", &arguments)?);
        let heading = self.say(Phrase::CountFunctions, &[&found.len().to_string(), &self.shown_scope(scope)]);
        Ok(below(
            heading,
            found.iter().map(|hit| format!("{}:{}: {}", self.short(hit.path), hit.line, hit.text.trim())),
        ))
    }

    pub(super) fn count_tests(&self, scope: &Scope) -> Planned<String> {
        let mut arguments = self.within(scope)?;
        for (key, value) in
            [("pattern", json!(TESTS)), ("output_mode", json!("count")), ("limit", json!(MOST))]
        {
            arguments[key] = value;
        }
        let files = counts(self.call("grep_files", &arguments)?);
        let within = self.shown_scope(scope);
        if files.is_empty() {
            return Ok(self.say(Phrase::NoTests, &[&within]));
        }
        let numbers = [total(&files).to_string(), files.len().to_string()];
        let heading = self.say(Phrase::CountTests, &[&numbers[0], &numbers[1], &within]);
        Ok(below(heading, files.iter().map(|(path, count)| format!("  {}: {count}", self.short(path)))))
    }
}
