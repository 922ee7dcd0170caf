//! Builds an agent. Only this file and its submodules name concrete types.

mod child;
mod hooks;
mod session;
mod undo;

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use windlass_contract::{
    AnyTool, Event, Journal,
    approval::{Approver, Rulebook},
    elicitation::Elicitor,
    event::{EventEmitter, EventSink, Silent},
    hooks::Hooks,
    journal::{JournalError, ParentSession, TurnContext},
    model::ModelClient,
    remote::ToolSource,
};
use windlass_host::Machine;
use windlass_record::{Edits, SessionError, StoredOutputs, Which, outputs_directory};
use windlass_runtime::{
    Budget, CleanEvents, Deferral, DefinitionErrors, Gate, LiveRules, Policy, Registry, RegistryBuilder,
    Review, SearchForm, Secrets, SessionApprovals, SessionHooks, Shaper, Toolbox,
};
use windlass_tools::{CommandSessions, OutputPlace, UserInput};

pub use self::undo::UndoRecording;

use self::{hooks::SessionIdentity, session::NullJournal};
use crate::{
    Agent, AnswerSchema, ContextSettings, Family, MentionLoader, ModelTable, ReviewSettings, SessionBudget,
    SteeringInput, StorageSettings, Toolset, TurnLimits,
    announce::{RecordedEvents, TurnDiffEvents},
    catalogue::catalogue,
    context_gauge::ContextGauge,
    described_tools::PolicyTraits,
    history::ConversationHistory,
    offered_tools::OfferedTools,
    reviewer::{ModelReviewer, ReviewExchange},
    sub_agents::{AgentLineage, SubAgentSettings, SubAgents},
    token_counter::TokenCounter,
    toolset::ToolsetParts,
};

/// Maximum size of the note that a tool adds to an output. Output and note must fit, or the output
/// is kept in a file.
const MAX_NOTE_BYTES: usize = 256;

/// Collects the parts of an agent. Only a model is required. By default nothing is recorded, no
/// questions are asked, and calls that need a sandbox do not run.
pub struct AgentBuilder {
    pub(crate) model: Option<Arc<dyn ModelClient>>,
    tools: Vec<Arc<dyn AnyTool>>,
    listed_tools: Vec<Arc<dyn AnyTool>>,
    tool_source: Option<Arc<dyn ToolSource>>,
    builtin: Option<Toolset>,
    pub(crate) policy: Policy,
    approver: Option<Arc<dyn Approver>>,
    pub(crate) elicitor: Option<Arc<dyn Elicitor>>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    rulebook: Option<Arc<dyn Rulebook>>,
    events: Arc<dyn EventSink>,
    machine: Machine,
    secrets: Secrets,
    pub(crate) context: ContextSettings,
    pub(crate) storage: Option<StorageSettings>,
    pub(crate) limits: TurnLimits,
    models: ModelTable,
    pub(crate) budget: SessionBudget,
    review: ReviewSettings,
    pub(crate) resume: Option<Which>,
    same_provider: bool,
    output_schema: Option<AnswerSchema>,
    single_turn: bool,
    steering: SteeringInput,
    mentions: Option<Arc<dyn MentionLoader>>,
    command_sessions: CommandSessions,
    session_approvals: SessionApprovals,
    undo_recording: UndoRecording,
    pub(crate) sub_agents: Option<SubAgentSettings>,
    pub(crate) lineage: AgentLineage,
    pub(crate) parent: Option<ParentSession>,
    pub(crate) only_tools: Vec<Vec<String>>,
    rules: Option<LiveRules>,
}

