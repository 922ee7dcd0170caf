//! A plan at work. A plan is an ordinary function that asks for results as it goes. It is run from its beginning for every
//! answer: what was done before is looked up in the conversation, and the first result that is not there yet is what the
//! model does next. So nothing is remembered beside the conversation, and a resumed session goes on where it was.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
};

use serde_json::Value;
use windlass_contract::{Body, Cached, CallId, Content, Item, Role};

use super::{
    parsed_request::SearchScope,
    phrases::{AnswerLanguage, AnswerPhrase},
    tokens::{RequestToken, tokenize},
};

/// The most calls of one turn.
const MAX_CALLS: usize = 10;

/// How many turns before this one can be referred to, and how much of an answer.
const MAX_EARLIER_TURNS: usize = 10;
pub(super) const MAX_REMEMBERED_LOCATIONS: usize = 200;

/// Tools that start programs.
const RUNNING_TOOLS: [&str; 2] = ["shell_command", "run_tests"];

/// Tools that only look.
const READING_TOOLS: [&str; 3] = ["list_dir", "grep_files", "read_file"];

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextAction {
    /// It asks for a call.
    Call { tool: &'static str, input: String, announcement: Option<String> },
    /// It answers, and the turn is over.
    Say(String),
    /// It says why it does not do it, or what it must know first, and the turn is over.
    Decline(String),
}

/// A result, or what must happen before there is one.
pub(super) type PlanResult<T> = Result<T, NextAction>;

/// What was said and done since the user last spoke.
pub(super) struct PlanRun<'a> {
    pub(super) language: AnswerLanguage,
    /// What the user said.
    pub(super) request: String,
    /// Whether nothing may be run.
    pub(super) runs_nothing: bool,
    environment: SessionEnvironment<'a>,
    done: Vec<RecordedCall<'a>>,
    /// A plan only asks and tells, so it is handed around unchanged; this is what it leaves.
    remembered: RefCell<Vec<FileLocation>>,
    /// What was understood, said before the first call that does more than look.
    announced: RefCell<Option<String>>,
    /// The calls of this part of the request begin here: what an earlier part saw may have changed since.
    part_start: Cell<usize>,
    /// How many calls the plan has looked up.
    looked_up: Cell<usize>,
}

struct RecordedCall<'a> {
    id: &'a CallId,
    tool: &'a str,
    input: &'a str,
    output: Option<String>,
}

/// Something an answer told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileLocation {
    /// From the working directory on; that of a directory ends in `/`.
    pub(super) path: String,
    pub(super) line: Option<u64>,
}

impl<'a> PlanRun<'a> {
    fn new(request: String, environment: SessionEnvironment<'a>) -> Self {
        Self {
            language: AnswerLanguage::detect(&request),
            request,
            runs_nothing: false,
            environment,
            done: Vec::new(),
            remembered: RefCell::default(),
            announced: RefCell::default(),
            part_start: Cell::default(),
            looked_up: Cell::default(),
        }
    }

    /// Goes on with the next part of the request.
    pub(super) fn start_part(&self) {
        self.part_start.set(self.looked_up.get());
        self.announced.take();
    }

    /// Says what was understood before anything is changed.
    pub(super) fn announce(&self, text: String) {
        self.announced.replace(Some(text));
    }

    /// The last turns of a conversation in the directory where it is now; the one at work is apart.
    pub(super) fn turns(history: &'a [Cached<Item>]) -> (VecDeque<Self>, Self) {
        let mut earlier = VecDeque::new();
        let mut environment = SessionEnvironment::default();
        let mut run = Self::new(String::new(), environment);
        for item in history {
            match &item.get().body {
                Body::Message { role: Role::User, content } => {
                    if let Some(found) = parse_environment(content) {
                        environment = found;
                    } else {
                        let next = Self::new(Content::join(content), environment);
                        earlier.push_back(std::mem::replace(&mut run, next));
                    }
                }
                Body::Call(call) => {
                    let input = call.input.as_str();
                    run.done.push(RecordedCall {
                        id: &call.id,
                        tool: call.name.as_str(),
                        input,
                        output: None,
                    });
                }
                Body::Output { call, content, .. } => {
                    if let Some(done) = run.done.iter_mut().find(|done| done.id == call) {
                        done.output = Some(output_text(content));
                    }
                }
                Body::Message { .. } | Body::Reasoning { .. } | Body::WebSearch { .. } | Body::Other => {}
            }
            earlier.drain(..earlier.len().saturating_sub(MAX_EARLIER_TURNS));
        }
        // Elsewhere, what was told is called otherwise.
        earlier.retain(|turn| turn.environment.cwd == run.environment.cwd);
        (earlier, run)
    }

    /// The answer tells of this, so that the next request can refer to it.
    pub(super) fn remember(&self, path: &str, line: Option<u64>) {
        let mut told = self.remembered.borrow_mut();
        let place = FileLocation { path: self.relative_path(path).to_owned(), line };
        if told.len() < MAX_REMEMBERED_LOCATIONS && !told.contains(&place) {
            told.push(place);
        }
    }

