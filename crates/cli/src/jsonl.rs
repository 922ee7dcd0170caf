//! One JSON event per line on stdout, with the names and shapes that existing clients know. Fields
//! of our own are added, none is renamed.

use std::{
    collections::HashMap,
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value, json};
use windlass::{
    CallId, Clean, CommandLine, Effects, Event, EventSink, Facts, FileEdit, Outcome, Plan, PlanStatus,
    Reason, Refusal, Status, Stop, ToolCall, Typed, Usage, mcp::status::ServerStatus,
};

use crate::{allow_hints::AllowHints, output::escape_obeyed};

/// Writes events as lines.
pub(crate) struct JsonlWriter {
    state: Mutex<JsonlState>,
    deltas: bool,
    /// Stopped when the reader is gone.
    stop: Stop,
    hints: Arc<AllowHints>,
}

#[derive(Default)]
struct JsonlState {
    items: u64,
    /// Items of calls that have begun and not ended.
    open: HashMap<CallId, String>,
    /// The files of calls that change some.
    edits: HashMap<CallId, Value>,
    /// The ways to allow refused calls.
    hints: HashMap<CallId, String>,
    /// The changes of the turn.
    diff: Option<String>,
    /// The plan's item and its last contents.
    plan: Option<(String, Value)>,
    /// The turn has ended; nothing follows its last line.
    is_over: bool,
}

impl JsonlState {
    fn next_id(&mut self) -> String {
        let id = format!("item_{}", self.items);
        self.items += 1;
        id
    }
}

impl EventSink for JsonlWriter {
    fn emit(&self, event: &Clean<Event>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = self.lines(&mut state, event);
        state.is_over |= matches!(**event, Event::TurnCompleted { .. } | Event::TurnFailed { .. });
        self.write(&lines);
    }
}

impl JsonlWriter {
    pub(crate) fn new(deltas: bool, stop: Stop, hints: Arc<AllowHints>) -> Self {
        Self { state: Mutex::default(), deltas, stop, hints }
    }

