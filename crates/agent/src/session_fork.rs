//! A new session that goes on with the conversation of another one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use windlass_contract::{
    Journal,
    id::ThreadId,
    journal::{JournalError, ParentKind, ParentSession, Record, SessionMeta},
};
use windlass_record::{LoadedSession, SessionError, SessionFile, find, load, load_before, new_thread_id};
use windlass_runtime::Secrets;

/// Starts a session with the conversation of another one, up to some message. The other session and
/// all files stay as they are; the new session can undo nothing that the other one did.
#[derive(Debug, Clone)]
pub struct SessionFork {
    /// The session that is continued.
    pub parent: ThreadId,
    /// The number of the first message that is left out, counted from 1. None for the whole
    /// conversation.
    pub before_message: Option<usize>,
    /// The directory of the new session. None for that of its parent.
    pub cwd: Option<PathBuf>,
}

/// A session that was forked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkedSession {
    /// Its id.
    pub id: ThreadId,
    /// The file of the session.
    pub path: PathBuf,
    /// The directory of the session.
    pub cwd: PathBuf,
    /// The number of messages that it begins with.
    pub messages: usize,
    /// The first message that was left out.
    pub left_out: Option<String>,
}

/// The reason why a session was not forked.
#[derive(Debug, thiserror::Error)]
pub enum SessionForkError {
    /// A session file could not be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A record could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The conversation has fewer messages.
    #[error("there is no message {message}: the conversation has {messages}")]
    NoMessage {
        /// The number that was asked for.
        message: usize,
        /// The number of messages.
        messages: usize,
    },
}

impl SessionFork {
    /// Writes the new session below a home directory. Its parent may be in use.
    pub fn write(&self, home: &Path, secrets: &Secrets) -> Result<ForkedSession, SessionForkError> {
        let (_, parent) = find(home, &self.parent)?;
        let (session, left_out) = self.load(&parent)?;
        let id = new_thread_id();
        let cwd = self.cwd.clone().unwrap_or_else(|| session.meta.cwd.clone());
        let meta = SessionMeta {
            id: id.clone(),
            cwd: cwd.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: session.meta.instructions.clone(),
            parent: Some(ParentSession {
                id: self.parent.clone(),
                kind: ParentKind::Fork,
                before_message: self.before_message,
                agent: None,
            }),
        };
        let file = SessionFile::create(home, &meta)?;
        let path = file.path().to_owned();
        if let Err(error) = inherit(&file, &session, secrets) {
            // Half a conversation is of no use.
            let _left = fs::remove_file(&path);
            return Err(error.into());
        }
        Ok(ForkedSession { id, path, cwd, messages: session.turns.len(), left_out })
    }

    /// Reads the conversation, and the first message that is left out.
    fn load(&self, parent: &Path) -> Result<(LoadedSession, Option<String>), SessionForkError> {
        let whole = load(parent)?;
        let Some(message) = self.before_message else { return Ok((whole, None)) };
        let messages = whole.turns.len();
        let turn = message.checked_sub(1).and_then(|at| whole.turns.into_iter().nth(at));
        let turn = turn.ok_or(SessionForkError::NoMessage { message, messages })?;
        Ok((load_before(parent, turn.number)?, Some(turn.message)))
    }
}

