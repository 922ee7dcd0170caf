//! Builds the parts of an agent from the command line, the environment and the configuration.

mod flags;
mod installed;
mod limit;
mod machine;
mod model;
mod served;
mod sub_agents;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io, iter,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use windlass::{
    Agent, AgentBuilder, ApprovalPolicy, ContextSettings, EditTools, Family, FileTools, Limits, Network,
    Policy, Quota, SandboxMode, SandboxRules, SessionBudget, ShellKind, StandingInstructions,
    StorageSettings, Toolset, WebSearch,
    clean::Secrets,
    host::{Machine, OutputFile},
    record::Keep,
    select::RULES,
};

pub(crate) use self::{
    machine::{home, key, shell_program, variables},
    model::{DEFAULT_OPENAI_MODEL, ServedModel},
};

use self::{
    flags::{agent_flags, choice_flags, common_flags, compact_flags, exec_flags},
    machine::{home_in, variable, working_directory},
};
use crate::{
    args::{CommonOptions, CompactOptions, ExecOptions, LimitChoice, ModelChoice, SessionOptions},
    config::{self, ConfigFlag, ConfigSources, LoadedConfig, WindlassConfig},
    credentials::StoredKeys,
    hooks,
    instructions::{InstructionFiles, SkillMentions},
    policy,
    problem::CliProblem,
    profile, redact,
};

