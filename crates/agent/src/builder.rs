//! Builds an agent. Only this file and its submodules name concrete types.

mod session;
mod undo;

use std::{collections::BTreeMap, fmt, num::NonZeroU64, path::PathBuf, sync::Arc, time::Duration};

use serde_json::json;
use windlass_contract::{
    AnyTool, Event, Journal,
    approval::{Approver, Rulebook},
    event::{EventEmitter, EventSink, Silent},
    journal::{JournalError, TurnContext},
    model::ModelClient,
};
use windlass_host::{Machine, Preview, SnapshotLimits, Window};
use windlass_record::{DurabilityMode, Edits, Keep, SessionError, Which, outputs_directory};
use windlass_runtime::{
    Budget, CleanEvents, Deferral, DefinitionErrors, Gate, Policy, Registry, RegistryBuilder, Review,
    SearchForm, Secrets, Shaper, Toolbox, Verdicts,
};
use windlass_tools::OutputPlace;

use self::session::NullJournal;
use crate::{
    Agent, AnswerSchema, Family, Toolset,
    announce::{RecordedEvents, TurnDiffEvents},
    catalogue::catalogue,
    context_gauge::ContextGauge,
    described_tools::PolicyTraits,
    history::ConversationHistory,
    offered_tools::OfferedTools,
    reviewer::{ModelReviewer, ReviewExchange},
};

/// Maximum size of the note that a tool adds to an output. Output and note must fit, or the output
/// is kept in a file.
const MAX_NOTE_BYTES: usize = 256;

/// Default share of the context window for tools that are not built in. Other agents use the same
/// share.
pub const TOOL_CONTEXT_PERCENT: u8 = 10;

/// Collects the parts of an agent. Only a model is required. By default nothing is recorded, no
/// questions are asked, and calls that need a sandbox do not run.
pub struct AgentBuilder {
    model: Option<Arc<dyn ModelClient>>,
    tools: Vec<Arc<dyn AnyTool>>,
    listed_tools: Vec<Arc<dyn AnyTool>>,
    apart_streams: bool,
    builtin: Option<Toolset>,
    policy: Policy,
    approver: Option<Arc<dyn Approver>>,
    rulebook: Option<Arc<dyn Rulebook>>,
    events: Arc<dyn EventSink>,
    environment: BTreeMap<String, String>,
    home: Option<PathBuf>,
    resume: Option<Which>,
    instructions: Option<String>,
    developer_instructions: Option<String>,
    output_schema: Option<AnswerSchema>,
    budget: Option<Budget>,
    secrets: Secrets,
    keep: Keep,
    durability: DurabilityMode,
    parallel_calls: Option<bool>,
    time_limit: Option<Duration>,
    token_limit: Option<u64>,
    command_time: Option<Duration>,
    command_cpu: Option<Duration>,
    window: Window,
    preview: Option<Preview>,
    single_turn: bool,
    same_provider: bool,
    verdicts: Verdicts,
    judged_by_model: Option<Duration>,
    /// Previous contents of files, kept with the session.
    edits: Option<Edits>,
    /// The directory of long outputs, kept with the session. The tool that reads them is created
    /// before the session.
    outputs: OutputPlace,
    budgets: BTreeMap<String, Budget>,
    context_window: Option<NonZeroU64>,
    tool_context_percent: u8,
    undo_commands: Option<SnapshotLimits>,
}

