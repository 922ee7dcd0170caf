//! Counts of the records in a session file, without rebuilding the session.

use std::{
    io::BufReader,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use jiff::Timestamp;

use crate::{
    SessionEntry, SessionError,
    error::cannot,
    journal::READ_BYTES,
    messages::prompt_of_line,
    session_line::{LineEnvelope, LineRead, LineReader, kind_of},
    session_paths::{self, ThreadFolder},
};

/// Counts of a session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Turns that were started.
    pub turns: u64,
    /// Calls that have ended.
    pub calls: u64,
    /// Complete lines.
    pub records: u64,
    /// The size of the file.
    pub bytes: u64,
    /// The time of the last change.
    pub changed: Timestamp,
    /// The first prompt.
    pub prompt: Option<String>,
}

/// Counts the records of a session file by the beginnings of their lines.
pub fn summarize(path: &Path) -> Result<SessionSummary, SessionError> {
    let file = session_paths::open_to_read(path)?;
    let found = file.metadata().map_err(cannot("look at", path))?;
    let since = found.modified().unwrap_or(SystemTime::UNIX_EPOCH).duration_since(UNIX_EPOCH);
    let changed = Timestamp::UNIX_EPOCH.checked_add(since.unwrap_or_default()).unwrap_or_default();
    let mut summary =
        SessionSummary { turns: 0, calls: 0, records: 0, bytes: found.len(), changed, prompt: None };
    let mut lines = LineReader::new(BufReader::with_capacity(READ_BYTES, file));
    while let LineRead::Whole(line) = lines.next().map_err(cannot("read", path))? {
        summary.records += 1;
        let parsed = || LineEnvelope::parse(line).ok();
        match kind_of(line) {
            Some(b"turn_context") => summary.turns += 1,
            Some(b"outcome") => summary.calls += 1,
            Some(b"item" | b"inherited") if summary.prompt.is_none() => {
                summary.prompt = parsed().and_then(|line| prompt_of_line(&line));
            }
            _ => {}
        }
    }
    Ok(summary)
}

/// Finds the sessions, and the threads of calls outside of any, whose ids begin with `prefix`,
/// newest first, sessions before the others.
pub fn find_by_prefix(home: &Path, prefix: &str) -> Result<Vec<(ThreadFolder, SessionEntry)>, SessionError> {
    let prefix = prefix.to_lowercase();
    let mut found = Vec::new();
    for folder in [ThreadFolder::Sessions, ThreadFolder::Calls] {
        for file in session_paths::newest_first(home, folder)? {
            if !prefix.is_empty()
                && file.id.to_string().starts_with(&prefix)
                && let Some(entry) = file.entry()?
            {
                found.push((folder, entry));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_contract::{
        Item, Journal, Outcome, Verdict,
        item::Role,
        journal::{Record, SessionMeta, TurnContext},
    };
    use windlass_fakes::clean;

    use super::*;
    use crate::{SessionFile, new_thread_id};

    #[test]
    fn turns_and_calls_are_counted_and_sessions_found_by_the_beginning_of_their_id() {
        let home = tempfile::tempdir().unwrap();
        let meta = SessionMeta {
            id: new_thread_id(),
            cwd: "/w".into(),
            version: "0".into(),
            instructions: String::new(),
            parent: None,
        };
        let file = SessionFile::create(home.path(), &meta).unwrap();
        let context =
            TurnContext { cwd: "/w".into(), provider: "p".into(), model: "m".into(), policy: json!({}) };
        for _ in 0..2 {
            file.append(&Record::TurnContext(&context)).unwrap();
            file.append(&Record::Item(clean(&Item::message(Role::User, "go")))).unwrap();
        }
        let outcome = Outcome::plain(Verdict::success(), "done");
        file.append(&Record::Outcome { call: &"a".into(), outcome: clean(&outcome) }).unwrap();
        let summary = summarize(file.path()).unwrap();
        assert_eq!((summary.turns, summary.calls, summary.records), (2, 1, 6));
        assert_eq!(summary.prompt.as_deref(), Some("go"));
        assert_eq!(summary.bytes, file.path().metadata().unwrap().len());

        let found = |prefix: &str| find_by_prefix(home.path(), prefix).unwrap().len();
        assert_eq!((found(&meta.id.as_str()[..8].to_uppercase()), found("x"), found("")), (1, 0, 0));
    }
}
