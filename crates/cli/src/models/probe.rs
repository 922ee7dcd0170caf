//! Gives the tasks to a model, with one calling method after the other, until all calls succeed.

use std::time::{Duration, Instant};

use tokio::time;
use windlass::{
    Body, Cached, Content, ModelClient, ModelError, ModelEvent, Prompt, ThreadId, ToolCall, ToolSpec,
    model::{Dialect, Options, Provider, WireApi},
};

use super::tasks::{INSTRUCTIONS, ProbeTask, TASKS, tools};
use crate::{exit::ProgramExit, problem::CliProblem, setup::ServedModel};

/// Maximum time to wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);
/// Maximum number of tokens of an answer, unless configured: small models that loop do not stop.
const MAX_ANSWER_TOKENS: u64 = 1024;
/// A method with so many failed calls and no successful one is abandoned.
const MAX_FAILED_CALLS: usize = 2;
/// The dialects for tools in the instructions, the most common first.
const PROMPT_DIALECTS: [Dialect; 5] =
    [Dialect::Hermes, Dialect::Json, Dialect::Xml, Dialect::Pythonic, Dialect::Mistral];

/// The dialect of calls, and a flag for tools described in the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallMethod {
    pub(super) dialect: Dialect,
    pub(super) is_told: bool,
}

impl CallMethod {
    /// Returns the configured method of a provider.
    pub(super) fn from_provider(provider: &Provider) -> Self {
        Self { dialect: provider.tool_dialect.unwrap_or_default(), is_told: provider.tool_prompt }
    }
}

/// The results of the tasks with one method.
#[derive(Debug)]
pub(super) struct ProbeTrial {
    pub(super) way: CallMethod,
    pub(super) done: Vec<TaskResult>,
}

/// The result of one task.
#[derive(Debug)]
pub(super) struct TaskResult {
    pub(super) task: &'static ProbeTask,
    /// The fault, if there was one.
    pub(super) wrong: Option<String>,
    pub(super) took: Duration,
    /// The text of the model beside its calls.
    text: String,
}

impl ProbeTrial {
    pub(super) fn score(&self) -> usize {
        self.done.iter().filter(|done| done.wrong.is_none()).count()
    }

    /// Returns the number of successful calls.
    pub(super) fn called(&self) -> usize {
        self.done.iter().filter(|done| done.wrong.is_none() && done.task.wants_call()).count()
    }

    fn is_hopeless(&self) -> bool {
        self.called() == 0
            && self.done.iter().filter(|done| done.task.wants_call()).count() >= MAX_FAILED_CALLS
    }
}

/// The reason why probing ended early.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProbeStop {
    TimeUp,
    Interrupted,
}

impl ProbeStop {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::TimeUp => "the time limit was reached; raise it with `--time-limit`",
            Self::Interrupted => "interrupted",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TimeUp => "time_up",
            Self::Interrupted => "interrupted",
        }
    }

    pub(super) fn exit(self) -> ProgramExit {
        match self {
            Self::TimeUp => ProgramExit::Limit,
            Self::Interrupted => ProgramExit::Interrupted,
        }
    }
}

/// A model that is probed. Results survive when [`run`](Self::run) is dropped.
pub(super) struct ModelProbe<'a> {
    served: ServedModel<'a>,
    tools: Cached<Vec<ToolSpec>>,
    trials: Vec<ProbeTrial>,
    has_answered: bool,
    first_error: Option<ModelError>,
}

impl<'a> ModelProbe<'a> {
    pub(super) fn new(served: &ServedModel<'a>) -> Result<Self, CliProblem> {
        let limit = served.options.max_output_tokens.or(Some(MAX_ANSWER_TOKENS));
        let options = Options { max_output_tokens: limit, ..served.options.clone() };
        let tools = tools().map_err(|error| CliProblem::failed(error.to_string()))?;
        Ok(Self {
            served: ServedModel {
                id: served.id,
                provider: served.provider,
                options,
                stored_key: served.stored_key.clone(),
            },
            tools: Cached::new(tools),
            trials: Vec::new(),
            has_answered: false,
            first_error: None,
        })
    }

    pub(super) fn trials(&self) -> &[ProbeTrial] {
        &self.trials
    }

    /// Tries methods until one succeeds at all calls; the other tasks do not depend on the method.
    /// Returns an error that affects every method.
    pub(super) async fn run(&mut self) -> Result<(), ModelError> {
        let native = CallMethod { dialect: Dialect::Native, is_told: false };
        if self.calls_all(native).await? || self.served.provider.wire_api != WireApi::Chat {
            return self.unless_silent();
        }
        if let Some(dialect) = self.readable()
            && self.calls_all(CallMethod { dialect, is_told: false }).await?
        {
            return Ok(());
        }
        for dialect in PROMPT_DIALECTS {
            if self.calls_all(CallMethod { dialect, is_told: true }).await? {
                return Ok(());
            }
        }
        self.unless_silent()
    }

    /// Returns the first error of a server that has not answered at all.
    fn unless_silent(&mut self) -> Result<(), ModelError> {
        match self.first_error.take() {
            Some(error) if !self.has_answered => Err(error),
            _ => Ok(()),
        }
    }

    async fn calls_all(&mut self, way: CallMethod) -> Result<bool, ModelError> {
        let provider = Provider {
            tool_dialect: Some(way.dialect),
            tool_prompt: way.is_told,
            ..self.served.provider.clone()
        };
        let client = self.served.connect(&provider)?;
        let at = self.trials.len();
        self.trials.push(ProbeTrial { way, done: Vec::new() });
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

    async fn ask(
        &mut self,
        client: &dyn ModelClient,
        task: &'static ProbeTask,
    ) -> Result<TaskResult, ModelError> {
        let (start, mut answer) = (Instant::now(), PartialAnswer::default());
        let history = (task.history)();
        let prompt = Prompt {
            thread: &ThreadId::from("probe"),
            instructions: INSTRUCTIONS,
            history: &history,
            tools: &self.tools,
            parallel_calls: true,
            output_schema: None,
        };
        let wrong = match time::timeout(ANSWER_TIMEOUT, answer.receive(client, prompt)).await {
            Err(_) => Some(format!("no complete answer within {} s", ANSWER_TIMEOUT.as_secs())),
            Ok(Ok(())) => {
                self.has_answered = true;
                task.judge(&answer.calls, &answer.text).err()
            }
            Ok(Err(error)) if is_final(&error) => return Err(error),
            Ok(Err(error)) => {
                let wrong = error.to_string();
                self.first_error.get_or_insert(error);
                Some(wrong)
            }
        };
        Ok(TaskResult { task, wrong, took: start.elapsed(), text: answer.text })
    }

    /// Returns the dialect in which the answers so far contain more correct calls than the server
    /// extracted.
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

/// An answer, as far as it was received.
#[derive(Debug, Default)]
struct PartialAnswer {
    calls: Vec<ToolCall>,
    text: String,
}

impl PartialAnswer {
    async fn receive(&mut self, client: &dyn ModelClient, prompt: Prompt<'_>) -> Result<(), ModelError> {
        let mut answer = match client.open(prompt).await {
            // Some servers close a kept-alive connection before the next request.
            Err(ModelError::Unreachable { .. }) => client.open(prompt).await?,
            opened => opened?,
        };
        while let Some(event) = answer.next().await {
            // Not every wire streams text in pieces; every one sends it whole.
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

/// Returns true if every other request would fail in the same way.
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
        ModelError::ContextWindowExceeded { .. }
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
