//! Starts, resumes and records sessions.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use windlass_contract::{
    Content, Event, Item, Journal, ToolName,
    event::EventEmitter,
    id::ThreadId,
    item::{Body, Role},
    journal::{JournalError, Record, SessionMeta, TurnContext},
    program_message::ENVIRONMENT_START,
};
use windlass_record::{
    IndexedSession, SessionFile, SessionRepair, StandaloneCalls, WarningHandler, Which, new_thread_id,
};

use super::{AgentBuilder, BuildError};
use crate::{
    EditTools, StandingInstructions, StorageSettings,
    context::{EnvironmentContext, opening_items},
    history::RecordedHistory,
    sub_agents::report_recorded,
};

impl AgentBuilder {
    /// Returns the journal for calls without a session.
    pub(super) fn standalone_calls(&self, storage: &StorageSettings) -> StandaloneCalls {
        let meta = self.meta(new_thread_id(), String::new());
        StandaloneCalls::new(storage.home.clone(), meta, self.warning()).with_durability(storage.durability)
    }

    /// Returns a session whose calls are added to the index.
    fn indexed_session(&self, file: SessionFile, storage: &StorageSettings) -> IndexedSession {
        let file = file.with_durability(storage.durability);
        IndexedSession::new(file, &storage.home, storage.keep, self.warning())
    }

    /// Returns a handler that emits warnings about errors that do not end the session.
    fn warning(&self) -> WarningHandler {
        let events = self.clean_events();
        Box::new(move |message| events.emit(Event::Warning { message }))
    }

    fn meta(&self, id: ThreadId, instructions: String) -> SessionMeta {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        SessionMeta { id, cwd: self.policy.cwd.clone(), version, instructions, parent: self.parent.clone() }
    }

    /// Starts or resumes a session.
    pub(super) fn begin(&self, context: &TurnContext) -> Result<OpenedSession, BuildError> {
        match (&self.storage, &self.resume) {
            (None, Some(_)) => Err(BuildError::ResumeWithoutHome),
            (Some(storage), Some(which)) => self.resume_session(storage, which, context),
            (storage, None) => self.start(storage.as_ref(), &context.model),
        }
    }

    fn resume_session(
        &self,
        storage: &StorageSettings,
        which: &Which,
        context: &TurnContext,
    ) -> Result<OpenedSession, BuildError> {
        let (file, session) = SessionFile::resume(&storage.home, which)?;
        // Earlier sessions may have recorded the offline rules under another name.
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
        let environment = self.environment_context(&self.shell()).item();
        // The settings may have changed twice since the last turn, and the model was sent the first
        // change.
        let was_sent = last_environment(&session.history).is_none_or(|last| *last == environment.body);
        let mut opening = if same && was_sent { Vec::new() } else { vec![environment] };
        let agents = report_recorded(&storage.home, &session.meta.id, &session.history);
        let (message, warnings) = agents.unzip();
        opening.extend(message);
        Ok(OpenedSession {
            warnings: warnings.unwrap_or_default(),
            thread: session.meta.id,
            instructions: session.meta.instructions,
            journal: Arc::new(self.indexed_session(file, storage)),
            history: RecordedHistory {
                items: session.history,
                opening_items: session.opening_items,
                digests: session.digests,
                notes: session.notes,
            },
            found_tools: session.found_tools,
            repairs: session.repaired,
            opening,
        })
    }

    fn start(&self, storage: Option<&StorageSettings>, model: &str) -> Result<OpenedSession, BuildError> {
        let thread = new_thread_id();
        let edits = self.builtin.as_ref().map_or(EditTools::Disabled, |toolset| toolset.edits);
        let instructions = self.context.instructions.clone();
        let instructions = instructions.unwrap_or_else(|| StandingInstructions::of(model, edits).text);
        let journal: Arc<dyn Journal> = match storage {
            None => Arc::new(NullJournal),
            Some(storage) => {
                let meta = self.meta(thread.clone(), instructions.clone());
                Arc::new(self.indexed_session(SessionFile::create(&storage.home, &meta)?, storage))
            }
        };
        let added = self.context.developer_instructions.as_deref();
        let documents = &self.context.opening_messages;
        let opening = opening_items(&self.environment_context(&self.shell()), added, documents);
        let (history, found_tools, repairs) = (RecordedHistory::default(), Vec::new(), Vec::new());
        let warnings = Vec::new();
        Ok(OpenedSession { thread, instructions, journal, history, found_tools, repairs, opening, warnings })
    }

    /// Returns the part of the policy that is recorded with every turn. If it changes between two
    /// turns, the model is sent the new environment.
    pub(super) fn recorded_policy(&self) -> Value {
        let mut policy = json!({
            "approval_policy": self.policy.approval,
            "sandbox_mode": self.policy.sandbox,
            "attended": self.approver.is_some(),
        });
        if self.policy.plan_mode {
            policy["plan_mode"] = true.into();
        }
        policy
    }

    fn environment_context<'a>(&'a self, shell: &'a Path) -> EnvironmentContext<'a> {
        EnvironmentContext { policy: &self.policy, shell, attended: self.approver.is_some() }
    }

    fn shell(&self) -> PathBuf {
        self.builtin.clone().unwrap_or_default().shell_program
    }
}

/// Returns the last message about the environment.
fn last_environment(history: &[Item]) -> Option<&Body> {
    let is_environment = |body: &&Body| match body {
        Body::Message { role: Role::User, content } => {
            matches!(content.as_slice(), [Content::Text(text)] if text.starts_with(ENVIRONMENT_START))
        }
        _ => false,
    };
    history.iter().rev().map(|item| &item.body).find(is_environment)
}

/// A session that was started or resumed.
pub(super) struct OpenedSession {
    pub(super) thread: ThreadId,
    pub(super) instructions: String,
    pub(super) journal: Arc<dyn Journal>,
    /// The conversation that is recorded already.
    pub(super) history: RecordedHistory,
    pub(super) found_tools: Vec<ToolName>,
    pub(super) repairs: Vec<SessionRepair>,
    /// Items that are not recorded yet.
    pub(super) opening: Vec<Item>,
    /// Warnings for the person about agents of an earlier run.
    pub(super) warnings: Vec<String>,
}

/// A journal that records nothing.
pub(super) struct NullJournal;

impl Journal for NullJournal {
    fn append(&self, _record: &Record<'_>) -> Result<(), JournalError> {
        Ok(())
    }
}
