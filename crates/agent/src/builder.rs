//! Puts an agent together. The one file, with those below it, that names concrete types.

mod session;
mod undo;

use std::{collections::BTreeMap, fmt, num::NonZeroU64, path::PathBuf, sync::Arc, time::Duration};

use serde_json::json;
use windlass_contract::{
    AnyTool, Event, Journal,
    approval::{Approver, Rulebook},
    event::{EventSink, Silent},
    journal::{JournalError, TurnContext},
    model::ModelClient,
};
use windlass_host::{Machine, Preview, SnapshotLimits, Window};
use windlass_record::{DurabilityMode, Edits, Keep, SessionError, Which, outputs_directory};
use windlass_runtime::{
    Budget, CleanEvents, CleanQuestions, Deferral, DefinitionErrors, Gate, Policy, Registry, RegistryBuilder,
    Review, SearchForm, Secrets, Shaper, Toolbox, Verdicts,
};
use windlass_tools::OutputPlace;

use self::session::Forgetful;
use crate::{
    Agent, AnswerSchema, Family, Toolset,
    announce::Announcer,
    catalogue::catalogue,
    context_gauge::ContextGauge,
    described::PolicyTraits,
    history::History,
    offered::Offered,
    reviewer::{ModelReviewer, Shared},
};

/// How many bytes a tool may say about an output beside it: with them it must fit, or be kept elsewhere.
const WORDS_ABOUT_OUTPUT: usize = 256;

/// How much of the context window tools that are not built in may take, unless told otherwise. Others of this kind draw the line
/// at the same place.
pub const TOOL_CONTEXT_PERCENT: u8 = 10;

