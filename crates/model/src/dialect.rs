//! Dialects: notations for calls in the text of an answer, for servers that do not extract calls
//! themselves.
//!
//! One table defines the opening, content and end of each form. [`scan`] uses it to find calls
//! while the text arrives. [`prompt`] writes tools, calls and results for servers that ignore
//! `tools`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_contract::{Input, ToolCall, ToolSpec};

mod block;
mod known_tools;
mod markup;
mod nesting;
mod object;
mod prompt;
mod python;
mod scan;

pub(crate) use known_tools::KnownTools;
pub(crate) use scan::{CallScanner, ScannedPiece};

/// Notation of calls, if the server leaves them in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// The server takes them out: text is text.
    #[default]
    Native,
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Hermes and Qwen write.
    Hermes,
    /// `{"name": …, "arguments": {…}}` in a fence of ```` ```json ````, or as the whole message.
    Json,
    /// `[name(a=1, b="x")]` at the beginning of a line, as Llama writes.
    Pythonic,
    /// `<function=name><parameter=a>1</parameter></function>` as Qwen's coder writes, or
    /// `<invoke name="name">`.
    Xml,
    /// `[TOOL_CALLS]` and JSON, as Mistral writes.
    Mistral,
    /// Any of them.
    Auto,
}

/// One notation for calls in text.
#[derive(Debug)]
struct CallForm {
    /// Opening mark.
    open: &'static str,
    /// True if the opening mark is part of the first call.
    includes_open: bool,
    place: FormPosition,
    /// Accepted notations of the calls inside.
    holds: &'static [CallNotation],
    end: FormEnd,
    /// True if this form only ever means a call. Then an unknown tool name is a call as well, and
    /// the router answers with the list of tools. Otherwise only tools of the request are called.
    is_certain: bool,
}

/// Position in the text where a form may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormPosition {
    Anywhere,
    LineStart,
    MessageStart,
}

/// Notation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallNotation {
    /// `{"name": …, "arguments": {…}}`, or a list of these.
    Json,
    /// `[name(a=1)]`.
    Python,
    /// Elements named `function` or `invoke`.
    Markup,
    /// `name{…}` or `name[ARGS]{…}`.
    Named,
}

/// End of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormEnd {
    /// The end of its first value.
    Value,
    /// A closing mark that models sometimes forget.
    OptionalMark(&'static str),
    /// A closing mark that is required: without it the text is no call.
    RequiredMark(&'static str),
    /// The end of the message.
    Message,
}

impl FormEnd {
    fn mark(self) -> Option<&'static str> {
        match self {
            Self::OptionalMark(mark) | Self::RequiredMark(mark) => Some(mark),
            Self::Value | Self::Message => None,
        }
    }
}

const fn certain(open: &'static str, holds: &'static [CallNotation], end: FormEnd) -> CallForm {
    CallForm { open, includes_open: false, place: FormPosition::Anywhere, holds, end, is_certain: true }
}

const fn fence(open: &'static str) -> CallForm {
    let (holds, end) = (&[CallNotation::Json] as &[CallNotation], FormEnd::RequiredMark("```"));
    CallForm { open, includes_open: false, place: FormPosition::LineStart, holds, end, is_certain: false }
}

const fn whole(open: &'static str, holds: &'static [CallNotation]) -> CallForm {
    CallForm {
        open,
        includes_open: true,
        place: FormPosition::MessageStart,
        holds,
        end: FormEnd::Message,
        is_certain: false,
    }
}

const TAGGED_JSON: &CallForm =
    &certain("<tool_call>", &[CallNotation::Json], FormEnd::OptionalMark("</tool_call>"));
const TAGGED: &CallForm = &certain(
    "<tool_call>",
    &[CallNotation::Json, CallNotation::Markup],
    FormEnd::OptionalMark("</tool_call>"),
);
const CALLS: &CallForm =
    &certain("<function_calls>", &[CallNotation::Markup], FormEnd::OptionalMark("</function_calls>"));
