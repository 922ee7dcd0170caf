//! Counts lines and files.

use serde_json::json;

use super::{below, search::MOST};
use crate::plan::{
    phrases::Phrase,
    reading::Scope,
    results::{Counts, counts},
    run::{Planned, Run},
};

impl Run<'_> {
    pub(super) fn count_lines(&self, scope: &Scope) -> Planned<String> {
        let found = self.counted_in(scope, "^")?;
        if let [(path, count)] = found.rows.as_slice() {
            self.tell(path, None);
            return Ok(self.say(Phrase::CountLines, &[self.short(path), &count.to_string()]));
        }
        let [lines, files] = [found.lines, found.files].map(|count| self.number(&count, found.more));
        Ok(below(self.say(Phrase::CountAllLines, &[&lines, &files]), self.ignored_note(scope)?))
    }

    pub(super) fn count_files(&self, scope: &Scope) -> Planned<String> {
        let files = self.files_in(scope)?;
        if files.rows.is_empty() && !self.is_certain(scope) {
            return Err(self.ends(Phrase::NoFilesFound, &[]));
        }
        let number = self.number(&files.rows.len(), files.more);
        let said = self.say(Phrase::CountFiles, &[&number, &self.shown_scope(scope)]);
        Ok(below(said, self.ignored_note(scope)?))
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
