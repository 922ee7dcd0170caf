//! Calls that a model writes into its text, because its server does not take them out: which ways of writing there are.
//!
//! One table says how each begins, what it holds and how it ends. [`scan`] finds calls by it while the text arrives,
//! [`tell`] writes by it what a server that ignores `tools` is to be told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_contract::{Input, ToolCall, ToolSpec};

mod block;
mod known;
mod markup;
mod nesting;
mod object;
mod python;
mod scan;
mod tell;

pub(crate) use known::Known;
pub(crate) use scan::{Piece, Scanner};

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
struct Form {
    /// What it begins with.
    open: &'static str,
    /// Whether the beginning is a part of the first call.
    is_part: bool,
    place: Place,
    /// What calls look like inside of it.
    holds: &'static [Holds],
    end: End,
    /// Whether nobody writes this but to call something. Then an unknown name is a call as well, and the model is told
    /// which tools there are; otherwise only a tool of the request is ever called.
    is_certain: bool,
}

/// Where a form may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    Line,
    Message,
}

/// What calls look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
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
enum End {
    /// Its first value.
    Value,
    /// A mark that models forget.
    Forgotten(&'static str),
    /// A mark that makes the difference: without it this is something else.
    Needed(&'static str),
    /// The end of the message.
    Message,
}

impl End {
    fn mark(self) -> Option<&'static str> {
        match self {
            Self::Forgotten(mark) | Self::Needed(mark) => Some(mark),
            Self::Value | Self::Message => None,
        }
    }
}

const fn certain(open: &'static str, holds: &'static [Holds], end: End) -> Form {
    Form { open, is_part: false, place: Place::Anywhere, holds, end, is_certain: true }
}

const fn fence(open: &'static str) -> Form {
    let (holds, end) = (&[Holds::Json] as &[Holds], End::Needed("```"));
    Form { open, is_part: false, place: Place::Line, holds, end, is_certain: false }
}

const fn whole(open: &'static str, holds: &'static [Holds]) -> Form {
    Form { open, is_part: true, place: Place::Message, holds, end: End::Message, is_certain: false }
}

const TAGGED_JSON: &Form = &certain("<tool_call>", &[Holds::Json], End::Forgotten("</tool_call>"));
const TAGGED: &Form = &certain("<tool_call>", &[Holds::Json, Holds::Markup], End::Forgotten("</tool_call>"));
const CALLS: &Form = &certain("<function_calls>", &[Holds::Markup], End::Forgotten("</function_calls>"));
// Qwen's coder forgets `<tool_call>` and remembers `</tool_call>`.
const FUNCTION: &Form =
    &Form { is_part: true, ..certain("<function=", &[Holds::Markup], End::Forgotten("</tool_call>")) };
const INVOKE: &Form =
    &Form { is_part: true, ..certain("<invoke ", &[Holds::Markup], End::Forgotten("</function_calls>")) };
const MISTRAL: &Form = &certain("[TOOL_CALLS]", &[Holds::Json, Holds::Named], End::Value);
const PYTHON_TAGS: &Form = &certain("<|python_start|>", &[Holds::Python], End::Forgotten("<|python_end|>"));
const PYTHON: &Form =
    &Form { is_part: true, place: Place::Line, ..certain("[", &[Holds::Python], End::Value) };
const FENCED_JSON: &Form = &fence("```json");
const FENCED_CALL: &Form = &fence("```tool_call");
const FENCED: &Form = &fence("```\n");
const WHOLE_OBJECT: &Form = &whole("{", &[Holds::Json]);
const WHOLE_LIST: &Form = &whole("[", &[Holds::Json]);
const WHOLE_LIST_OF_EITHER: &Form = &whole("[", &[Holds::Json, Holds::Python]);

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
        let Some(mut scanner) = Scanner::new(self, || Known::of(tools)) else { return Vec::new() };
        let pieces = scanner.feed(text).into_iter().chain(scanner.finish());
        let found = pieces.filter_map(|piece| match piece {
            Piece::Call(found) => Some(found),
            Piece::Text(_) => None,
        });
        let call = |(at, found): (usize, Found)| ToolCall {
            id: format!("text-call-{at}").into(),
            name: found.name.into(),
            input: Input::Json(found.arguments),
        };
        found.enumerate().map(call).collect()
    }

    /// The forms to look for; where two begin alike, the longer comes first.
    fn forms(self) -> &'static [&'static Form] {
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
const CAUTIOUS: &[&Form] = &[
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
pub(crate) struct Found {
    pub(crate) name: String,
    /// JSON text; without its end where the model's text had none.
    pub(crate) arguments: String,
}
