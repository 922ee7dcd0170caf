//! From the command line, the environment and the configuration to the parts of an agent.

use std::{
    collections::BTreeMap,
    env, fs, io, iter,
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use toml::Value;
use windlass::{
    Agent, AgentBuilder, ApprovalPolicy, Budget, BuildError, EditTools, Family, FileTools, ModelClient,
    ModelError, Network, Policy, SandboxMode, ShellKind, Toolset, Verdicts, Walls, WebSearch,
    clean::Secrets,
    model::{self, Options, Provider, WireApi},
    record::Keep,
    select::{self, BUILTIN},
};

use crate::{
    args::{Common, ExecOptions, ModelChoice},
    config::{self, Config, Flag, Loaded, Sources},
    policy,
    problem::Problem,
    profile, redact,
};

/// The model of the `openai` provider, where none is named.
const DEFAULT_OPENAI_MODEL: &str = "gpt-5.2-codex";

/// Everything that is settled before anything runs.
pub(crate) struct Setup {
    pub(crate) loaded: Loaded,
    pub(crate) home: PathBuf,
    pub(crate) cwd: PathBuf,
    /// The provider where the configuration names none.
    usual_provider: &'static str,
}

impl Setup {
    /// For commands without a model. What tools are like must not depend on who has a key.
    pub(crate) fn for_tools(common: &Common) -> Result<Self, Problem> {
        Self::load(common, Vec::new())
    }

    /// For an agent. Whoever has chosen neither a provider nor a model and has no key is answered without either.
    pub(crate) fn for_exec(common: &Common, options: &ExecOptions) -> Result<Self, Problem> {
        let setup = Self::load(common, exec_flags(options)?)?;
        let has_model = setup.config().model.is_some() || key("OPENAI_API_KEY").is_some();
        Ok(if has_model { setup } else { Self { usual_provider: BUILTIN, ..setup } })
    }

    /// For a model alone.
    pub(crate) fn for_model(common: &Common, choice: &ModelChoice) -> Result<Self, Problem> {
        Self::load(common, choice_flags(choice))
    }

    fn load(common: &Common, flags: Vec<Flag>) -> Result<Self, Problem> {
        let cwd = working_directory(common.cd.as_deref())?;
        let home = home_in(&cwd)?;
        let flags: Vec<_> = common_flags(common).into_iter().chain(flags).collect();
        let sources =
            Sources { home: &home, cwd: &cwd, variable: &variable, overrides: &common.config, flags: &flags };
        let loaded = config::load(&sources).map_err(|error| Problem::usage(error.to_string()))?;
        Ok(Self { loaded, home, cwd, usual_provider: "openai" })
    }

    fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// An agent, but for its model's tools: see [`agent`](Self::agent).
    pub(crate) fn tools(&self) -> Result<AgentBuilder, Problem> {
        let model = self.model_name().unwrap_or_default();
        self.with_tools(&Family::of(&model), self.config().approval_policy)
    }

    /// An agent for runs without a person.
    pub(crate) fn agent(&self) -> Result<AgentBuilder, Problem> {
        let config = self.config();
        let client = self.client()?;
        let family = Family::of(&client.info().model);
        // Nobody can be asked, so every policy means never, but for the one that wants a question before anything at
        // all: there, never would allow what the user kept to themselves.
        let approval = match config.approval_policy {
            ApprovalPolicy::Untrusted => ApprovalPolicy::Untrusted,
            ApprovalPolicy::OnFailure | ApprovalPolicy::OnRequest | ApprovalPolicy::Never => {
                ApprovalPolicy::Never
            }
        };
        let mut builder = self.with_tools(&family, approval)?.model(client);
        if let Some(path) = &config.model_instructions_file {
            let text = fs::read_to_string(path);
            builder = builder.instructions(
                text.map_err(|error| Problem::file("cannot read the instructions", path, &error))?,
            );
        }
        if let Some(text) = &config.developer_instructions {
            builder = builder.developer_instructions(text.clone());
        }
        if let Some(allowed) = config.parallel_tool_calls {
            builder = builder.parallel_calls(allowed);
        }
        if config.judge == config::Judge::Model {
            builder = builder.judged_by_model(Duration::from_secs(config.judge_time_limit_sec.get()));
        }
        if let Some(seconds) = config.command_time_limit_sec {
            builder = builder.command_time(Duration::from_secs(seconds.get()));
        }
        if let Some(seconds) = config.command_cpu_limit_sec {
            builder = builder.command_cpu(Duration::from_secs(seconds.get()));
        }
        if let Some(seconds) = config.turn_time_limit_sec {
            builder = builder.time_limit(Duration::from_secs(seconds.get()));
        }
        if let Some(tokens) = config.turn_token_limit {
            builder = builder.token_limit(tokens.get());
        }
        Ok(builder)
    }

    fn with_tools(&self, family: &Family, approval: ApprovalPolicy) -> Result<AgentBuilder, Problem> {
        let config = self.config();
        let rules = policy::rules(self)?;
        let policy = Policy { rules, parallel_commands: config.parallel_commands, ..self.policy(approval) };
        let toolset = Toolset {
            shell: self.shell(family),
            shell_program: shell_program(),
            files: match config.file_tools {
                config::FileTools::Auto => family.files,
                config::FileTools::Enabled => FileTools::Offered,
                config::FileTools::Disabled => FileTools::Disabled,
            },
            shows_images: family.shows_images,
            edits: match (config.edit_tool, family.edits) {
                (config::EditTool::EditFile, _) => EditTools::Strings,
                (config::EditTool::ApplyPatch, EditTools::Strings) => EditTools::Patch,
                (_, EditTools::FreeformPatch) if !self.speaks_responses() => EditTools::Patch,
                (config::EditTool::ApplyPatch | config::EditTool::Auto, edits) => edits,
            },
            web_search: match config.web_search {
                _ if !self.speaks_responses() => None,
                config::WebSearch::Live => Some(WebSearch::Live),
                config::WebSearch::Cached => Some(WebSearch::Cached),
                config::WebSearch::Disabled => None,
            },
        };
        let rulebook = policy::Answers::new(&self.home, policy::project_root(&self.cwd));
        let mut builder = Agent::builder()
            .policy(policy)
            .rulebook(Arc::new(rulebook))
            .builtin(toolset)
            .home(self.home.clone())
            .environment(self.environment()?)
            .secrets(self.secrets())
            .keep(self.keep())
            .context_window(config.model_context_window.unwrap_or(family.context_window))
            .tool_context_percent(config.tool_context_percent)
            .verdicts(match config.show_verdict {
                config::ShowVerdict::Never => Verdicts::Never,
                config::ShowVerdict::OnFailure => Verdicts::OnFailure,
                config::ShowVerdict::Always => Verdicts::Always,
            });
        let budget = |tokens: NonZeroU64| Budget::Tokens(usize::try_from(tokens.get()).unwrap_or(usize::MAX));
        if let Some(tokens) = config.tool_output_token_limit {
            builder = builder.budget(budget(tokens));
        }
        let limits = config.tool_output_token_limits.iter();
        builder = builder.budgets(limits.map(|(tool, tokens)| (tool.clone(), budget(*tokens))).collect());
        Ok(builder)
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

    /// The one a model knows, unless it is switched off or the wire does not have it.
    fn usual_shell(&self, known: ShellKind) -> ShellKind {
        match (known, self.config().features.unified_exec) {
            (_, Some(true)) => ShellKind::UnifiedExec,
            (ShellKind::UnifiedExec, Some(false)) => ShellKind::ShellCommand,
            // Over other wires there is no tool without a schema, and none that the server runs.
            (ShellKind::LocalShell, _) if !self.speaks_responses() => ShellKind::ShellCommand,
            _ => known,
        }
    }

    /// Whether the provider's wire has tools beyond functions.
    fn speaks_responses(&self) -> bool {
        let id = self.provider_id();
        let provider = self.config().model_providers.get(id);
        id != BUILTIN && provider.is_none_or(|provider| provider.wire_api == WireApi::Responses)
    }

    /// What a person has settled beforehand.
    pub(crate) fn policy(&self, approval: ApprovalPolicy) -> Policy {
        Policy {
            cwd: self.cwd.clone(),
            approval,
            sandbox: self.config().sandbox_mode,
            walls: self.walls(),
            ..Policy::default()
        }
    }

    /// The environment of programs.
    pub(crate) fn environment(&self) -> Result<BTreeMap<String, String>, Problem> {
        let config = self.config();
        let own = if config.shell_environment_policy.experimental_use_profile {
            profile::environment(&shell_program(), &self.cwd, variables())?
        } else {
            variables()
        };
        Ok(config.child_environment(own))
    }

    /// What the index of calls remembers.
    pub(crate) fn keep(&self) -> Keep {
        self.config().history.into()
    }

    /// Credentials of the environment, of `.env` files in the roots, and of the configuration.
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

    /// What the configuration lets commands do beside.
    fn walls(&self) -> Walls {
        let allowed = &self.config().sandbox_workspace_write;
        Walls {
            writable: allowed.writable_roots.iter().map(|root| self.cwd.join(root)).collect(),
            // Our own credentials and sessions are nobody's business but ours.
            unreadable: vec![self.home.clone()],
            readable_again: Vec::new(),
            network: if allowed.network_access { Network::Any } else { Network::None },
        }
    }

    /// How many tokens the model can read.
    pub(crate) fn context_window(&self) -> u64 {
        let known = || Family::of(&self.model_name().unwrap_or_default()).context_window;
        self.config().model_context_window.unwrap_or_else(known).get()
    }

    fn provider_id(&self) -> &str {
        self.config().model_provider.as_deref().unwrap_or(self.usual_provider)
    }

    fn model_name(&self) -> Option<String> {
        let default = match self.provider_id() {
            "openai" => Some(DEFAULT_OPENAI_MODEL),
            "scripted" => Some("scripted"),
            BUILTIN => Some(BUILTIN),
            _ => None,
        };
        self.config().model.clone().or_else(|| default.map(str::to_owned))
    }

    fn client(&self) -> Result<Arc<dyn ModelClient>, Problem> {
        if self.provider_id() == BUILTIN {
            return Ok(select::builtin());
        }
        let served = self.served()?;
        served.connect(served.provider).map_err(|error| {
            // Whoever has not chosen a provider may not know that there are others.
            let chosen =
                self.config().model_provider.is_some() || !matches!(error, ModelError::MissingKey { .. });
            let hint =
                if chosen { "" } else { ", or choose another provider with `--provider`, such as ollama" };
            Problem::usage(format!("{error}{hint}"))
        })
    }

    /// Whether anyone has said who answers. Where a key was all that said so, it may be missing today.
    pub(crate) fn has_chosen_provider(&self) -> bool {
        self.config().model_provider.is_some() || self.usual_provider != BUILTIN
    }

    /// Why there is no agent, with what to do about it.
    pub(crate) fn explain(&self, error: &BuildError) -> Problem {
        let problem = Problem::build(error);
        let BuildError::OtherProvider { provider, .. } = error else { return problem };
        let known = self.config().model_providers.get(provider);
        let missing = known.and_then(Provider::key_variable).filter(|name| key(name).is_none());
        let how = match missing {
            Some(variable) => format!("`{variable}` is not set; set it"),
            None => format!("choose it with `--provider {provider}`"),
        };
        let message = format!("{}; {how}, or go on with another by `--provider`", problem.message);
        Problem { message, ..problem }
    }

    /// Where the model is served, and what is asked of it.
    pub(crate) fn served(&self) -> Result<Served<'_>, Problem> {
        let (config, id) = (self.config(), self.provider_id());
        if id == BUILTIN {
            let message = "the builtin model has no server; choose another provider with `--provider`";
            return Err(Problem::usage(message));
        }
        let Some(provider) = config.model_providers.get(id) else {
            let known = [BUILTIN].into_iter().chain(config.model_providers.keys().map(String::as_str));
            let known: Vec<_> = known.collect();
            return Err(Problem::usage(format!(
                "there is no provider `{id}`; there are {}",
                known.join(", ")
            )));
        };
        let model = self.model_name().ok_or_else(|| {
            Problem::usage(format!(
                "which model of `{id}`? give it with `--model`, or set `model` in the configuration"
            ))
        })?;
        // A model that thinks is asked for a summary of its thoughts, which also makes its server hand the thoughts
        // themselves over, sealed, so that they are not lost from one request to the next.
        let summary = config.model_reasoning_summary;
        let summary =
            summary.or_else(|| Family::of(&model).reasoning.then_some(config::ReasoningSummary::Auto));
        let options = Options {
            model,
            reasoning_effort: config.model_reasoning_effort.clone(),
            reasoning_summary: summary.and_then(spelled),
            verbosity: config.model_verbosity.and_then(spelled),
            max_output_tokens: config.model_max_output_tokens.map(NonZeroU64::get),
        };
        Ok(Served { id, provider, options })
    }
}

/// A model as it was chosen.
pub(crate) struct Served<'a> {
    pub(crate) id: &'a str,
    pub(crate) provider: &'a Provider,
    pub(crate) options: Options,
}