/// Collects what an agent is made of. Only a model is needed; everything else has a careful default: nothing is
/// written down, nobody is asked, and nothing that would need a sandbox runs.
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
    /// Where it is kept what files were: with the session.
    edits: Option<Edits>,
    /// Where long outputs are kept: with the session. The tool that reads them is made before the session is.
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

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No model was given.
    #[error("an agent needs a model")]
    NoModel,
    /// Tools are defined wrongly.
    #[error("{0}")]
    Tools(#[from] DefinitionErrors),
    /// There is nowhere to resume from.
    #[error("to resume a session, say below which directory it was written down")]
    ResumeWithoutHome,
    /// The session was held with another provider.
    #[error("this session was held with `{model}` of provider `{provider}`")]
    OtherProvider {
        /// The provider it was held with last.
        provider: String,
        /// The model.
        model: String,
    },
    /// The session cannot be begun or taken up again.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session cannot be written down.
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
        /// Who is asked.
        approver(approver: Arc<dyn Approver>) = Some(approver);
        /// Where rules are kept that answers make.
        rulebook(rulebook: Arc<dyn Rulebook>) = Some(rulebook);
        /// Who watches.
        events(sink: Arc<dyn EventSink>) = sink;
        /// The environment of programs that tools start; nothing else is passed on.
        environment(variables: BTreeMap<String, String>) = variables;
        /// The directory below which the session is written down. Without one, nothing is.
        home(directory: PathBuf) = Some(directory);
        /// Takes up an earlier session instead of beginning one.
        resume(which: Which) = Some(which);
        /// Replaces the standing instructions.
        instructions(text: String) = Some(text);
        /// Adds instructions of the program around the agent.
        developer_instructions(text: String) = Some(text);
        /// The shape the final answer must have. An answer that does not fit is asked for once more; then the turn fails.
        output_schema(schema: AnswerSchema) = Some(schema);
        /// How much of a tool's output the model is given.
        budget(budget: Budget) = Some(budget);
        /// The same for some tools, by name.
        budgets(budgets: BTreeMap<String, Budget>) = budgets;
        /// How many tokens the model can read. Without it, what is known of models of its name.
        context_window(tokens: NonZeroU64) = Some(tokens);
        /// How much of that the tools you add may take, in percent. If they would take more, the model is not told of them but
        /// searches for them.
        tool_context_percent(percent: u8) = percent;
        /// Whether the model may ask for several calls at once.
        parallel_calls(allowed: bool) = Some(allowed);
        /// Values that must not get to the model, to whoever watches or into the session file.
        secrets(secrets: Secrets) = secrets;
        /// How long and how much the index of calls remembers.
        keep(keep: Keep) = keep;
        /// When the session file is flushed to the disk.
        durability(durability: DurabilityMode) = durability;
        /// How long a turn may take.
        time_limit(limit: Duration) = Some(limit);
        /// How many tokens a turn may use.
        token_limit(tokens: u64) = Some(tokens);
        /// How long all commands may take together.
        command_time(limit: Duration) = Some(limit);
        /// When the model reads what we think of a call.
        verdicts(when: Verdicts) = when;
        /// Asks the model what it thinks of calls that may have changed something, for no longer than this.
        judged_by_model(patience: Duration) = Some(patience);
        /// How much time of the processors all commands may take together.
        command_cpu(limit: Duration) = Some(limit);
        /// Records what commands change within these limits, so that it can be undone. Needs a [`home`](Self::home).
        undo_commands(limits: SnapshotLimits) = Some(limits);
        /// What programs on a terminal print to.
        window(window: Window) = window;
        /// Runs commands on a layer: the workspace stays as it is until the preview is applied. The model is not offered
        /// tools that read or change files themselves, and no command that goes on from call to call.
        preview(preview: Preview) = Some(preview);
    }

    /// Takes up no session that was held with another provider: nobody has chosen this one.
    #[must_use]
    pub fn same_provider(mut self) -> Self {
        self.same_provider = true;
        self
    }

    /// Ends with the turn what a conversation would leave running for the next.
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

    /// Adds a tool of a list someone wrote. One that cannot be used is left out alone, and
    /// [`quarantined`](Registry::quarantined) says why.
    #[must_use]
    pub fn listed_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.listed_tools.push(tool);
        self
    }

    /// Gives standard output and error of commands apart, as data of their results. What was written to both at once may
    /// change its order in the text.
    #[must_use]
    pub fn apart_streams(mut self) -> Self {
        self.apart_streams = true;
        self
    }

    /// The tools alone, for calls without a model. With a [`home`](Self::home), calls are written down below it.
    pub fn toolbox(mut self) -> Result<Toolbox, DefinitionErrors> {
        let family = Family::of("");
        let registry = self.registry(&family, SearchForm::Function)?;
        self.edits = self.home.as_deref().map(Edits::outside);
        self.recover_edits(&*self.watched());
        let journal: Arc<dyn Journal> = match &self.home {
            Some(home) => Arc::new(self.outside(home)),
            None => Arc::new(Forgetful),
        };
        let events = self.announcer(&journal);
        Ok(self.around(registry, journal, events, Budget::default(), Review::default()))
    }

    fn recover_edits(&self, events: &dyn EventSink) {
        let messages = self.home.as_deref().map(crate::recover_edits).unwrap_or_default();
        for message in messages {
            events.emit(&Event::Warning { message });
        }
    }

    /// Puts it all together.
    pub fn build(mut self) -> Result<Agent, BuildError> {
        let model = self.model.take().ok_or(BuildError::NoModel)?;
        let info = model.info().clone();
        let family = Family::of(&info.model);
        // Before anything is written down: a session must not be left behind by a mistake in a tool.
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
            // Set once: nobody else has the place yet.
            let _ = self.outputs.set(outputs_directory(home, &begun.thread)?);
        }
        let events = self.announcer(&journal);
        let offered = Offered::after(&begun.history, &registry);
        let mut history = History::new(begun.history, Arc::clone(&journal), self.secrets.clone());
        begun.opening.into_iter().try_for_each(|item| history.push(item))?;
        events.emit(&Event::ThreadStarted { thread: begun.thread.clone() });
        self.recover_edits(&*events);
        if let Some(message) = warning {
            events.emit(&Event::Warning { message });
        }
        begun.repairs.iter().for_each(|repair| events.emit(&Event::Warning { message: repair.to_string() }));
        // Rules have no window.
        let window = (info.wire != "builtin").then(|| self.window_tokens(&family));
        let reviews = Arc::new(Shared::default());
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
            toolbox: Arc::new(self.around(
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

    /// Replaces the built-in tools that the model's wire has no form for.
    fn fit_tools_to_wire(&mut self, wire: &str) -> Option<String> {
        let (toolset, warning) = self.builtin.take()?.for_wire(wire);
        self.builtin = Some(toolset);
        warning
    }

    /// All tools, checked.
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

    /// How many tokens the model reads at once.
    fn window_tokens(&self, family: &Family) -> u64 {
        self.context_window.unwrap_or(family.context_window).get()
    }

    /// How many tokens the tools that are not built in may cost to tell.
    fn room(&self, family: &Family) -> usize {
        usize::try_from(self.window_tokens(family).saturating_mul(self.tool_context_percent.into()) / 100)
            .unwrap_or(usize::MAX)
    }

    /// Whoever watches, who is shown no secrets.
    fn watched(&self) -> Arc<dyn EventSink> {
        Arc::new(CleanEvents::new(Arc::clone(&self.events), self.secrets.clone()))
    }

    /// Whoever watches, after what is worth keeping is on record.
    fn announcer(&self, journal: &Arc<dyn Journal>) -> Arc<dyn EventSink> {
        let (journal, cwd) = (Arc::clone(journal), self.policy.cwd.clone());
        Arc::new(Announcer::new(journal, self.watched(), cwd, self.secrets.clone()))
    }

    /// What stands around the tools.
    fn around(
        self,
        registry: Registry,
        journal: Arc<dyn Journal>,
        events: Arc<dyn EventSink>,
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
            machine = machine.keeping_outputs(place.clone(), least.saturating_sub(WORDS_ABOUT_OUTPUT));
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
        let approver = self.approver.map(|approver| -> Arc<dyn Approver> {
            Arc::new(CleanQuestions::new(approver, self.secrets.clone()))
        });
        Toolbox {
            registry,
            gate: Gate::new(self.policy, approver)
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
