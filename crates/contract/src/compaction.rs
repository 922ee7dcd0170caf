//! Compaction: the earlier part of a conversation is replaced by something shorter, so that the
//! next request fits into the context window.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    CallId, Item, Outcome, ToolName,
    event::{Plan, PlanStatus},
    host::Whole,
    wording::first_line,
};

/// Maximum number of files that are remembered. The ones used last remain.
const MAX_FILES: usize = 100;

/// Maximum length of the line that stands for an output.
const MAX_DIGEST_CHARS: usize = 200;

/// The reason for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// The conversation reached the configured share of the context window.
    Window,
    /// The server refused a request because it was too long.
    ContextError,
    /// A person asked for it.
    Request,
}

impl CompactionReason {
    /// Returns the name used in session files and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::ContextError => "context_error",
            Self::Request => "request",
        }
    }
}

/// The way a conversation was made shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionMethod {
    /// Old outputs were replaced by one line each.
    Outputs,
    /// The model summarized the earlier part.
    Summary,
    /// The earlier part was summarized by rules, without the model.
    Rules,
    /// Nothing could be made shorter, or the compaction was stopped.
    None,
}

impl CompactionMethod {
    /// Describes a compaction for a person.
    pub fn describe(self, tokens_before: u64, tokens_after: u64) -> String {
        let how = match self {
            Self::Outputs => "old outputs left out",
            Self::Summary => "summarized by the model",
            Self::Rules => "summarized by rules",
            Self::None => return "the conversation cannot be made shorter".to_owned(),
        };
        format!("context made shorter: about {tokens_before} to {tokens_after} tokens, {how}")
    }

    /// Returns the name used in session files and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Outputs => "outputs",
            Self::Summary => "summary",
            Self::Rules => "rules",
            Self::None => "none",
        }
    }
}

/// The record of a compaction. Its history replaces all items before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompactedHistory {
    /// The reason for it.
    pub reason: CompactionReason,
    /// The way it was done.
    pub method: CompactionMethod,
    /// Estimated tokens of a request before it.
    pub tokens_before: u64,
    /// Estimated tokens of a request after it.
    pub tokens_after: u64,
    /// The conversation from now on. Every call in it has its output.
    pub history: Vec<Item>,
    /// The number of items at the beginning that come before the first request of the user.
    #[serde(default)]
    pub opening_items: usize,
    /// Data about the work that the items before it showed.
    #[serde(default)]
    pub notes: WorkNotes,
    /// Tools that the model had found by then, in that order. They stay on offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolName>,
}

/// The state of the work, as data: it survives a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkNotes {
    /// The last plan of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Files that tools read or changed, by last use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileInUse>,
}

/// A file that a tool used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInUse {
    /// The file.
    pub path: PathBuf,
    /// True if a tool changed it.
    pub changed: bool,
}

impl WorkNotes {
    /// Notes that a file was read.
    pub fn file_read(&mut self, path: &Path) {
        let changed = self.take(path).is_some_and(|file| file.changed);
        self.add(FileInUse { path: path.to_owned(), changed });
    }

    /// Notes that a file was changed.
    pub fn file_changed(&mut self, path: &Path) {
        self.take(path);
        self.add(FileInUse { path: path.to_owned(), changed: true });
    }

    /// Returns the plan if a step of it is not completed.
    pub fn open_plan(&self) -> Option<&Plan> {
        self.plan.as_ref().filter(|plan| plan.plan.iter().any(|step| step.status != PlanStatus::Completed))
    }

    fn take(&mut self, path: &Path) -> Option<FileInUse> {
        let at = self.files.iter().position(|file| file.path == path)?;
        Some(self.files.remove(at))
    }

    fn add(&mut self, file: FileInUse) {
        if self.files.len() == MAX_FILES {
            // A changed file matters longer than one that was only read.
            let at = self.files.iter().position(|file| !file.changed).unwrap_or(0);
            self.files.remove(at);
        }
        self.files.push(file);
    }
}

/// One line that can stand for the output of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputDigest {
    /// The meaning of the result.
    pub summary: String,
    /// The file with the full output, if it was too long for the model.
    pub whole: Option<PathBuf>,
    /// The output is a part of a file.
    pub is_file: bool,
}

impl OutputDigest {
    /// Describes an outcome, by the summary of its insight if there is one. It is not known to be a
    /// file.
    pub fn new(outcome: &Outcome, insight: Option<&str>) -> Self {
        let whole = match outcome.facts.whole() {
            Some(Whole::File { path, .. }) => Some(path.clone()),
            Some(Whole::Lost(_)) | None => None,
        };
        let otherwise = || format!("{}: {}", outcome.status.name(), first_line(&outcome.text()));
        let summary = insight.map_or_else(otherwise, str::to_owned);
        let words = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { summary: words.chars().take(MAX_DIGEST_CHARS).collect(), whole, is_file: false }
    }
}

/// The digests of outputs, by call.
pub type OutputDigests = HashMap<CallId, OutputDigest>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PlanStep;

    #[test]
    fn a_file_that_was_changed_stays_changed_and_moves_to_the_end() {
        let mut notes = WorkNotes::default();
        notes.file_changed(Path::new("a"));
        notes.file_read(Path::new("b"));
        notes.file_read(Path::new("a"));
        let file = |path: &str, changed| FileInUse { path: path.into(), changed };
        assert_eq!(notes.files, [file("b", false), file("a", true)]);
    }

    #[test]
    fn files_that_were_only_read_are_forgotten_first() {
        let mut notes = WorkNotes::default();
        notes.file_changed(Path::new("changed"));
        (0..MAX_FILES).for_each(|number| notes.file_read(Path::new(&format!("f{number}"))));
        assert_eq!(notes.files.len(), MAX_FILES);
        assert!(notes.files[0].changed && notes.files[1].path == Path::new("f1"), "{:?}", notes.files[1]);
    }

    #[test]
    fn a_plan_is_open_until_its_last_step_is_completed() {
        let step = |status| PlanStep { step: "s".into(), status };
        let plan = |status| Plan { explanation: None, plan: vec![step(PlanStatus::Completed), step(status)] };
        let notes = |status| WorkNotes { plan: Some(plan(status)), files: Vec::new() };
        assert!(notes(PlanStatus::Pending).open_plan().is_some());
        assert!(notes(PlanStatus::Completed).open_plan().is_none());
    }
}