impl Served<'_> {
    /// A client for the model, through this or a changed provider.
    pub(crate) fn connect(&self, provider: &Provider) -> Result<Arc<dyn ModelClient>, ModelError> {
        model::connect(self.id, provider, self.options.clone(), &key)
    }
}

/// The home directory of Windlass.
pub(crate) fn home() -> Result<PathBuf, Problem> {
    home_in(&working_directory(None)?)
}

fn home_in(cwd: &Path) -> Result<PathBuf, Problem> {
    if env::var_os("WINDLASS_HOME").is_some_and(|home| home.to_str().is_none()) {
        return Err(Problem::usage("WINDLASS_HOME is not UTF-8; move the directory to a path that is"));
    }
    config::home(&variable, cwd).map_err(|error| Problem::usage(error.to_string()))
}

/// Options of every command that stand for a key.
fn common_flags(common: &Common) -> Vec<Flag> {
    let set = |name, key, value: &str| Flag { name, key, value: Value::String(value.to_owned()) };
    let mut flags = Vec::new();
    if let Some(mode) = common.sandbox {
        flags.push(set("--sandbox", "sandbox_mode", SandboxMode::from(mode).name()));
    }
    if let Some(policy) = common.approval {
        flags.push(set("--ask-for-approval", "approval_policy", ApprovalPolicy::from(policy).name()));
    }
    if common.bypass {
        let name = "--dangerously-bypass-approvals-and-sandbox";
        flags.push(set(name, "sandbox_mode", SandboxMode::DangerFullAccess.name()));
        flags.push(set(name, "approval_policy", ApprovalPolicy::Never.name()));
    }
    flags
}