    /// Writes the state of an MCP server, unless the turn has ended.
    pub(crate) fn server_state(&self, status: &ServerStatus) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            self.write(&[line("mcp_server.state", json!(status))]);
        }
    }

    fn write(&self, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{}\n", ordered(line))).collect();
        let mut out = io::stdout().lock();
        if out.write_all(escape_obeyed(&text).as_bytes()).and_then(|()| out.flush()).is_err() {
            self.stop.stop(Reason::Interrupted);
        }
    }

    fn lines(&self, state: &mut JsonlState, event: &Event) -> Vec<Value> {
        let completed = |state: &mut JsonlState, kind: &str, fields: Value| {
            vec![line("item.completed", json!({"item": item(&state.next_id(), kind, fields)}))]
        };
        match event {
            Event::ThreadStarted { thread } => vec![line("thread.started", json!({"thread_id": thread}))],
            Event::TurnStarted => vec![line("turn.started", json!({}))],
            Event::Message { text } => completed(state, "agent_message", json!({"text": text})),
            Event::Reasoning { text } => completed(state, "reasoning", json!({"text": text})),
            Event::WebSearch { query } => completed(state, "web_search", json!({"query": query})),
            Event::Warning { message } => completed(state, "error", json!({"message": message})),
            Event::Retrying { attempt, of, reason, .. } => completed(
                state,
                "error",
                json!({"message": format!("Reconnecting... {attempt}/{of} ({reason})")}),
            ),
            Event::ApprovalAsked { id, tool, reason, outward, beyond } => {
                let fields = json!({"call_id": id, "tool": tool, "reason": reason, "outward": outward, "beyond": beyond});
                vec![line("approval.asked", fields)]
            }
            Event::ApprovalAnswered { id, tool, answer, by, rule, waited } => {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                let fields = json!({
                    "call_id": id, "tool": tool, "answer": answer.name(), "by": by, "rule": rule, "waited_ms": waited_ms,
                });
                vec![line("approval.answered", fields)]
            }
            Event::HookEnded { id, run } => {
                vec![line("hook.ended", json!({"call_id": id, "hook": run}))]
            }
            Event::CallStarted { call, effects } => started(state, call, effects),
            Event::CallEnded { call, effects, outcome } => {
                let reason = outcome.receipt.refusal.as_deref();
                let hint = reason.and_then(|reason| self.hints.hint(effects, reason));
                state.hints.extend(hint.map(|hint| (call.id.clone(), hint)));
                ended(state, call, effects, outcome)
            }
            Event::CompactionStarted { reason, tokens, window } => {
                let fields = json!({"reason": reason, "tokens_before": tokens, "window": window});
                vec![line("compaction.started", fields)]
            }
            Event::CompactionEnded { reason, method, tokens_before, tokens_after, window } => {
                let fields = json!({
                    "reason": reason, "method": method, "tokens_before": tokens_before,
                    "tokens_after": tokens_after, "window": window,
                });
                vec![line("compaction.completed", fields)]
            }
            Event::ContextUsed { tokens, window, usage, parts } => {
                let usage = usage.as_ref().map(cost);
                let fields = json!({"tokens": tokens, "window": window, "usage": usage, "parts": parts});
                vec![line("context.used", fields)]
            }
            Event::PlanUpdated(plan) => vec![planned(state, plan)],
            Event::AgentUpdated { agent, thread, status, activity } => {
                let mut fields = json!({"agent": agent, "thread_id": thread, "status": status});
                if let Some(activity) = activity {
                    fields["activity"] = json!(activity);
                }
                vec![line("agent.updated", fields)]
            }
            Event::EditStarted { id, files } => edit_started(state, id, files),
            Event::TurnDiff { diff } => {
                state.diff = Some(diff.clone());
                Vec::new()
            }
            Event::TextDelta { text } | Event::ReasoningDelta { text } if self.deltas => {
                vec![line("item.delta", json!({"delta": text}))]
            }
            Event::CallOutput { id, text } if self.deltas => {
                vec![line("item.delta", json!({"item_id": state.open.get(id), "delta": text}))]
            }
            Event::InputAwaited { id } => input_awaited(state, id),
            Event::CallProgress { id, progress, total, message } => {
                let fields = json!({"progress": progress, "total": total, "message": message});
                progressed(state, id, &fields)
            }
            Event::TextDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::CallOutput { .. }
            | Event::ColouredOutput { .. }
            | Event::UserMessage { .. }
            | Event::EditEnded { .. } => Vec::new(),
            Event::TurnCompleted { usage, declined, refusals } => {
                let mut fields = json!({"usage": cost(usage), "refusals": with_hints(state, refusals)});
                if *declined {
                    fields["declined"] = json!(true);
                }
                let end = line("turn.completed", with_diff(state, fields));
                plan_done(state).into_iter().chain([end]).collect()
            }
            Event::TurnFailed { message, reason, usage, refusals } => {
                let refusals = with_hints(state, refusals);
                let fields = json!({"error": {"message": message}, "reason": reason, "usage": cost(usage), "refusals": refusals});
                let end = line("turn.failed", with_diff(state, fields));
                plan_done(state).into_iter().chain([end]).collect()
            }
        }
    }
}

fn progressed(state: &JsonlState, id: &CallId, fields: &Value) -> Vec<Value> {
    let known = state.open.get(id);
    let updated = known.map(|id| line("item.progress", json!({"item_id": id, "progress": fields})));
    updated.into_iter().collect()
}

fn line(kind: &str, fields: Value) -> Value {
    tagged(&[("type", kind)], fields)
}

fn item(id: &str, kind: &str, fields: Value) -> Value {
    tagged(&[("id", id), ("type", kind)], fields)
}

fn tagged(tags: &[(&str, &str)], fields: Value) -> Value {
    let mut map: Map<String, Value> =
        tags.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    if let Value::Object(fields) = fields {
        map.extend(fields);
    }
    Value::Object(map)
}

