//! What a model is told in its own dialect, where its server does not tell it: the tools, its calls and their results.

use serde_json::Value;

use super::{Dialect, python};
use crate::calls::readable;

impl Dialect {
    /// The name of a history that is written this way.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::Native | Self::Hermes => "chat, told as hermes",
            Self::Json => "chat, told as json",
            Self::Pythonic => "chat, told as pythonic",
            Self::Xml => "chat, told as xml",
            Self::Mistral => "chat, told as mistral",
            Self::Auto => "chat, told as auto",
        }
    }

    /// The tools, given as JSON, and how to call them.
    pub(crate) fn instructions(self, tools: &str) -> String {
        let call = self.call("TOOL_NAME", r#"{"PARAMETER": "VALUE"}"#);
        let result = self.result("…");
        format!(
            "# Tools\n\n\
             You have these tools, given as JSON with a JSON Schema of the arguments of each:\n\
             {tools}\n\n\
             To call a tool, write exactly this, with its name and its arguments:\n\
             {call}\n\
             For several calls write several of these, and then end your message. The next message has the results:\n\
             {result}\n\
             Call a tool only if it helps; otherwise answer in plain text."
        )
    }

    /// A call as the model would have written it.
    pub(crate) fn call(self, name: &str, arguments: &str) -> String {
        let arguments = readable(arguments);
        let parsed = || serde_json::from_str(&arguments).unwrap_or_default();
        let json = format!(r#"{{"name": "{name}", "arguments": {arguments}}}"#);
        match self {
            Self::Native | Self::Hermes | Self::Auto => format!("<tool_call>\n{json}\n</tool_call>"),
            Self::Json => format!("```json\n{json}\n```"),
            Self::Pythonic => python::write(name, &parsed()),
            Self::Xml => elements(name, &parsed()),
            Self::Mistral => format!("[TOOL_CALLS][{json}]"),
        }
    }

    /// A result as models of this dialect have seen it in training.
    pub(crate) fn result(self, text: &str) -> String {
        let (before, after) = match self {
            Self::Native | Self::Hermes | Self::Xml | Self::Pythonic | Self::Auto => {
                ("<tool_response>\n", "\n</tool_response>")
            }
            Self::Json => ("Result:\n", ""),
            Self::Mistral => ("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        };
        format!("{before}{text}{after}")
    }
}

fn elements(name: &str, arguments: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given = arguments.as_object().into_iter().flatten();
    let given: String =
        given.map(|(name, value)| format!("<parameter={name}>\n{}\n</parameter>\n", plain(value))).collect();
    format!("<tool_call>\n<function={name}>\n{given}</function>\n</tool_call>")
}
