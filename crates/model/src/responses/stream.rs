//! Decodes the events of the Responses API.
//!
//! Items are identified by their ids. All ordering information is optional, because real servers
//! leave it out: `output_index`, `sequence_number`, the `done` events, even `response.output`.

use std::{collections::VecDeque, mem};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json, value::RawValue};
use windlass_contract::{
    Input,
    item::Body,
    model::{Finish, ModelError, ModelEvent, Usage},
};

use super::wire::{self, ItemHeader, ReceivedItem};
use crate::{
    answer::{self, EventValidity},
    calls::CallIds,
    failure::ServerFailure,
    json::LenientField,
    sse::ServerSentEvent,
    usage::TokenCounts,
};

/// Turns events of the Responses API into model events.
#[derive(Debug)]
pub(super) struct ResponsesDecoder {
    ids: CallIds,
    /// Requested `max_output_tokens`.
    limit_tokens: Option<u64>,
    /// Items that have begun and are not delivered yet, in order.
    open: Vec<OpenItem>,
    delivered: Vec<ReceivedItem>,
    /// A call that is marked done but is incomplete, and all items after it, to keep their order.
    /// Only the end of the answer decides about them.
    held_back: Vec<ReceivedItem>,
    /// True once a malformed item was reported.
    has_reported_malformed: bool,
}

