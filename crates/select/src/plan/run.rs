//! Runs a plan.
//!
//! A plan is an ordinary function that asks for the results of calls. It runs from its start for
//! every answer: results of earlier calls are looked up in the conversation. The first missing
//! result becomes the next call. So there is no state besides the conversation, and a resumed
//! session continues where it was.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
};

use serde_json::Value;
use windlass_contract::{
    CallId, Content, Item,
    item::{Body, Cached, Role},
    program_message::is_of_program,
};

use super::{
    parsed_request::SearchScope,
    phrases::{AnswerLanguage, AnswerPhrase},
    tokens::{RequestToken, tokenize},
};

/// Maximum number of calls in one turn.
const MAX_CALLS: usize = 10;

/// Maximum number of earlier turns, and of locations in an answer, that a request can refer to.
const MAX_EARLIER_TURNS: usize = 10;
pub(super) const MAX_REMEMBERED_LOCATIONS: usize = 200;

/// Tools that start programs.
const RUNNING_TOOLS: [&str; 2] = ["shell_command", "run_tests"];

/// Tools that only read.
const READING_TOOLS: [&str; 3] = ["list_dir", "grep_files", "read_file"];

/// The next action of the planner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Calls a tool.
    Call { tool: &'static str, input: String, announcement: Option<String> },
    /// Answers and ends the turn.
    Say(String),
    /// Explains why the request is not done, or asks for more information, and ends the turn.
    Decline(String),
}

/// A result, or the action that must come first.
pub(super) type PlanResult<T> = Result<T, NextAction>;

/// A turn: the request of the user and the calls since.
pub(super) struct PlanRun<'a> {
    pub(super) language: AnswerLanguage,
    /// The text of the user.
    pub(super) request: String,
    /// True if nothing may be run.
    pub(super) runs_nothing: bool,
    environment: SessionEnvironment<'a>,
    done: Vec<RecordedCall<'a>>,
    /// Locations that the answer mentions. Plans share the run immutably, so this is a cell.
    remembered: RefCell<Vec<FileLocation>>,
    /// An announcement that is shown before the first call that does more than read.
    announced: RefCell<Option<String>>,
    /// The index of the first call of this part of the request. Results from earlier parts may be
    /// outdated.
    part_start: Cell<usize>,
    /// The number of calls that the plan has looked up.
    looked_up: Cell<usize>,
}

struct RecordedCall<'a> {
    id: &'a CallId,
    tool: &'a str,
    input: &'a str,
    output: Option<String>,
}

