//! Calls that a model writes into its text, because its server does not take them out: which ways of writing there are.
//!
//! One table says how each begins, what it holds and how it ends. [`scan`] finds calls by it while the text arrives,
//! [`tell`] writes by it what a server that ignores `tools` is to be told.

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

/// How a model writes its calls, if its server leaves them in the text.
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
    /// `<function=name><parameter=a>1</parameter></function>` as Qwen's coder writes, or `<invoke name="name">`.
    Xml,
    /// `[TOOL_CALLS]` and JSON, as Mistral writes.
    Mistral,
    /// Any of them.
    Auto,
}

/// A way to write calls.
#[derive(Debug)]
struct CallForm {
    /// What it begins with.
    open: &'static str,
    /// Whether the beginning is a part of the first call.
    includes_open: bool,
    place: FormPosition,
    /// What calls look like inside of it.
    holds: &'static [CallNotation],
    end: FormEnd,
    /// Whether nobody writes this but to call something. Then an unknown name is a call as well, and the model is told
    /// which tools there are; otherwise only a tool of the request is ever called.
    is_certain: bool,
}

/// Where a form may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormPosition {
    Anywhere,
    LineStart,
    MessageStart,
}

/// What calls look like.
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

/// What a form ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormEnd {
    /// Its first value.
    Value,
    /// A mark that models forget.
    OptionalMark(&'static str),
    /// A mark that makes the difference: without it this is something else.
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
    /// All of them, the most common first.
    pub const ALL: [Self; 7] =
        [Self::Native, Self::Hermes, Self::Json, Self::Pythonic, Self::Xml, Self::Mistral, Self::Auto];

    /// The name used in configuration.
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

    /// The calls in a text that has come to its end. Finds none in [`Native`](Self::Native).
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

    /// The forms to look for; where two begin alike, the longer comes first.
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

/// The forms of what is read with caution: calls in Python are missing, because a list in a text may look like them.
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

/// A call as it was found: whatever its arguments are, the router reads them as those of any other call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextCall {
    pub(crate) name: String,
    /// JSON text; without its end where the model's text had none.
    pub(crate) arguments: String,
}
