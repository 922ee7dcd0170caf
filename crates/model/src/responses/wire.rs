//! Converts items from and to the JSON of the Responses API.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use windlass_contract::{
    CallId, Content, Input, Item, ToolCall, ToolName,
    call::InputKind,
    item::{Body, Cached, Raw, Role},
};

use super::{ResponsesTool, encode_tool, sendable::SendableItem};
use crate::{
    SchemaProfile, WireApi,
    calls::{UNNAMED_TOOL, valid_arguments, valid_name},
    json::{self, LenientField},
};

/// Maximum length of an item type in a message.
const MAX_KIND_CHARS: usize = 40;

/// Handling of the server's item ids in requests. A server that does not store answers refuses the
/// ids it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemIds {
    Sent,
    LeftOut,
}

/// Encoding of items that came from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemForm {
    /// Unchanged, as far as their shape is valid.
    Kept,
    /// Re-encoded. Members that only their server understands are left out.
    Plain,
}

/// A received item, with the ids that identify duplicates.
#[derive(Debug, Clone)]
pub(super) struct ReceivedItem {
    pub(super) id: String,
    /// Empty if the server gave none.
    pub(super) call_id: String,
    /// True if the server marked it as incomplete.
    pub(super) cut: bool,
    pub(super) item: Item,
}

impl ReceivedItem {
    /// Parses an item. Unknown items are stored unchanged, to be sent back.
    pub(super) fn parse(json: Box<RawValue>) -> Self {
        let head = ItemHeader::parse(&json);
        let call_id = head.call_id.0.unwrap_or_default();
        let body = parse_body(&head.kind.0.unwrap_or_default(), &call_id, json.get()).unwrap_or(Body::Other);
        Self {
            id: head.id.0.unwrap_or_default(),
            call_id,
            cut: head.status.0.as_deref() == Some("incomplete"),
            item: Item { body, raw: Some(Raw { wire: WireApi::Responses.name().into(), json }) },
        }
    }

    /// Returns the item with the call id that `claim` assigns. If it differs from the id in the
    /// server's JSON, the JSON is dropped, because its output would not match. The item is then
    /// encoded from its body.
    pub(super) fn into_item(mut self, claim: impl FnOnce(&str) -> CallId) -> Item {
        if let Body::Call(call) = &mut self.item.body {
            let given = if self.call_id.is_empty() { &self.id } else { &self.call_id };
            call.id = claim(given);
            if call.id.as_str() != self.call_id {
                self.item.raw = None;
            }
        }
        self.item
    }

    /// Returns the tool and input of a call.
    pub(super) fn call(&self) -> Option<(&ToolName, &Input)> {
        match &self.item.body {
            Body::Call(call) => Some((&call.name, &call.input)),
            _ => None,
        }
    }
}

/// The members that identify an item.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ItemHeader {
    #[serde(rename = "type")]
    pub(super) kind: LenientField<String>,
    pub(super) id: LenientField<String>,
    call_id: LenientField<String>,
    status: LenientField<String>,
}

impl ItemHeader {
    pub(super) fn parse(json: &RawValue) -> Self {
        serde_json::from_str(json.get()).unwrap_or_default()
    }
}

