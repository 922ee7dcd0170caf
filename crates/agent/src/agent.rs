//! A conversation with a model that may use tools.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;
use tracing::Instrument;
use windlass_contract::{
    Content, Event, Item, Journal,
    compaction::CompactionReason,
    event::EventEmitter,
    id::ThreadId,
    item::{Body, Role},
    journal::{Record, TurnContext},
    model::{ModelClient, ModelInfo, Usage},
    outcome::Refusal,
    program_message::ABORTED_START,
};
use windlass_runtime::{Reason, Stop, Toolbox};

use crate::{
    AgentBuilder, AgentError, AnswerSchema, CompactionReport, ModelPrices, SessionBudget, SteeringInput,
    TurnLimits,
    context_gauge::ContextGauge,
    history::ConversationHistory,
    loop_detector::LoopDetector,
    mentions::{MentionLoader, push_mentioned},
    offered_tools::OfferedTools,
    refusals::TurnRefusals,
    reviewer::ReviewExchange,
    spans,
    spending::TokenSpending,
    sub_agents::SubAgents,
    token_counter::TokenCounter,
    turn::{RequestConstants, Turn},
    turn_hooks::{TurnHooks, context_item, session_ends},
};

/// A conversation. Made by [`Agent::builder`]; each [`run`](Self::run) is one turn of it.
pub struct Agent {
    pub(crate) thread: ThreadId,
    pub(crate) model: Arc<dyn ModelClient>,
    pub(crate) reviews: Arc<ReviewExchange>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) events: Arc<dyn EventEmitter>,
    pub(crate) history: ConversationHistory,
    pub(crate) instructions: String,
    pub(crate) offered: OfferedTools,
    pub(crate) parallel_calls: bool,
    pub(crate) output_schema: Option<AnswerSchema>,
    pub(crate) counter: TokenCounter,
    pub(crate) gauge: ContextGauge,
    pub(crate) context: TurnContext,
    pub(crate) limits: TurnLimits,
    pub(crate) budget: SessionBudget,
    pub(crate) prices: Option<ModelPrices>,
    pub(crate) single_turn: bool,
    pub(crate) steering: SteeringInput,
    pub(crate) mentions: Option<Arc<dyn MentionLoader>>,
    /// The agents that it has started, if it may start any.
    pub(crate) sub_agents: Option<Arc<SubAgents>>,
    /// The session has earlier turns, from before this process.
    pub(crate) is_resumed: bool,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("thread", &self.thread).finish_non_exhaustive()
    }
}

/// The result of a turn.
#[derive(Debug)]
pub struct TurnReport {
    /// The model's answer, or the error.
    pub end: Result<String, AgentError>,
    /// The token usage.
    pub usage: Usage,
    /// The answer says that the request is not done: the model cannot do it, or needs more
    /// information.
    pub declined: bool,
    /// Calls that were refused.
    pub refusals: Vec<Refusal>,
}

impl Agent {
    /// Creates a builder.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// Returns the ID of the conversation, by which it can be resumed.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Returns the model that answers.
    pub fn model(&self) -> &ModelInfo {
        self.model.info()
    }

    /// Returns the client of the model, for another agent.
    pub fn model_client(&self) -> &Arc<dyn ModelClient> {
        &self.model
    }

    /// Returns the queue of messages for the running turn.
    pub fn steering(&self) -> &SteeringInput {
        &self.steering
    }

    /// Returns the budget of the session. A child session draws from it, too.
    pub fn budget(&self) -> &SessionBudget {
        &self.budget
    }

    /// Returns the toolbox, for calls without a model.
    pub fn toolbox(&self) -> &Arc<Toolbox> {
        &self.toolbox
    }

    /// Sends one message and waits for the answer.
    pub async fn ask(&mut self, text: &str) -> Result<String, AgentError> {
        self.run(vec![Content::Text(text.to_owned())], &Stop::default()).await.end
    }

    /// Runs one turn. `stop` ends it early; even then every call has its output, and the
    /// conversation can continue.
    pub async fn run(&mut self, input: Vec<Content>, stop: &Stop) -> TurnReport {
        let span = spans::invoke_agent(&self.thread, self.model.info());
        let report = self.turn(input, stop).instrument(span.clone()).await;
        spans::cost(&span, report.usage);
        if let Err(error) = &report.end {
            spans::failed(&span, error);
        }
        report
    }

    async fn turn(&mut self, input: Vec<Content>, stop: &Stop) -> TurnReport {
        self.events.emit(Event::TurnStarted);
        if let Err(error) = self.begin(input, stop).await {
            let (end, usage) = (Err(error), Usage::default());
            return self.report(TurnReport { end, usage, declined: false, refusals: Vec::new() });
        }
        let limits = [
            self.limits.time.map(|time| (time, Reason::TimeLimit)),
            self.budget.time_left().map(|time| (time, Reason::TimeBudget)),
        ];
        let limit = limits.into_iter().flatten().min_by_key(|(time, _)| *time);
        let began = Instant::now();
        let mut turn = self.begin_turn(stop);
        let end = within(limit, stop, turn.run()).await;
        let Turn { mut spending, refusals, answer, declined, .. } = turn;
        self.budget.add_time(began.elapsed());
        if let Some(agents) = &self.sub_agents {
            agents.end_turn(&*self.events).await;
            spending.add_of_agents(agents.take_usage());
        }
        let end = end.map(|()| answer);
        if let Err(AgentError::Stopped(reason)) = &end {
            self.leave_word(*reason);
        }
        if self.single_turn {
            self.end_sessions().await;
        }
        self.report(TurnReport { end, usage: spending.reported(), declined, refusals: refusals.list() })
    }

