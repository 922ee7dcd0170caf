//! The transcript of a session: messages, calls with their results, and diffs. Without secrets.

use std::{
    collections::{HashMap, VecDeque},
    ops::ControlFlow,
};

use serde_json::{Value, json};
use windlass::{
    Body, CallId, Content, Role, ThreadId, ToolCall,
    clean::Secrets,
    is_of_program,
    record::{self, Call, CallFilter, Calls, Edit, Edits, SessionEntry},
};

use super::{failed, title};
use crate::{
    audit::cleaned, calls, history::gist, ids, problem::CliProblem, setup::ProgramSetup, undo::change_diff,
};

/// Maximum size of the diff of one call.
const MAX_DIFF_BYTES: usize = 64 * 1024;

/// A session in a form for people.
pub(super) struct SessionTranscript {
    pub(super) entry: SessionEntry,
    pub(super) title: String,
    pub(super) model: String,
    pub(super) parts: Vec<TranscriptPart>,
}

/// A step of a session.
pub(super) enum TranscriptPart {
    Prompt(String),
    Answer(String),
    Call(Box<TranscriptCall>),
}

/// A call with everything about it that a reader may want.
#[derive(Default)]
pub(super) struct TranscriptCall {
    pub(super) tool: String,
    /// The arguments in words.
    pub(super) gist: String,
    pub(super) input: String,
    /// The row of the index; none if the index does not know the call.
    pub(super) row: Option<Call>,
    /// The reason why it was allowed; empty if it did not run.
    pub(super) decision: String,
    pub(super) output: String,
    pub(super) diff: String,
}

impl SessionTranscript {
    /// Reads a session with its calls and edits.
    pub(super) fn load(setup: &ProgramSetup, entry: SessionEntry) -> Result<Self, CliProblem> {
        let session = record::load(&entry.path).map_err(|error| failed(&error))?;
        let summary = record::summarize(&entry.path).map_err(|error| failed(&error))?;
        let secrets = setup.secrets();
        let title = title(&ids::names(setup)?, &entry, Some(&summary), &secrets);
        let context = session.context.as_ref();
        let model = context.map(|context| format!("{} ({})", context.model, context.provider));
        let mut reader = CallReader::open(setup, &entry.id, &secrets)?;
        let mut parts: Vec<TranscriptPart> = Vec::new();
        let mut open: HashMap<CallId, usize> = HashMap::new();
        for item in session.transcript() {
            match &item.body {
                Body::Message { role: Role::User, content } => {
                    let text = Content::join(content);
                    if !is_of_program(&text) {
                        parts.push(TranscriptPart::Prompt(secrets.clean(&text).into_owned()));
                    }
                }
                Body::Message { role: Role::Assistant, content } => {
                    parts.push(TranscriptPart::Answer(secrets.clean(&Content::join(content)).into_owned()));
                }
                Body::Call(call) => {
                    open.insert(call.id.clone(), parts.len());
                    parts.push(TranscriptPart::Call(Box::new(reader.read(call))));
                }
                Body::Output { call, content, .. } => {
                    let asked = open.remove(call).and_then(|at| parts.get_mut(at));
                    if let Some(TranscriptPart::Call(call)) = asked {
                        call.output = secrets.clean(&Content::join(content)).into_owned();
                    }
                }
                Body::Message { .. } | Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {}
            }
        }
        Ok(Self { entry, title, model: model.unwrap_or_default(), parts })
    }

    /// Returns the transcript for programs.
    pub(super) fn as_json(&self, secrets: &Secrets) -> Value {
        let parts: Vec<_> = self
            .parts
            .iter()
            .map(|part| match part {
                TranscriptPart::Prompt(text) => json!({"type": "prompt", "text": text}),
                TranscriptPart::Answer(text) => json!({"type": "answer", "text": text}),
                TranscriptPart::Call(call) => cleaned(call.as_json(), secrets),
            })
            .collect();
        json!({
            "session": self.entry.id,
            "title": self.title,
            "started": self.entry.started.to_string(),
            "cwd": self.entry.cwd,
            "model": self.model,
            "parts": parts,
        })
    }
}