/// Parses the body of an item. Returns `None` for unknown kinds.
fn parse_body(kind: &str, call_id: &str, text: &str) -> Option<Body> {
    let call = |name: String, input| Body::Call(ToolCall { id: call_id.into(), name: name.into(), input });
    match kind {
        "message" => serde_json::from_str::<ReceivedMessage>(text).ok().map(|message| Body::Message {
            role: message.role,
            content: match message.content {
                Value::Array(parts) => parts.iter().filter_map(content).collect(),
                Value::String(text) => vec![Content::Text(text)],
                _ => vec![],
            },
        }),
        "reasoning" => {
            serde_json::from_str::<ReceivedReasoning>(text).ok().map(|reasoning| Body::Reasoning {
                summary: texts(reasoning.summary.0.as_ref()),
                text: texts(reasoning.content.0.as_ref()),
            })
        }
        "function_call" => serde_json::from_str::<ReceivedCall>(text)
            .ok()
            .map(|mut called| call(called.take_name(), Input::Json(called.arguments_text()))),
        "custom_tool_call" => serde_json::from_str::<ReceivedCall>(text)
            .ok()
            .map(|mut called| call(called.take_name(), Input::Text(called.input.0.unwrap_or_default()))),
        "local_shell_call" => serde_json::from_str::<ShellCall>(text)
            .ok()
            .map(|shell| call("local_shell".to_owned(), Input::Json(shell.arguments()))),
        // Searches that the server executes are not our calls.
        "tool_search_call" => serde_json::from_str::<ReceivedCall>(text)
            .ok()
            .filter(|called| called.execution.0.as_deref().is_none_or(|who| who == "client"))
            .map(|called| call("tool_search".to_owned(), Input::Search(called.arguments_text()))),
        "web_search_call" => serde_json::from_str::<ReceivedSearch>(text)
            .ok()
            .map(|search| Body::WebSearch { query: query(&search.action.0.unwrap_or_default()) }),
        _ => None,
    }
}