/// A file or directory, or a line, that an answer mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileLocation {
    /// The path relative to the working directory; that of a directory ends in `/`.
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

    /// Starts the next part of the request.
    pub(super) fn start_part(&self) {
        self.part_start.set(self.looked_up.get());
        self.announced.take();
    }

    /// Sets the announcement that is shown before anything is changed.
    pub(super) fn announce(&self, text: String) {
        self.announced.replace(Some(text));
    }

    /// Returns the last turns of a conversation, and separately the current one. Only turns in the
    /// current working directory are kept.
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
                        let text = Content::join(content);
                        if !is_of_program(&text) {
                            let next = Self::new(text, environment);
                            earlier.push_back(std::mem::replace(&mut run, next));
                        }
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
        // In another directory the same file has another path.
        earlier.retain(|turn| turn.environment.cwd == run.environment.cwd);
        (earlier, run)
    }

    /// Records a location that the answer mentions, so that the next request can refer to it.
    pub(super) fn remember(&self, path: &str, line: Option<u64>) {
        let mut locations = self.remembered.borrow_mut();
        let place = FileLocation { path: self.relative_path(path).to_owned(), line };
        if locations.len() < MAX_REMEMBERED_LOCATIONS && !locations.contains(&place) {
            locations.push(place);
        }
    }

    /// Records files that the answer mentions.
    pub(super) fn remember_all<'p>(&self, paths: impl IntoIterator<Item = &'p str>) {
        for path in paths {
            self.remember(path, None);
        }
    }

    /// Returns the locations that the answer mentions.
    pub(super) fn remembered(&self) -> Vec<FileLocation> {
        self.remembered.borrow().clone()
    }

    /// Returns the output of a call, or asks for the call.
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

    /// Returns true if this can only be a search text: it is quoted or looks like an identifier.
    pub(super) fn is_text(&self, text: &str) -> bool {
        tokenize(&self.request).iter().any(
            |token| matches!(token, RequestToken::Quoted(quoted) | RequestToken::Symbol(quoted) | RequestToken::Name(quoted) if quoted == text),
        )
    }

    /// Returns true if the scope certainly includes the files that were meant. A kind of files can
    /// have extensions that are not known here.
    pub(super) fn is_certain(&self, scope: &SearchScope) -> bool {
        scope.glob.as_deref().is_none_or(|glob| self.is_text(glob))
    }

    /// Returns a phrase in the language of the request.
    pub(super) fn say(&self, phrase: AnswerPhrase, blanks: &[&str]) -> String {
        self.language.say(phrase, blanks)
    }

    /// Ends the turn with a phrase, without doing what was requested.
    pub(super) fn decline(&self, phrase: AnswerPhrase, blanks: &[&str]) -> NextAction {
        NextAction::Decline(self.say(phrase, blanks))
    }

    /// Formats a count, with "at least" if not everything was counted.
    pub(super) fn count_text(&self, count: &impl ToString, more: bool) -> String {
        let count = count.to_string();
        if more { self.say(AnswerPhrase::AtLeast, &[&count]) } else { count }
    }

    /// Declines with the error of a tool.
    pub(super) fn failed(&self, output: &str) -> NextAction {
        let answer = self.say(AnswerPhrase::Failed, &[output.trim()]);
        // The output of a command already names the refused path and the way to allow it.
        let read_only = output.contains("read-only sandbox");
        NextAction::Decline(if read_only {
            format!("{answer}\n{}", self.say(AnswerPhrase::ReadOnly, &[]))
        } else {
            answer
        })
    }

    /// Returns true if a file that a command writes there is lost at the end of the session.
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

    /// Returns a path relative to the working directory.
    pub(super) fn relative_path<'p>(&self, path: &'p str) -> &'p str {
        let inside = path.strip_prefix(self.environment.cwd).filter(|_| !self.environment.cwd.is_empty());
        inside.and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
    }
}

/// The working directory and the sandbox.
#[derive(Clone, Copy, Default)]
struct SessionEnvironment<'a> {
    cwd: &'a str,
    /// True if commands run in a sandbox, which has a separate `/tmp`.
    sandboxed: bool,
    /// Additional writable directories, each as `<root>PATH</root>`.
    roots: &'a str,
}

/// Parses the environment message of the agent.
fn parse_environment(content: &[Content]) -> Option<SessionEnvironment<'_>> {
    let [Content::Text(text)] = content else { return None };
    let inner = text.strip_prefix("<environment_context>")?;
    let tag = |open: &str, close: &str| Some(inner.split_once(open)?.1.split_once(close)?.0);
    let mode = tag("<sandbox_mode>", "</sandbox_mode>");
    let sandboxed = mode.is_some_and(|mode| ["read-only", "workspace-write"].contains(&mode));
    let roots = tag("<writable_roots>", "</writable_roots>").unwrap_or_default();
    Some(SessionEnvironment { cwd: tag("<cwd>", "</cwd>").unwrap_or_default(), sandboxed, roots })
}

/// Returns the output of a tool without the verdict line, which is only for models.
fn output_text(content: &[Content]) -> String {
    let mut text = Content::join(content);
    let last = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
    if text[last..].starts_with("Verdict: ") {
        text.truncate(last);
    }
    text
}
