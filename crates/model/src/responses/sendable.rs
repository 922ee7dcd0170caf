//! Validates received items before they are sent back.
//!
//! A server that sends a malformed item, or a proxy that drops a part of one, may refuse it in
//! every later request, and with it the whole conversation. So only members with a valid shape go
//! back unchanged.

use serde_json::{Map, Value, value::RawValue};

use super::wire::ItemIds;
use crate::json;

/// An item that a strict server accepts.
pub(super) struct SendableItem {
    pub(super) json: String,
    /// True if a required member was missing or wrong.
    pub(super) is_repaired: bool,
}

impl SendableItem {
    /// Checks an item. A wrong member is replaced by the one in `own`, our encoding of the same
    /// item, or left out if it is optional. All others keep their exact text. Returns `None` if the
    /// item cannot be repaired.
    pub(super) fn check(raw: &RawValue, own: Option<&Value>, ids: ItemIds) -> Option<Self> {
        let members = json::members(raw)?;
        // Fails for input that other parsers may refuse: lone surrogates, numbers out of range,
        // unbounded nesting.
        let values: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
        if values.len() != members.len() {
            return None; // a name that comes twice means something else to each reader
        }
        let kind = values.get("type")?.as_str().filter(|kind| !kind.is_empty())?;
        let own = own.filter(|own| own["type"] == kind);
        let rules = rules(kind);
        let mut object = json::JsonObjectWriter::with_capacity(raw.get().len());
        let mut is_repaired = false;
        for (name, text) in &members {
            let value = &values[name.as_ref()];
            let rule = rules.iter().chain(&COMMON_RULES).find(|rule| rule.name == name);
            let own = own.and_then(|own| own.get(name.as_ref()));
            match rule.map(|rule| (rule, rule.takes(value, own, &values))) {
                _ if name == "id" => {
                    if ids == ItemIds::Sent && is_name(value, &values) {
                        object.raw(name, text.get());
                    }
                }
                None | Some((_, true)) => object.raw(name, text.get()),
                Some((MemberRule { need: MemberNeed::Optional, .. }, false)) => {}
                Some((_, false)) => {
                    // Arguments that are not JSON are the model's mistake, not the server's.
                    is_repaired |= !(name == "arguments" && value.is_string());
                    object.member(name, own?);
                }
            }
        }
        for rule in
            rules.iter().filter(|rule| rule.need != MemberNeed::Optional && !values.contains_key(rule.name))
        {
            is_repaired = true;
            object.member(rule.name, own?.get(rule.name)?);
        }
        Some(Self { json: object.finish(), is_repaired })
    }
}

/// A member of an item, and a check of its value.
struct MemberRule {
    name: &'static str,
    need: MemberNeed,
    fits: fn(&Value, &Map<String, Value>) -> bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberNeed {
    Optional,
    Required,
    /// Describes the call that was run: if our value differs, ours is sent.
    Ours,
}

impl MemberRule {
    fn takes(&self, value: &Value, own: Option<&Value>, item: &Map<String, Value>) -> bool {
        (self.fits)(value, item) && (self.need != MemberNeed::Ours || own.is_none_or(|own| own == value))
    }
}

const fn rule(
    name: &'static str,
    need: MemberNeed,
    fits: fn(&Value, &Map<String, Value>) -> bool,
) -> MemberRule {
    MemberRule { name, need, fits }
}

/// Members with the same meaning in every kind of item.
const COMMON_RULES: [MemberRule; 2] =
    [rule("call_id", MemberNeed::Optional, is_name), rule("status", MemberNeed::Optional, is_name)];

const STATUS: MemberRule = rule("status", MemberNeed::Optional, is_status);

/// Returns the known members of a kind of item.
fn rules(kind: &str) -> &'static [MemberRule] {
    use MemberNeed::{Optional, Ours, Required};
    match kind {
        "message" => const { &[rule("role", Ours, is_role), rule("content", Required, is_content), STATUS] },
        "reasoning" => {
            const {
                &[
                    rule("summary", Required, is_summary),
                    rule("content", Optional, is_thoughts),
                    rule("encrypted_content", Optional, is_text_or_null),
                    STATUS,
                ]
            }
        }
        "function_call" => {
            const {
                &[
                    rule("call_id", Ours, is_name),
                    rule("name", Ours, is_name),
                    rule("arguments", Ours, is_text),
                    rule("namespace", Optional, is_name),
                    STATUS,
                ]
            }
        }
        "custom_tool_call" => {
            const {
                &[
                    rule("call_id", Ours, is_name),
                    rule("name", Ours, is_name),
                    rule("input", Ours, is_text),
                    rule("namespace", Optional, is_name),
                    STATUS,
                ]
            }
        }
        "local_shell_call" => {
            const {
                &[
                    rule("call_id", Required, is_name),
                    rule("action", Required, is_shell_action),
                    rule("status", Required, is_status),
                ]
            }
        }
        "tool_search_call" => {
            const {
                &[
                    rule("call_id", Ours, is_name),
                    rule("execution", Ours, is_name),
                    rule("arguments", Ours, |value, _| value.is_object()),
                    STATUS,
                ]
            }
        }
        "tool_search_output" => {
            const {
                &[
                    rule("call_id", Optional, is_name),
                    rule("execution", Required, is_name),
                    rule("tools", Required, is_list_of_typed),
                    STATUS,
                ]
            }
        }
        "web_search_call" => const { &[rule("action", Required, is_typed), STATUS] },
        "compaction" | "compaction_summary" => const { &[rule("encrypted_content", Required, is_text)] },
        _ => &[],
    }
}

