//! The end of the last turn of a session, read without rebuilding the session.

use std::{io::BufReader, path::Path};

use serde::Deserialize;
use windlass_contract::item::Role;

use crate::{
    SessionError,
    error::cannot,
    journal::READ_BYTES,
    messages::message_of_line,
    session_line::{LineEnvelope, LineRead, LineReader},
    session_paths,
};

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedTurnEnd {
    /// The model has answered.
    Completed {
        /// Its last message.
        answer: Option<String>,
    },
    /// The turn failed or was stopped.
    Failed {
        /// The cause.
        message: String,
    },
}

/// The events that end a turn.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
enum EndEvent {
    TurnCompleted {},
    TurnFailed {
        message: String,
    },
    #[serde(other)]
    Other,
}

/// Returns the end of the last turn. `None` if the program ended before the turn did, or there was
/// none.
pub fn last_turn_end(path: &Path) -> Result<Option<RecordedTurnEnd>, SessionError> {
    let file = session_paths::open_to_read(path)?;
    let mut lines = LineReader::new(BufReader::with_capacity(READ_BYTES, file));
    let (mut end, mut answer) = (None, None);
    while let LineRead::Whole(line) = lines.next().map_err(cannot("read", path))? {
        let Ok(line) = LineEnvelope::parse(line) else { continue };
        match line.kind.as_ref() {
            "turn_context" => (end, answer) = (None, None),
            "item" => {
                if let Some((Role::Assistant, text)) = message_of_line(&line) {
                    answer = Some(text);
                }
            }
            "event" => match serde_json::from_str(line.payload()) {
                Ok(EndEvent::TurnCompleted {}) => {
                    end = Some(RecordedTurnEnd::Completed { answer: answer.take() })
                }
                Ok(EndEvent::TurnFailed { message }) => end = Some(RecordedTurnEnd::Failed { message }),
                Ok(EndEvent::Other) | Err(_) => {}
            },
            _ => {}
        }
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_contract::{
        Event, Item, Journal,
        journal::{ParentKind, ParentSession, Record, SessionMeta, TurnContext},
        model::Usage,
    };
    use windlass_fakes::clean;

    use super::*;
    use crate::{SessionFile, Which, list, new_thread_id};

    fn meta(parent: Option<ParentSession>) -> SessionMeta {
        let (cwd, version) = ("/w".into(), "0".into());
        SessionMeta { id: new_thread_id(), cwd, version, instructions: String::new(), parent }
    }

    #[test]
    fn the_end_of_the_last_turn_counts() {
        let home = tempfile::tempdir().unwrap();
        let file = SessionFile::create(home.path(), &meta(None)).unwrap();
        let context =
            TurnContext { cwd: "/w".into(), provider: "p".into(), model: "m".into(), policy: json!({}) };
        let end = || last_turn_end(file.path()).unwrap();
        assert_eq!(end(), None);
        file.append(&Record::TurnContext(&context)).unwrap();
        file.append(&Record::Item(clean(&Item::message(Role::Assistant, "all done")))).unwrap();
        assert_eq!(end(), None, "it was killed here");
        let (usage, refusals) = (Usage::default(), Vec::new());
        let done = Event::TurnCompleted { usage, declined: false, refusals: refusals.clone() };
        file.append(&Record::Event(clean(&done))).unwrap();
        assert_eq!(end(), Some(RecordedTurnEnd::Completed { answer: Some("all done".into()) }));
        file.append(&Record::TurnContext(&context)).unwrap();
        assert_eq!(end(), None, "the next turn has begun");
        let failed =
            Event::TurnFailed { message: "no".into(), reason: "model_error".into(), usage, refusals };
        file.append(&Record::Event(clean(&failed))).unwrap();
        assert_eq!(end(), Some(RecordedTurnEnd::Failed { message: "no".into() }));
    }

    #[test]
    fn the_session_of_an_agent_knows_its_parent_and_is_not_the_last_one() {
        let home = tempfile::tempdir().unwrap();
        let first = meta(None);
        drop(SessionFile::create(home.path(), &first).unwrap());
        let agent = Some("root/worker-1".to_owned());
        let parent =
            ParentSession { id: first.id.clone(), kind: ParentKind::Agent, before_message: None, agent };
        drop(SessionFile::create(home.path(), &meta(Some(parent.clone()))).unwrap());
        let entries = list(home.path()).unwrap();
        assert_eq!(entries.iter().filter_map(|entry| entry.parent.clone()).collect::<Vec<_>>(), [parent]);
        for which in [Which::Last, Which::LastIn("/w".into())] {
            let (_file, resumed) = SessionFile::resume(home.path(), &which).unwrap();
            assert_eq!(resumed.meta, first);
        }
    }
}
