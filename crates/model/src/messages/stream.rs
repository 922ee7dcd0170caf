//! Decodes the events of an answer.

use std::collections::{HashSet, VecDeque};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use windlass_contract::{
    Content, Input, Item, ToolCall,
    item::{Body, Raw, Role},
    model::{Finish, ModelError, ModelEvent},
};

use crate::{
    WireApi,
    answer::{EventDecoder, EventValidity},
    calls::{CallIds, UNNAMED_TOOL, is_object},
    failure::{ServerFailure, one_line},
    freeform,
    json::{LenientField, to_text},
    sse::ServerSentEvent,
};
use counts::AnswerUsage;

mod counts;

/// Turns events of the Messages API into model events.
#[derive(Debug)]
pub(super) struct MessagesDecoder {
    ids: CallIds,
    freeform: HashSet<String>,
    /// Blocks that have begun and not ended, in the order of their index.
    open: Vec<OpenBlock>,
    /// A call that may have been cut off. The reason why the answer stopped decides.
    held: Option<OpenBlock>,
    counter: AnswerUsage,
    stop: Option<StopNotice>,
}

/// A block under construction.
#[derive(Debug, Default)]
struct OpenBlock {
    index: u64,
    /// The members that the block began with.
    start: Map<String, Value>,
    text: String,
    input_json: String,
    signature: Option<String>,
}