/// Options that choose a model.
fn choice_flags(choice: &ModelChoice) -> Vec<Flag> {
    let flag = |name, key, value: &Option<String>| {
        value.as_ref().map(|value| Flag { name, key, value: Value::String(value.clone()) })
    };
    let model = flag("--model", "model", &choice.model);
    model.into_iter().chain(flag("--provider", "model_provider", &choice.provider)).collect()
}

/// Options of `exec` that stand for a key.
fn exec_flags(options: &ExecOptions) -> Result<Vec<Flag>, Problem> {
    let mut flags = choice_flags(&options.choice);
    let mut set = |name, key, value| flags.push(Flag { name, key, value });
    if let Some(path) = &options.script {
        set("--script", "model_provider", Value::String("scripted".to_owned()));
        set("--script", "model_providers", within("scripted", within("script", text("--script", path)?)));
    }
    if !options.add_dir.is_empty() {
        let roots = options.add_dir.iter().map(|path| text("--add-dir", path)).collect::<Result<_, _>>()?;
        set("--add-dir", "sandbox_workspace_write", within("writable_roots", Value::Array(roots)));
    }
    let number = |name, limit: u64| {
        i64::try_from(limit)
            .map(Value::Integer)
            .map_err(|_| Problem::usage(format!("{name}: {limit} is too large")))
    };
    if let Some(seconds) = options.time_limit {
        set("--time-limit", "turn_time_limit_sec", number("--time-limit", seconds)?);
    }
    if let Some(tokens) = options.token_limit {
        set("--token-limit", "turn_token_limit", number("--token-limit", tokens)?);
    }
    Ok(flags)
}

