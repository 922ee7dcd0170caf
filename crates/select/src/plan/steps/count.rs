//! Counts lines, files and functions.

use serde_json::json;

use super::below;
use crate::plan::{
    phrases::Phrase,
    reading::Scope,
    results::{counts, hits},
    run::{Planned, Run},
};

/// How many files are counted at most.
const MOST: usize = 2000;

/// Where a function begins, in most languages.
const FUNCTIONS: &str = r"^\s*(pub(\([a-z]+\))?\s+)?(async\s+|const\s+|unsafe\s+|static\s+|export\s+|default\s+)*(fn|def|func|function)\s+(\([^)]*\)\s*)?([A-Za-z_]\w*)";

impl Run<'_> {
    pub(super) fn count_lines(&self, scope: &Scope) -> Planned<String> {
        let mut arguments = self.within(scope)?;
        arguments["pattern"] = "^".into();
        arguments["output_mode"] = "count".into();
        arguments["limit"] = MOST.into();
        let files = counts(self.call("grep_files", &arguments)?);
        let total: u64 = files.iter().map(|(_, count)| count).sum();
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
}