/// An event. Each kind has some of the members.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessagesEvent {
    r#type: LenientField<String>,
    index: LenientField<u64>,
    message: LenientField<MessageStart>,
    content_block: LenientField<Map<String, Value>>,
    delta: LenientField<EventDelta>,
    usage: LenientField<counts::WireCounts>,
    error: LenientField<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageStart {
    usage: LenientField<counts::WireCounts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EventDelta {
    r#type: LenientField<String>,
    text: LenientField<String>,
    thinking: LenientField<String>,
    signature: LenientField<String>,
    partial_json: LenientField<String>,
    stop_reason: LenientField<String>,
    stop_details: LenientField<StopDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StopDetails {
    explanation: LenientField<String>,
}

#[derive(Debug)]
struct StopNotice {
    reason: String,
    explanation: Option<String>,
}

impl EventDecoder for MessagesDecoder {
    fn take(
        &mut self,
        event: &ServerSentEvent,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<EventValidity, ModelError> {
        let parsed = match serde_json::from_str::<MessagesEvent>(&event.data) {
            Ok(parsed) => parsed,
            Err(error) => return EventValidity::from_non_json(&event.data, &error),
        };
        let kind = parsed.r#type.0.unwrap_or_else(|| event.name.clone());
        if kind == "error" || parsed.error.0.is_some() {
            return Err(ServerFailure::error_in_event(&event.data));
        }
        let index = parsed.index.0.unwrap_or(0);
        match (kind.as_str(), parsed.content_block.0, parsed.delta.0) {
            ("message_start", ..) => {
                let Some(message) = parsed.message.0 else { return Ok(EventValidity::Malformed) };
                self.counter.update(message.usage.0);
            }
            ("content_block_start", Some(block), _) => self.begin(index, block, out),
            ("content_block_delta", _, Some(delta)) => return Ok(self.extend(index, delta, out)),
            ("content_block_stop", ..) => {
                if let Some(at) = self.open.iter().position(|block| block.index == index) {
                    let block = self.open.remove(at);
                    self.close(block, out);
                }
            }
            ("message_delta", _, delta) => {
                self.counter.update(parsed.usage.0);
                self.stop = delta.and_then(EventDelta::into_stop).or(self.stop.take());
            }
            ("message_stop", ..) => self.finish(out)?,
            ("" | "content_block_start" | "content_block_delta", ..) => return Ok(EventValidity::Malformed),
            // `ping`, and kinds that a later version of the API adds.
            _ => {}
        }
        Ok(EventValidity::Valid)
    }

    fn end(&mut self, how: Result<(), ModelError>, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        if self.stop.is_some() {
            return self.finish(out);
        }
        if let Err(ModelError::Unending { .. }) = how {
            self.keep_messages(out);
        }
        how.and(Err(ModelError::StreamBroken { cause: "stream closed before message_stop".to_owned() }))
    }
}

impl EventDelta {
    fn into_stop(self) -> Option<StopNotice> {
        let explanation = self.stop_details.0.and_then(|details| details.explanation.0);
        self.stop_reason.0.map(|reason| StopNotice { reason, explanation })
    }
}

impl MessagesDecoder {
    pub(super) fn new(ids: CallIds, freeform: HashSet<String>) -> Self {
        Self { ids, freeform, open: Vec::new(), held: None, counter: AnswerUsage::default(), stop: None }
    }

    fn begin(&mut self, index: u64, start: Map<String, Value>, out: &mut VecDeque<ModelEvent>) {
        // Another block follows, so the call before it is complete.
        self.release_held(out);
        if let Some(at) = self.open.iter().position(|block| block.index == index) {
            let earlier = self.open.remove(at);
            self.close(earlier, out);
            self.release_held(out);
        }
        let mut block = OpenBlock { index, start, ..OpenBlock::default() };
        if matches!(block.kind(), "text" | "thinking") {
            let mut text = |name| match block.start.remove(name) {
                Some(Value::String(text)) => text,
                _ => String::new(),
            };
            block.text = text("text") + &text("thinking");
            block.signature = Some(text("signature")).filter(|signature| !signature.is_empty());
        }
        if !block.text.is_empty() {
            out.push_back(block.delta(block.text.clone()));
        }
        self.open.push(block);
    }

    fn extend(&mut self, index: u64, delta: EventDelta, out: &mut VecDeque<ModelEvent>) -> EventValidity {
        let text = delta.text.0.or(delta.thinking.0);
        let Some(at) = self.position(index, delta.r#type.0.as_deref()) else {
            return EventValidity::Malformed;
        };
        let block = &mut self.open[at];
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            block.text.push_str(&text);
            out.push_back(block.delta(text));
        }
        if let Some(piece) = delta.partial_json.0.filter(|piece| !piece.is_empty()) {
            block.input_json.push_str(&piece);
            if block.kind() == "tool_use" {
                out.push_back(ModelEvent::CallDelta(piece));
            }
        }
        if let Some(piece) = delta.signature.0 {
            block.signature.get_or_insert_default().push_str(&piece);
        }
        EventValidity::Valid
    }

    /// Returns the block of a delta. Text and thoughts need no beginning; a call without one has no
    /// name.
    fn position(&mut self, index: u64, delta: Option<&str>) -> Option<usize> {
        let known = self.open.iter().position(|block| block.index == index);
        let kind = match delta {
            Some("text_delta") => "text",
            Some("thinking_delta") => "thinking",
            _ => return known,
        };
        known.or_else(|| {
            let start = Map::from_iter([("type".to_owned(), kind.into())]);
            self.open.push(OpenBlock { index, start, ..OpenBlock::default() });
            Some(self.open.len() - 1)
        })
    }

    fn close(&mut self, block: OpenBlock, out: &mut VecDeque<ModelEvent>) {
        match block.kind() {
            "tool_use" if is_object(block.input().as_str()) && !block.input_json.is_empty() => {
                self.release_held(out);
                self.deliver_call(&block, out);
            }
            "tool_use" => {
                self.release_held(out);
                self.held = Some(block);
            }
            _ => out.extend(block.into_item().map(ModelEvent::Item)),
        }
    }

    fn release_held(&mut self, out: &mut VecDeque<ModelEvent>) {
        if let Some(block) = self.held.take() {
            self.deliver_call(&block, out);
        }
    }

    fn deliver_call(&mut self, block: &OpenBlock, out: &mut VecDeque<ModelEvent>) {
        let text = |name| block.start.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (id, name) = (text("id").unwrap_or_default(), text("name").unwrap_or(UNNAMED_TOOL));
        let input = block.input();
        let input = if self.freeform.contains(name) {
            Input::Text(freeform::text(&input))
        } else {
            Input::Json(input)
        };
        let call = ToolCall { id: self.ids.claim(id), name: name.into(), input };
        out.push_back(ModelEvent::Item(Body::Call(call).into()));
    }

    /// Closes what is open. A call that a limit may have cut is dropped.
    fn keep_messages(&mut self, out: &mut VecDeque<ModelEvent>) {
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|block| block.index);
        for block in open {
            self.close(block, out);
        }
        self.held = None;
    }

    fn finish(&mut self, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let stop = self.stop.take();
        let reason = stop.as_ref().map_or("", |stop| stop.reason.as_str());
        if matches!(reason, "max_tokens" | "model_context_window_exceeded") {
            self.keep_messages(out);
            return Err(ModelError::Cut { reason: reason.to_owned() });
        }
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|block| block.index);
        for block in open {
            self.close(block, out);
        }
        let finish = match reason {
            // A call that the server stopped in is not what the model wanted to run.
            "refusal" => {
                self.held = None;
                Finish::Declined
            }
            "pause_turn" => Finish::More,
            _ => Finish::Done,
        };
        self.release_held(out);
        if let Some(why) = stop.and_then(|stop| stop.explanation).filter(|why| !why.trim().is_empty()) {
            out.push_back(ModelEvent::Notice(format!("the model declined: {}", one_line(&why))));
        }
        out.push_back(ModelEvent::Completed { usage: self.counter.usage(), finish });
        Ok(())
    }
}

