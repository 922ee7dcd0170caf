//! Hooks in the pipeline: what they are told about a call, and what their answers do.
//!
//! Hooks tighten. A denial refuses, an `ask` has a person asked, a text reaches the model. A yes
//! does nothing, and changed arguments are checked, judged and decided like any others.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value, json};
use windlass_contract::{
    CallId, Effects, Event, Input, Outcome, ToolCall,
    event::EventEmitter,
    hooks::{HookEvent, HookRecord, HookRun, HookStep, HookVerdict, Hooks},
    wording::shell_script,
};

use windlass_shape::Failure;

use crate::{Reason, Stop};

/// The names of tools in other agents, for matchers and for the field `tool_name`.
const SHELL_TOOLS: [&str; 5] = ["shell", "shell_command", "exec_command", "run_command", "local_shell"];
const SHELL_NAME: &str = "Bash";

/// Maximum number of times that hooks see a call: they may change its arguments, and all of them
/// see the result.
pub(crate) const MAX_PASSES: usize = 3;

/// The hooks of a session.
pub struct SessionHooks {
    hooks: Arc<dyn Hooks>,
    /// Fields of every input: the session, its directory, its model.
    session: Map<String, Value>,
    events: Arc<dyn EventEmitter>,
}

impl fmt::Debug for SessionHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHooks").field("session", &self.session).finish_non_exhaustive()
    }
}

/// The answers of hooks, taken together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookEffects {
    /// The step must not happen, for this reason.
    pub denied: Option<String>,
    /// A person is to be asked, for this reason.
    pub asked: Option<String>,
    /// Texts for the model, each with the name of its hook.
    pub context: Vec<String>,
    /// The arguments that the call is to have instead.
    pub updated_input: Option<Value>,
    /// The turn is to end, for this reason.
    pub end_turn: Option<String>,
    /// The hooks with their answers, one line each.
    pub answers: Vec<String>,
}

/// A call that hooks have let pass, or not.
#[derive(Debug, Default)]
pub(crate) struct HookedCall {
    /// The reason to ask a person.
    pub(crate) asked: Option<String>,
    /// The hooks with their answers, one line each.
    pub(crate) answers: Vec<String>,
    /// Texts for the model.
    pub(crate) notes: Vec<String>,
    /// Differences between the arguments of the model and those of the call.
    pub(crate) changes: Vec<String>,
}

impl SessionHooks {
    /// Creates the hooks of a session. `session` has the fields of every input.
    pub fn new(hooks: Arc<dyn Hooks>, session: Map<String, Value>, events: Arc<dyn EventEmitter>) -> Self {
        Self { hooks, session, events }
    }

    /// Returns true if the start of the session is to be told: once in a process.
    pub fn begins(&self) -> bool {
        let session = self.session.get("session_id").and_then(Value::as_str);
        session.is_some_and(|session| self.hooks.begins(session))
    }

    /// Tells the hooks of a step, and records what they answered. `fields` are those of the step;
    /// they are not made if no hook listens.
    pub async fn tell(
        &self,
        event: HookEvent,
        names: &[&str],
        call: Option<&CallId>,
        fields: impl FnOnce() -> Map<String, Value>,
    ) -> HookEffects {
        if !self.hooks.listens(event, names) {
            return HookEffects::default();
        }
        let mut input = self.session.clone();
        input.insert("hook_event_name".to_owned(), event.name().into());
        input.extend(fields());
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let runs = self.hooks.run(&HookStep { event, names, input }).await;
        let mut effects = HookEffects::default();
        for run in runs {
            self.report(&run, call);
            effects.add(run);
        }
        effects
    }