/// The source of the standing instructions.
pub(crate) enum InstructionsSource<'a> {
    /// The text of this name.
    BuiltIn(&'static str),
    /// A file of the user.
    File(&'a Path),
}

/// Everything that is decided before anything runs.
pub(crate) struct ProgramSetup {
    pub(crate) loaded: LoadedConfig,
    pub(crate) home: PathBuf,
    pub(crate) cwd: PathBuf,
    /// The provider if the configuration names none.
    usual_provider: &'static str,
    /// The resource limits of each command.
    quota: Quota,
    /// The budget of all agents of this run: an interactive session builds several.
    budget: SessionBudget,
}

impl ProgramSetup {
    /// Creates a setup for commands without a model. Tools must not depend on the presence of a
    /// key.
    pub(crate) fn for_tools(common: &CommonOptions) -> Result<Self, CliProblem> {
        Self::load(common, Vec::new())
    }

    /// Creates a setup for an agent. Without a chosen provider or model and without a key, the
    /// offline rules answer.
    pub(crate) fn for_exec(common: &CommonOptions, options: &ExecOptions) -> Result<Self, CliProblem> {
        Self::for_agent(common, exec_flags(options)?)
    }

    /// Creates a setup for an agent that only makes its conversation shorter.
    pub(crate) fn for_compaction(
        common: &CommonOptions,
        options: &CompactOptions,
    ) -> Result<Self, CliProblem> {
        Self::for_agent(common, compact_flags(options)?)
    }

    /// Creates a setup for an interactive session, with the same choice of a model.
    pub(crate) fn for_session(common: &CommonOptions, options: &SessionOptions) -> Result<Self, CliProblem> {
        Self::for_agent(common, agent_flags(&options.choice, options.script.as_deref(), &options.add_dir)?)
    }

    /// Creates a setup for the agent that a session without options would have.
    pub(crate) fn for_default_session(common: &CommonOptions) -> Result<Self, CliProblem> {
        Self::for_agent(common, Vec::new())
    }

    fn for_agent(common: &CommonOptions, flags: Vec<ConfigFlag>) -> Result<Self, CliProblem> {
        let setup = Self::load(common, flags)?;
        let has_model = setup.config().model_provider.is_some()
            || setup.config().model.is_some()
            || key("OPENAI_API_KEY").is_some()
            || StoredKeys::load(&setup.home)?.get("openai").is_some();
        Ok(if has_model { setup } else { Self { usual_provider: RULES, ..setup } })
    }

    /// Creates a setup for a model alone.
    pub(crate) fn for_model(common: &CommonOptions, choice: &ModelChoice) -> Result<Self, CliProblem> {
        Self::load(common, choice_flags(choice))
    }

    fn load(common: &CommonOptions, flags: Vec<ConfigFlag>) -> Result<Self, CliProblem> {
        let cwd = working_directory(common.cd.as_deref())?;
        let home = home_in(&cwd)?;
        let flags: Vec<_> = common_flags(common).into_iter().chain(flags).collect();
        let sources = ConfigSources {
            home: &home,
            cwd: &cwd,
            variable: &variable,
            overrides: &common.config,
            flags: &flags,
        };
        let loaded = config::load(&sources).map_err(|error| CliProblem::usage(error.to_string()))?;
        let budget = SessionBudget::new(loaded.config.budget.limits());
        Ok(Self { loaded, home, cwd, usual_provider: "openai", quota: Quota::default(), budget })
    }

    /// Adds limits for commands. A limit that cannot be enforced is an error.
    pub(crate) fn limited(self, choice: &LimitChoice) -> Result<Self, CliProblem> {
        let quota = limit::parse(&choice.limit)?;
        let mode = self.config().sandbox_mode;
        let has_walls = matches!(mode, SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite);
        if !has_walls && quota != quota.without_walls() {
            let mode = mode.name();
            return Err(CliProblem::usage(format!(
                "--limit: the sandbox mode `{mode}` enforces only `wall_s` and `out_kb`"
            )));
        }
        Ok(Self { quota, ..self })
    }

    /// Returns the default limits of every command.
    pub(crate) fn command_limits(&self) -> config::CommandLimits {
        self.config().limits
    }

    /// Returns the limits within which changes of commands are recorded.
    pub(crate) fn undo_of_commands(&self) -> config::UndoOfCommands {
        self.config().undo
    }

    /// Returns the limits on the data below the home directory.
    pub(crate) fn retention(&self) -> config::RetentionSettings {
        self.config().retention
    }

    pub(crate) fn config(&self) -> &WindlassConfig {
        &self.loaded.config
    }

    /// Returns an agent without the tools of its model: see [`agent`](Self::agent).
    pub(crate) fn tools(&self, machine: Machine) -> Result<AgentBuilder, CliProblem> {
        let family = self.config().family(&self.model_name().unwrap_or_default());
        // A list of tools shows what a session offers; the session itself warns about a replaced
        // shell.
        let (toolset, _warning) = self.toolset(&family).for_wire(self.wire());
        let builder = self.with_tools(toolset, (self.config().approval_policy, None))?;
        Ok(builder.machine(machine).context(self.config().context_settings(&family)))
    }

    /// Returns an agent for runs without a person.
    pub(crate) fn agent(&self, machine: Machine) -> Result<AgentBuilder, CliProblem> {
        let config = self.config();
        // There is no person to ask, so every policy means `never`. The exception is the one that
        // asks before everything: there, `never` would allow commands that the user wanted to
        // decide about.
        let approval = match config.approval_policy {
            ApprovalPolicy::Untrusted => ApprovalPolicy::Untrusted,
            ApprovalPolicy::OnFailure | ApprovalPolicy::OnRequest | ApprovalPolicy::Never => {
                ApprovalPolicy::Never
            }
        };
        let unattended = Some(config.approval_policy).filter(|chosen| *chosen != approval);
        self.agent_with(machine, (approval, unattended))
    }

    /// Returns an agent for a session with a person, who can be asked.
    pub(crate) fn attended_agent(&self, machine: Machine) -> Result<AgentBuilder, CliProblem> {
        self.agent_with(machine, (self.config().approval_policy, None))
    }

    fn agent_with(
        &self,
        machine: Machine,
        approval: (ApprovalPolicy, Option<ApprovalPolicy>),
    ) -> Result<AgentBuilder, CliProblem> {
        let config = self.config();
        let client = self.client()?;
        let family = config.family(&client.info().model);
        let toolset = self.toolset(&family);
        let files = InstructionFiles::of(self);
        let context = self.context(&files, &family, &client.info().model, toolset.edits)?;
        let builder = self.with_tools(toolset, approval)?;
        let builder = self.sub_agents()?.into_iter().fold(builder, AgentBuilder::sub_agents);
        Ok(builder
            .model(client)
            .machine(machine)
            .context(context)
            .mentions(Arc::new(SkillMentions::new(files)))
            .limits(config.turn_limits())
            .budget(self.budget.clone()))
    }

    /// Returns the context of the session that a configuration without a client describes.
    pub(crate) fn session_context(&self, files: &InstructionFiles) -> Result<ContextSettings, CliProblem> {
        let model = self.model_name().unwrap_or_default();
        let family = self.config().family(&model);
        self.context(files, &family, &model, self.toolset(&family).edits)
    }

    /// Returns everything that the model is told at the start of a session.
    fn context(
        &self,
        files: &InstructionFiles,
        family: &Family,
        model: &str,
        edits: EditTools,
    ) -> Result<ContextSettings, CliProblem> {
        let settings = self.config().context_settings(family);
        let instructions = self.own_instructions()?;
        let instructions = instructions.unwrap_or_else(|| StandingInstructions::of(model, edits).text);
        Ok(ContextSettings {
            instructions: Some(instructions),
            opening_messages: files.messages(self, settings.window),
            ..settings
        })
    }

    /// Returns the source of the standing instructions.
    pub(crate) fn instructions_source(&self) -> InstructionsSource<'_> {
        if let Some(path) = self.config().model_instructions_file.as_deref() {
            return InstructionsSource::File(path);
        }
        let model = self.model_name().unwrap_or_default();
        InstructionsSource::BuiltIn(StandingInstructions::of(&model, EditTools::Disabled).name)
    }

    /// Reads the instructions that replace the standing ones.
    fn own_instructions(&self) -> Result<Option<String>, CliProblem> {
        let path = self.config().model_instructions_file.as_deref();
        let read = |path: &Path| {
            fs::read_to_string(path)
                .map_err(|error| CliProblem::file("cannot read the instructions", path, &error))
        };
        path.map(read).transpose()
    }

    /// Returns the machine for commands: their environment, and their limits together.
    pub(crate) fn machine(&self) -> Result<Machine, CliProblem> {
        Ok(self.config().limit_commands(Machine::new(self.environment()?)))
    }

    /// Returns the built-in tools of a session.
    fn toolset(&self, family: &Family) -> Toolset {
        let config = self.config();
        let edits = match config.include_apply_patch_tool {
            Some(true) if config.edit_tool == config::EditTool::Auto => config::EditTool::ApplyPatch,
            _ => config.edit_tool,
        };
        let web_search = match config.tools.web_search {
            Some(true) => config::WebSearchMode::Live,
            Some(false) => config::WebSearchMode::Disabled,
            None => config.web_search,
        };
        Toolset {
            shell: self.shell(family),
            shell_program: shell_program(),
            files: match config.file_tools {
                config::FileToolsMode::Auto => family.files,
                config::FileToolsMode::Enabled => FileTools::Offered,
                config::FileToolsMode::Disabled => FileTools::Disabled,
            },
            shows_images: family.shows_images,
            edits: match (edits, family.edits) {
                (config::EditTool::Disabled, _) => EditTools::Disabled,
                (config::EditTool::EditFile, _) => EditTools::Strings,
                (config::EditTool::Auto, EditTools::Patch | EditTools::FreeformPatch)
                    if config.include_apply_patch_tool == Some(false) =>
                {
                    EditTools::Strings
                }
                (config::EditTool::ApplyPatch, EditTools::Strings) => EditTools::Patch,
                (_, EditTools::FreeformPatch) if !self.speaks_responses() => EditTools::Patch,
                (config::EditTool::ApplyPatch | config::EditTool::Auto, edits) => edits,
            },
            web_search: match web_search {
                _ if !self.speaks_responses() => None,
                config::WebSearchMode::Live => Some(WebSearch::Live),
                config::WebSearchMode::Cached => Some(WebSearch::Cached),
                config::WebSearchMode::Disabled => None,
            },
            disabled: self.disabled_tools(),
        }
    }

    fn disabled_tools(&self) -> BTreeSet<&'static str> {
        let config = self.config();
        let shows_images = config.include_view_image_tool && config.tools.view_image != Some(false);
        let switches = [
            ("update_plan", config.include_plan_tool),
            ("request_user_input", config.include_user_input_tool),
            ("apply_patch", config.include_apply_patch_tool != Some(false)),
            ("view_image", shows_images),
            ("test_sync_tool", config.include_test_sync_tool),
        ];
        switches.into_iter().filter(|(_, is_there)| !is_there).map(|(name, _)| name).collect()
    }

    /// `unattended` is the policy that the user chose, if another applies because there is no
    /// person to ask.
    fn with_tools(
        &self,
        toolset: Toolset,
        (approval, unattended): (ApprovalPolicy, Option<ApprovalPolicy>),
    ) -> Result<AgentBuilder, CliProblem> {
        let config = self.config();
        let rules = policy::rules(self)?;
        let parallel_commands = config.parallel_commands;
        let policy = Policy { rules, unattended, parallel_commands, ..self.policy(approval) };
        let rulebook = policy::RuleWriter::new(&self.home, policy::project_root(&self.cwd));
        let builder = hooks::with_hooks(self, Agent::builder())?;
        Ok(builder
            .policy(policy)
            .rulebook(Arc::new(rulebook))
            .builtin(toolset)
            .secrets(self.secrets())
            .storage(self.storage())
            .models(config.model_table())
            .review(config.review_settings()))
    }

    fn shell(&self, family: &Family) -> ShellKind {
        match self.config().shell_tool {
            config::ShellTool::Auto => self.usual_shell(family.shell),
            config::ShellTool::Shell => ShellKind::Shell,
            config::ShellTool::ShellCommand => ShellKind::ShellCommand,
            config::ShellTool::LocalShell => ShellKind::LocalShell,
            config::ShellTool::UnifiedExec => ShellKind::UnifiedExec,
            config::ShellTool::Disabled => ShellKind::Disabled,
        }
    }

    /// Returns the shell tool that a model knows, unless it is switched off or the wire does not
    /// support it.
    fn usual_shell(&self, known: ShellKind) -> ShellKind {
        match (known, self.config().features.unified_exec) {
            (_, Some(true)) => ShellKind::UnifiedExec,
            (ShellKind::UnifiedExec, Some(false)) => ShellKind::ShellCommand,
            // Other wires have no tools without a schema, and none that the server runs.
            (ShellKind::LocalShell, _) if !self.speaks_responses() => ShellKind::ShellCommand,
            _ => known,
        }
    }

    /// Returns the policy from the configuration.
    pub(crate) fn policy(&self, approval: ApprovalPolicy) -> Policy {
        Policy {
            cwd: self.cwd.clone(),
            approval,
            ask_before: self.config().ask_before.clone(),
            sandbox: self.config().sandbox_mode,
            walls: self.sandbox_rules(),
            limits: Limits {
                quota: Quota { defaults: self.config().limits.defaults(), ..self.quota },
                max_time: Duration::from_secs(self.config().max_timeout_sec.get()),
                ..Limits::default()
            },
            ..Policy::default()
        }
    }

    /// Returns directories that commands may have written, in this session or earlier ones: links
    /// there must not be followed.
    pub(crate) fn written_by_commands(&self, writable: &[PathBuf]) -> Vec<PathBuf> {
        let here = std::env::current_dir().ok();
        iter::once(self.cwd.clone()).chain(here).chain(writable.iter().cloned()).collect()
    }

    /// Opens the file of an option, to be written at the end.
    pub(crate) fn output_file(&self, path: &Path) -> io::Result<OutputFile> {
        let writable = self.policy(ApprovalPolicy::Never).walls.writable;
        OutputFile::new(path, &self.written_by_commands(&writable))
    }

    /// Returns the environment of programs.
    pub(crate) fn environment(&self) -> Result<BTreeMap<String, String>, CliProblem> {
        let config = self.config();
        let own = if config.shell_environment_policy.experimental_use_profile {
            profile::environment(&shell_program(), &self.cwd, variables())?
        } else {
            variables()
        };
        Ok(config.child_environment(own))
    }

    /// Returns our variables that programs do not get, with the reason for each.
    pub(crate) fn left_out(&self) -> Vec<(String, String)> {
        let left_out = self.config().left_out(&variables()).into_iter();
        left_out.map(|(name, reason)| (name, reason.to_string())).collect()
    }

    /// Returns the records that are kept below the home directory.
    pub(crate) fn storage(&self) -> StorageSettings {
        self.config().storage_settings(&self.home)
    }

    /// Returns the retention of the index of calls.
    pub(crate) fn keep(&self) -> Keep {
        self.config().history.into()
    }

    /// Returns credentials of the environment, of `.env` files in the roots, and of the
    /// configuration.
    pub(crate) fn secrets(&self) -> Secrets {
        let config = self.config();
        let roots = config.sandbox_workspace_write.writable_roots.iter().map(|root| self.cwd.join(root));
        let roots: Vec<_> = iter::once(self.cwd.clone()).chain(roots).collect();
        let providers = config.model_providers.values();
        let given = providers.flat_map(|provider| {
            let token = provider.experimental_bearer_token.iter();
            token.chain(provider.http_headers.values()).map(|secret| secret.reveal().to_owned())
        });
        let named = given.map(|value| ("model_providers".to_owned(), value));
        Secrets::knowing(redact::known(&roots).into_iter().chain(named))
    }

    /// Returns the sandbox rules of the configuration.
    pub(crate) fn sandbox_rules(&self) -> SandboxRules {
        let allowed = &self.config().sandbox_workspace_write;
        SandboxRules {
            writable: allowed.writable_roots.iter().map(|root| self.cwd.join(root)).collect(),
            // Commands must not read our own credentials and sessions.
            unreadable: vec![self.home.clone()],
            readable_again: self.config().readable_secrets.clone(),
            network: if allowed.network_access { Network::Any } else { Network::None },
        }
    }
}