impl Default for AgentBuilder {
    fn default() -> Self {
        Self {
            model: None,
            tools: Vec::new(),
            listed_tools: Vec::new(),
            apart_streams: false,
            builtin: None,
            policy: Policy::default(),
            approver: None,
            rulebook: None,
            events: Arc::new(Silent),
            environment: BTreeMap::new(),
            home: None,
            resume: None,
            instructions: None,
            developer_instructions: None,
            output_schema: None,
            budget: None,
            secrets: Secrets::default(),
            keep: Keep::default(),
            durability: DurabilityMode::default(),
            parallel_calls: None,
            time_limit: None,
            token_limit: None,
            command_time: None,
            command_cpu: None,
            window: Window::default(),
            preview: None,
            single_turn: false,
            same_provider: false,
            verdicts: Verdicts::default(),
            judged_by_model: None,
            edits: None,
            outputs: OutputPlace::default(),
            budgets: BTreeMap::new(),
            context_window: None,
            tool_context_percent: TOOL_CONTEXT_PERCENT,
            undo_commands: None,
        }
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// The reason why an agent cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No model was given.
    #[error("an agent needs a model")]
    NoModel,
    /// Tools are defined wrongly.
    #[error("{0}")]
    Tools(#[from] DefinitionErrors),
    /// A session cannot be resumed without a home directory.
    #[error("to resume a session, say below which directory it was written down")]
    ResumeWithoutHome,
    /// The session was recorded with another provider.
    #[error("this session was held with `{model}` of provider `{provider}`")]
    OtherProvider {
        /// The last provider of the session.
        provider: String,
        /// The model.
        model: String,
    },
    /// The session cannot be started or resumed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session cannot be recorded.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($value:ident: $type:ty) = $to:expr;)*) => {
        $($(#[$doc])* #[must_use] pub fn $name(mut self, $value: $type) -> Self { self.$name = $to; self })*
    };
}

impl AgentBuilder {
    setters! {
        /// The model that answers.
        model(client: Arc<dyn ModelClient>) = Some(client);
        /// Offers built-in tools.
        builtin(toolset: Toolset) = Some(toolset);
        /// Working directory, approval, sandbox and limits.
        policy(policy: Policy) = policy;
        /// The approver that answers questions.
        approver(approver: Arc<dyn Approver>) = Some(approver);
        /// The rulebook that keeps rules made by answers.
        rulebook(rulebook: Arc<dyn Rulebook>) = Some(rulebook);
        /// The sink that receives events.
        events(sink: Arc<dyn EventSink>) = sink;
        /// The environment of programs that tools start; no other variables are passed on.
        environment(variables: BTreeMap<String, String>) = variables;
        /// The directory below which the session is recorded. Without one, nothing is recorded.
        home(directory: PathBuf) = Some(directory);
        /// Resumes an earlier session instead of starting one.
        resume(which: Which) = Some(which);
        /// Replaces the standing instructions.
        instructions(text: String) = Some(text);
        /// Adds instructions of the program around the agent.
        developer_instructions(text: String) = Some(text);
        /// The schema of the final answer. If an answer does not fit, it is requested once more;
        /// then the turn fails.
        output_schema(schema: AnswerSchema) = Some(schema);
        /// The budget for a tool's output in the prompt.
        budget(budget: Budget) = Some(budget);
        /// Budgets for single tools, by name.
        budgets(budgets: BTreeMap<String, Budget>) = budgets;
        /// The context window of the model in tokens. The default depends on the name of the model.
        context_window(tokens: NonZeroU64) = Some(tokens);
        /// Maximum share of the context window for added tools, in percent. If they need more, the
        /// model searches for them instead.
        tool_context_percent(percent: u8) = percent;
        /// Allows the model to request several calls at once.
        parallel_calls(allowed: bool) = Some(allowed);
        /// Values that must not reach the model, the event sink or the session file.
        secrets(secrets: Secrets) = secrets;
        /// The retention of the index of calls.
        keep(keep: Keep) = keep;
        /// The time at which the session file is flushed to disk.
        durability(durability: DurabilityMode) = durability;
        /// Maximum duration of a turn.
        time_limit(limit: Duration) = Some(limit);
        /// Maximum number of tokens of a turn.
        token_limit(tokens: u64) = Some(tokens);
        /// Maximum wall time of all commands together.
        command_time(limit: Duration) = Some(limit);
        /// The verdicts that the model gets to see.
        verdicts(when: Verdicts) = when;
        /// Asks the model for its opinion of calls that may have changed something, with a time
        /// limit.
        judged_by_model(patience: Duration) = Some(patience);
        /// Maximum CPU time of all commands together.
        command_cpu(limit: Duration) = Some(limit);
        /// Records the changes of commands within these limits, so that they can be undone. Needs a
        /// [`home`](Self::home).
        undo_commands(limits: SnapshotLimits) = Some(limits);
        /// The window of programs on a terminal.
        window(window: Window) = window;
        /// Runs commands on a layer: the workspace does not change until the preview is applied.
        /// The model is not offered tools that read or change files, nor sessions.
        preview(preview: Preview) = Some(preview);
    }

    /// Refuses to resume a session of another provider, since the user has not chosen this one.
    #[must_use]
    pub fn same_provider(mut self) -> Self {
        self.same_provider = true;
        self
    }

    /// Ends running sessions at the end of the turn.
    #[must_use]
    pub fn single_turn(mut self) -> Self {
        self.single_turn = true;
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a tool of a list. If it cannot be used, it is left out, and
    /// [`quarantined`](Registry::quarantined) has the reason.
    #[must_use]
    pub fn listed_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.listed_tools.push(tool);
        self
    }

    /// Captures standard output and standard error of commands separately, as data of their
    /// results. Output written to both may change its order in the text.
    #[must_use]
    pub fn apart_streams(mut self) -> Self {
        self.apart_streams = true;
        self
    }

    /// Builds only the tools, for calls without a model. With a [`home`](Self::home), calls are
    /// recorded below it.
    pub fn toolbox(mut self) -> Result<Toolbox, DefinitionErrors> {
        let family = Family::of("");
        let registry = self.registry(&family, SearchForm::Function)?;
        self.edits = self.home.as_deref().map(Edits::outside);
        self.recover_edits(&self.clean_events());
        let journal: Arc<dyn Journal> = match &self.home {
            Some(home) => Arc::new(self.standalone_calls(home)),
            None => Arc::new(NullJournal),
        };
        let events = self.announcer(&journal);
        Ok(self.into_toolbox(registry, journal, events, Budget::default(), Review::default()))
    }

    fn recover_edits(&self, events: &dyn EventEmitter) {
        let messages = self.home.as_deref().map(crate::recover_edits).unwrap_or_default();
        for message in messages {
            events.emit(Event::Warning { message });
        }
    }

    /// Builds the agent.
    pub fn build(mut self) -> Result<Agent, BuildError> {
        let model = self.model.take().ok_or(BuildError::NoModel)?;
        let info = model.info().clone();
        let family = Family::of(&info.model);
        // Before anything is recorded: an error in a tool must not leave a session behind.
        let form = if info.wire == "responses" { family.search } else { SearchForm::Function };
        if self.preview.is_some() {
            self.builtin = self.builtin.take().map(Toolset::for_preview);
        }
        let warning = self.fit_tools_to_wire(info.wire);
        let registry = self.registry(&family, form)?;
        let context = TurnContext {
            cwd: self.policy.cwd.clone(),
            provider: info.provider,
            model: info.model,
            policy: json!({
                "approval_policy": self.policy.approval,
                "sandbox_mode": self.policy.sandbox,
                "attended": self.approver.is_some(),
            }),
        };
        let begun = self.begin(&context)?;
        let journal = begun.journal;
        self.edits = self.home.as_deref().map(|home| Edits::of_session(home, &begun.thread)).transpose()?;
        if let Some(home) = &self.home {
            // Set once: the place is not shared yet.
            let _ = self.outputs.set(outputs_directory(home, &begun.thread)?);
        }
        let events = self.announcer(&journal);
        let offered = OfferedTools::from_history(&begun.history, &registry);
        let mut history = ConversationHistory::new(begun.history, Arc::clone(&journal), self.secrets.clone());
        begun.opening.into_iter().try_for_each(|item| history.push(item))?;
        events.emit(Event::ThreadStarted { thread: begun.thread.clone() });
        self.recover_edits(&*events);
        if let Some(message) = warning {
            events.emit(Event::Warning { message });
        }
        begun.repairs.iter().for_each(|repair| events.emit(Event::Warning { message: repair.to_string() }));
        // The offline rules have no context window.
        let window = (info.wire != "builtin").then(|| self.window_tokens(&family));
        let reviews = Arc::new(ReviewExchange::default());
        let review = match self.judged_by_model {
            Some(patience) => {
                let (model, thread) = (Arc::clone(&model), begun.thread.clone());
                Review::with_reviewer(
                    Arc::new(ModelReviewer::new(model, thread, Arc::clone(&reviews), self.secrets.clone())),
                    patience,
                )
            }
            None => Review::default(),
        };
        Ok(Agent {
            thread: begun.thread,
            model,
            reviews,
            offered,
            parallel_calls: self.parallel_calls.unwrap_or(family.parallel_calls),
            output_schema: self.output_schema.take(),
            gauge: ContextGauge::new(window),
            time_limit: self.time_limit,
            token_limit: self.token_limit,
            single_turn: self.single_turn,
            toolbox: Arc::new(self.into_toolbox(
                registry,
                Arc::clone(&journal),
                Arc::clone(&events),
                family.budget,
                review,
            )),
            journal,
            events,
            history,
            instructions: begun.instructions,
            context,
        })
    }

    /// Replaces built-in tools that the model's wire protocol does not support.
    fn fit_tools_to_wire(&mut self, wire: &str) -> Option<String> {
        let (toolset, warning) = self.builtin.take()?.for_wire(wire);
        self.builtin = Some(toolset);
        warning
    }

    /// Builds the registry of all tools.
    fn registry(&mut self, family: &Family, form: SearchForm) -> Result<Registry, DefinitionErrors> {
        let builtin = self.builtin.iter().fold(Registry::builder(), |registry, set| {
            let traits = PolicyTraits::new(&self.policy, self.approver.is_some());
            set.register(registry, self.home.as_ref().map(|_| &self.outputs), traits)
        });
        let (home, keep) = (self.home.clone(), self.keep);
        let indexer = Arc::new(move |cards: &[_]| catalogue(cards, home.as_deref(), keep));
        let deferral = Deferral { room: self.room(family), form, indexer };
        let tools = std::mem::take(&mut self.tools).into_iter();
        let listed = std::mem::take(&mut self.listed_tools).into_iter();
        let registry = listed.fold(tools.fold(builtin, RegistryBuilder::user_tool), RegistryBuilder::listed);
        registry.with_deferral(deferral).build()
    }

    /// Returns the context window in tokens.
    fn window_tokens(&self, family: &Family) -> u64 {
        self.context_window.unwrap_or(family.context_window).get()
    }

    /// Returns the maximum number of tokens for tools that are not built in.
    fn room(&self, family: &Family) -> usize {
        usize::try_from(self.window_tokens(family).saturating_mul(self.tool_context_percent.into()) / 100)
            .unwrap_or(usize::MAX)
    }

    /// Returns the event sink behind the cleaner.
    fn clean_events(&self) -> CleanEvents {
        CleanEvents::new(Arc::clone(&self.events), self.secrets.clone())
    }

    /// Returns the event sink behind the cleaner and the journal, with the diffs of turns.
    fn announcer(&self, journal: &Arc<dyn Journal>) -> Arc<dyn EventEmitter> {
        let recorded = RecordedEvents { journal: Arc::clone(journal), front: Arc::clone(&self.events) };
        let cleaned = CleanEvents::new(Arc::new(recorded), self.secrets.clone());
        Arc::new(TurnDiffEvents::new(cleaned, self.policy.cwd.clone()))
    }

    /// Builds the toolbox around the registry.
    fn into_toolbox(
        self,
        registry: Registry,
        journal: Arc<dyn Journal>,
        events: Arc<dyn EventEmitter>,
        budget: Budget,
        review: Review,
    ) -> Toolbox {
        let budget = self.budget.unwrap_or(budget);
        let recorder = self.undo_recorder(&*events);
        let mut machine = Machine::new(self.environment).with_window(self.window);
        if self.apart_streams {
            machine = machine.with_apart_streams();
        }
        if let Some(recorder) = recorder {
            machine = machine.with_undo_recorder(recorder);
        }
        if let Some(preview) = self.preview {
            machine = machine.with_preview(preview);
        }
        if let Some(place) = self.outputs.get() {
            let least = self.budgets.values().fold(budget.bytes(), |least, budget| least.min(budget.bytes()));
            machine = machine.with_output_files(place.clone(), least.saturating_sub(MAX_NOTE_BYTES));
        }
        if let Some(home) = &self.home {
            machine = machine.with_package_caches(home.join("cache/packages"));
            machine = machine.with_running_notes(home.join("running"));
        }
        if let Some(limit) = self.command_time {
            machine = machine.with_command_time(limit);
        }
        if let Some(limit) = self.command_cpu {
            machine = machine.with_command_cpu(limit);
        }
        if let Some(edits) = self.edits {
            machine = machine.with_archive(Arc::new(edits));
        }
        Toolbox {
            registry,
            gate: Gate::new(self.policy, self.approver)
                .with_secrets(self.secrets.clone())
                .with_rulebook(self.rulebook)
                .with_programs(Arc::new(machine.clone())),
            sandbox: Arc::new(machine),
            shaper: Shaper {
                budget,
                budgets: Arc::new(self.budgets),
                secrets: self.secrets,
                verdicts: self.verdicts,
            },
            review,
            journal,
            events,
        }
    }
}