#[derive(Deserialize)]
struct ReceivedMessage {
    role: Role,
    #[serde(default)]
    content: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReceivedReasoning {
    summary: LenientField<Vec<Value>>,
    content: LenientField<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReceivedCall {
    name: LenientField<String>,
    arguments: LenientField<Value>,
    input: LenientField<String>,
    execution: LenientField<String>,
}

impl ReceivedCall {
    fn take_name(&mut self) -> String {
        self.name.0.take().filter(|name| !name.is_empty()).unwrap_or_else(|| UNNAMED_TOOL.to_owned())
    }

    /// Returns the arguments as text. Some servers send an object where a string belongs; its JSON
    /// text is the string.
    fn arguments_text(self) -> String {
        match self.arguments.0.unwrap_or("".into()) {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

#[derive(Deserialize)]
struct ShellCall {
    #[serde(default)]
    action: Value,
}

impl ShellCall {
    /// Returns the arguments for the `shell` tool. An invalid action is passed on unchanged; the
    /// tool reports the error to the model.
    fn arguments(self) -> String {
        let understood = ShellAction::deserialize(&self.action);
        understood.map_or_else(|_| self.action.to_string(), |action| json::to_text(&action))
    }
}

/// Parameters of a hosted shell call, under the names of the `shell` tool. `env` and `user` are
/// ignored.
#[derive(Deserialize, Serialize)]
struct ShellAction {
    command: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(default, rename(deserialize = "working_directory"), skip_serializing_if = "Option::is_none")]
    workdir: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReceivedSearch {
    action: LenientField<Value>,
}

fn query(action: &Value) -> String {
    let text = |name| action.get(name).and_then(Value::as_str);
    let queries = action.get("queries").and_then(Value::as_array);
    let queries =
        queries.map(|queries| queries.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "));
    match (text("query"), queries, text("pattern"), text("url")) {
        (Some(query), ..) => query.to_owned(),
        (_, Some(queries), ..) => queries,
        (.., Some(pattern), Some(url)) => format!("{pattern} in {url}"),
        (.., url) => url.unwrap_or_default().to_owned(),
    }
}

fn content(part: &Value) -> Option<Content> {
    let text = |name| part.get(name).and_then(Value::as_str).map(str::to_owned);
    match part.get("type")?.as_str()? {
        "output_text" | "input_text" | "text" => text("text").map(Content::Text),
        "refusal" => text("refusal").map(Content::Text),
        "input_image" => text("image_url").map(Content::Image),
        _ => None,
    }
}

fn texts(parts: Option<&Vec<Value>>) -> Vec<String> {
    let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
    parts.into_iter().flatten().filter_map(text).collect()
}

/// Returns a history as the JSON of a request's `input`.
pub(super) fn input(
    history: &[Cached<Item>],
    ids: ItemIds,
    form: ItemForm,
    profile: SchemaProfile,
) -> String {
    let key = match (form, ids) {
        (ItemForm::Kept, ItemIds::LeftOut) => "responses",
        (ItemForm::Kept, ItemIds::Sent) => "responses, with ids",
        (ItemForm::Plain, _) => "responses, plain",
    };
    let mut input = String::from("[");
    for item in history {
        let text = item.encoded(key, |item| match form {
            ItemForm::Kept => encode(item, ids, profile),
            ItemForm::Plain => encode_plain(item, profile),
        });
        if !text.is_empty() {
            if input.len() > 1 {
                input.push(',');
            }
            input.push_str(&text);
        }
    }
    input.push(']');
    input
}

/// Encodes an item. Returns an empty string if the server could not use it.
fn encode(item: &Item, ids: ItemIds, profile: SchemaProfile) -> String {
    match &item.raw {
        Some(raw) if raw.wire == WireApi::Responses.name() => send_back(item, &raw.json, ids, profile),
        _ => encode_plain(item, profile),
    }
}

fn encode_plain(item: &Item, profile: SchemaProfile) -> String {
    encode_body(&item.body, profile).map(|item| json::to_text(&item)).unwrap_or_default()
}

fn send_back(item: &Item, raw: &RawValue, ids: ItemIds, profile: SchemaProfile) -> String {
    match check(item, raw, ids, profile) {
        Some(sent) if is_unreadable(item, &sent.json) => String::new(),
        Some(sent) => sent.json,
        None => {
            tracing::debug!(
                kind = ItemHeader::parse(raw).kind.0,
                "a malformed item is written anew or left out"
            );
            encode_plain(item, profile)
        }
    }
}

/// Returns a notice for the user about an item that cannot be sent back unchanged.
pub(super) fn malformed_item_notice(item: &Item) -> Option<String> {
    let raw = item.raw.as_ref()?;
    let then = match check(item, &raw.json, ItemIds::LeftOut, SchemaProfile::Faithful) {
        Some(sent) if !sent.is_repaired => return None,
        Some(_) => "it is sent back in valid form",
        None if encode_body(&item.body, SchemaProfile::Faithful).is_some() => {
            "it is sent back in other words"
        }
        None => "it is left out of later requests",
    };
    let kind = crate::failure::one_line(&ItemHeader::parse(&raw.json).kind.0.unwrap_or_default());
    let kind: String = kind.chars().take(MAX_KIND_CHARS).collect();
    Some(format!("the server sent a malformed item `{kind}`; {then}"))
}

/// Returns the received item, as far as its shape is valid and its call is the one that was run.
fn check(item: &Item, raw: &RawValue, ids: ItemIds, profile: SchemaProfile) -> Option<SendableItem> {
    let own = own(&item.body, profile);
    let is_ours = |call: &ToolCall| {
        let head = ItemHeader::parse(raw);
        let is_same_kind = own.as_ref().is_some_and(|own| own["type"].as_str() == head.kind.0.as_deref());
        is_same_kind || head.call_id.0.as_deref() == Some(call.id.as_str())
    };
    match &item.body {
        Body::Call(call) if !is_ours(call) => None,
        _ => SendableItem::check(raw, own.as_ref(), ids),
    }
}

/// Returns our encoding of an item. Servers accept reasoning only with members that they sent
/// themselves.
fn own(body: &Body, profile: SchemaProfile) -> Option<Value> {
    if let Body::Reasoning { summary, .. } = body {
        let part = |text: &String| json!({"type": "summary_text", "text": text});
        return Some(json!({"type": "reasoning", "summary": summary.iter().map(part).collect::<Vec<_>>()}));
    }
    encode_body(body, profile).and_then(|item| serde_json::to_value(item).ok())
}

/// Returns true for reasoning with neither text, encrypted content nor id. Servers refuse it.
fn is_unreadable(item: &Item, sent: &str) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ReasoningKeys {
        id: LenientField<String>,
        encrypted_content: LenientField<String>,
    }
    let sealed = || serde_json::from_str::<ReasoningKeys>(sent).unwrap_or_default();
    matches!(&item.body, Body::Reasoning { text, .. } if text.is_empty())
        && matches!(sealed(), ReasoningKeys { id: LenientField(None), encrypted_content: LenientField(None) })
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputItem<'a> {
    Message {
        role: Role,
        content: Vec<ContentPart<'a>>,
    },
    FunctionCall {
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
        call_id: &'a CallId,
    },
    CustomToolCall {
        call_id: &'a CallId,
        name: Cow<'a, str>,
        input: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a CallId,
        output: OutputContent<'a>,
    },
    CustomToolCallOutput {
        call_id: &'a CallId,
        output: OutputContent<'a>,
    },
    ToolSearchCall {
        call_id: &'a CallId,
        execution: &'static str,
        status: &'static str,
        arguments: Value,
    },
    ToolSearchOutput {
        call_id: &'a CallId,
        execution: &'static str,
        status: &'static str,
        tools: Vec<ResponsesTool<'a>>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    InputText { text: &'a str },
    InputImage { image_url: &'a str },
    OutputText { text: &'a str },
}

#[derive(Serialize)]
#[serde(untagged)]
enum OutputContent<'a> {
    Text(&'a str),
    Parts(Vec<ContentPart<'a>>),
}

/// Encodes a body. Reasoning and hosted items have a meaning only for the server they came from.
fn encode_body(body: &Body, profile: SchemaProfile) -> Option<InputItem<'_>> {
    match body {
        Body::Message { role, content } => {
            let content: Vec<_> = content.iter().filter_map(|content| part(*role, content)).collect();
            (!content.is_empty()).then_some(InputItem::Message { role: *role, content })
        }
        Body::Call(ToolCall { id, name, input }) => Some(match input {
            Input::Json(text) => InputItem::FunctionCall {
                name: valid_name(name.as_str()),
                arguments: valid_arguments(text),
                call_id: id,
            },
            Input::Text(input) => {
                InputItem::CustomToolCall { call_id: id, name: valid_name(name.as_str()), input }
            }
            Input::Search(text) => InputItem::ToolSearchCall {
                call_id: id,
                execution: "client",
                status: "completed",
                arguments: serde_json::from_str(&valid_arguments(text)).unwrap_or_default(),
            },
        }),
        Body::Output { call, input, content, .. } => {
            let output = output_content(content);
            Some(match input {
                InputKind::Json => InputItem::FunctionCallOutput { call_id: call, output },
                InputKind::Text => InputItem::CustomToolCallOutput { call_id: call, output },
                // This item has no member for an error message: a failed search has found nothing.
                InputKind::Search => InputItem::ToolSearchOutput {
                    call_id: call,
                    execution: "client",
                    status: "completed",
                    tools: found_tools(content, profile),
                },
            })
        }
        Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => None,
    }
}

fn found_tools(content: &[Content], profile: SchemaProfile) -> Vec<ResponsesTool<'_>> {
    let specs = content.iter().filter_map(|part| match part {
        Content::Tool(spec) => Some(spec),
        Content::Text(_) | Content::Image(_) => None,
    });
    specs.map(|spec| encode_tool(spec, profile)).collect()
}

fn output_content(content: &[Content]) -> OutputContent<'_> {
    // The next request lists the found tools in `tools`.
    let said: Vec<_> = content.iter().filter(|part| !matches!(part, Content::Tool(_))).collect();
    match said.as_slice() {
        [] => OutputContent::Text(""),
        [Content::Text(text)] => OutputContent::Text(text),
        parts => OutputContent::Parts(parts.iter().filter_map(|content| part(Role::User, content)).collect()),
    }
}

fn part(role: Role, content: &Content) -> Option<ContentPart<'_>> {
    match (role, content) {
        (Role::Assistant, Content::Text(text)) => Some(ContentPart::OutputText { text }),
        (Role::Assistant, Content::Image(_)) | (_, Content::Tool(_)) => None,
        (_, Content::Text(text)) => Some(ContentPart::InputText { text }),
        (_, Content::Image(url)) => Some(ContentPart::InputImage { image_url: url }),
    }
}

#[cfg(test)]
mod tests;