    /// Records the run of a hook, and shows its message to the user.
    fn report(&self, run: &HookRun, call: Option<&CallId>) {
        let HookRun { event, hook, verdict, reason, context, message, updated_input, duration, .. } = run;
        let record = HookRecord {
            step: *event,
            hook: hook.clone(),
            verdict: *verdict,
            reason: reason.clone(),
            context: context.clone(),
            updated_input: updated_input.as_ref().map(Value::to_string),
            duration: *duration,
        };
        self.events.emit(Event::HookEnded { id: call.cloned(), run: record });
        if matches!(verdict, HookVerdict::FailedIgnored | HookVerdict::FailedDenied) {
            let effect = if verdict.is_denial() { "counts as a refusal" } else { "is ignored" };
            let message = format!("the {event} hook `{hook}` failed, which {effect}: {reason}");
            self.events.emit(Event::Warning { message });
        }
        if let Some(message) = message {
            let message = format!("the {event} hook `{hook}` says: {message}");
            self.events.emit(Event::Warning { message });
        }
    }

    /// Tells the hooks about a call before it passes the gate.
    pub(crate) async fn before_call(&self, call: &ToolCall, effects: &Effects, stop: &Stop) -> HookEffects {
        let told = ToldCall::new(call, effects);
        let names = told.names();
        let fields = || told.fields();
        let answered = self.tell(HookEvent::PreToolUse, &names, Some(&call.id), fields).await;
        end_turn(&answered, stop);
        answered
    }

    /// Tells the hooks that a person is about to be asked. Returns the reason of a denial.
    pub(crate) async fn before_question(
        &self,
        call: &ToolCall,
        effects: &Effects,
        reason: &str,
    ) -> Option<String> {
        let told = ToldCall::new(call, effects);
        let names = told.names();
        let fields = || {
            let mut fields = told.fields();
            fields.insert("permission_reason".to_owned(), reason.into());
            fields
        };
        self.tell(HookEvent::PermissionRequest, &names, Some(&call.id), fields).await.denied
    }

    /// Tells the hooks about a call that has run.
    pub(crate) async fn after_call(
        &self,
        call: &ToolCall,
        effects: &Effects,
        outcome: &Outcome,
        stop: &Stop,
    ) -> HookEffects {
        let told = ToldCall::new(call, effects);
        let names = told.names();
        let fields = || {
            let mut fields = told.fields();
            let response = json!({
                "content": outcome.text(),
                "status": outcome.status.name(),
                "success": outcome.verdict.success,
                "exit_code": outcome.facts.exit().map(windlass_contract::host::Exit::code),
            });
            fields.insert("tool_response".to_owned(), response);
            fields
        };
        let answered = self.tell(HookEvent::PostToolUse, &names, Some(&call.id), fields).await;
        end_turn(&answered, stop);
        answered
    }
}

/// Ends the turn if a hook wants that.
fn end_turn(effects: &HookEffects, stop: &Stop) {
    if effects.end_turn.is_some() {
        stop.stop(Reason::Hook);
    }
}

impl HookEffects {
    fn add(&mut self, run: HookRun) {
        let HookRun { event, hook, verdict, reason, context, updated_input, end_turn, .. } = run;
        let answer = verdict.name();
        let shown = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        self.answers.push(format!("{event} hook `{hook}`: {answer}{shown}"));
        let reason = format!("{event} hook `{hook}`: {reason}");
        match verdict {
            HookVerdict::Deny => self.denied = Some(reason),
            HookVerdict::FailedDenied => {
                self.denied = Some(format!(
                    "{reason}; a hook that fails refuses here, and only the user can repair it or set `on_failure = \
                     \"ignore\"`"
                ));
            }
            HookVerdict::Ask => {
                self.asked = Some(match self.asked.take() {
                    Some(first) => format!("{first}; {reason}"),
                    None => reason,
                });
            }
            HookVerdict::Pass | HookVerdict::FailedIgnored => {}
        }
        self.context.extend(context.map(|text| format!("{event} hook `{hook}`: {text}")));
        self.updated_input = updated_input.or(self.updated_input.take());
        self.end_turn = end_turn.or(self.end_turn.take());
    }
}

/// Returns the call with the input that a hook wants. `None` if it has that input already.
pub(crate) fn changed_input(
    call: &ToolCall,
    effects: &Effects,
    input: &Value,
) -> Result<Option<ToolCall>, String> {
    ToldCall::new(call, effects).with_input(input)
}

