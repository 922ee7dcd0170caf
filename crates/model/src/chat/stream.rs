//! Decodes the chunks of a chat answer.

use std::collections::{HashSet, VecDeque};

use serde::Deserialize;
use serde_json::{Map, Value, json, value::to_raw_value};
use windlass_contract::{
    CallId, Content, Input, Item, ToolCall, ToolSpec,
    item::{Body, Raw, Role},
    model::{Finish, ModelError, ModelEvent, Usage},
};

use super::messages::{REASONING, REASONING_CONTENT};
use crate::{
    Dialect, WireApi,
    answer::{self, EventValidity},
    calls::{CallIds, UNNAMED_TOOL, is_object, valid_arguments, valid_name},
    dialect::{CallScanner, ScannedPiece},
    failure::ServerFailure,
    freeform,
    json::LenientField,
    sse::ServerSentEvent,
    usage::TokenCounts,
};

const CALL_LEFT_IN_TEXT: &str = "the answer looks like a tool call that the server left in the text, and it was not run; \
    `windlass models probe` tests how this model calls tools and prints the settings it needs";

/// Turns chat chunks into model events.
#[derive(Debug)]
pub(super) struct ChatDecoder {
    ids: CallIds,
    freeform: HashSet<String>,
    reading: TextReading,
    /// Number of calls found in the text.
    text_calls: usize,
    /// Reasoning not yet delivered, and the member it came in.
    reasoning: (&'static str, String),
    /// Text not yet delivered.
    text: String,
    slots: Vec<PartialCall>,
    /// Index of the slot that received the last piece.
    last: usize,
    /// True once a `delta` has arrived.
    streams: bool,
    usage: Option<Usage>,
    finished: bool,
}

/// Interpretation of the answer's text.
#[derive(Debug)]
pub(super) enum TextReading {
    /// The text holds no calls.
    Plain,
    /// The text may hold calls.
    Scanned(CallScanner),
    /// The text holds no calls. A text that consists only of a call of one of these tools causes a
    /// hint.
    Hinted(Vec<ToolSpec>),
}

/// A call under construction.
#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Unknown members of the call and of its function. Some servers put a signature there and
    /// require it back.
    more: Map<String, Value>,
    function_more: Map<String, Value>,
    delivered: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChatChunk {
    choices: LenientField<Vec<ChunkChoice>>,
    usage: LenientField<TokenCounts>,
    error: LenientField<Value>,
    object: LenientField<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChunkChoice {
    delta: LenientField<ChoiceDelta>,
    message: LenientField<ChoiceDelta>,
    finish_reason: LenientField<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChoiceDelta {
    content: LenientField<Value>,
    refusal: LenientField<Value>,
    reasoning: LenientField<Value>,
    reasoning_content: LenientField<Value>,
    tool_calls: LenientField<Vec<Map<String, Value>>>,
}

impl answer::EventDecoder for ChatDecoder {
    fn take(
        &mut self,
        event: &ServerSentEvent,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<EventValidity, ModelError> {
        if matches!(event.data.trim(), "[DONE]" | "DONE") {
            self.complete(out);
            return Ok(EventValidity::Valid);
        }
        let chunk = match serde_json::from_str::<ChatChunk>(&event.data) {
            Ok(chunk) => chunk,
            Err(error) => return EventValidity::from_non_json(&event.data, &error),
        };
        if chunk.error.0.is_some() || chunk.object.0.as_deref() == Some("error") || event.name == "error" {
            return Err(ServerFailure::error_in_event(&event.data));
        }
        let validity = chunk.validity();
        self.usage = chunk.usage.0.map(Usage::from).or(self.usage);
        match chunk.choices.0.and_then(|choices| choices.into_iter().next()) {
            Some(choice) if !self.finished => self.choice(choice, out)?,
            _ => {}
        }
        Ok(validity)
    }

    fn end(&mut self, how: Result<(), ModelError>, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        if self.finished {
            self.complete(out);
            return Ok(());
        }
        if let Err(ModelError::Unending { .. }) = how {
            self.keep_messages(out);
        }
        how.and(Err(ModelError::StreamBroken { cause: "stream closed before finish_reason".to_owned() }))
    }
}

impl ChatChunk {
    /// Returns whether this has the form of a chunk: non-empty choices, or token usage.
    fn validity(&self) -> EventValidity {
        let is_text =
            |value: &LenientField<Value>| !matches!(value.0, Some(Value::Bool(_) | Value::Number(_)));
        let known = |choice: &ChunkChoice| match choice.delta.0.as_ref().or(choice.message.0.as_ref()) {
            Some(delta) => is_text(&delta.content),
            None => choice.finish_reason.0.is_some(),
        };
        match &self.choices.0 {
            Some(choices) if choices.iter().all(known) => EventValidity::Valid,
            None if self.usage.0.is_some() => EventValidity::Valid,
            _ => EventValidity::Malformed,
        }
    }
}

impl ChatDecoder {
    pub(super) fn new(ids: CallIds, freeform: HashSet<String>, reading: TextReading) -> Self {
        Self {
            ids,
            freeform,
            reading,
            text_calls: 0,
            reasoning: (REASONING, String::new()),
            text: String::new(),
            slots: Vec::new(),
            last: 0,
            streams: false,
            usage: None,
            finished: false,
        }
    }

    fn choice(&mut self, choice: ChunkChoice, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        // A complete message instead of deltas, from servers that do not stream. After deltas it
        // repeats them.
        let message = choice.message.0.filter(|_| !self.streams);
        self.streams |= choice.delta.0.is_some();
        let delta = choice.delta.0.or(message).unwrap_or_default();
        let thought = |field, value: Option<Value>| (field, text_of(value.as_ref()));
        let thoughts =
            [thought(REASONING_CONTENT, delta.reasoning_content.0), thought(REASONING, delta.reasoning.0)];
        if let Some((field, thought)) = thoughts.into_iter().find(|(_, thought)| !thought.is_empty()) {
            self.flush_text(out);
            self.reasoning.0 = field;
            self.reasoning.1.push_str(&thought);
            out.push_back(ModelEvent::ReasoningDelta(thought));
        }
        let text = text_of(delta.content.0.as_ref()) + &text_of(delta.refusal.0.as_ref());
        match &mut self.reading {
            _ if text.is_empty() => {}
            TextReading::Plain | TextReading::Hinted(_) => self.push_text(text, out),
            TextReading::Scanned(scanner) => {
                let pieces = scanner.feed(&text);
                if pieces.is_empty() {
                    // Held back, because it may become a call.
                    out.push_back(ModelEvent::CallDelta(text));
                }
                self.push_pieces(pieces, out);
            }
        }
        for entry in delta.tool_calls.0.unwrap_or_default() {
            self.finish_text(out);
            self.flush_reasoning(out);
            self.flush_text(out);
            self.add(entry, out);
        }
        match choice.finish_reason.0.as_deref() {
            None | Some("") => Ok(()),
            Some(reason @ ("length" | "content_filter")) => {
                self.keep_messages(out);
                Err(ModelError::Cut { reason: reason.to_owned() })
            }
            Some("error") => {
                Err(ModelError::Failed { message: "no reason given".to_owned(), retry_after: None })
            }
            Some(_) => {
                self.finish(out);
                Ok(())
            }
        }
    }

    /// Delivers reasoning and text that came before a limit. A call that may be incomplete is
    /// dropped.
    fn keep_messages(&mut self, out: &mut VecDeque<ModelEvent>) {
        self.flush_reasoning(out);
        self.flush_text(out);
    }

    fn push_text(&mut self, text: String, out: &mut VecDeque<ModelEvent>) {
        self.flush_reasoning(out);
        self.text.push_str(&text);
        out.push_back(ModelEvent::TextDelta(text));
    }

    /// Delivers the pieces that the scanner found.
    fn push_pieces(&mut self, pieces: Vec<ScannedPiece>, out: &mut VecDeque<ModelEvent>) {
        for piece in pieces {
            match piece {
                ScannedPiece::Text(text) => self.push_text(text, out),
                ScannedPiece::Call(found) => {
                    self.flush_reasoning(out);
                    self.flush_text(out);
                    let id = self.ids.claim(&format!("text-call-{}", self.text_calls));
                    self.text_calls += 1;
                    self.call(id, &found.name, &found.arguments, None, out);
                }
            }
        }
    }

    /// Ends the text and delivers what was held back.
    fn finish_text(&mut self, out: &mut VecDeque<ModelEvent>) {
        if let TextReading::Scanned(scanner) = &mut self.reading {
            let pieces = scanner.finish();
            self.push_pieces(pieces, out);
        }
    }

    /// Returns true if the server seems to have left a call in the text.
    fn has_call_left_in_text(&self) -> bool {
        let is_only_text = self.text_calls == 0 && self.slots.is_empty();
        is_only_text
            && match &self.reading {
                TextReading::Plain => false,
                TextReading::Scanned(scanner) => scanner.has_rejected_call(),
                TextReading::Hinted(tools) => !Dialect::Json.calls_in(&self.text, tools).is_empty(),
            }
    }

    /// Adds a piece of a call to its slot.
    fn add(&mut self, mut entry: Map<String, Value>, out: &mut VecDeque<ModelEvent>) {
        let mut function = match entry.remove("function") {
            Some(Value::Object(function)) => function,
            _ => Map::new(),
        };
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => text,
            None | Some(Value::Null) => String::new(),
            // Some servers send an object where a string belongs; its JSON text is the string.
            Some(other) => other.to_string(),
        };
        let (name, arguments) = (text(function.remove("name")), text(function.remove("arguments")));
        let (index, id) = (entry.remove("index").and_then(|index| index.as_u64()), text(entry.remove("id")));
        entry.remove("type");
        self.last = match self.position(index, &id, &name, &arguments) {
            Some(at) => at,
            None => self.begin(index, out),
        };
        let slot = &mut self.slots[self.last];
        take_once(&mut slot.id, id);
        take_once(&mut slot.name, name);
        slot.arguments.push_str(&arguments);
        if !arguments.is_empty() {
            out.push_back(ModelEvent::CallDelta(arguments));
        }
        slot.more.extend(entry);
        slot.function_more.extend(function);
    }

    /// Returns the slot of a piece: by its index, else by its id, else the last one.
    fn position(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let is_same = |slot: &PartialCall| id.is_empty() || slot.id.is_empty() || slot.id == id;
        match index {
            // Some servers number every call 0 and tell them apart by id.
            Some(_) => {
                self.slots.iter().rposition(|slot| slot.index == index).filter(|at| is_same(&self.slots[*at]))
            }
            None if !id.is_empty() => self.slots.iter().rposition(|slot| slot.id == id),
            // A second call without index or id: the first is complete, and a name comes again.
            None => {
                let begins = !name.is_empty() && !arguments.is_empty();
                self.slots.get(self.last).filter(|slot| !(begins && slot.is_complete())).map(|_| self.last)
            }
        }
    }

    /// Opens a slot. Complete calls before it are delivered, because they cannot change any more.
    fn begin(&mut self, index: Option<u64>, out: &mut VecDeque<ModelEvent>) -> usize {
        for at in 0..self.slots.len() {
            if !self.slots[at].delivered && !self.slots[at].is_complete() {
                break;
            }
            self.deliver(at, out);
        }
        self.slots.push(PartialCall { index, ..PartialCall::default() });
        self.slots.len() - 1
    }

    fn deliver(&mut self, at: usize, out: &mut VecDeque<ModelEvent>) {
        let slot = &mut self.slots[at];
        if slot.delivered || slot.name.is_empty() {
            return;
        }
        slot.delivered = true;
        let given = match slot.id.as_str() {
            "" => format!("tool-call-{}", slot.index.unwrap_or(at as u64)),
            id => id.to_owned(),
        };
        let id = self.ids.claim(&given);
        let raw = slot.raw(id.as_str());
        let (name, arguments) = (slot.name.clone(), slot.arguments.clone());
        self.call(id, &name, &arguments, raw, out);
    }

    fn call(
        &self,
        id: CallId,
        name: &str,
        arguments: &str,
        raw: Option<Raw>,
        out: &mut VecDeque<ModelEvent>,
    ) {
        let input = if self.freeform.contains(name) {
            Input::Text(freeform::text(arguments))
        } else {
            Input::Json(arguments.to_owned())
        };
        let call = ToolCall { id, name: name.into(), input };
        out.push_back(ModelEvent::Item(Item { body: Body::Call(call), raw }));
    }

    fn finish(&mut self, out: &mut VecDeque<ModelEvent>) {
        self.finished = true;
        self.finish_text(out);
        if self.has_call_left_in_text() {
            out.push_back(ModelEvent::Notice(CALL_LEFT_IN_TEXT.to_owned()));
        }
        self.flush_reasoning(out);
        self.flush_text(out);
        for slot in self.slots.iter_mut().filter(|slot| slot.name.is_empty() && !slot.arguments.is_empty()) {
            // The router then answers with the list of tools instead of the call being lost.
            UNNAMED_TOOL.clone_into(&mut slot.name);
        }
        for at in 0..self.slots.len() {
            self.deliver(at, out);
        }
    }

    fn complete(&mut self, out: &mut VecDeque<ModelEvent>) {
        if !self.finished {
            self.finish(out);
        }
        out.push_back(ModelEvent::Completed { usage: self.usage, finish: Finish::Done });
    }

    fn flush_reasoning(&mut self, out: &mut VecDeque<ModelEvent>) {
        let (field, text) = (self.reasoning.0, std::mem::take(&mut self.reasoning.1));
        if !text.trim().is_empty() {
            let raw = raw(&json!({field: text}));
            let body = Body::Reasoning { summary: vec![], text: vec![text] };
            out.push_back(ModelEvent::Item(Item { body, raw }));
        }
    }

    fn flush_text(&mut self, out: &mut VecDeque<ModelEvent>) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            let body = Body::Message { role: Role::Assistant, content: vec![Content::Text(text)] };
            out.push_back(ModelEvent::Item(body.into()));
        }
    }
}

impl PartialCall {
    /// Returns true if the arguments are a complete object, to which nothing can be added.
    fn is_complete(&self) -> bool {
        is_object(&self.arguments)
    }

    /// Returns the call as the server wrote it, if it has members that this crate does not know.
    fn raw(&self, id: &str) -> Option<Raw> {
        if self.more.is_empty() && self.function_more.is_empty() {
            return None;
        }
        let mut function = self.function_more.clone();
        function.insert("name".to_owned(), valid_name(&self.name).into());
        function.insert("arguments".to_owned(), valid_arguments(&self.arguments).into());
        let mut call = self.more.clone();
        call.insert("id".to_owned(), id.into());
        call.insert("type".to_owned(), "function".into());
        call.insert("function".to_owned(), function.into());
        raw(&Value::Object(call))
    }
}

fn raw(json: &Value) -> Option<Raw> {
    Some(Raw { wire: WireApi::Chat.name().into(), json: to_raw_value(json).ok()? })
}

fn take_once(to: &mut String, text: String) {
    if to.is_empty() {
        *to = text;
    }
}

/// Returns the text of a value that should be a string. It may be a list of parts with `text`, or
/// an object with `text` or `content`.
fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(|part| text_of(Some(part))).collect(),
        Some(Value::Object(map)) => text_of(map.get("text").or(map.get("content"))),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
