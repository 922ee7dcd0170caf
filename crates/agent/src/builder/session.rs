//! Where a conversation is written down, and how it begins or is taken up.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_contract::{
    Event, Item, Journal,
    id::ThreadId,
    journal::{JournalError, Record, SessionMeta, TurnContext},
};
use windlass_record::{
    IndexedSession, SessionFile, SessionRepair, StandaloneCalls, WarningHandler, Which, new_thread_id,
};

use super::{AgentBuilder, BuildError};
use crate::context::{INSTRUCTIONS, Surroundings, opening};

impl AgentBuilder {
    /// Where calls without a session are written down.
    pub(super) fn outside(&self, home: &Path) -> StandaloneCalls {
        let meta = self.meta(new_thread_id(), String::new());
        StandaloneCalls::new(home.to_owned(), meta, self.warning()).with_durability(self.durability)
    }

    /// A session whose calls enter the index.
    fn followed(&self, file: SessionFile, home: &Path) -> IndexedSession {
        IndexedSession::new(file.with_durability(self.durability), home, self.keep, self.warning())
    }

    /// Tells whoever watches what went wrong with something that is not worth stopping for.
    fn warning(&self) -> WarningHandler {
        let events = self.watched();
        Box::new(move |message| events.emit(&Event::Warning { message }))
    }

    fn meta(&self, id: ThreadId, instructions: String) -> SessionMeta {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        SessionMeta { id, cwd: self.policy.cwd.clone(), version, instructions }
    }

    /// Begins a session, or takes one up.
    pub(super) fn begin(&self, context: &TurnContext) -> Result<Begun, BuildError> {
        match (&self.home, &self.resume) {
            (None, Some(_)) => Err(BuildError::ResumeWithoutHome),
            (Some(home), Some(which)) => self.take_up(home, which, context),
            (home, None) => self.start(home.as_deref()),
        }
    }

    fn take_up(&self, home: &Path, which: &Which, context: &TurnContext) -> Result<Begun, BuildError> {
        let (file, session) = SessionFile::resume(home, which)?;
        // The offline rules have another name than sessions may have been held under.
        let is_same = |then: &TurnContext| {
            then.provider == context.provider || then.provider == "builtin" && context.provider == "rules"
        };
        if let Some(then) = session.context.as_ref().filter(|then| !is_same(then))
            && self.same_provider
        {
            let (provider, model) = (then.provider.clone(), then.model.clone());
            return Err(BuildError::OtherProvider { provider, model });
        }
        let same =
            session.context.is_some_and(|then| then.cwd == context.cwd && then.policy == context.policy);
        let opening = if same { Vec::new() } else { vec![self.surroundings(&self.shell()).item()] };
        Ok(Begun {
            thread: session.meta.id,
            instructions: session.meta.instructions,
            journal: Arc::new(self.followed(file, home)),
            history: session.history,
            repairs: session.repaired,
            opening,
        })
    }

    fn start(&self, home: Option<&Path>) -> Result<Begun, BuildError> {
        let thread = new_thread_id();
        let instructions = self.instructions.clone().unwrap_or_else(|| INSTRUCTIONS.to_owned());
        let journal: Arc<dyn Journal> = match home {
            None => Arc::new(Forgetful),
            Some(home) => {
                let meta = self.meta(thread.clone(), instructions.clone());
                Arc::new(self.followed(SessionFile::create(home, &meta)?, home))
            }
        };
        let opening = opening(&self.surroundings(&self.shell()), self.developer_instructions.as_deref());
        Ok(Begun { thread, instructions, journal, history: Vec::new(), repairs: Vec::new(), opening })
    }

    fn surroundings<'a>(&'a self, shell: &'a Path) -> Surroundings<'a> {
        Surroundings { policy: &self.policy, shell, attended: self.approver.is_some() }
    }

    fn shell(&self) -> PathBuf {
        self.builtin.clone().unwrap_or_default().shell_program
    }
}

/// A session at its beginning.
pub(super) struct Begun {
    pub(super) thread: ThreadId,
    pub(super) instructions: String,
    pub(super) journal: Arc<dyn Journal>,
    /// On record already.
    pub(super) history: Vec<Item>,
    pub(super) repairs: Vec<SessionRepair>,
    /// Not yet on record.
    pub(super) opening: Vec<Item>,
}

/// Writes nothing down.
pub(super) struct Forgetful;

impl Journal for Forgetful {
    fn append(&self, _record: &Record<'_>) -> Result<(), JournalError> {
        Ok(())
    }
}
