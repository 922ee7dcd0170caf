//! The builtin model: plans tool calls from plain language, English and Chinese, by rules. It needs no server and no key.
//!
//! `reading` takes a request apart, `goal` says what it wants, `steps` how that is reached, `results` what came back, and
//! `phrases` how the answer reads. `docs/builtin.md` says what it can do.

mod goal;
mod names;
mod phrases;
mod pieces;
mod reading;
mod results;
mod run;
mod steps;
mod words;

use std::{collections::VecDeque, sync::Arc};

use windlass_contract::{
    Body, BoxFuture, Cached, Content, Input, Item, ModelClient, ModelError, ModelEvent, ModelInfo,
    ModelStream, Prompt, Role, ToolCall,
};

use crate::text;
use goal::Goal;
use phrases::{Language, Phrase};
use reading::Reading;
use run::{Next, Run};

/// The name of the provider, of its only model and of its wire.
pub const BUILTIN: &str = "builtin";

/// How much of a request is read. What a person wants is said in less.
const LONGEST_REQUEST_BYTES: usize = 16 * 1024;

/// How long an answer may be.
const MOST_LINES: usize = 200;
const LONGEST_LINE_BYTES: usize = 500;

/// The model that is always there.
pub fn builtin() -> Arc<dyn ModelClient> {
    let [provider, model] = [BUILTIN, BUILTIN].map(str::to_owned);
    let info = ModelInfo { provider, model, wire: BUILTIN, request_retries: 0, stream_retries: 0 };
    Arc::new(Planner { info })
}

struct Planner {
    info: ModelInfo,
}

impl ModelClient for Planner {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let mut events = VecDeque::new();
        if prompt.output_schema.is_some() {
            let notice = "the builtin model answers in plain text; the output schema is not used";
            events.push_back(ModelEvent::Notice(notice.to_owned()));
        }
        let body = match next(prompt.history) {
            Next::Call { tool, input } => {
                let id = format!("{BUILTIN}_{}", prompt.history.len()).into();
                Body::Call(ToolCall { id, name: tool.into(), input: Input::Json(input) })
            }
            Next::Say(text) => {
                events.push_back(ModelEvent::TextDelta(text.clone()));
                Body::Message { role: Role::Assistant, content: vec![Content::Text(text)] }
            }
        };
        events.push_back(ModelEvent::Item(body.into()));
        events.push_back(ModelEvent::Completed { usage: None, more: false });
        Box::pin(async { Ok(Box::new(Answer(events)) as Box<dyn ModelStream>) })
    }
}

/// What is left of an answer.
struct Answer(VecDeque<ModelEvent>);

impl ModelStream for Answer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async { self.0.pop_front().map(Ok) })
    }
}

/// What comes next in a conversation.
fn next(history: &[Cached<Item>]) -> Next {
    let run = Run::new(history);
    if run.request.len() > LONGEST_REQUEST_BYTES {
        return run.ends(Phrase::TooLong, &[&LONGEST_REQUEST_BYTES.to_string()]);
    }
    let reading = Reading::new(&run.request);
    match run.reach(&Goal::of(&reading), &reading) {
        Ok(answer) | Err(Next::Say(answer)) => Next::Say(bounded(&answer, run.language)),
        Err(call) => call,
    }
}

/// An answer that a person reads to its end.
fn bounded(answer: &str, language: Language) -> String {
    let lines = answer.lines().count();
    let kept = answer.lines().take(MOST_LINES).map(|line| text::cut(line, LONGEST_LINE_BYTES));
    let kept = kept.collect::<Vec<_>>().join("\n");
    match lines.saturating_sub(MOST_LINES) {
        0 => kept,
        more => format!("{kept}\n{}", language.say(Phrase::More, &[&more.to_string()])),
    }
}