impl Default for AgentBuilder {
    fn default() -> Self {
        Self {
            model: None,
            tools: Vec::new(),
            listed_tools: Vec::new(),
            tool_source: None,
            builtin: None,
            policy: Policy::default(),
            approver: None,
            elicitor: None,
            hooks: None,
            rulebook: None,
            events: Arc::new(Silent),
            machine: Machine::new(BTreeMap::new()),
            secrets: Secrets::default(),
            context: ContextSettings::default(),
            storage: None,
            limits: TurnLimits::default(),
            models: ModelTable::default(),
            budget: SessionBudget::default(),
            review: ReviewSettings::default(),
            resume: None,
            same_provider: false,
            output_schema: None,
            single_turn: false,
            steering: SteeringInput::default(),
            mentions: None,
            command_sessions: CommandSessions::default(),
            session_approvals: SessionApprovals::default(),
            undo_recording: UndoRecording::default(),
            sub_agents: None,
            lineage: AgentLineage::default(),
            parent: None,
            only_tools: Vec::new(),
            rules: None,
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
    /// The cost is limited, and the model has no prices.
    #[error(
        "`budget.max_cost_usd` cannot be kept: the prices of `{model}` are not set; in US dollars per \
         million tokens: `[models.\"{model}\".prices]` with `input` and `output`"
    )]
    UnknownPrice {
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
        /// The source of tools that may join later, such as those of MCP servers. Agents can share
        /// it.
        tool_source(source: Arc<dyn ToolSource>) = Some(source);
        /// Offers built-in tools.
        builtin(toolset: Toolset) = Some(toolset);
        /// Working directory, approval, sandbox and limits.
        policy(policy: Policy) = policy;
        /// The approver that answers questions.
        approver(approver: Arc<dyn Approver>) = Some(approver);
        /// The front end that asks the person for input, for the tool `request_user_input`. Without
        /// it, the model is not offered the tool.
        elicitor(elicitor: Arc<dyn Elicitor>) = Some(elicitor);
        /// Hooks, which are told about steps of the session and may object. Agents can share them.
        hooks(hooks: Arc<dyn Hooks>) = Some(hooks);
        /// The rulebook that keeps rules made by answers.
        rulebook(rulebook: Arc<dyn Rulebook>) = Some(rulebook);
        /// The sink that receives events.
        events(sink: Arc<dyn EventSink>) = sink;
        /// The machine that runs commands: their environment, their terminal and their limits. With
        /// a preview, the model is not offered tools that read or change files, nor sessions.
        machine(machine: Machine) = machine;
        /// Values that must not reach the model, the event sink or the session file.
        secrets(secrets: Secrets) = secrets;
        /// The instructions of the model, and the use of its context window.
        context(settings: ContextSettings) = settings;
        /// The records on disk. Without them, nothing is recorded.
        storage(settings: StorageSettings) = Some(settings);
        /// Limits of each turn.
        limits(limits: TurnLimits) = limits;
        /// The budget of the session. Agents can share it.
        budget(budget: SessionBudget) = budget;
        /// The traits of models by name. The default is the built-in table.
        models(models: ModelTable) = models;
        /// The judgement of calls that have ended.
        review(settings: ReviewSettings) = settings;
        /// Resumes an earlier session instead of starting one.
        resume(which: Which) = Some(which);
        /// The schema of the final answer. If an answer does not fit, it is requested once more;
        /// then the turn fails.
        output_schema(schema: AnswerSchema) = Some(schema);
        /// The queue of messages for the running turn, shared with a front end.
        steering(input: SteeringInput) = input;
        /// The loader of texts that messages of the user mention, such as skills.
        mentions(loader: Arc<dyn MentionLoader>) = Some(loader);
        /// The commands that run across calls, shared with a front end or an earlier agent.
        command_sessions(sessions: CommandSessions) = sessions;
        /// The approvals for the session, shared with a front end or an earlier agent.
        session_approvals(approvals: SessionApprovals) = approvals;
        /// The recorder of what commands change, shared with an earlier agent of the same session.
        undo_recording(recording: UndoRecording) = recording;
        /// Lets the agent start others, with `spawn_agent`.
        sub_agents(settings: SubAgentSettings) = Some(settings);
    }

    /// Records below a directory, with the default settings of [`storage`](Self::storage).
    #[must_use]
    pub fn home(self, directory: PathBuf) -> Self {
        self.storage(StorageSettings::new(directory))
    }

    /// Starts programs with these variables and no others, on a [`machine`](Self::machine) without
    /// limits.
    #[must_use]
    pub fn environment(self, variables: BTreeMap<String, String>) -> Self {
        self.machine(Machine::new(variables))
    }

    /// Refuses to resume a session of another provider, since the user has not chosen this one.
    #[must_use]
    pub fn same_provider(mut self) -> Self {
        self.same_provider = true;
        self
    }

