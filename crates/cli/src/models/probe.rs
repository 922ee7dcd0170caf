//! Puts the tasks to a model, one way of calling after the other, until all calls go well.

use std::time::{Duration, Instant};

use tokio::time;
use windlass::{
    Body, Cached, Content, ModelClient, ModelError, ModelEvent, Prompt, ThreadId, ToolCall, ToolSpec,
    model::{Dialect, Options, Provider, WireApi},
};

use super::tasks::{INSTRUCTIONS, TASKS, Task, tools};
use crate::{exit::Exit, problem::Problem, setup::Served};

/// The longest one answer is waited for.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);
/// The most tokens of an answer, unless the configuration says: small models that go astray do not come back.
const ANSWER_TOKENS: u64 = 1024;
/// A way in which so many calls went wrong and none went well is given up.
const HOPELESS: usize = 2;
/// The dialects to tell tools in, the most common first.
const TOLD: [Dialect; 5] =
    [Dialect::Hermes, Dialect::Json, Dialect::Xml, Dialect::Pythonic, Dialect::Mistral];

/// How calls are read, and whether the tools are told in the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) dialect: Dialect,
    pub(super) is_told: bool,
}

impl Way {
    /// How a provider is set up.
    pub(super) fn of(provider: &Provider) -> Self {
        Self { dialect: provider.tool_dialect.unwrap_or_default(), is_told: provider.tool_prompt }
    }
}

/// The tasks, one way.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) way: Way,
    pub(super) done: Vec<Done>,
}

/// What came of one task.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) task: &'static Task,
    /// What was wrong, if something was.
    pub(super) wrong: Option<String>,
    pub(super) took: Duration,
    /// What the model wrote beside its calls.
    text: String,
}

impl Trial {
    pub(super) fn score(&self) -> usize {
        self.done.iter().filter(|done| done.wrong.is_none()).count()
    }

    /// How many calls went well.
    pub(super) fn called(&self) -> usize {
        self.done.iter().filter(|done| done.wrong.is_none() && done.task.wants_call()).count()
    }

    fn is_hopeless(&self) -> bool {
        self.called() == 0 && self.done.iter().filter(|done| done.task.wants_call()).count() >= HOPELESS
    }
}

/// Why probing ended before all was known.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stopped {
    TimeUp,
    Interrupted,
}

impl Stopped {
    pub(super) fn said(self) -> &'static str {
        match self {
            Self::TimeUp => "the time was up; `--time-limit` gives more",
            Self::Interrupted => "interrupted",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TimeUp => "time_up",
            Self::Interrupted => "interrupted",
        }
    }

    pub(super) fn exit(self) -> Exit {
        match self {
            Self::TimeUp => Exit::Limit,
            Self::Interrupted => Exit::Interrupted,
        }
    }
}

/// A model under examination. What was found out survives when [`run`](Self::run) is dropped.
pub(super) struct Probing<'a> {
    served: Served<'a>,
    tools: Cached<Vec<ToolSpec>>,
    trials: Vec<Trial>,
    has_answered: bool,
    first_error: Option<ModelError>,
}

impl<'a> Probing<'a> {
    pub(super) fn new(served: &Served<'a>) -> Result<Self, Problem> {
        let limit = served.options.max_output_tokens.or(Some(ANSWER_TOKENS));
        let options = Options { max_output_tokens: limit, ..served.options.clone() };
        let tools = tools().map_err(|error| Problem::failed(error.to_string()))?;
        Ok(Self {
            served: Served { id: served.id, provider: served.provider, options },
            tools: Cached::new(tools),
            trials: Vec::new(),
            has_answered: false,
            first_error: None,
        })
    }

    pub(super) fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Tries ways until one does all calls: nothing else depends on the way. An error is one that no way could do anything about.
    pub(super) async fn run(&mut self) -> Result<(), ModelError> {
        let native = Way { dialect: Dialect::Native, is_told: false };
        if self.calls_all(native).await? || self.served.provider.wire_api != WireApi::Chat {
            return self.unless_silent();
        }
        if let Some(dialect) = self.readable()
            && self.calls_all(Way { dialect, is_told: false }).await?
        {
            return Ok(());
        }
        for dialect in TOLD {
            if self.calls_all(Way { dialect, is_told: true }).await? {
                return Ok(());
            }
        }
        self.unless_silent()
    }

    /// A server that has answered nothing at all has a problem of another kind.
    fn unless_silent(&mut self) -> Result<(), ModelError> {
        match self.first_error.take() {
            Some(error) if !self.has_answered => Err(error),
            _ => Ok(()),
        }
    }

