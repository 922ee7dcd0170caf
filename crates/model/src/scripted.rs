//! A model that answers from a file, for tests, demos and bug reports. Deterministic: it uses no
//! server, clock or random numbers.
#![doc = include_str!("../../../docs/scripts.md")]

use std::{collections::VecDeque, fs, path::Path, sync::Mutex};

use serde::Deserialize;
use serde_json::Value;
use windlass_contract::{
    BoxFuture, Content, Input, Item, ToolCall,
    item::{Body, Cached, Raw, Role},
    model::{Finish, ModelClient, ModelError, ModelEvent, ModelInfo, ModelStream, Prompt},
    wording::counted,
};

use crate::WireApi;

/// Number of deltas that a text is split into.
const PIECES_PER_TEXT: usize = 4;

/// A client that plays a script.
#[derive(Debug)]
pub(crate) struct ScriptedClient {
    info: ModelInfo,
    path: String,
    turns: Vec<ScriptTurn>,
    /// Turns that failed, which may leave no trace in history: the turn they followed, and their
    /// number.
    failures: Mutex<(usize, usize)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Script")]
struct ModelScript {
    turns: Vec<ScriptTurn>,
}

/// One scripted answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "TurnFields")]
struct ScriptTurn {
    bodies: Vec<ScriptedBody>,
    end: TurnEnd,
}

#[derive(Debug, Clone)]
enum ScriptedBody {
    Reasoning(String),
    Text(String),
    Call(ScriptCall),
}

#[derive(Debug, Clone)]
enum TurnEnd {
    Completed,
    Error(String),
    Broken(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnFields {
    reasoning: Option<String>,
    text: Option<String>,
    #[serde(default)]
    calls: Vec<ScriptCall>,
    error: Option<String>,
    broken: Option<String>,
}

impl TryFrom<TurnFields> for ScriptTurn {
    type Error = &'static str;

    fn try_from(fields: TurnFields) -> Result<Self, Self::Error> {
        let reasoning = fields.reasoning.map(ScriptedBody::Reasoning);
        let text = fields.text.map(ScriptedBody::Text);
        let calls = fields.calls.into_iter().map(ScriptedBody::Call);
        let bodies: Vec<_> = reasoning.into_iter().chain(text).chain(calls).collect();
        let end = match (fields.error, fields.broken) {
            (Some(_), Some(_)) => return Err("a turn ends in `error` or in `broken`, not in both"),
            (Some(message), None) => TurnEnd::Error(message),
            (None, Some(cause)) => TurnEnd::Broken(cause),
            (None, None) if bodies.is_empty() => {
                return Err("a turn needs at least one of `reasoning`, `text`, `calls`, `error`, `broken`");
            }
            (None, None) => TurnEnd::Completed,
        };
        Ok(Self { bodies, end })
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "CallFields")]
struct ScriptCall {
    name: String,
    input: Input,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallFields {
    name: String,
    arguments: Option<Value>,
    input: Option<String>,
}

impl TryFrom<CallFields> for ScriptCall {
    type Error = &'static str;

    fn try_from(fields: CallFields) -> Result<Self, Self::Error> {
        let input = match (fields.arguments, fields.input) {
            (Some(Value::String(text)), None) => Input::Json(text),
            (Some(arguments), None) => Input::Json(arguments.to_string()),
            (None, Some(text)) => Input::Text(text),
            _ => return Err("a call needs either `arguments` or `input`"),
        };
        Ok(Self { name: fields.name, input })
    }
}

impl ScriptedClient {
    pub(crate) fn new(info: ModelInfo, path: &Path) -> Result<Self, ModelError> {
        let shown = path.display().to_string();
        let unread =
            |error| ModelError::Script { path: shown.clone(), problem: format!("cannot be read: {error}") };
        let text = fs::read_to_string(path).map_err(unread)?;
        Self::parse(info, shown, &text)
    }

    /// Parses a script; error messages call it `path`.
    pub(crate) fn parse(info: ModelInfo, path: String, text: &str) -> Result<Self, ModelError> {
        match serde_json::from_str::<ModelScript>(text) {
            Ok(script) => Ok(Self { info, path, turns: script.turns, failures: Mutex::default() }),
            Err(error) => Err(ModelError::Script { path, problem: error.to_string() }),
        }
    }

    /// Returns the next turn and its number. It follows the last turn that left an item in history,
    /// so that a resumed session continues, or the failures played since.
    fn next(&self, history: &[Cached<Item>]) -> Result<(usize, &ScriptTurn), ModelError> {
        let begin = history.iter().rev().find_map(|item| played(item.get())).map_or(0, |last| last + 1);
        let mut failures = self.failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if failures.0 != begin {
            *failures = (begin, 0);
        }
        let number = begin + failures.1;
        let turn = self.turns.get(number).ok_or_else(|| ModelError::Script {
            path: self.path.clone(),
            problem: format!(
                "it has {}, and the model was asked for one more",
                counted(self.turns.len(), "turn")
            ),
        })?;
        if !matches!(turn.end, TurnEnd::Completed) {
            failures.1 += 1;
        }
        Ok((number, turn))
    }
}

/// Returns the number of the turn that an item came from.
fn played(item: &Item) -> Option<usize> {
    #[derive(Deserialize)]
    struct TurnMark {
        turn: usize,
    }
    let raw = item.raw.as_ref().filter(|raw| raw.wire == WireApi::Scripted.name())?;
    serde_json::from_str::<TurnMark>(raw.json.get()).ok().map(|mark| mark.turn)
}

impl ScriptTurn {
    fn events(&self, number: usize) -> ScriptPlayback {
        let mut events = VecDeque::new();
        for (place, said) in self.bodies.iter().enumerate() {
            let body = match said {
                ScriptedBody::Reasoning(text) => {
                    events.extend(pieces(text).map(|piece| Ok(ModelEvent::ReasoningDelta(piece))));
                    Body::Reasoning { summary: vec![text.clone()], text: vec![] }
                }
                ScriptedBody::Text(text) => {
                    events.extend(pieces(text).map(|piece| Ok(ModelEvent::TextDelta(piece))));
                    Body::Message { role: Role::Assistant, content: vec![Content::Text(text.clone())] }
                }
                ScriptedBody::Call(call) => Body::Call(ToolCall {
                    id: format!("call_{number}_{place}").into(),
                    name: call.name.as_str().into(),
                    input: call.input.clone(),
                }),
            };
            events.push_back(Ok(ModelEvent::Item(Item { body, raw: mark(number) })));
        }
        events.push_back(match &self.end {
            TurnEnd::Completed => Ok(ModelEvent::Completed { usage: None, finish: Finish::Done }),
            TurnEnd::Error(message) => {
                Err(ModelError::InvalidRequest { status: 400, message: message.clone() })
            }
            TurnEnd::Broken(cause) => Err(ModelError::StreamBroken { cause: cause.clone() }),
        });
        ScriptPlayback(events)
    }
}

fn mark(number: usize) -> Option<Raw> {
    let json = serde_json::value::to_raw_value(&serde_json::json!({"turn": number})).ok()?;
    Some(Raw { wire: WireApi::Scripted.name().into(), json })
}

/// Splits a text into deltas, as a server would send it.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(PIECES_PER_TEXT).max(1);
    chars.chunks(size).map(|piece| piece.iter().collect()).collect::<Vec<String>>().into_iter()
}

impl ModelClient for ScriptedClient {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        Box::pin(async move {
            let (number, turn) = self.next(prompt.history)?;
            Ok(Box::new(turn.events(number)) as Box<dyn ModelStream>)
        })
    }
}

/// The remaining events of an answer.
#[derive(Debug)]
struct ScriptPlayback(VecDeque<Result<ModelEvent, ModelError>>);

impl ModelStream for ScriptPlayback {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async move { self.0.pop_front() })
    }
}

#[cfg(test)]
mod tests;