/// Returns the failure of a call that a hook has denied, in words that models of this family know.
pub(crate) fn refused_by_hook(call: &ToolCall, effects: &Effects, reason: &str) -> Failure {
    Failure::Refused(match &effects.command {
        Some(command) => format!("Command blocked by {reason}. Command: {}", shell_script(command)),
        None => format!("Call of {} blocked by {reason}", call.name),
    })
}

/// A call as hooks see it: with the names and the input that other agents use.
struct ToldCall<'a> {
    call: &'a ToolCall,
    effects: &'a Effects,
    arguments: Value,
}

impl<'a> ToldCall<'a> {
    fn new(call: &'a ToolCall, effects: &'a Effects) -> Self {
        let arguments = match &call.input {
            Input::Json(text) | Input::Search(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            Input::Text(text) => json!({ "command": text }),
        };
        Self { call, effects, arguments }
    }

    fn is_shell(&self) -> bool {
        SHELL_TOOLS.contains(&self.call.name.as_str())
    }

    /// Returns the names that a matcher may match: ours, and those of other agents.
    fn names(&self) -> Vec<&str> {
        let name = self.call.name.as_str();
        let others: &[&str] = match name {
            _ if self.is_shell() => &[SHELL_NAME],
            "apply_patch" => &["Edit", "Write"],
            "edit_file" => &["Edit"],
            "write_file" => &["Write"],
            "read_file" => &["Read"],
            "grep_files" => &["Grep"],
            "list_dir" => &["LS"],
            "update_plan" => &["TodoWrite"],
            "spawn_agent" => &["Agent", "Task"],
            "web_fetch" => &["WebFetch"],
            _ => &[],
        };
        std::iter::once(name).chain(others.iter().copied()).collect()
    }

    /// Returns the input of the tool, in the form of other agents.
    fn tool_input(&self) -> Value {
        let patch = || self.arguments.get("input").and_then(Value::as_str);
        match (self.call.name.as_str(), &self.effects.command) {
            (_, Some(command)) if self.is_shell() => json!({ "command": shell_script(command) }),
            ("apply_patch", _) => match patch() {
                Some(patch) => json!({ "command": patch }),
                None => self.arguments.clone(),
            },
            _ => self.arguments.clone(),
        }
    }

    /// Returns the fields of an input. Beside those that all agents have, `windlass` has our name
    /// of the tool, its own arguments, and its effects.
    fn fields(&self) -> Map<String, Value> {
        let name = if self.is_shell() { SHELL_NAME } else { self.call.name.as_str() };
        let Effects { reads, writes, .. } = self.effects;
        let fields = json!({
            "tool_name": name,
            "tool_use_id": self.call.id,
            "tool_input": self.tool_input(),
            "windlass": {
                "tool": self.call.name,
                "arguments": self.arguments,
                "reads": reads,
                "writes": writes,
                "may_change": self.effects.may_change(),
            },
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// Returns the call with the input that a hook wants. `None` if it is the input that it has.
    fn with_input(&self, input: &Value) -> Result<Option<ToolCall>, String> {
        if *input == self.tool_input() {
            return Ok(None);
        }
        let Value::Object(fields) = input else { return Err("`updatedInput` is not an object".to_owned()) };
        let command = || match fields.get("command") {
            Some(Value::String(command)) => Ok(command.clone()),
            _ => Err("`updatedInput` has no text `command`".to_owned()),
        };
        let mut arguments = self.arguments.clone();
        let new = match (self.call.name.as_str(), &self.call.input) {
            (_, Input::Text(_)) => Input::Text(command()?),
            (name, _) if self.is_shell() => {
                let command = command()?;
                match name {
                    "exec_command" => arguments["cmd"] = command.into(),
                    "shell" | "local_shell" => arguments["command"] = json!(["bash", "-lc", command]),
                    _ => arguments["command"] = command.into(),
                }
                Input::Json(arguments.to_string())
            }
            ("apply_patch", _) => Input::Json(json!({ "input": command()? }).to_string()),
            (_, Input::Search(_)) => Input::Search(input.to_string()),
            (_, Input::Json(_)) => Input::Json(input.to_string()),
        };
        Ok(Some(ToolCall { input: new, ..self.call.clone() }))
    }
}
