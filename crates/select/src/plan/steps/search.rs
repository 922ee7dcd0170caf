//! Searches text.

use serde_json::{Value, json};

use super::{below, literal};
use crate::plan::{
    goal::Want,
    phrases::Phrase,
    reading::Scope,
    results::{Hit, counts, hits, total},
    run::{Planned, Run},
};

/// How many lines are found at most.
const MOST: usize = 500;

impl Run<'_> {
    pub(super) fn search(&self, texts: &[String], scope: &Scope, want: Want) -> Planned<String> {
        let mut arguments = self.within(scope)?;
        let patterns: Vec<_> = texts.iter().map(|text| literal(text)).collect();
        let text = &*texts.join(" | ");
        arguments["pattern"] = patterns.join("|").into();
        if !text.contains(char::is_uppercase) {
            arguments["case_insensitive"] = true.into();
        }
        let mode = match want {
            Want::Count | Want::Files => "count",
            Want::Places | Want::Around(_) => "content",
        };
        arguments["output_mode"] = mode.into();
        arguments["limit"] = MOST.into();
        if let Want::Around(lines) = want {
            arguments["context"] = lines.into();
        }
        let output = self.call("grep_files", &arguments)?;
        if output == "No matches found." {
            return Ok(self.say(Phrase::NotFound, &[text, &self.shown_scope(scope)]));
        }
        match want {
            Want::Count | Want::Files => self.counted(text, output, want),
            Want::Places | Want::Around(_) => self.places(output, want),
        }
    }

    fn counted(&self, text: &str, output: &str, want: Want) -> Planned<String> {
        let files = counts(output);
        if files.is_empty() {
            return Err(self.failed(output));
        }
        let total = total(&files);
        let number = files.len().to_string();
        let heading = match want {
            Want::Files => self.say(Phrase::InFiles, &[text, &number]),
            _ => self.say(Phrase::CountHits, &[text, &total.to_string(), &number]),
        };
        Ok(below(heading, files.iter().map(|(path, count)| format!("  {}: {count}", self.short(path)))))
    }

    fn places(&self, output: &str, want: Want) -> Planned<String> {
        let found = hits(output);
        if found.is_empty() {
            return Err(self.failed(output));
        }
        let mut files: Vec<_> = found.iter().map(|hit| hit.path).collect();
        files.dedup();
        let fitting = found.iter().filter(|hit| hit.fits).count().to_string();
        let heading = self.say(Phrase::Places, &[&fitting, &files.len().to_string()]);
        let rows = match want {
            Want::Around(_) => self.blocks(&found),
            _ => found
                .iter()
                .map(|hit| format!("{}:{}: {}", self.short(hit.path), hit.line, hit.text.trim()))
                .collect(),
        };
        Ok(below(heading, rows))
    }

    /// Places with the lines around them: a heading for each stretch, and a mark at each line that fits.
    fn blocks(&self, found: &[Hit<'_>]) -> Vec<String> {
        let mut rows = Vec::new();
        for (at, hit) in found.iter().enumerate() {
            let goes_on = at > 0
                && found[at - 1].path == hit.path
                && found[at - 1].line.checked_add(1) == Some(hit.line);
            if !goes_on {
                rows.push(format!("\n{}:", self.short(hit.path)));
            }
            let mark = if hit.fits { '>' } else { ' ' };
            rows.push(format!("{mark}{:>5}  {}", hit.line, hit.text));
        }
        rows
    }

    /// The arguments that hold a search to a scope.
    pub(super) fn within(&self, scope: &Scope) -> Planned<Value> {
        let mut arguments = json!({});
        if let Some(name) = &scope.place {
            arguments["path"] = self.place(name)?.into();
        }
        if let Some(glob) = &scope.glob {
            arguments["include"] = glob.as_str().into();
        }
        Ok(arguments)
    }

    /// A scope in words, for the end of a sentence.
    pub(super) fn shown_scope(&self, scope: &Scope) -> String {
        let parts: Vec<_> = [scope.place.as_deref(), scope.glob.as_deref()].into_iter().flatten().collect();
        if parts.is_empty() {
            String::new()
        } else {
            self.say(Phrase::Within, &[&self.language.list(&parts)])
        }
    }
}