impl TranscriptCall {
    fn as_json(&self) -> Value {
        let row = self.row.as_ref();
        json!({
            "type": "call",
            "call": row.map(|row| &row.handle),
            "id": row.map(|row| &row.id),
            "tool": self.tool,
            "input": self.input,
            "time": row.map(|row| row.time.to_string()),
            "decision": self.decision,
            "confined_by": row.map(|row| &row.held),
            "status": row.and_then(|row| row.status.as_deref()),
            "error": row.and_then(|row| row.class.as_deref()),
            "verdict": row.and_then(|row| row.verdict.as_ref()),
            "duration_ms": row.map(|row| u64::try_from(row.duration.as_millis()).unwrap_or(u64::MAX)),
            "feedback": row.and_then(|row| row.feedback),
            "output": self.output,
            "diff": self.diff,
        })
    }

    /// Describes the result in a few words: status, kind of failure, duration.
    pub(super) fn result(&self) -> String {
        let Some(row) = &self.row else { return "not in the index of calls".to_owned() };
        let Some(status) = &row.status else { return "its end was not recorded".to_owned() };
        let status = row.class.as_deref().filter(|_| status == "error").unwrap_or(status).replace('_', " ");
        let rating = row.feedback.map(|rating| format!(", rated {}", rating.as_str())).unwrap_or_default();
        format!("{status} after {}{rating}", calls::brief(row.duration))
    }

    /// Returns the reasons of the verdict.
    pub(super) fn reasons(&self) -> String {
        let verdict = self.row.as_ref().and_then(|row| row.verdict.as_ref());
        let reasons = verdict.and_then(|verdict| verdict["reasons"].as_array()).into_iter().flatten();
        reasons.filter_map(Value::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// Looks up the calls of a session in the index and the edit log.
struct CallReader<'a> {
    index: Calls,
    /// By the id from the model, in the order of the session.
    rows: HashMap<CallId, VecDeque<Call>>,
    edits: Edits,
    list: Vec<Edit>,
    secrets: &'a Secrets,
}

impl<'a> CallReader<'a> {
    fn open(setup: &ProgramSetup, id: &ThreadId, secrets: &'a Secrets) -> Result<Self, CliProblem> {
        let index = calls::open(setup)?;
        let mut rows: HashMap<CallId, VecDeque<Call>> = HashMap::new();
        let wanted = CallFilter { session: Some(id.clone()), ..CallFilter::default() };
        let take = |call: Call| {
            rows.entry(call.id.clone()).or_default().push_front(call);
            ControlFlow::Continue(())
        };
        index.for_each_call(&wanted, take).map_err(|error| calls::problem(&error))?;
        let edits = Edits::of_session(&setup.home, id).map_err(|error| failed(&error))?;
        let list = edits.list().map_err(|error| failed(&error))?;
        Ok(Self { index, rows, edits, list, secrets })
    }

    fn read(&mut self, call: &ToolCall) -> TranscriptCall {
        let clean = |text: &str| self.secrets.clean(text).into_owned();
        let (tool, input) = (clean(call.name.as_str()), clean(call.input.as_str()));
        let queue = self.rows.get_mut(&call.id);
        let Some(row) = queue.and_then(VecDeque::pop_front) else {
            return TranscriptCall {
                tool,
                gist: calls::one_line(&input),
                input,
                ..TranscriptCall::default()
            };
        };
        let next = self.rows.get(&call.id).and_then(VecDeque::front).map(|next| next.time);
        let is_of_call = |edit: &&Edit| {
            edit.call == call.id && edit.time >= row.time && next.is_none_or(|next| edit.time < next)
        };
        let mut diff = String::new();
        for file in self.list.iter().filter(is_of_call).flat_map(|edit| &edit.files) {
            if diff.len() > MAX_DIFF_BYTES {
                diff.push_str("(the rest of the diff is left out)\n");
                break;
            }
            diff.push_str(&change_diff(&self.edits, file));
        }
        let recorded = self.index.read_record(&row).ok();
        let gist = recorded.as_ref().map(|recorded| gist(recorded, &row.cwd, self.secrets));
        let gist = gist.unwrap_or_else(|| calls::one_line(&input));
        let decision = clean(&row.decision);
        let diff = clean(&diff);
        TranscriptCall { tool, gist, input, row: Some(row), decision, output: String::new(), diff }
    }
}
