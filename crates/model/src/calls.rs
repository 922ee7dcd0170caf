//! Call ids, tool names and arguments, in the form that both wire protocols can send.

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Map, Value, json};
use windlass_contract::{
    CallId, Item,
    item::{Body, Cached},
};

/// The call ids in use. Ids pair calls with outputs over a whole session, so each must be unique.
/// Some servers leave them out, and some count from zero in every answer.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashSet<CallId>);

impl CallIds {
    /// Collects the call ids of a conversation.
    pub(crate) fn from_history(history: &[Cached<Item>]) -> Self {
        let ids = history.iter().filter_map(|item| match &item.get().body {
            Body::Call(call) => Some(call.id.clone()),
            _ => None,
        });
        Self(ids.collect())
    }

    /// Returns the id for a call: the server's own, unless it is empty or in use. Otherwise makes a
    /// new id from it.
    pub(crate) fn claim(&mut self, given: &str) -> CallId {
        let mut id = CallId::from(given);
        while id.as_str().is_empty() || self.0.contains(&id) {
            let stem = if given.is_empty() { "call" } else { given };
            id = format!("{stem}-{:08x}", fastrand::u32(..)).into();
        }
        self.0.insert(id.clone());
        id
    }
}

/// Tool name of a call that came without one. The router answers it with the list of tools.
pub(crate) const UNNAMED_TOOL: &str = "unnamed";
/// Maximum length of a tool name that servers accept.
const MAX_NAME_BYTES: usize = 64;

/// Returns a name that every server accepts. Tool names already are; a model may invent others, and
/// strict servers then refuse the conversation.
pub(crate) fn valid_name(name: &str) -> Cow<'_, str> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.is_empty() {
        UNNAMED_TOOL.into()
    } else if name.len() <= MAX_NAME_BYTES && name.chars().all(is_valid) {
        name.into()
    } else {
        name.chars().take(MAX_NAME_BYTES).map(|c| if is_valid(c) { c } else { '_' }).collect()
    }
}

/// Returns true if the arguments are a complete JSON object.
pub(crate) fn is_object(arguments: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
}

/// Returns arguments that every server can parse. Servers that render calls into a prompt parse the
/// arguments first. One malformed call would make them refuse every later request: llama.cpp
/// answers HTTP 500, even for empty arguments.
pub(crate) fn valid_arguments(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        "{}".into()
    } else if is_object(arguments) {
        arguments.into()
    } else {
        json!({"invalid_arguments": arguments}).to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Input, ToolCall};

    use super::*;

    #[test]
    fn an_id_is_kept_once_and_changed_when_it_comes_again() {
        let call = ToolCall { id: "call_0".into(), name: "t".into(), input: Input::Json(String::new()) };
        let history = [Cached::new(Item::from(Body::Call(call)))];
        let mut ids = CallIds::from_history(&history);
        assert_eq!(ids.claim("call_1").as_str(), "call_1");
        let ids: Vec<_> = ["call_0", "call_1", "", ""].into_iter().map(|given| ids.claim(given)).collect();
        assert!(ids[0].as_str().starts_with("call_0-") && ids[1].as_str().starts_with("call_1-"));
        assert!(ids[2].as_str().starts_with("call-") && ids[2] != ids[3]);
    }

    #[test]
    fn a_name_that_no_tool_has_is_sent_in_the_letters_of_those_that_some_have() {
        assert_eq!(valid_name("shell_command-2"), "shell_command-2");
        assert_eq!(valid_name(""), "unnamed");
        assert_eq!(valid_name("functions.sh é"), "functions_sh__");
        assert_eq!(valid_name(&"x".repeat(200)), "x".repeat(64));
    }

    #[test]
    fn a_models_slip_is_sent_as_an_object_that_shows_it() {
        assert_eq!(valid_arguments(" "), "{}");
        assert_eq!(valid_arguments("{ \"a\": 1 }"), "{ \"a\": 1 }");
        assert_eq!(valid_arguments("{\"a\": \"Os"), r#"{"invalid_arguments":"{\"a\": \"Os"}"#);
        assert_eq!(valid_arguments("[1]"), r#"{"invalid_arguments":"[1]"}"#);
    }
}
