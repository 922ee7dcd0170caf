//! Counts lines and files.

use serde_json::json;

use super::{below, search::MOST};
use crate::plan::{
    phrases::AnswerPhrase,
    reading::SearchScope,
    results::{MatchCounts, counts},
    run::{PlanResult, PlanRun},
};

impl PlanRun<'_> {
    pub(super) fn count_lines(&self, scope: &SearchScope) -> PlanResult<String> {
        let found = self.counted_in(scope, "^")?;
        if let [(path, count)] = found.rows.as_slice() {
            self.tell(path, None);
            return Ok(self.say(AnswerPhrase::CountLines, &[self.short(path), &count.to_string()]));
        }
        let [lines, files] = [found.lines, found.files].map(|count| self.number(&count, found.more));
        Ok(below(self.say(AnswerPhrase::CountAllLines, &[&lines, &files]), self.ignored_note(scope)?))
    }

    pub(super) fn count_files(&self, scope: &SearchScope) -> PlanResult<String> {
        let files = self.files_in(scope)?;
        if files.rows.is_empty() && !self.is_certain(scope) {
            return Err(self.ends(AnswerPhrase::NoFilesFound, &[]));
        }
        let number = self.number(&files.rows.len(), files.more);
        let said = self.say(AnswerPhrase::CountFiles, &[&number, &self.shown_scope(scope)]);
        Ok(below(said, self.ignored_note(scope)?))
    }

    /// How many lines of each file fit a pattern.
    pub(super) fn counted_in(&self, scope: &SearchScope, pattern: &str) -> PlanResult<MatchCounts<'_>> {
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
