//! Hooks around the turns of a session, and the effects of their answers.

use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_contract::{Content, Event, Item, hooks::HookEvent, item::Role};
use windlass_runtime::{HookEffects, Reason, SessionHooks, Stop, Toolbox};

use crate::AgentError;

/// Maximum number of times that hooks make an agent go on after its answer.
const MAX_CONTINUATIONS: usize = 5;

/// Maximum time of all hooks at the end of a session.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The hooks of a session, for its turns.
pub(crate) struct TurnHooks<'a> {
    hooks: Option<&'a SessionHooks>,
    toolbox: &'a Toolbox,
    stop: &'a Stop,
}

/// The texts that hooks add before a message of the user.
pub(crate) type HookContext = Vec<String>;

impl<'a> TurnHooks<'a> {
    pub(crate) fn new(toolbox: &'a Toolbox, stop: &'a Stop) -> Self {
        Self { hooks: toolbox.hooks.as_ref(), toolbox, stop }
    }

    /// Tells the hooks of a step that is no call. A stopped turn does not wait for them.
    async fn tell(&self, event: HookEvent, names: &[&str], fields: Value) -> Result<HookEffects, AgentError> {
        let Some(hooks) = self.hooks else { return Ok(HookEffects::default()) };
        let fields = || match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let effects = tokio::select! {
            biased;
            reason = self.stop.stopped() => return Err(AgentError::Stopped(reason)),
            effects = hooks.tell(event, names, None, fields) => effects,
        };
        match &effects.end_turn {
            Some(reason) => {
                self.toolbox
                    .events
                    .emit(Event::Warning { message: format!("a hook has ended the turn: {reason}") });
                self.stop.stop(Reason::Hook);
                Err(AgentError::Stopped(Reason::Hook))
            }
            None => Ok(effects),
        }
    }

    /// Tells the hooks that a session begins or goes on, once in a process.
    pub(crate) async fn session_begins(&self, is_resumed: bool) -> Result<HookContext, AgentError> {
        if !self.hooks.is_some_and(SessionHooks::begins) {
            return Ok(Vec::new());
        }
        let source = if is_resumed { "resume" } else { "startup" };
        let effects = self.tell(HookEvent::SessionStart, &[source], json!({ "source": source })).await?;
        Ok(effects.context)
    }

    /// Tells the hooks about a message of the user. One that they deny does not reach the model.
    pub(crate) async fn message(&self, content: &[Content]) -> Result<HookContext, AgentError> {
        if self.hooks.is_none() {
            return Ok(Vec::new());
        }
        let fields = json!({ "prompt": Content::join(content) });
        let effects = self.tell(HookEvent::UserPromptSubmit, &[], fields).await?;
        match effects.denied {
            Some(reason) => Err(AgentError::BlockedMessage { reason }),
            None => Ok(effects.context),
        }
    }

    /// Tells the hooks about the answer. Returns the reason to go on, if they have one.
    pub(crate) async fn answer(&self, answer: &str, continued: usize) -> Result<Option<String>, AgentError> {
        if self.hooks.is_none() {
            return Ok(None);
        }
        let fields = json!({ "stop_hook_active": continued > 0, "last_assistant_message": answer });
        let denied = self.tell(HookEvent::Stop, &[], fields).await?.denied;
        if denied.is_some() && continued >= MAX_CONTINUATIONS {
            let message =
                format!("a Stop hook wants to go on after {MAX_CONTINUATIONS} times; the turn ends");
            self.toolbox.events.emit(Event::Warning { message });
            return Ok(None);
        }
        Ok(denied)
    }
}

/// Tells the hooks that a session ends. What they answer does not matter.
pub(crate) async fn session_ends(toolbox: &Toolbox, reason: &str) {
    let Some(hooks) = &toolbox.hooks else { return };
    let fields = || Map::from_iter([("reason".to_owned(), reason.into())]);
    let names = [reason];
    let told = hooks.tell(HookEvent::SessionEnd, &names, None, fields);
    if tokio::time::timeout(END_TIMEOUT, told).await.is_err() {
        let message =
            format!("the SessionEnd hooks did not end within {} s and were killed", END_TIMEOUT.as_secs());
        toolbox.events.emit(Event::Warning { message });
    }
}

/// Returns the message with a text of a hook. Its secrets are redacted: it is no message of the
/// user.
pub(crate) fn context_item(toolbox: &Toolbox, text: &str) -> Item {
    let text = toolbox.shaper.secrets.clean(text);
    Item::message(Role::User, format!("<hook_context>\n{text}\n</hook_context>"))
}