impl OpenBlock {
    fn kind(&self) -> &str {
        self.start.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the event for a piece of the block's text.
    fn delta(&self, text: String) -> ModelEvent {
        if self.kind() == "thinking" { ModelEvent::ReasoningDelta(text) } else { ModelEvent::TextDelta(text) }
    }

    /// Returns the input of a call: the pieces as they came, or the input that it began with.
    fn input(&self) -> String {
        if !self.input_json.is_empty() {
            return self.input_json.clone();
        }
        self.start.get("input").filter(|input| !input.is_null()).map_or_else(String::new, Value::to_string)
    }

    /// Returns the item of a block that is no call. Returns `None` for blank text.
    fn into_item(mut self) -> Option<Item> {
        match self.kind() {
            "text" if self.text.trim().is_empty() => None,
            "text" => {
                let content = vec![Content::Text(self.text)];
                Some(Body::Message { role: Role::Assistant, content }.into())
            }
            "thinking" => {
                let signature = self.signature.take();
                if signature.is_none() && self.text.trim().is_empty() {
                    return None;
                }
                let text = if self.text.trim().is_empty() { vec![] } else { vec![self.text.clone()] };
                let body = Body::Reasoning { summary: vec![], text };
                // Thoughts without a signature are refused, so they are only shown.
                let raw = signature.and_then(|signature| {
                    self.start.insert("thinking".to_owned(), self.text.into());
                    self.start.insert("signature".to_owned(), signature.into());
                    own_raw(&Value::Object(self.start))
                });
                Some(Item { body, raw })
            }
            _ => {
                let input = serde_json::from_str(&self.input_json).ok();
                if let Some(input @ Value::Object(_)) = input {
                    self.start.insert("input".to_owned(), input);
                }
                let raw = own_raw(&Value::Object(self.start));
                Some(Item { body: Body::Other, raw })
            }
        }
    }
}

fn own_raw(block: &Value) -> Option<Raw> {
    let json = RawValue::from_string(to_text(block)).ok()?;
    Some(Raw { wire: WireApi::Messages.name().into(), json })
}

#[cfg(test)]
mod tests;
