//! A plan at work. A plan is an ordinary function that asks for results as it goes. It is run from its beginning for every
//! answer: what was done before is looked up in the conversation, and the first result that is not there yet is what the
//! model does next. So nothing is remembered beside the conversation, and a resumed session goes on where it was.

use serde_json::Value;
use windlass_contract::{Body, Cached, CallId, Content, Item, Role};

use super::phrases::{Language, Phrase};

/// The most calls of one turn.
const MOST_CALLS: usize = 10;

/// Tools that start programs.
const RUNNERS: [&str; 2] = ["shell_command", "run_tests"];

/// What the model does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// It asks for a call.
    Call { tool: &'static str, input: String },
    /// It says something, and the turn is over.
    Say(String),
}

/// A result, or what must happen before there is one.
pub(super) type Planned<T> = Result<T, Next>;

/// What was said and done since the user last spoke.
pub(super) struct Run<'a> {
    pub(super) language: Language,
    /// What the user said.
    pub(super) request: String,
    /// Whether nothing may be run.
    pub(super) runs_nothing: bool,
    /// Where work happens.
    cwd: &'a str,
    done: Vec<Done<'a>>,
}

struct Done<'a> {
    id: &'a CallId,
    tool: &'a str,
    input: &'a str,
    output: Option<String>,
}

impl<'a> Run<'a> {
    /// Reads a conversation.
    pub(super) fn new(history: &'a [Cached<Item>]) -> Self {
        let mut run = Self {
            language: Language::English,
            request: String::new(),
            runs_nothing: false,
            cwd: "",
            done: Vec::new(),
        };
        for item in history {
            match &item.get().body {
                Body::Message { role: Role::User, content } => run.heard(content),
                Body::Call(call) => {
                    let input = call.input.as_str();
                    run.done.push(Done { id: &call.id, tool: call.name.as_str(), input, output: None });
                }
                Body::Output { call, content, .. } => {
                    if let Some(done) = run.done.iter_mut().find(|done| done.id == call) {
                        done.output = Some(without_verdict(content));
                    }
                }
                Body::Message { .. } | Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {}
            }
        }
        run.language = Language::of(&run.request);
        run
    }

    /// The user spoke, or the program around the model said where it works.
    fn heard(&mut self, content: &'a [Content]) {
        if let [Content::Text(text)] = content
            && text.starts_with("<environment_context>")
        {
            let cwd = text.split_once("<cwd>").and_then(|(_, rest)| rest.split_once("</cwd>"));
            self.cwd = cwd.map_or("", |(cwd, _)| cwd);
            return;
        }
        self.request = Content::join(content);
        self.done.clear();
    }

    /// What came of a call.
    pub(super) fn call(&self, tool: &'static str, arguments: &Value) -> Planned<&str> {
        if self.runs_nothing && RUNNERS.contains(&tool) {
            return Err(self.ends(Phrase::RunsNothing, &[]));
        }
        let input = arguments.to_string();
        let done = self.done.iter().find(|done| done.tool == tool && done.input == input);
        match done.and_then(|done| done.output.as_deref()) {
            Some(output) => Ok(output),
            None if self.done.len() >= MOST_CALLS => {
                Err(self.ends(Phrase::TooMany, &[&MOST_CALLS.to_string()]))
            }
            None => Err(Next::Call { tool, input }),
        }
    }

    /// A phrase in the language of the request.
    pub(super) fn say(&self, phrase: Phrase, blanks: &[&str]) -> String {
        self.language.say(phrase, blanks)
    }

    /// A phrase that ends the turn.
    pub(super) fn ends(&self, phrase: Phrase, blanks: &[&str]) -> Next {
        Next::Say(self.say(phrase, blanks))
    }

    /// A number, which may be larger where not everything was counted.
    pub(super) fn number(&self, count: &impl ToString, more: bool) -> String {
        let count = count.to_string();
        if more { self.say(Phrase::AtLeast, &[&count]) } else { count }
    }

    /// A tool did not do it; what it said is for the user.
    pub(super) fn failed(&self, output: &str) -> Next {
        let said = self.say(Phrase::Failed, &[output.trim()]);
        let read_only =
            ["read-only sandbox", "Read-only file system"].iter().any(|sign| output.contains(sign));
        Next::Say(if read_only { format!("{said}\n{}", self.say(Phrase::ReadOnly, &[])) } else { said })
    }

    /// A path as people write it here.
    pub(super) fn short<'p>(&self, path: &'p str) -> &'p str {
        let inside = path.strip_prefix(self.cwd).filter(|_| !self.cwd.is_empty());
        inside.and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
    }
}

/// What a tool said, without what Windlass thinks of it: that is for models, which can think about it too.
fn without_verdict(content: &[Content]) -> String {
    let mut text = Content::join(content);
    let last = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
    if text[last..].starts_with("Verdict: ") {
        text.truncate(last);
    }
    text
}