fn is_text(value: &Value, _: &Map<String, Value>) -> bool {
    value.is_string()
}

fn is_text_or_null(value: &Value, _: &Map<String, Value>) -> bool {
    value.is_string() || value.is_null()
}

fn is_name(value: &Value, _: &Map<String, Value>) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_status(value: &Value, _: &Map<String, Value>) -> bool {
    matches!(value.as_str(), Some("in_progress" | "completed" | "incomplete" | "searching" | "failed"))
}

fn is_role(value: &Value, _: &Map<String, Value>) -> bool {
    matches!(value.as_str(), Some("user" | "assistant" | "system" | "developer"))
}

/// Accepts text, or parts that the role can have. Parts of unknown types need only a type.
fn is_content(value: &Value, item: &Map<String, Value>) -> bool {
    let is_model = item.get("role").and_then(Value::as_str) == Some("assistant");
    let is_list = |part: &Value, name| part.get(name).is_none_or(Value::is_array);
    let is_part = |part: &Value| match kind_of(part) {
        Some("output_text") => {
            is_model && has_text(part, "text") && is_list(part, "annotations") && is_list(part, "logprobs")
        }
        Some("refusal") => is_model && has_text(part, "refusal"),
        Some("input_text") => !is_model && has_text(part, "text"),
        Some("input_image") => !is_model && (has_text(part, "image_url") || has_text(part, "file_id")),
        Some("text") => has_text(part, "text"),
        kind => kind.is_some(),
    };
    value.is_string() || is_list_of(value, is_part) && value.as_array().is_some_and(|parts| !parts.is_empty())
}

fn is_summary(value: &Value, _: &Map<String, Value>) -> bool {
    is_list_of(value, |part| kind_of(part) == Some("summary_text") && has_text(part, "text"))
}

fn is_thoughts(value: &Value, _: &Map<String, Value>) -> bool {
    let is_thought =
        |part: &Value| matches!(kind_of(part), Some("reasoning_text" | "text")) && has_text(part, "text");
    value.is_null() || is_list_of(value, is_thought)
}

fn is_shell_action(value: &Value, _: &Map<String, Value>) -> bool {
    let is_optional =
        |name, fits: fn(&Value) -> bool| value.get(name).is_none_or(|value| value.is_null() || fits(value));
    kind_of(value) == Some("exec")
        && value.get("command").is_some_and(|command| is_list_of(command, Value::is_string))
        && is_optional("timeout_ms", Value::is_u64)
        && is_optional("working_directory", Value::is_string)
        && is_optional("user", Value::is_string)
        && is_optional("env", |env| env.as_object().is_some_and(|env| env.values().all(Value::is_string)))
}

fn is_typed(value: &Value, _: &Map<String, Value>) -> bool {
    kind_of(value).is_some()
}

fn is_list_of_typed(value: &Value, _: &Map<String, Value>) -> bool {
    is_list_of(value, |part| kind_of(part).is_some())
}

fn is_list_of(value: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(fits))
}

fn kind_of(part: &Value) -> Option<&str> {
    part.get("type")?.as_str().filter(|kind| !kind.is_empty())
}

fn has_text(part: &Value, name: &str) -> bool {
    part.get(name).is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests;
