//! Counts lines and files.

use serde_json::json;

use super::{search::MAX_MATCHES, with_rows};
use crate::plan::{
    parsed_request::SearchScope,
    phrases::AnswerPhrase,
    results::{MatchCounts, counts},
    run::{PlanResult, PlanRun},
};

impl PlanRun<'_> {
    pub(super) fn count_lines(&self, scope: &SearchScope) -> PlanResult<String> {
        let found = self.count_matches(scope, "^")?;
        if let [(path, count)] = found.rows.as_slice() {
            self.remember(path, None);
            return Ok(self.say(AnswerPhrase::CountLines, &[self.relative_path(path), &count.to_string()]));
        }
        let [lines, files] = [found.lines, found.files].map(|count| self.count_text(&count, found.more));
        Ok(with_rows(self.say(AnswerPhrase::CountAllLines, &[&lines, &files]), self.ignored_note(scope)?))
    }

    pub(super) fn count_files(&self, scope: &SearchScope) -> PlanResult<String> {
        let files = self.files_in(scope)?;
        if files.rows.is_empty() && !self.is_certain(scope) {
            return Err(self.decline(AnswerPhrase::NoFilesFound, &[]));
        }
        let number = self.count_text(&files.rows.len(), files.more);
        let answer = self.say(AnswerPhrase::CountFiles, &[&number, &self.scope_phrase(scope)]);
        Ok(with_rows(answer, self.ignored_note(scope)?))
    }

    /// Counts the lines of each file that match a pattern.
    pub(super) fn count_matches(&self, scope: &SearchScope, pattern: &str) -> PlanResult<MatchCounts<'_>> {
        let mut arguments = self.grep_arguments(scope)?;
        for (key, value) in
            [("pattern", json!(pattern)), ("output_mode", json!("count")), ("limit", json!(MAX_MATCHES))]
        {
            arguments[key] = value;
        }
        let output = self.call("grep_files", &arguments)?;
        counts(output).ok_or_else(|| self.failed(output))
    }
}