    async fn calls_all(&mut self, way: Way) -> Result<bool, ModelError> {
        let provider = Provider {
            tool_dialect: Some(way.dialect),
            tool_prompt: way.is_told,
            ..self.served.provider.clone()
        };
        let client = self.served.connect(&provider)?;
        let at = self.trials.len();
        self.trials.push(Trial { way, done: Vec::new() });
        for task in &TASKS {
            let done = self.ask(client.as_ref(), task).await?;
            let verdict = done.wrong.as_deref().unwrap_or("right");
            crate::note(&format!("{way}: {}: {verdict} ({:.1} s)", task.name, done.took.as_secs_f64()));
            self.trials[at].done.push(done);
            if self.trials[at].is_hopeless() {
                break;
            }
        }
        Ok(self.trials[at].called() == TASKS.iter().filter(|task| task.wants_call()).count())
    }

    async fn ask(&mut self, client: &dyn ModelClient, task: &'static Task) -> Result<Done, ModelError> {
        let (start, mut said) = (Instant::now(), Said::default());
        let history = (task.history)();
        let prompt = Prompt {
            thread: &ThreadId::from("probe"),
            instructions: INSTRUCTIONS,
            history: &history,
            tools: &self.tools,
            parallel_calls: true,
            output_schema: None,
        };
        let wrong = match time::timeout(ANSWER_LIMIT, said.listen(client, prompt)).await {
            Err(_) => Some(format!("no whole answer within {} s", ANSWER_LIMIT.as_secs())),
            Ok(Ok(())) => {
                self.has_answered = true;
                task.judge(&said.calls, &said.text).err()
            }
            Ok(Err(error)) if is_final(&error) => return Err(error),
            Ok(Err(error)) => {
                let wrong = error.to_string();
                self.first_error.get_or_insert(error);
                Some(wrong)
            }
        };
        Ok(Done { task, wrong, took: start.elapsed(), text: said.text })
    }

    /// The dialect in which the answers so far hold more right calls than the server has taken out.
    fn readable(&self) -> Option<Dialect> {
        let native = self.trials.first()?;
        let right_in = |dialect: Dialect| {
            let right = native.done.iter().filter(|done| {
                let calls = dialect.calls_in(&done.text, self.tools.get());
                done.task.wants_call() && done.wrong.is_some() && done.task.judge(&calls, "").is_ok()
            });
            right.count()
        };
        let counted = Dialect::ALL.into_iter().map(|dialect| (right_in(dialect), dialect));
        // The first of those that find the most.
        let best = counted.rev().max_by_key(|(right, _)| *right)?;
        (best.0 > 0).then_some(best.1)
    }
}

/// An answer as far as it came.
#[derive(Debug, Default)]
struct Said {
    calls: Vec<ToolCall>,
    text: String,
}

impl Said {
    async fn listen(&mut self, client: &dyn ModelClient, prompt: Prompt<'_>) -> Result<(), ModelError> {
        let mut answer = match client.open(prompt).await {
            // Some servers close a connection that was kept for the next request.
            Err(ModelError::Unreachable { .. }) => client.open(prompt).await?,
            opened => opened?,
        };
        while let Some(event) = answer.next().await {
            // Not every wire sends text in pieces; every one has it whole.
            let ModelEvent::Item(item) = event? else { continue };
            match item.body {
                Body::Call(call) => self.calls.push(call),
                Body::Message { content, .. } => self.text.push_str(&Content::join(&content)),
                Body::Reasoning { .. } | Body::Output { .. } | Body::WebSearch { .. } | Body::Other => {}
            }
        }
        Ok(())
    }
}

/// Whether every other request would fail in the same way.
fn is_final(error: &ModelError) -> bool {
    match error {
        ModelError::MissingKey { .. }
        | ModelError::Provider { .. }
        | ModelError::Unreachable { .. }
        | ModelError::Unauthorized { .. }
        | ModelError::RateLimited { .. }
        | ModelError::QuotaExceeded { .. }
        | ModelError::NotAStream { .. }
        | ModelError::Script { .. } => true,
        ModelError::Status { status, .. } => *status == 404,
        ModelError::ContextWindowExceeded
        | ModelError::Overloaded { .. }
        | ModelError::InvalidRequest { .. }
        | ModelError::Failed { .. }
        | ModelError::StreamBroken { .. }
        | ModelError::Unreadable { .. }
        | ModelError::Idle { .. }
        | ModelError::Unending { .. }
        | ModelError::TooLarge { .. }
        | ModelError::Cut { .. } => false,
    }
}