    /// The answer tells of these files.
    pub(super) fn remember_all<'p>(&self, paths: impl IntoIterator<Item = &'p str>) {
        for path in paths {
            self.remember(path, None);
        }
    }

    /// What the answer tells of.
    pub(super) fn remembered(&self) -> Vec<FileLocation> {
        self.remembered.borrow().clone()
    }

    /// What came of a call.
    pub(super) fn call(&self, tool: &'static str, arguments: &Value) -> PlanResult<&str> {
        if self.runs_nothing && RUNNING_TOOLS.contains(&tool) {
            return Err(self.decline(AnswerPhrase::RunsNothing, &[]));
        }
        let input = arguments.to_string();
        let same = |done: &RecordedCall<'_>| done.tool == tool && done.input == input;
        let at = (self.part_start.get()..self.done.len()).find(|at| same(&self.done[*at]));
        self.looked_up.set(self.looked_up.get().max(at.map_or(0, |at| at + 1)));
        match at.and_then(|at| self.done[at].output.as_deref()) {
            Some(output) => Ok(output),
            None if self.done.len() >= MAX_CALLS => {
                Err(self.decline(AnswerPhrase::TooMany, &[&MAX_CALLS.to_string()]))
            }
            None => {
                let announcement = self.announced.take().filter(|_| !READING_TOOLS.contains(&tool));
                Err(NextAction::Call { tool, input, announcement })
            }
        }
    }

    /// Whether this can only be a text to look for: it is quoted, or looks like a part of a program.
    pub(super) fn is_text(&self, text: &str) -> bool {
        tokenize(&self.request).iter().any(
            |token| matches!(token, RequestToken::Quoted(said) | RequestToken::Symbol(said) | RequestToken::Name(said) if said == text),
        )
    }

    /// Whether a scope is sure to hold what was meant: a kind of files has more endings than are known here.
    pub(super) fn is_certain(&self, scope: &SearchScope) -> bool {
        scope.glob.as_deref().is_none_or(|glob| self.is_text(glob))
    }

    /// A phrase in the language of the request.
    pub(super) fn say(&self, phrase: AnswerPhrase, blanks: &[&str]) -> String {
        self.language.say(phrase, blanks)
    }

    /// A phrase that ends the turn with what was asked for not done.
    pub(super) fn decline(&self, phrase: AnswerPhrase, blanks: &[&str]) -> NextAction {
        NextAction::Decline(self.say(phrase, blanks))
    }

    /// A number, which may be larger where not everything was counted.
    pub(super) fn count_text(&self, count: &impl ToString, more: bool) -> String {
        let count = count.to_string();
        if more { self.say(AnswerPhrase::AtLeast, &[&count]) } else { count }
    }

    /// A tool did not do it; what it said is for the user.
    pub(super) fn failed(&self, output: &str) -> NextAction {
        let said = self.say(AnswerPhrase::Failed, &[output.trim()]);
        // A command's result says itself which path was refused, and how to allow it.
        let read_only = output.contains("read-only sandbox");
        NextAction::Decline(if read_only {
            format!("{said}\n{}", self.say(AnswerPhrase::ReadOnly, &[]))
        } else {
            said
        })
    }

    /// Whether what a command writes there is gone when the session ends.
    pub(super) fn is_temporary(&self, path: &str) -> bool {
        let SessionEnvironment { cwd, sandboxed, roots } = self.environment;
        let mut parts = Vec::new();
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
        for part in whole.split('/').filter(|part| !part.is_empty() && *part != ".") {
            match part {
                ".." => parts.truncate(parts.len().saturating_sub(1)),
                part => parts.push(part),
            }
        }
        let whole = format!("/{}/", parts.join("/"));
        let is_in = |root: &str| whole.starts_with(&format!("{}/", root.trim_end_matches('/')));
        let mut roots = roots.split("<root>").skip(1).filter_map(|rest| Some(rest.split_once("</root>")?.0));
        sandboxed && parts.first() == Some(&"tmp") && !is_in(cwd) && !roots.any(is_in)
    }

    /// A path as people write it here.
    pub(super) fn relative_path<'p>(&self, path: &'p str) -> &'p str {
        let inside = path.strip_prefix(self.environment.cwd).filter(|_| !self.environment.cwd.is_empty());
        inside.and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
    }
}

/// Where work happens, and behind what.
#[derive(Clone, Copy, Default)]
struct SessionEnvironment<'a> {
    cwd: &'a str,
    /// Whether commands run in a sandbox, which has a `/tmp` of its own.
    sandboxed: bool,
    /// Where they may write besides, each as `<root>PATH</root>`.
    roots: &'a str,
}

/// What the program around the model says of that, if it does here.
fn parse_environment(content: &[Content]) -> Option<SessionEnvironment<'_>> {
    let [Content::Text(text)] = content else { return None };
    let inner = text.strip_prefix("<environment_context>")?;
    let told = |open: &str, close: &str| Some(inner.split_once(open)?.1.split_once(close)?.0);
    let mode = told("<sandbox_mode>", "</sandbox_mode>");
    let sandboxed = mode.is_some_and(|mode| ["read-only", "workspace-write"].contains(&mode));
    let roots = told("<writable_roots>", "</writable_roots>").unwrap_or_default();
    Some(SessionEnvironment { cwd: told("<cwd>", "</cwd>").unwrap_or_default(), sandboxed, roots })
}

/// What a tool said, without what Windlass thinks of it: that is for models, which can think about it too.
fn output_text(content: &[Content]) -> String {
    let mut text = Content::join(content);
    let last = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
    if text[last..].starts_with("Verdict: ") {
        text.truncate(last);
    }
    text
}