/// Records the conversation of a parent. Calls come without their intents and outcomes: they are
/// calls of the parent, and the index of calls must not count them twice.
fn inherit(file: &SessionFile, session: &LoadedSession, secrets: &Secrets) -> Result<(), JournalError> {
    let mut turns = session.turns.iter().filter(|turn| turn.items_before.is_some()).peekable();
    let mut begin_turns = |items: usize| {
        while let Some(turn) = turns.next_if(|turn| turn.items_before == Some(items)) {
            file.append(&Record::TurnContext(&turn.context))?;
        }
        Ok::<_, JournalError>(())
    };
    for (at, item) in session.history.iter().enumerate() {
        begin_turns(at)?;
        file.append(&Record::Inherited(secrets.clean_item(item).as_deref()))?;
    }
    begin_turns(session.history.len())
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        CallId, Input, Item, ToolCall,
        item::{Body, Role},
        journal::TurnContext,
    };
    use windlass_fakes::clean;
    use windlass_record::{CallFilter, Calls, Keep, Which, verify};

    use super::*;

    /// A session of two turns, the second with a call.
    fn parent(home: &Path) -> ThreadId {
        let (id, cwd) = (new_thread_id(), "/w".into());
        let (version, instructions) = ("0".into(), "be brief".into());
        let meta = SessionMeta { id: id.clone(), cwd, version, instructions, parent: None };
        let file = SessionFile::create(home, &meta).unwrap();
        let push = |item: Item| file.append(&Record::Item(clean(&item))).unwrap();
        let context = |model: &str| TurnContext {
            cwd: "/w".into(),
            provider: "p".into(),
            model: model.into(),
            policy: serde_json::json!({}),
        };
        push(Item::message(Role::User, "opening"));
        file.append(&Record::TurnContext(&context("one"))).unwrap();
        push(Item::message(Role::User, "first"));
        push(Item::message(Role::Assistant, "yes"));
        file.append(&Record::TurnContext(&context("two"))).unwrap();
        push(Item::message(Role::User, "second"));
        let call = CallId::from("c1");
        let input = Input::Text("ls".into());
        push(Body::Call(ToolCall { id: call.clone(), name: "shell".into(), input }).into());
        let outcome = windlass_contract::Outcome::plain(windlass_contract::Verdict::success(), "done");
        file.append(&Record::Outcome { call: &call, outcome: clean(&outcome) }).unwrap();
        file.append(&Record::Outputs { calls: &[call] }).unwrap();
        id
    }

    fn fork(home: &Path, parent: &ThreadId, before_message: Option<usize>) -> Result<ForkedSession, String> {
        let fork = SessionFork { parent: parent.clone(), before_message, cwd: None };
        fork.write(home, &Secrets::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_fork_has_the_conversation_of_its_parent_and_can_be_resumed() {
        let home = tempfile::tempdir().unwrap();
        let id = parent(home.path());
        let forked = fork(home.path(), &id, None).unwrap();
        assert_eq!((forked.messages, forked.cwd.as_path()), (2, Path::new("/w")));
        let before = load(&find(home.path(), &id).unwrap().1).unwrap();
        let (_file, session) = SessionFile::resume(home.path(), &Which::Id(forked.id)).unwrap();
        let link = Some(ParentSession { id, kind: ParentKind::Fork, before_message: None, agent: None });
        assert_eq!((session.meta.parent, session.meta.instructions.as_str()), (link, "be brief"));
        let bodies = |items: Vec<Item>| items.into_iter().map(|item| item.body).collect::<Vec<_>>();
        assert_eq!((bodies(session.history), session.context), (bodies(before.history), before.context));
        assert_eq!(session.repaired, []);
        assert_eq!(verify(&forked.path, None).unwrap().broken, None);
    }

    #[test]
    fn a_fork_may_end_before_any_message_of_the_conversation() {
        let home = tempfile::tempdir().unwrap();
        let id = parent(home.path());
        let forked = fork(home.path(), &id, Some(2)).unwrap();
        assert_eq!((forked.messages, forked.left_out.as_deref()), (1, Some("second")));
        assert_eq!(load(&forked.path).unwrap().history.len(), 3);
        let forked = fork(home.path(), &id, Some(1)).unwrap();
        assert_eq!(load(&forked.path).unwrap().history.len(), 1);
        for message in [0, 3] {
            let error = fork(home.path(), &id, Some(message)).unwrap_err();
            assert_eq!(error, format!("there is no message {message}: the conversation has 2"));
        }
    }

    #[test]
    fn a_call_is_counted_once_though_it_is_in_two_conversations() {
        let home = tempfile::tempdir().unwrap();
        let id = parent(home.path());
        fork(home.path(), &id, None).unwrap();
        let mut index = Calls::open(home.path(), Keep::default()).unwrap();
        index.catch_up().unwrap();
        let mut threads = Vec::new();
        let see = |call: windlass_record::Call| {
            threads.push(call.thread);
            std::ops::ControlFlow::Continue(())
        };
        index.for_each_call(&CallFilter::default(), see).unwrap();
        assert_eq!(threads, [id]);
    }
}
