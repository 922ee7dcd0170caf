//! Searches text.

use serde_json::{Value, json};

use super::{escape_regex, with_rows};
use crate::plan::{
    goal::SearchOutput,
    parsed_request::SearchScope,
    phrases::AnswerPhrase,
    results::{MatchCounts, MatchedLine, ResultRows, counts, matched_lines},
    run::{NextAction, PlanResult, PlanRun},
};

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Maximum number of lines, or of files with matching lines, of a search.
pub(super) const MAX_MATCHES: usize = 2000;

impl PlanRun<'_> {
    pub(super) fn search(
        &self,
        texts: &[String],
        scope: &SearchScope,
        want: SearchOutput,
        whole_word: bool,
    ) -> PlanResult<String> {
        let mut arguments = self.grep_arguments(scope)?;
        let bound = |c: Option<char>| if c.is_some_and(|c| whole_word && is_word(c)) { r"\b" } else { "" };
        let patterns = texts.iter().map(|text| {
            let [before, after] = [text.chars().next(), text.chars().next_back()].map(bound);
            format!("{before}{}{after}", escape_regex(text))
        });
        let patterns: Vec<_> = patterns.collect();
        let text = &*texts.join(" | ");
        arguments["pattern"] = patterns.join("|").into();
        if !text.contains(char::is_uppercase) {
            arguments["case_insensitive"] = true.into();
        }
        let mode = match want {
            SearchOutput::Count | SearchOutput::Files => "count",
            SearchOutput::Places | SearchOutput::Around(_) => "content",
        };
        arguments["output_mode"] = mode.into();
        arguments["limit"] = MAX_MATCHES.into();
        if let SearchOutput::Around(lines) = want {
            arguments["context"] = lines.into();
        }
        let output = self.call("grep_files", &arguments)?;
        let answer = match want {
            SearchOutput::Count | SearchOutput::Files => {
                counts(output).map(|found| self.counted(text, &found, want))
            }
            SearchOutput::Places | SearchOutput::Around(_) => {
                matched_lines(output).map(|found| self.places(&found, want))
            }
        };
        let answer = answer.ok_or_else(|| self.failed(output))?;
        let within = self.scope_phrase(scope);
        // A quotation or an identifier is certainly the search text; a plain word may have meant
        // something else. Ignored files, often logs, were not searched.
        let is_certain = self.is_certain(scope) && texts.iter().all(|text| self.is_text(text));
        let case = (arguments["case_insensitive"] == true).then(|| self.say(AnswerPhrase::CaseIgnored, &[]));
        let notes = case.into_iter().chain(self.ignored_note(scope)?).collect::<Vec<_>>();
        let Some(found) = answer else {
            let phrase = if is_certain { AnswerPhrase::NotFound } else { AnswerPhrase::NotSure };
            let answer = with_rows(self.say(phrase, &[text, &within]), notes);
            return if is_certain { Ok(answer) } else { Err(NextAction::Decline(answer)) };
        };
        let found = with_rows(found, notes);
        // A text search cannot distinguish a call from a comment.
        Ok(if whole_word { format!("{}\n{found}", self.say(AnswerPhrase::AsText, &[text])) } else { found })
    }

    /// Lists the files that contain a text, with counts; `None` without a match.
    fn counted(&self, text: &str, found: &MatchCounts<'_>, want: SearchOutput) -> Option<String> {
        let files = Some(&found.rows).filter(|files| !files.is_empty())?;
        let number = self.count_text(&found.files, found.more);
        let heading = match want {
            SearchOutput::Files => self.say(AnswerPhrase::InFiles, &[text, &number]),
            _ => self
                .say(AnswerPhrase::CountHits, &[text, &self.count_text(&found.lines, found.more), &number]),
        };
        Some(with_rows(heading, files.iter().map(|file| self.file_count(file))))
    }

    /// Lists the places of a text; `None` without a match.
    fn places(&self, found: &ResultRows<MatchedLine<'_>>, want: SearchOutput) -> Option<String> {
        let matched_lines = Some(&found.rows).filter(|matched_lines| !matched_lines.is_empty())?;
        let mut files: Vec<_> = matched_lines.iter().map(|hit| hit.path).collect();
        files.dedup();
        let fitting = self.count_text(&matched_lines.iter().filter(|hit| hit.fits).count(), found.more);
        let heading = self.say(AnswerPhrase::Places, &[&fitting, &self.count_text(&files.len(), found.more)]);
        let rows = match want {
            SearchOutput::Around(_) => self.blocks(matched_lines),
            _ => matched_lines.iter().map(|hit| self.format_match(hit)).collect(),
        };
        Some(with_rows(heading, rows))
    }

    /// Formats a file with its number of matches.
    pub(super) fn file_count(&self, (path, count): &(&str, u64)) -> String {
        self.remember(path, None);
        format!("  {}: {count}", self.relative_path(path))
    }

    /// Formats a line with its location.
    pub(super) fn format_match(&self, hit: &MatchedLine<'_>) -> String {
        self.remember(hit.path, Some(hit.line));
        format!("{}:{}: {}", self.relative_path(hit.path), hit.line, hit.text.trim())
    }

    /// Formats matches with context lines: a heading for each block, and a mark at each match.
    fn blocks(&self, found: &[MatchedLine<'_>]) -> Vec<String> {
        let mut rows = Vec::new();
        for (at, hit) in found.iter().enumerate() {
            let goes_on = at > 0
                && found[at - 1].path == hit.path
                && found[at - 1].line.checked_add(1) == Some(hit.line);
            if !goes_on {
                rows.push(format!("\n{}:", self.relative_path(hit.path)));
            }
            if hit.fits {
                self.remember(hit.path, Some(hit.line));
            }
            let mark = if hit.fits { '>' } else { ' ' };
            rows.push(format!("{mark}{:>5}  {}", hit.line, hit.text));
        }
        rows
    }

    /// Returns the arguments that limit a search to a scope.
    pub(super) fn grep_arguments(&self, scope: &SearchScope) -> PlanResult<Value> {
        let mut arguments = json!({"hidden": true});
        let mut include = scope.glob.clone();
        match &scope.place {
            Some(name) if self.is_repeated_directory(name)? => {
                let glob = include.as_deref().unwrap_or("*");
                include = Some(format!("**/{}/**/{glob}", name.trim_matches('/')));
            }
            Some(name) => arguments["path"] = self.place(name)?.into(),
            None => {}
        }
        if let Some(glob) = include {
            arguments["include"] = glob.into();
        }
        Ok(arguments)
    }

    /// Returns the note that an answer about a scope leaves out ignored files; `None` for a single
    /// file.
    ///
    /// A directory with only ignored files is declined, because an answer that it has nothing would
    /// be wrong.
    pub(super) fn ignored_note(&self, scope: &SearchScope) -> PlanResult<Option<String>> {
        let Some(name) = scope.place.as_deref() else {
            return Ok(Some(self.say(AnswerPhrase::IgnoredLeftOut, &[])));
        };
        if self.is_repeated_directory(name)? {
            return Ok(Some(self.say(AnswerPhrase::IgnoredLeftOut, &[])));
        }
        let place = self.place(name)?;
        let Some(listing) = self.list_directory(&place)? else { return Ok(None) };
        if listing.files.is_empty() && !self.list_with_ignored(&place)?.files.is_empty() {
            return Err(self.decline(AnswerPhrase::AllIgnored, &[&place]));
        }
        Ok(Some(self.say(AnswerPhrase::IgnoredLeftOut, &[])))
    }

    /// Returns a scope as the end of a sentence.
    pub(super) fn scope_phrase(&self, scope: &SearchScope) -> String {
        let parts: Vec<_> = [scope.place.as_deref(), scope.glob.as_deref()].into_iter().flatten().collect();
        if parts.is_empty() {
            String::new()
        } else {
            self.say(AnswerPhrase::Within, &[&self.language.list(&parts)])
        }
    }
}