    /// Turns on plan mode: see [`Policy::planning`].
    #[must_use]
    pub fn plan_mode(mut self) -> Self {
        self.policy = self.policy.planning();
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

    /// Builds only the tools, for calls without a model. With a [`home`](Self::home), calls are
    /// recorded below it.
    pub fn toolbox(mut self) -> Result<Toolbox, DefinitionErrors> {
        let (family, outputs) = (Family::of(""), OutputPlace::default());
        let registry = self.registry(&family, SearchForm::Function, &outputs, None)?;
        self.recover_edits(&self.clean_events());
        let journal: Arc<dyn Journal> = match &self.storage {
            Some(storage) => Arc::new(self.standalone_calls(storage)),
            None => Arc::new(NullJournal),
        };
        let events = self.announcer(&journal);
        let hooks = self.session_hooks(None, &events);
        let parts = ToolboxParts {
            registry,
            hooks,
            outputs,
            edits: self.storage.as_ref().map(|storage| Edits::outside(&storage.home)),
            events,
            journal,
            usual_budget: Budget::default(),
            review: Review::default(),
        };
        Ok(self.into_toolbox(parts))
    }

    fn recover_edits(&self, events: &dyn EventEmitter) {
        let storage = self.storage.as_ref();
        let messages = storage.map(|storage| crate::recover_edits(&storage.home)).unwrap_or_default();
        for message in messages {
            events.emit(Event::Warning { message });
        }
    }

    /// Builds the agent.
    pub fn build(mut self) -> Result<Agent, BuildError> {
        let rules = LiveRules::new(self.policy.rules.clone());
        self.rules.get_or_insert(rules);
        let sub_agents = SubAgents::new(&self);
        let model = self.model.take().ok_or(BuildError::NoModel)?;
        let info = model.info().clone();
        let family = self.models.family(&info.model);
        // The offline rules cost nothing.
        if self.budget.limits().cost.is_some() && family.prices.is_none() && info.wire != "builtin" {
            return Err(BuildError::UnknownPrice { model: info.model });
        }
        // Before anything is recorded: an error in a tool must not leave a session behind.
        let form = if info.wire == "responses" { family.search } else { SearchForm::Function };
        if self.machine.has_preview() {
            self.builtin = self.builtin.take().map(Toolset::for_preview);
        }
        let warning = self.fit_tools_to_wire(info.wire);
        let outputs = OutputPlace::default();
        let registry = self.registry(&family, form, &outputs, sub_agents.as_ref())?;
        let is_resumed = self.resume.is_some();
        let context = TurnContext {
            cwd: self.policy.cwd.clone(),
            provider: info.provider,
            model: info.model,
            policy: self.recorded_policy(),
        };
        let begun = self.begin(&context)?;
        if let Some(agents) = &sub_agents {
            agents.set_parent(begun.thread.clone());
        }
        let journal = begun.journal;
        let home = self.storage.as_ref().map(|storage| storage.home.as_path());
        let edits = home.map(|home| Edits::of_session(home, &begun.thread)).transpose()?;
        if let Some(home) = home {
            // Set once: the place is not shared yet.
            let _ = outputs.set(outputs_directory(home, &begun.thread)?);
        }
        let events = self.announcer(&journal);
        let offered = OfferedTools::from_history(&begun.found_tools, &begun.history.items, &registry);
        let mut history = ConversationHistory::new(begun.history, Arc::clone(&journal), self.secrets.clone())
            .with_stored_outputs(outputs.get().cloned().map(StoredOutputs::new));
        history.open(begun.opening)?;
        events.emit(Event::ThreadStarted { thread: begun.thread.clone() });
        self.recover_edits(&*events);
        if let Some(message) = warning {
            events.emit(Event::Warning { message });
        }
        begun.warnings.iter().for_each(|message| events.emit(Event::Warning { message: message.clone() }));
        begun.repairs.iter().for_each(|repair| events.emit(Event::Warning { message: repair.to_string() }));
        // The offline rules have no context window.
        let window = (info.wire != "builtin").then(|| self.context.window_tokens(&family));
        let reviews = Arc::new(ReviewExchange::default());
        let review = match self.review.model_patience {
            Some(patience) => {
                let (model, thread) = (Arc::clone(&model), begun.thread.clone());
                Review::with_reviewer(
                    Arc::new(ModelReviewer::new(model, thread, Arc::clone(&reviews), self.secrets.clone())),
                    patience,
                )
            }
            None => Review::default(),
        };
        let session = SessionIdentity { thread: &begun.thread, model: &context.model };
        let hooks = self.session_hooks(Some(&session), &events);
        let usual_budget = self.context.output_budget(family.budget, window);
        let parts = ToolboxParts {
            registry,
            hooks,
            outputs,
            edits,
            journal: Arc::clone(&journal),
            events: Arc::clone(&events),
            usual_budget,
            review,
        };
        Ok(Agent {
            thread: begun.thread,
            model,
            reviews,
            offered,
            parallel_calls: self.context.parallel_calls.unwrap_or(family.parallel_calls),
            output_schema: self.output_schema.take(),
            counter: TokenCounter::new(family.vocabulary),
            gauge: ContextGauge::new(window, self.context.compact_at.unwrap_or(family.compact_at)),
            limits: self.limits,
            budget: self.budget.clone(),
            prices: family.prices,
            single_turn: self.single_turn,
            steering: self.steering.clone(),
            mentions: self.mentions.clone(),
            sub_agents,
            is_resumed,
            toolbox: Arc::new(self.into_toolbox(parts)),
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
    fn registry(
        &mut self,
        family: &Family,
        form: SearchForm,
        outputs: &OutputPlace,
        sub_agents: Option<&Arc<SubAgents>>,
    ) -> Result<Registry, DefinitionErrors> {
        let builtin = self.builtin.iter().fold(Registry::builder(), |registry, set| {
            let traits = PolicyTraits::new(&self.policy, self.approver.is_some());
            let outputs = self.storage.as_ref().map(|_| outputs);
            let user_input = UserInput { elicitor: self.elicitor.clone(), secrets: self.secrets.clone() };
            let (sessions, user_input) = (&self.command_sessions, &user_input);
            set.register(registry, ToolsetParts { outputs, sessions, user_input, traits })
        });
        let builtin = sub_agents.into_iter().fold(builtin, |registry, agents| agents.register(registry));
        let builtin = std::mem::take(&mut self.only_tools).into_iter().fold(builtin, RegistryBuilder::only);
        let storage = self.storage.clone();
        let indexer = Arc::new(move |cards: &[_]| catalogue(cards, storage.as_ref()));
        let deferral = Deferral { room: self.context.tool_tokens(family), form, indexer };
        let tools = std::mem::take(&mut self.tools).into_iter();
        let listed = std::mem::take(&mut self.listed_tools).into_iter();
        let registry = listed.fold(tools.fold(builtin, RegistryBuilder::user_tool), RegistryBuilder::listed);
        let registry = self.tool_source.take().into_iter().fold(registry, RegistryBuilder::source);
        registry.with_deferral(deferral).build()
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
    fn into_toolbox(self, parts: ToolboxParts) -> Toolbox {
        let recorder = self.undo_recorder(parts.edits.as_ref(), &*parts.events);
        let rules = self.rules.unwrap_or_else(|| LiveRules::new(self.policy.rules.clone()));
        let mut machine = self.machine;
        if let Some(recorder) = recorder {
            machine = machine.with_undo_recorder(recorder);
        }
        if let Some(place) = parts.outputs.get() {
            let least = self.context.min_output_bytes(parts.usual_budget);
            machine = machine.with_output_files(place.clone(), least.saturating_sub(MAX_NOTE_BYTES));
        }
        if let Some(storage) = &self.storage {
            machine = machine.with_package_caches(storage.package_caches());
            machine = machine.with_running_notes(storage.running_notes());
        }
        if let Some(edits) = parts.edits {
            machine = machine.with_archive(Arc::new(edits));
        }
        Toolbox {
            registry: parts.registry,
            gate: Gate::new(self.policy, self.approver)
                .with_secrets(self.secrets.clone())
                .with_rulebook(self.rulebook)
                .with_rules(rules)
                .with_agent(self.lineage.path_of_child().map(str::to_owned))
                .with_session_approvals(self.session_approvals)
                .with_programs(Arc::new(machine.clone())),
            sandbox: Arc::new(machine),
            shaper: Shaper {
                budget: self.context.output_budget.unwrap_or(parts.usual_budget),
                budgets: Arc::new(self.context.tool_output_budgets),
                secrets: self.secrets,
                verdicts: self.review.verdicts,
            },
            review: parts.review,
            journal: parts.journal,
            events: parts.events,
            hooks: parts.hooks,
        }
    }
}

/// The parts of a toolbox that depend on its model and its session.
struct ToolboxParts {
    registry: Registry,
    hooks: Option<SessionHooks>,
    /// The directory of long outputs, kept with the session. The tool that reads them is created
    /// before the session.
    outputs: OutputPlace,
    /// Previous contents of files, kept with the session.
    edits: Option<Edits>,
    journal: Arc<dyn Journal>,
    events: Arc<dyn EventEmitter>,
    /// The budget of outputs, if the settings have none.
    usual_budget: Budget,
    review: Review,
}