/// Formats an object with its names first, where a person and simple clients look for them.
fn ordered(value: &Value) -> String {
    let Value::Object(map) = value else { return value.to_string() };
    let rank = |key: &str| ["id", "type", "item"].iter().position(|each| *each == key).unwrap_or(usize::MAX);
    let mut members: Vec<_> = map.iter().collect();
    members.sort_by_key(|(key, _)| rank(key));
    let text = |(key, value): (&String, &Value)| format!("{}:{}", json!(key), ordered(value));
    format!("{{{}}}", members.into_iter().map(text).collect::<Vec<_>>().join(","))
}

/// Returns usage under both old and new names.
fn cost(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_input_tokens": usage.cache_write_input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_output_tokens,
    })
}

fn started(state: &mut JsonlState, call: &ToolCall, effects: &Effects) -> Vec<Value> {
    if shown_as_plan(call) || shown_as_edit(call, effects) {
        return Vec::new();
    }
    let id = state.next_id();
    state.open.insert(call.id.clone(), id.clone());
    let (kind, mut fields) = describe(call, effects);
    fields["status"] = json!("in_progress");
    vec![line("item.started", json!({"item": item(&id, kind, fields)}))]
}

/// Reports that the program of a shown call waits for input.
fn input_awaited(state: &JsonlState, call: &CallId) -> Vec<Value> {
    let fields = json!({"status": "in_progress", "waits_for_input": true});
    let updated = |id: &String| line("item.updated", json!({"item": item(id, "command_execution", fields)}));
    state.open.get(call).map(updated).into_iter().collect()
}

fn ended(state: &mut JsonlState, call: &ToolCall, effects: &Effects, outcome: &Outcome) -> Vec<Value> {
    let known = state.open.remove(&call.id);
    if shown_as_plan(call) && outcome.verdict.success {
        return Vec::new();
    }
    let id = known.unwrap_or_else(|| state.next_id());
    let edit = state.edits.remove(&call.id);
    let edit = edit.map(|changes| ("file_change", json!({"changes": changes, "tool": call.name})));
    let (kind, mut fields) = edit.unwrap_or_else(|| describe(call, effects));
    let session = match &outcome.facts {
        Facts::Session(session) if session.report.exit.is_none() => Some(session),
        Facts::None | Facts::Command(_) | Facts::Session(_) | Facts::Remote(_) => None,
    };
    fields["status"] = json!(match outcome.status {
        _ if session.is_some() && kind == "command_execution" => "in_progress",
        _ if outcome.verdict.success => "completed",
        Status::Rejected if outcome.receipt.refusal.is_some() => "declined",
        _ => "failed",
    });
    if kind == "command_execution" {
        fields["aggregated_output"] = json!(outcome.text());
        fields["exit_code"] = json!(outcome.facts.exit().map(windlass::Exit::code));
    } else if kind == "file_change" && outcome.verdict.success {
        // The list of files says everything.
    } else if outcome.verdict.success {
        let content: Vec<_> = outcome.content.iter().map(block).collect();
        fields["result"] = json!({"content": content, "structured_content": outcome.data});
    } else {
        fields["error"] = json!({"message": outcome.text()});
    }
    if matches!(&outcome.facts, Facts::Command(command) if command.waits_for_input) {
        fields["waits_for_input"] = json!(true);
    }
    if let Some(session) = session {
        fields["session_id"] = json!(session.session);
        fields["waits_for_input"] = json!(session.report.waits_for_input);
    }
    fields["outcome"] =
        json!({"status": outcome.status, "verdict": outcome.verdict, "receipt": outcome.receipt});
    if let Some(insight) = &outcome.insight {
        fields["outcome"]["insight"] = json!(insight);
    }
    vec![line("item.completed", json!({"item": item(&id, kind, fields)}))]
}

/// Creates the item of a call that changes files, as soon as the files are known.
fn edit_started(state: &mut JsonlState, call: &CallId, files: &[FileEdit]) -> Vec<Value> {
    let id = state.next_id();
    state.open.insert(call.clone(), id.clone());
    let changes = files.iter().map(|file| {
        let path = file.move_path.as_ref().unwrap_or(&file.path);
        json!({"path": path, "kind": file.kind})
    });
    let changes = Value::Array(changes.collect());
    state.edits.insert(call.clone(), changes.clone());
    let fields = json!({"changes": changes, "status": "in_progress"});
    vec![line("item.started", json!({"item": item(&id, "file_change", fields)}))]
}