/// A table with one key.
fn within(key: &str, value: Value) -> Value {
    Value::Table([(key.to_owned(), value)].into_iter().collect())
}

fn text(flag: &str, path: &Path) -> Result<Value, Problem> {
    let text =
        path.to_str().ok_or_else(|| Problem::usage(format!("{flag}: `{}` is not UTF-8", path.display())))?;
    Ok(Value::String(text.to_owned()))
}

/// A choice as the configuration, and every server, spells it.
fn spelled(choice: impl Serialize) -> Option<String> {
    serde_json::to_value(choice).ok()?.as_str().map(str::to_owned)
}

/// Where work happens: an existing directory, with links resolved.
fn working_directory(cd: Option<&Path>) -> Result<PathBuf, Problem> {
    let path = cd.map_or_else(env::current_dir, |path| Ok(path.to_owned()));
    let path = path.map_err(|error| Problem::usage(format!("there is no working directory: {error}")))?;
    let real = path
        .canonicalize()
        .and_then(|real| if real.is_dir() { Ok(real) } else { Err(io::ErrorKind::NotADirectory.into()) });
    let real = real.map_err(|error| Problem::file("cannot work in", &path, &error))?;
    // Session files and prompts are text, and a directory that cannot be named in them cannot be worked in.
    let named = real.to_str().is_some();
    named
        .then_some(real)
        .ok_or_else(|| Problem::usage(format!("the name of `{}` is not UTF-8", path.display())))
}

/// The user's shell, if it is one that reads POSIX command lines.
fn shell_program() -> PathBuf {
    let usual = ["bash", "zsh", "sh", "dash", "ksh"];
    let own = env::var_os("SHELL").map(PathBuf::from);
    let own = own.filter(|path| {
        path.is_absolute() && path.file_name().is_some_and(|name| usual.iter().any(|each| name == *each))
    });
    let candidates = own.into_iter().chain(["/bin/bash", "/usr/bin/bash", "/bin/sh"].map(PathBuf::from));
    candidates.into_iter().find(|path| path.exists()).unwrap_or_else(|| "/bin/sh".into())
}

/// The environment, as far as it is text.
fn variables() -> BTreeMap<String, String> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// A variable that may hold a key. Client libraries of this family hand theirs over in a variable of their own, which
/// then counts more than whatever the user's shell happens to hold.
fn key(name: &str) -> Option<String> {
    let handed_over = (name == "OPENAI_API_KEY").then(|| variable("CODEX_API_KEY")).flatten();
    handed_over.or_else(|| variable(name)).filter(|value| !value.is_empty())
}