// Qwen's coder forgets `<tool_call>` and remembers `</tool_call>`.
const FUNCTION: &CallForm = &CallForm {
    includes_open: true,
    ..certain("<function=", &[CallNotation::Markup], FormEnd::OptionalMark("</tool_call>"))
};
const INVOKE: &CallForm = &CallForm {
    includes_open: true,
    ..certain("<invoke ", &[CallNotation::Markup], FormEnd::OptionalMark("</function_calls>"))
};
const MISTRAL: &CallForm =
    &certain("[TOOL_CALLS]", &[CallNotation::Json, CallNotation::Named], FormEnd::Value);
const PYTHON_TAGS: &CallForm =
    &certain("<|python_start|>", &[CallNotation::Python], FormEnd::OptionalMark("<|python_end|>"));
const PYTHON: &CallForm = &CallForm {
    includes_open: true,
    place: FormPosition::LineStart,
    ..certain("[", &[CallNotation::Python], FormEnd::Value)
};
const FENCED_JSON: &CallForm = &fence("```json");
const FENCED_CALL: &CallForm = &fence("```tool_call");
const FENCED: &CallForm = &fence("```\n");
const WHOLE_OBJECT: &CallForm = &whole("{", &[CallNotation::Json]);
const WHOLE_LIST: &CallForm = &whole("[", &[CallNotation::Json]);
const WHOLE_LIST_OF_EITHER: &CallForm = &whole("[", &[CallNotation::Json, CallNotation::Python]);

impl Dialect {
    /// All dialects, the most common first.
    pub const ALL: [Self; 7] =
        [Self::Native, Self::Hermes, Self::Json, Self::Pythonic, Self::Xml, Self::Mistral, Self::Auto];

    /// Returns the name used in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Hermes => "hermes",
            Self::Json => "json",
            Self::Pythonic => "pythonic",
            Self::Xml => "xml",
            Self::Mistral => "mistral",
            Self::Auto => "auto",
        }
    }

    /// Returns the calls in a complete text. Finds none in [`Native`](Self::Native).
    pub fn calls_in(self, text: &str, tools: &[ToolSpec]) -> Vec<ToolCall> {
        let Some(mut scanner) = CallScanner::new(self, || KnownTools::from_specs(tools)) else {
            return Vec::new();
        };
        let pieces = scanner.feed(text).into_iter().chain(scanner.finish());
        let found = pieces.filter_map(|piece| match piece {
            ScannedPiece::Call(found) => Some(found),
            ScannedPiece::Text(_) => None,
        });
        let call = |(at, found): (usize, TextCall)| ToolCall {
            id: format!("text-call-{at}").into(),
            name: found.name.into(),
            input: Input::Json(found.arguments),
        };
        found.enumerate().map(call).collect()
    }

    /// Returns the forms to look for. If two share an opening, the longer comes first.
    fn forms(self) -> &'static [&'static CallForm] {
        match self {
            Self::Native => &[],
            Self::Hermes => &[TAGGED_JSON],
            Self::Json => &[FENCED_JSON, FENCED_CALL, FENCED, WHOLE_OBJECT, WHOLE_LIST],
            Self::Pythonic => &[PYTHON_TAGS, PYTHON],
            Self::Xml => &[TAGGED, CALLS, FUNCTION, INVOKE],
            Self::Mistral => &[MISTRAL],
            Self::Auto => &[
                TAGGED,
                CALLS,
                FUNCTION,
                INVOKE,
                MISTRAL,
                PYTHON_TAGS,
                FENCED_JSON,
                FENCED_CALL,
                FENCED,
                WHOLE_OBJECT,
                WHOLE_LIST_OF_EITHER,
                PYTHON,
            ],
        }
    }
}

/// Forms for cautious reading. Calls in Python are missing, because an ordinary list may look like
/// them.
const CAUTIOUS: &[&CallForm] = &[
    TAGGED,
    CALLS,
    FUNCTION,
    INVOKE,
    MISTRAL,
    PYTHON_TAGS,
    FENCED_JSON,
    FENCED_CALL,
    FENCED,
    WHOLE_OBJECT,
    WHOLE_LIST,
];

/// A call found in text. The router validates its arguments like those of any other call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextCall {
    pub(crate) name: String,
    /// JSON text, truncated if the model's text was truncated.
    pub(crate) arguments: String,
}