/// Returns true if a call is one of ours that changes files, and lists them beforehand.
fn shown_as_edit(call: &ToolCall, effects: &Effects) -> bool {
    const EDITORS: [&str; 4] = ["apply_patch", "applypatch", "edit_file", "write_file"];
    // A shell tool that starts nothing and writes files has found a patch in its command.
    const SHELLS: [&str; 5] = ["shell", "container.exec", "shell_command", "local_shell", "exec_command"];
    let name = call.name.as_str();
    EDITORS.contains(&name)
        || SHELLS.contains(&name) && effects.command.is_none() && !effects.writes.is_empty()
}

/// Returns refusals, each with the way to allow it.
fn with_hints(state: &mut JsonlState, refusals: &[Refusal]) -> Value {
    let refusals = refusals.iter().map(|refusal| {
        let mut fields = json!(refusal);
        if let Some(hint) = state.hints.remove(&refusal.call) {
            fields["hint"] = json!(hint);
        }
        fields
    });
    Value::Array(refusals.collect())
}

fn with_diff(state: &mut JsonlState, mut fields: Value) -> Value {
    if let Some(diff) = state.diff.take() {
        fields["diff"] = json!(diff);
    }
    fields
}

/// Describes a command, or any other tool in the one shape that clients have for it.
fn describe(call: &ToolCall, effects: &Effects) -> (&'static str, Value) {
    let typed = |typed: &Typed| format!("{} {}", call.name, typed.display());
    let command = effects.command.as_ref().map(CommandLine::display);
    if let Some(command) = command.or_else(|| effects.typed.as_ref().map(typed)) {
        let fields =
            json!({"command": command, "aggregated_output": "", "exit_code": null, "tool": call.name});
        return ("command_execution", fields);
    }
    let text = call.input.as_str();
    let arguments = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    // The server and its tool have names of their own; the model's name for the tool joins both.
    let (server, tool) = match &effects.remote {
        Some(remote) => (remote.server.as_str(), remote.tool.as_str()),
        None => ("windlass", call.name.as_str()),
    };
    let fields = json!({
        "server": server, "tool": tool, "arguments": arguments, "result": null, "error": null
    });
    ("mcp_tool_call", fields)
}

/// Returns a content block in the format of MCP, which clients parse here.
fn block(content: &windlass::Content) -> Value {
    match content {
        windlass::Content::Text(text) => json!({"type": "text", "text": text}),
        windlass::Content::Tool(tool) => json!({"type": "tool", "name": tool.name}),
        windlass::Content::Image(url) => {
            match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
                Some((kind, data)) => json!({"type": "image", "mimeType": kind, "data": data}),
                None => json!({"type": "resource_link", "name": "image", "uri": url}),
            }
        }
    }
}

/// Returns true if a call changed the plan: the plan has an item of its own, so the call is not
/// shown twice.
fn shown_as_plan(call: &ToolCall) -> bool {
    call.name.as_str() == "update_plan"
}

fn planned(state: &mut JsonlState, plan: &Plan) -> Value {
    let steps = plan
        .plan
        .iter()
        .map(|step| json!({"text": step.step, "completed": step.status == PlanStatus::Completed}));
    let fields = json!({"items": steps.collect::<Vec<_>>()});
    let (kind, id) = match &state.plan {
        Some((id, _)) => ("item.updated", id.clone()),
        None => ("item.started", state.next_id()),
    };
    let shown = item(&id, "todo_list", fields);
    state.plan = Some((id, shown.clone()));
    line(kind, json!({"item": shown}))
}

fn plan_done(state: &mut JsonlState) -> Option<Value> {
    state.plan.take().map(|(_, shown)| line("item.completed", json!({"item": shown})))
}

#[cfg(test)]
mod tests;
