//! `windlass sessions tree`: sessions with those of the agents that they have started.

use std::collections::HashMap;

use serde_json::{Value, json};
use windlass::{
    ThreadId,
    clean::Secrets,
    record::{self, RecordedTurnEnd, SessionEntry, SessionNames},
};

use super::{failed, title};
use crate::{
    calls::when, exit::ProgramExit, ids, output::print, problem::CliProblem, screen::visible,
    setup::ProgramSetup,
};

/// Maximum depth of a tree: a file may say anything about its parent.
const MAX_DEPTH: usize = 32;

/// All sessions, by their parents.
struct SessionForest {
    children: HashMap<ThreadId, Vec<SessionEntry>>,
    names: SessionNames,
    secrets: Secrets,
}

/// Runs the command.
pub(super) fn run(
    setup: &ProgramSetup,
    id: Option<&str>,
    limit: usize,
    json: bool,
) -> Result<ProgramExit, CliProblem> {
    let entries = record::list(&setup.home).map_err(|error| failed(&error))?;
    let chosen = id.map(|id| ids::session(setup, id)).transpose()?;
    let mut children: HashMap<ThreadId, Vec<SessionEntry>> = HashMap::new();
    for entry in entries.iter().rev() {
        if let Some(parent) = &entry.parent {
            children.entry(parent.id.clone()).or_default().push(entry.clone());
        }
    }
    let is_known = |id: &ThreadId| entries.iter().any(|entry| entry.id == *id);
    let is_root = |entry: &&SessionEntry| {
        let parent = entry.parent.as_ref();
        children.contains_key(&entry.id) && parent.is_none_or(|parent| !is_known(&parent.id))
    };
    let roots: Vec<_> = match chosen {
        Some(entry) => vec![entry],
        None => entries.iter().filter(is_root).take(limit).cloned().collect(),
    };
    let forest = SessionForest { children, names: ids::names(setup)?, secrets: setup.secrets() };
    if json {
        return print(&roots.iter().map(|root| format!("{}\n", forest.as_json(root, 0))).collect::<String>());
    }
    if roots.is_empty() {
        crate::note("no session has started agents yet");
        return Ok(ProgramExit::Done);
    }
    print(&roots.iter().map(|root| forest.as_text(root, 0)).collect::<String>())
}

impl SessionForest {
    fn children_of(&self, entry: &SessionEntry, depth: usize) -> &[SessionEntry] {
        let children = self.children.get(&entry.id).filter(|_| depth < MAX_DEPTH);
        children.map(Vec::as_slice).unwrap_or_default()
    }

    fn as_json(&self, entry: &SessionEntry, depth: usize) -> Value {
        let children = self.children_of(entry, depth);
        let summary = record::summarize(&entry.path).ok();
        let prompt = summary.as_ref().and_then(|summary| summary.prompt.as_deref());
        json!({
            "id": entry.id,
            "name": self.names.get(&entry.id),
            "agent": entry.parent.as_ref().and_then(|parent| parent.agent.as_deref()),
            "parent": entry.parent,
            "state": state(entry),
            "started": entry.started.to_string(),
            "turns": summary.as_ref().map(|summary| summary.turns),
            "prompt": prompt.map(|prompt| self.secrets.clean(prompt)),
            "children": children.iter().map(|child| self.as_json(child, depth + 1)).collect::<Vec<_>>(),
        })
    }

    fn as_text(&self, entry: &SessionEntry, depth: usize) -> String {
        let summary = record::summarize(&entry.path).ok();
        let title = title(&self.names, entry, summary.as_ref(), &self.secrets);
        let agent = entry.parent.as_ref().and_then(|parent| parent.agent.as_deref());
        let agent = agent.map(|agent| format!("  {}", visible(agent))).unwrap_or_default();
        let (indent, id, time, state) = ("  ".repeat(depth), &entry.id, when(entry.started), state(entry));
        let line = format!("{indent}{id}  {time}  {state}{agent}  {title}\n");
        let children = self.children_of(entry, depth).iter();
        children.fold(line, |text, child| text + &self.as_text(child, depth + 1))
    }
}

/// Returns the state of the last turn of a session, in one word.
fn state(entry: &SessionEntry) -> &'static str {
    if record::is_session_running(&entry.path).unwrap_or(false) {
        return "open";
    }
    match record::last_turn_end(&entry.path) {
        Ok(Some(RecordedTurnEnd::Completed { .. })) => "completed",
        Ok(Some(RecordedTurnEnd::Failed { .. })) => "failed",
        Ok(None) => "interrupted",
        Err(_) => "unreadable",
    }
}