/// An item that has begun.
#[derive(Debug)]
struct OpenItem {
    kind: String,
    id: String,
    index: Option<u64>,
    /// The item as it was when it began.
    json: Box<RawValue>,
    /// Deltas since then: the text of a message, the arguments of a call.
    text: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EventEnvelope {
    #[serde(rename = "type")]
    kind: LenientField<String>,
    item: LenientField<Box<RawValue>>,
    item_id: LenientField<String>,
    output_index: LenientField<u64>,
    summary_index: LenientField<u64>,
    delta: LenientField<String>,
    arguments: LenientField<String>,
    input: LenientField<String>,
    response: LenientField<ResponseObject>,
    error: LenientField<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseObject {
    status: LenientField<String>,
    output: LenientField<Vec<Box<RawValue>>>,
    usage: LenientField<TokenCounts>,
    incomplete_details: LenientField<IncompleteDetails>,
    error: LenientField<Value>,
    end_turn: LenientField<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IncompleteDetails {
    reason: LenientField<String>,
}

impl answer::EventDecoder for ResponsesDecoder {
    fn take(
        &mut self,
        event: &ServerSentEvent,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<EventValidity, ModelError> {
        let mut envelope = match serde_json::from_str::<EventEnvelope>(&event.data) {
            Ok(envelope) => envelope,
            Err(error) => return EventValidity::from_non_json(&event.data, &error),
        };
        let kind = envelope.kind.0.take().unwrap_or_else(|| event.name.clone());
        let validity = envelope.validity(&kind);
        match kind.as_str() {
            "response.output_item.added" => self.begin(envelope),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.text("message", envelope, out, ModelEvent::TextDelta);
            }
            "response.reasoning_text.delta" => {
                self.text("reasoning", envelope, out, ModelEvent::ReasoningDelta);
            }
            "response.reasoning_summary_text.delta" => {
                out.extend(envelope.delta.0.map(ModelEvent::ReasoningDelta));
            }
            "response.reasoning_summary_part.added" if envelope.summary_index.0.unwrap_or(0) > 0 => {
                out.push_back(ModelEvent::ReasoningDelta("\n\n".to_owned()));
            }
            "response.function_call_arguments.delta" => {
                self.text("function_call", envelope, out, ModelEvent::CallDelta);
            }
            "response.custom_tool_call_input.delta" => {
                self.text("custom_tool_call", envelope, out, ModelEvent::CallDelta);
            }
            "response.function_call_arguments.done" => self.replace("function_call", &envelope),
            "response.custom_tool_call_input.done" => self.replace("custom_tool_call", &envelope),
            "response.output_item.done" => self.finish(envelope, out),
            "response.completed" | "response.done" => {
                self.complete(envelope.response.0.unwrap_or_default(), out)?;
            }
            "response.incomplete" => return Err(self.cut(&envelope.response.0.unwrap_or_default(), out)),
            "response.failed" => return Err(failed(envelope.response.0)),
            "error" => return Err(ServerFailure::error_in_event(&event.data)),
            // llama.cpp reports errors without any type.
            "" if envelope.error.0.is_some() => return Err(ServerFailure::error_in_event(&event.data)),
            _ => {}
        }
        Ok(validity)
    }

    fn end(&mut self, how: Result<(), ModelError>, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        if let Err(ModelError::Unending { .. }) = how {
            self.keep_messages(out);
        }
        how.and(Err(ModelError::StreamBroken { cause: "stream closed before response.completed".to_owned() }))
    }
}

impl EventEnvelope {
    /// Returns whether the event has the members its kind requires. Unknown kinds are valid.
    fn validity(&self, kind: &str) -> EventValidity {
        let has_all = match kind {
            "" => false,
            "response.output_item.added" | "response.output_item.done" => {
                self.item.0.as_ref().is_some_and(|item| ItemHeader::parse(item).kind.0.is_some())
            }
            "response.completed" | "response.done" => self.response.0.is_some(),
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.function_call_arguments.delta"
            | "response.custom_tool_call_input.delta" => self.delta.0.is_some(),
            _ => true,
        };
        if has_all { EventValidity::Valid } else { EventValidity::Malformed }
    }
}

impl ResponsesDecoder {
    pub(super) fn new(ids: CallIds, limit_tokens: Option<u64>) -> Self {
        Self {
            ids,
            limit_tokens,
            open: Vec::new(),
            delivered: Vec::new(),
            held_back: Vec::new(),
            has_reported_malformed: false,
        }
    }

    fn begin(&mut self, envelope: EventEnvelope) {
        let Some(json) = envelope.item.0 else { return };
        let head = ItemHeader::parse(&json);
        let id = head.id.0.or(envelope.item_id.0).unwrap_or_default();
        let kind = head.kind.0.unwrap_or_default();
        self.open.push(OpenItem { kind, id, index: envelope.output_index.0, json, text: String::new() });
    }

    fn text(
        &mut self,
        kind: &str,
        envelope: EventEnvelope,
        out: &mut VecDeque<ModelEvent>,
        event: fn(String) -> ModelEvent,
    ) {
        self.append(kind, &envelope);
        out.extend(envelope.delta.0.map(event));
    }

    fn append(&mut self, kind: &str, envelope: &EventEnvelope) {
        if let Some(open) = self.find(kind, envelope) {
            open.text.push_str(envelope.delta.0.as_deref().unwrap_or_default());
        }
    }

    fn replace(&mut self, kind: &str, envelope: &EventEnvelope) {
        let whole = envelope.arguments.0.as_ref().or(envelope.input.0.as_ref()).cloned();
        if let (Some(open), Some(whole)) = (self.find(kind, envelope), whole) {
            open.text = whole;
        }
    }

    fn find(&mut self, kind: &str, envelope: &EventEnvelope) -> Option<&mut OpenItem> {
        let id = envelope.item_id.0.as_deref().unwrap_or_default();
        self.position(kind, id, envelope.output_index.0).map(|at| &mut self.open[at])
    }

    /// Returns the item of an event: by its id, else by its index, else the last of its kind.
    fn position(&self, kind: &str, id: &str, index: Option<u64>) -> Option<usize> {
        let by_id = self.open.iter().rposition(|open| !id.is_empty() && open.id == id);
        let by_index = || self.open.iter().rposition(|open| index.is_some() && open.index == index);
        let last = || self.open.iter().rposition(|open| open.kind == kind);
        by_id.or_else(by_index).or_else(last)
    }

    fn finish(&mut self, envelope: EventEnvelope, out: &mut VecDeque<ModelEvent>) {
        let Some(json) = envelope.item.0 else { return };
        let received = ReceivedItem::parse(json);
        let known = self.open.iter().rposition(|open| !open.id.is_empty() && open.id == received.id);
        let at = envelope.output_index.0;
        let known = known.or_else(|| self.open.iter().rposition(|open| at.is_some() && open.index == at));
        if let Some(at) = known {
            self.open.remove(at);
        }
        if received.is_unfinished() || !self.held_back.is_empty() {
            self.held_back.push(received);
        } else if !self.delivered.iter().any(|before| before.is(&received)) {
            self.deliver(received, out);
        }
    }

    fn complete(
        &mut self,
        response: ResponseObject,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        match response.status.0.as_deref() {
            Some("incomplete") => return Err(self.cut(&response, out)),
            Some("failed" | "cancelled") => return Err(failed(Some(response))),
            _ => {}
        }
        let usage = response.usage.0.map(Usage::from);
        let limit =
            self.limit_tokens.filter(|limit| usage.is_some_and(|usage| usage.output_tokens >= *limit));
        // Items without a `done` event: take them from the final list, or from the collected
        // deltas.
        let listed = response.output.0.unwrap_or_default().into_iter().map(ReceivedItem::parse);
        let listed = without_renamed(listed.collect(), &self.delivered);
        let open = mem::take(&mut self.open).into_iter().filter_map(OpenItem::close).map(ReceivedItem::parse);
        let mut begun = without_renamed(open.chain(mem::take(&mut self.held_back)).collect(), &listed);
        // Some servers give an item a new id in every event, so an unfinished call is matched by
        // its call id.
        begun.retain(|each| !self.delivered.iter().chain(&listed).any(|whole| whole.is_the_call_of(each)));
        let mut rest = listed.into_iter().chain(begun).peekable();
        while let Some(received) = rest.next() {
            if self.delivered.iter().any(|before| before.is(&received) || before.says_the_same_as(&received))
            {
                continue;
            }
            // An item with a successor was not cut off by the limit.
            if limit.is_some() && received.is_unfinished() && rest.peek().is_none() {
                return Err(ModelError::Cut { reason: "max_output_tokens".to_owned() });
            }
            self.deliver(received, out);
        }
        if let Some(limit) = limit {
            out.push_back(ModelEvent::Notice(format!(
                "the answer used all of its {limit} tokens and may be cut short"
            )));
        }
        let finish = if response.end_turn.0 == Some(false) { Finish::More } else { Finish::Done };
        out.push_back(ModelEvent::Completed { usage, finish });
        Ok(())
    }

    fn cut(&mut self, response: &ResponseObject, out: &mut VecDeque<ModelEvent>) -> ModelError {
        let mut held_back = mem::take(&mut self.held_back);
        // The last one may be truncated.
        let _unfinished = held_back.pop_if(|last| last.is_unfinished());
        for received in held_back {
            self.deliver(received, out);
        }
        self.keep_messages(out);
        let reason = response.incomplete_details.0.as_ref().and_then(|details| details.reason.0.clone());
        ModelError::Cut { reason: reason.unwrap_or_else(|| "no reason given".to_owned()) }
    }

    /// Delivers messages that came before a limit. A call that may be incomplete is dropped.
    fn keep_messages(&mut self, out: &mut VecDeque<ModelEvent>) {
        for open in mem::take(&mut self.open) {
            if open.kind == "message"
                && let Some(json) = open.close()
            {
                self.deliver(ReceivedItem::parse(json), out);
            }
        }
    }

    fn deliver(&mut self, received: ReceivedItem, out: &mut VecDeque<ModelEvent>) {
        if received.cut && received.call().is_some() {
            return;
        }
        // Report one malformed item only: a server that sends one sends many.
        let item = received.clone().into_item(|given| self.ids.claim(given));
        if !self.has_reported_malformed
            && let Some(notice) = wire::malformed_item_notice(&item)
        {
            self.has_reported_malformed = true;
            out.push_back(ModelEvent::Notice(notice));
        }
        out.push_back(ModelEvent::Item(item));
        self.delivered.push(received);
    }
}

impl OpenItem {
    /// Returns the item with its deltas. Returns `None` for a message or reasoning without text.
    fn close(self) -> Option<Box<RawValue>> {
        let part = |kind: &str| json!([{"type": kind, "text": self.text}]);
        Some(match self.kind.as_str() {
            "message" | "reasoning" if self.text.is_empty() => return None,
            _ if self.text.is_empty() => self.json,
            "function_call" => crate::json::with_member(&self.json, "arguments", &self.text),
            "custom_tool_call" => crate::json::with_member(&self.json, "input", &self.text),
            "message" => crate::json::with_member(&self.json, "content", &part("output_text")),
            "reasoning" => crate::json::with_member(&self.json, "content", &part("reasoning_text")),
            _ => self.json,
        })
    }
}

impl ReceivedItem {
    /// Returns true for a call with truncated arguments. Either the model forgot to close them, or
    /// the server hit a limit without reporting it: llama.cpp marks such a call, and the whole
    /// answer, as completed.
    fn is_unfinished(&self) -> bool {
        matches!(self.call(), Some((_, Input::Json(text))) if !text.trim().is_empty()
            && serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof()))
    }

    /// Returns true if both are the same item, by their ids. If a server gives two calls the same
    /// call id, their item ids distinguish them.
    fn is(&self, other: &Self) -> bool {
        let told_apart = !self.id.is_empty() && !other.id.is_empty() && self.id != other.id;
        match (self.call_id.as_str(), other.call_id.as_str()) {
            ("", _) | (_, "") => !self.id.is_empty() && self.id == other.id,
            _ => self.is_the_call_of(other) && (!told_apart || self.asks_the_same_as(other)),
        }
    }

    /// Returns true if both have the same call id; item ids may differ.
    fn is_the_call_of(&self, other: &Self) -> bool {
        !self.call_id.is_empty() && self.call_id == other.call_id
    }

    /// Returns true if both have the same content and no ids that distinguish them. Some servers
    /// give an item a new id in the final list; for calls, see [`without_renamed`].
    fn says_the_same_as(&self, other: &Self) -> bool {
        if !self.call_id.is_empty() && !other.call_id.is_empty() {
            return false;
        }
        match (&self.item.body, &other.item.body) {
            (Body::Call(_), Body::Call(_)) => self.asks_the_same_as(other),
            (Body::Other, Body::Other) => self.raw_text() == other.raw_text(),
            (mine, theirs) => mine == theirs,
        }
    }

    /// Returns true if both are the same call apart from their ids. Whitespace between arguments is
    /// ignored.
    fn asks_the_same_as(&self, other: &Self) -> bool {
        match (self.call(), other.call()) {
            (Some((mine, Input::Json(a))), Some((theirs, Input::Json(b)))) => {
                let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
                mine == theirs && (a == b || parsed(a).is_some_and(|a| Some(a) == parsed(b)))
            }
            (mine, theirs) => mine == theirs,
        }
    }

    fn raw_text(&self) -> Option<&str> {
        self.item.raw.as_ref().map(|raw| raw.json.get())
    }
}

/// Removes calls that are known under another id, because some servers make up new ids for the
/// final list. A known call whose id occurs again matches only itself. Otherwise it matches one
/// other call, so two equal calls stay two.
fn without_renamed(mut items: Vec<ReceivedItem>, known: &[ReceivedItem]) -> Vec<ReceivedItem> {
    let is_in = |list: &[ReceivedItem], item: &ReceivedItem| list.iter().any(|each| each.is(item));
    let mut lost: Vec<_> =
        known.iter().filter(|known| known.call().is_some() && !is_in(&items, known)).collect();
    items.retain(|item| {
        let renamed = lost.iter().position(|lost| lost.asks_the_same_as(item) && !is_in(known, item));
        renamed.map(|at| lost.swap_remove(at)).is_none()
    });
    items
}

fn failed(response: Option<ResponseObject>) -> ModelError {
    let error = response.and_then(|response| response.error.0);
    error.map_or_else(
        || ModelError::Failed { message: "no reason given".to_owned(), retry_after: None },
        |error| ServerFailure::from_error(&error).into_stream_error(),
    )
}

#[cfg(test)]
mod tests;