    /// Returns the state of a turn that begins.
    fn begin_turn<'a>(&'a mut self, stop: &'a Stop) -> Turn<'a> {
        Turn {
            model: &*self.model,
            toolbox: &self.toolbox,
            events: &*self.events,
            history: &mut self.history,
            offered: &mut self.offered,
            fixed: RequestConstants {
                thread: &self.thread,
                instructions: &self.instructions,
                parallel_calls: self.parallel_calls,
                output_schema: self.output_schema.as_ref(),
            },
            stop,
            steering: &self.steering,
            mentions: self.mentions.as_deref(),
            sub_agents: self.sub_agents.as_deref(),
            reviews: &self.reviews,
            spending: TokenSpending::new(self.limits.tokens).with_budget(self.budget.clone(), self.prices),
            loop_detector: LoopDetector::new(&self.toolbox.review.history()),
            counter: &mut self.counter,
            gauge: &mut self.gauge,
            refusals: TurnRefusals::default(),
            answer: String::new(),
            declined: false,
        }
    }

    /// Makes the conversation shorter now. `wish` says in words what the summary should keep.
    pub async fn compact(&mut self, wish: Option<&str>, stop: &Stop) -> Result<CompactionReport, AgentError> {
        self.history.close_open_calls()?;
        self.begin_turn(stop).compact(CompactionReason::Request, wish).await
    }

    /// Ends running sessions, and emits a warning with their commands.
    async fn end_sessions(&self) {
        let ended = self.toolbox.sandbox.close().await;
        if !ended.is_empty() {
            let commands: Vec<_> = ended.iter().map(|command| format!("`{command}`")).collect();
            let (count, commands) = (ended.len(), commands.join(", "));
            let message = format!("sessions that still ran at the end and were ended: {count} ({commands})");
            self.events.emit(Event::Warning { message });
        }
    }

    /// Begins a turn if the budget of the session has one left.
    async fn begin(&mut self, input: Vec<Content>, stop: &Stop) -> Result<(), AgentError> {
        if let Some(reason) = self.budget.reached() {
            return Err(AgentError::Stopped(reason));
        }
        self.budget.begin_turn().map_err(AgentError::Stopped)?;
        self.open(input, stop).await
    }

    async fn open(&mut self, input: Vec<Content>, stop: &Stop) -> Result<(), AgentError> {
        let hooks = TurnHooks::new(&self.toolbox, stop);
        let mut context = hooks.session_begins(self.is_resumed).await?;
        context.extend(hooks.message(&input).await?);
        self.reviews.begin(&input);
        self.history.close_open_calls()?;
        self.journal.append(&Record::TurnContext(&self.context))?;
        context.iter().try_for_each(|text| self.history.push(context_item(&self.toolbox, text)))?;
        let text = Content::join(&input);
        self.history.push(Body::Message { role: Role::User, content: input }.into())?;
        Ok(push_mentioned(self.mentions.as_deref(), &text, &mut self.history, &*self.events)?)
    }

    /// Tells the hooks that the session ends. To be called by front ends at the end of a session;
    /// `reason` is one of `prompt_input_exit` and `other`.
    pub async fn end_session(&self, reason: &str) {
        session_ends(&self.toolbox, reason).await;
    }

    /// Adds a message for the model that the previous turn was ended early.
    fn leave_word(&mut self, reason: Reason) {
        let text = format!(
            "{ABORTED_START}The turn before this message was ended early ({}). Tools that were running may have done \
             only part of their work; look before repeating it.\n</turn_aborted>",
            reason.message()
        );
        if let Err(error) = self.history.push(Item::message(Role::User, text)) {
            tracing::error!(%error, "the end of the turn is not on record");
        }
    }

    fn report(&self, report: TurnReport) -> TurnReport {
        let TurnReport { end, usage, declined, refusals } = &report;
        let (usage, refusals) = (*usage, refusals.clone());
        self.events.emit(match end {
            Ok(_) => Event::TurnCompleted { usage, declined: *declined, refusals },
            Err(error) => {
                let (message, reason) = (error.to_string(), error.reason().to_owned());
                Event::TurnFailed { message, reason, usage, refusals }
            }
        });
        report
    }
}

/// Runs a turn and stops it when its time is up. The turn itself then ends in order.
async fn within<T>(limit: Option<(Duration, Reason)>, stop: &Stop, turn: impl Future<Output = T>) -> T {
    let mut turn = std::pin::pin!(turn);
    let Some((limit, reason)) = limit else { return turn.await };
    tokio::select! {
        end = &mut turn => end,
        () = tokio::time::sleep(limit) => {
            stop.stop(reason);
            turn.await
        }
    }
}
