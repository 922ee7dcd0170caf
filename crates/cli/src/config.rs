//! Configuration: all keys, and how files, variables and options become one set of values.
//!
//! The doc comment of a field is its user documentation: it becomes the JSON Schema that `windlass
//! config schema` prints and that `docs/config.schema.json` holds. Known keys, types and the
//! suggestions of error messages are all derived from it.

use std::{collections::BTreeMap, iter, num::NonZeroU64, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use windlass::{
    ApprovalPolicy, CompactAt, ModelEntry, OutwardEffect, SandboxMode,
    hooks::config::HooksConfig,
    instructions::DocumentSettings,
    mcp::config::McpServerConfig,
    model::{Provider, presets},
    record::Keep,
    select::{FORMER_NAME, RULES},
};

use crate::spelling::did_you_mean;

mod agent_settings;
mod budget;
mod editor;
mod environment;
mod gateway;
mod key;
mod known;
mod layer;
mod limits;
mod load;
mod problem;
mod retention;
mod show;
mod sub_agents;
mod tui;
mod undo;

pub(crate) use agent_settings::seconds;
pub(crate) use editor::{ConfigEditor, check_text, read_or_new};
pub(crate) use key::ConfigKey;
pub(crate) use known::schema;
pub(crate) use load::{ConfigFlag, ConfigSources, LoadedConfig, file, home, load};
pub(crate) use problem::ConfigError;
pub(crate) use show::{ConfigFormat, show, show_key};

pub(crate) use budget::BudgetSettings;
use environment::ShellEnvironmentPolicy;
pub(crate) use gateway::{GatewayClient, GatewaySettings};
pub(crate) use limits::CommandLimits;
pub(crate) use retention::RetentionSettings;
use retention::SessionDurability;
pub(crate) use sub_agents::{ConfiguredRole, SubAgentLimits};
pub(crate) use tui::{TuiSettings, TuiTheme};
pub(crate) use undo::UndoOfCommands;

/// The default time that a model may take for a verdict.
const JUDGE_TIME_LIMIT_SEC: NonZeroU64 = NonZeroU64::new(20).unwrap();

/// The default maximum time limit of a call: the longest builds and test suites end within it.
const MAX_TIMEOUT_SEC: NonZeroU64 = NonZeroU64::new(3600).unwrap();

/// The configuration of Windlass, read from `config.toml` in its home directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "Configuration of Windlass")]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub(crate) struct WindlassConfig {
    /// The model, by its provider's name for it.
    pub(crate) model: Option<String>,
    /// The provider of the model: a key of `model_providers`.
    pub(crate) model_provider: Option<String>,
    /// Providers of models, by name. Some are built in: `openai`, `openrouter`, `anthropic`,
    /// `azure`, `deepseek`, `gemini`, `groq`, `mistral`, `xai`, `ollama`, `lmstudio`, `llama.cpp`,
    /// `vllm`, `scripted`. A table of the same name changes only the keys it sets.
    pub(crate) model_providers: BTreeMap<String, Provider>,
    /// The URL of the built-in provider `openai`; the same as `model_providers.openai.base_url`.
    pub(crate) openai_base_url: Option<String>,
    /// Reasoning effort: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, or another value that
    /// the server accepts. Unset means the server's default.
    pub(crate) model_reasoning_effort: Option<String>,
    /// The form of reasoning summaries. Unset means `auto` for models known to reason, and none for
    /// others.
    pub(crate) model_reasoning_summary: Option<ReasoningSummary>,
    /// The length of answers. Unset means the server's default.
    pub(crate) model_verbosity: Option<ModelVerbosity>,
    /// Maximum number of tokens of one answer. Unset means the server's default.
    pub(crate) model_max_output_tokens: Option<NonZeroU64>,
    /// A file whose text replaces the built-in instructions.
    pub(crate) model_instructions_file: Option<PathBuf>,
    /// Additional instructions for the model.
    pub(crate) developer_instructions: Option<String>,
    /// Maximum size of the `AGENTS.md` files of a project together, in bytes. The one that crosses
    /// it is cut, and later ones are left out. 0 means that none are read.
    pub(crate) project_doc_max_bytes: usize,
    /// Names of files that are read in directories without an `AGENTS.md`, such as `CLAUDE.md`.
    pub(crate) project_doc_fallback_filenames: Vec<String>,
    /// Lets the model request several tool calls at once. Unset means the known best value for the
    /// model.
    pub(crate) parallel_tool_calls: Option<bool>,
    /// The policy that decides when a person is asked.
    pub(crate) approval_policy: ApprovalPolicy,
    /// Effects beyond this machine that need a question with `untrusted` and `on-request`, also
    /// without a sandbox: `install`, `send`, `push`, `remote`, `publish`, `deploy`. Default: all of
    /// them.
    pub(crate) ask_before: Vec<OutwardEffect>,
    /// The sandbox mode of tools.
    pub(crate) sandbox_mode: SandboxMode,
    /// Access that `sandbox_mode = "workspace-write"` allows.
    pub(crate) sandbox_workspace_write: WorkspaceWrite,
    /// Files and directories with credentials that commands and file tools may read anyway.
    pub(crate) readable_secrets: Vec<PathBuf>,
    /// The environment of the programs that tools start.
    pub(crate) shell_environment_policy: ShellEnvironmentPolicy,
    /// The shell tool that the model is offered.
    pub(crate) shell_tool: ShellTool,
    /// Switches of other agents, for compatibility.
    pub(crate) features: FeatureSwitches,
    /// Offers the tools that read files: `read_file`, `grep_files`, `list_dir`, `view_image`.
    pub(crate) file_tools: FileToolsMode,
    /// The tools for changing files that the model is offered.
    pub(crate) edit_tool: EditTool,
    /// Enables `update_plan`, with which the model shows the steps of its work.
    pub(crate) include_plan_tool: bool,
    /// Enables `request_user_input`, with which the model asks the user something.
    pub(crate) include_user_input_tool: bool,
    /// `true` offers `apply_patch` also to models that were not trained on patches; `false` removes
    /// it. Unset: `edit_tool` decides.
    pub(crate) include_apply_patch_tool: Option<bool>,
    /// Enables `view_image`. Models that cannot read images are never offered it.
    pub(crate) include_view_image_tool: bool,
    /// Makes `test_sync_tool` callable, for tests of parallel calls. The model is never offered it.
    pub(crate) include_test_sync_tool: bool,
    /// Lets the model's server search the web. Only the Responses API can.
    pub(crate) web_search: WebSearchMode,
    /// Switches of tools by the names that other agents use.
    pub(crate) tools: ToolSwitches,
    /// MCP servers, by name. Their tools are offered as `mcp__NAME__TOOL`.
    pub(crate) mcp_servers: BTreeMap<String, McpServerConfig>,
    /// Hooks: commands that are told about steps of a session, and may object.
    pub(crate) hooks: HooksConfig,
    /// The clients of `windlass mcp gateway`.
    pub(crate) mcp_gateway: GatewaySettings,
    /// Agents that an agent may start.
    pub(crate) sub_agents: SubAgentLimits,
    /// The roles of such agents, by name: letters, digits, `-` and `_`. `default`, `explorer` and
    /// `worker` are built in.
    pub(crate) agents: BTreeMap<String, ConfiguredRole>,
    /// Runs commands in parallel even if they may change something. Those known to change nothing
    /// always run in parallel.
    pub(crate) parallel_commands: bool,
    /// Maximum number of tokens of one tool's output that the model gets; the middle of a longer
    /// one is left out. Unset means the known best value for the model.
    pub(crate) tool_output_token_limit: Option<NonZeroU64>,
    /// The same limit for single tools, by name.
    pub(crate) tool_output_token_limits: BTreeMap<String, NonZeroU64>,
    /// Traits of models by name; `*` at the end stands for the rest of a name. An entry changes
    /// only the keys it sets, and of several that match the longest name wins.
    pub(crate) models: BTreeMap<String, ModelEntry>,
    /// The size of the context window, in tokens. Unset means the known size for the model's name.
    pub(crate) model_context_window: Option<NonZeroU64>,
    /// The share of the context window, in percent, at which the conversation is made shorter. 0
    /// switches that off; `/compact` and `windlass compact` still do it. Unset means that of the
    /// model in `models`, or else 85.
    #[schemars(with = "Option<u8>", range(min = 0, max = 95))]
    pub(crate) compact_at: Option<CompactAt>,
    /// The share of the context window that tools that are not built in may take, in percent. If
    /// they would take more, the model finds them with `tool_search`.
    #[serde(deserialize_with = "percent")]
    #[schemars(range(min = 1, max = 100))]
    pub(crate) tool_context_percent: u8,
    /// The judge of whether a call did what was asked.
    pub(crate) judge: VerdictJudge,
    /// Maximum time for the model's opinion with `judge = "model"`, in seconds. After that, the
    /// verdict stays as it is.
    pub(crate) judge_time_limit_sec: NonZeroU64,
    /// Shows the model the verdict on its call, as one line after the result.
    pub(crate) show_verdict: ShowVerdict,
    /// Maximum time limit of a command, in seconds. A longer one is cut to it, and the result says
    /// so.
    pub(crate) max_timeout_sec: NonZeroU64,
    /// Maximum wall time of all commands of a run together, in seconds. Then running ones are ended
    /// and no more are started. Unset means no limit.
    pub(crate) command_time_limit_sec: Option<NonZeroU64>,
    /// Maximum CPU time of all commands of a run together, in seconds. Then no more are started.
    /// Unset means no limit.
    pub(crate) command_cpu_limit_sec: Option<NonZeroU64>,
    /// Limits of each command in the sandbox, unless `--limit` sets another.
    pub(crate) limits: CommandLimits,
    /// Recording of changes by commands, for `windlass undo`.
    pub(crate) undo: UndoOfCommands,
    /// Maximum duration of a turn, in seconds. Unset means no limit.
    pub(crate) turn_time_limit_sec: Option<NonZeroU64>,
    /// Maximum number of tokens of a turn, as servers count them, or estimated if they do not.
    /// Unset means no limit.
    pub(crate) turn_token_limit: Option<NonZeroU64>,
    /// The budget of a session.
    pub(crate) budget: BudgetSettings,
    /// Limits of the index of calls, which `windlass stats` and `windlass history` query.
    pub(crate) history: HistoryLimits,
    /// The times at which the session file is flushed to the disk.
    pub(crate) durability: SessionDurability,
    /// Limits on the data below the home directory of Windlass.
    pub(crate) retention: RetentionSettings,
    /// Settings of interactive sessions.
    pub(crate) tui: TuiSettings,
    /// A program and its arguments, started when a turn of an interactive session has ended or a
    /// question waits. It gets one more argument, which describes that in JSON. Empty means none.
    pub(crate) notify: Vec<String>,
    /// Accepted for compatibility with other agents; has no effect. Reasoning is shown whenever the
    /// server sends it.
    pub(crate) show_raw_agent_reasoning: bool,
}

fn percent<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let percent = u8::deserialize(from)?;
    let is_share = (1..=100).contains(&percent);
    if is_share { Ok(percent) } else { Err(D::Error::custom("not from 1 to 100")) }
}

impl Default for WindlassConfig {
    fn default() -> Self {
        Self {
            model: None,
            model_provider: None,
            model_providers: presets(),
            openai_base_url: None,
            model_reasoning_effort: None,
            model_reasoning_summary: None,
            model_verbosity: None,
            model_max_output_tokens: None,
            model_instructions_file: None,
            developer_instructions: None,
            project_doc_max_bytes: DocumentSettings::default().max_bytes,
            project_doc_fallback_filenames: Vec::new(),
            parallel_tool_calls: None,
            approval_policy: ApprovalPolicy::default(),
            ask_before: OutwardEffect::ALL.to_vec(),
            sandbox_mode: SandboxMode::default(),
            sandbox_workspace_write: WorkspaceWrite::default(),
            readable_secrets: Vec::new(),
            shell_environment_policy: ShellEnvironmentPolicy::default(),
            shell_tool: ShellTool::default(),
            features: FeatureSwitches::default(),
            file_tools: FileToolsMode::default(),
            edit_tool: EditTool::default(),
            include_plan_tool: true,
            include_user_input_tool: true,
            include_apply_patch_tool: None,
            include_view_image_tool: true,
            include_test_sync_tool: false,
            web_search: WebSearchMode::default(),
            tools: ToolSwitches::default(),
            mcp_servers: BTreeMap::new(),
            hooks: HooksConfig::default(),
            mcp_gateway: GatewaySettings::default(),
            sub_agents: SubAgentLimits::default(),
            agents: BTreeMap::new(),
            parallel_commands: false,
            tool_output_token_limit: None,
            tool_output_token_limits: BTreeMap::new(),
            models: BTreeMap::new(),
            model_context_window: None,
            compact_at: None,
            tool_context_percent: windlass::TOOL_CONTEXT_PERCENT,
            judge: VerdictJudge::default(),
            judge_time_limit_sec: JUDGE_TIME_LIMIT_SEC,
            show_verdict: ShowVerdict::default(),
            max_timeout_sec: MAX_TIMEOUT_SEC,
            command_time_limit_sec: None,
            command_cpu_limit_sec: None,
            limits: CommandLimits::default(),
            undo: UndoOfCommands::default(),
            turn_time_limit_sec: None,
            turn_token_limit: None,
            budget: BudgetSettings::default(),
            history: HistoryLimits::default(),
            durability: SessionDurability::default(),
            retention: RetentionSettings::default(),
            tui: TuiSettings::default(),
            notify: Vec::new(),
            show_raw_agent_reasoning: false,
        }
    }
}

impl WindlassConfig {
    /// Returns a message if `model_provider` names an unknown provider. This needs the whole
    /// configuration: a provider may be in the file and its name in a variable.
    fn unknown_provider(&self) -> Option<String> {
        let name = self.model_provider.as_deref()?;
        let known = || iter::once(RULES).chain(self.model_providers.keys().map(String::as_str));
        if name == FORMER_NAME || known().any(|known| known == name) {
            return None;
        }
        let list = || format!("the providers are {}", known().collect::<Vec<_>>().join(", "));
        let hint = did_you_mean(name, known()).unwrap_or_else(list);
        Some(format!("`model_provider`: there is no provider `{name}`; {hint}"))
    }

    /// Returns the first server that cannot be used, and the reason. This needs all keys of a
    /// server: some exclude each other.
    fn faulty_server(&self) -> Option<(&str, String)> {
        let fault = |(name, server): (&'_ String, &McpServerConfig)| server.check(name).err();
        let (name, server) = self.mcp_servers.iter().find(|each| fault(*each).is_some())?;
        Some((name, server.check(name).err()?.to_string()))
    }
}

/// Access that `sandbox_mode = "workspace-write"` allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorkspaceWrite {
    /// Directories that may be written in addition to the workspace.
    pub(crate) writable_roots: Vec<PathBuf>,
    /// Allows the network.
    pub(crate) network_access: bool,
    /// Has no effect: `TMPDIR` is private to the session, and the user's cannot be written.
    pub(crate) exclude_tmpdir_env_var: bool,
    /// Has no effect: `/tmp` is private to the session, and the system's cannot be written.
    pub(crate) exclude_slash_tmp: bool,
}

/// Limits of the index of calls. They do not affect session files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "History")]
pub(crate) struct HistoryLimits {
    /// Number of days that a call is kept.
    pub(crate) keep_days: u32,
    /// Maximum size of the index, in megabytes; then the oldest calls are removed.
    pub(crate) max_megabytes: u32,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        let Keep { days, megabytes } = Keep::default();
        Self { keep_days: days, max_megabytes: megabytes }
    }
}

impl From<HistoryLimits> for Keep {
    fn from(HistoryLimits { keep_days: days, max_megabytes: megabytes }: HistoryLimits) -> Self {
        Self { days, megabytes }
    }
}

/// The form of reasoning summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningSummary {
    /// The model decides.
    Auto,
    /// A short summary.
    Concise,
    /// A long summary.
    Detailed,
    /// None.
    None,
}

/// The length of a model's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Verbosity")]
pub(crate) enum ModelVerbosity {
    /// Short.
    Low,
    /// Normal.
    Medium,
    /// Long.
    High,
}

/// The shell tool that a model is offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShellTool {
    /// The one that the model's family knows best.
    #[default]
    Auto,
    /// `shell`: a program and its arguments as a list.
    Shell,
    /// `shell_command`: one line for a shell.
    ShellCommand,
    /// `local_shell`: some models know it without a schema.
    LocalShell,
    /// `exec_command` and `write_stdin`: command lines in shells that can keep running between
    /// calls.
    UnifiedExec,
    /// None.
    Disabled,
}

/// Switches of other agents, for compatibility.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Features")]
pub(crate) struct FeatureSwitches {
    /// If `shell_tool` is `auto`, `true` selects `unified_exec`, and `false` selects another tool
    /// for models that know it best.
    pub(crate) unified_exec: Option<bool>,
}

/// Switches of tools, in the table that other agents use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolSwitches {
    /// `false` is `include_view_image_tool = false`.
    pub(crate) view_image: Option<bool>,
    /// `true` is `web_search = "live"`, `false` is `web_search = "disabled"`. If set, the key
    /// `web_search` is ignored.
    pub(crate) web_search: Option<bool>,
}

/// The judge of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Judge")]
pub(crate) enum VerdictJudge {
    /// Observed facts and the promises of the tool decide.
    #[default]
    Facts,
    /// In addition, the model is asked about each successful call that may have changed something.
    /// It can only lower a verdict. Each costs a request.
    Model,
}

/// The calls after which a model reads the verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ShowVerdict {
    /// Never.
    Never,
    /// After a failed call, if the verdict says more than the result.
    #[default]
    OnFailure,
    /// After every call.
    Always,
}

/// The offer of tools that read files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FileTools")]
pub(crate) enum FileToolsMode {
    /// If the model's family knows them, or is unknown. Models trained to use a shell may still
    /// call them.
    #[default]
    Auto,
    /// Always.
    Enabled,
    /// Never; calls of them fail, too.
    Disabled,
}

/// The tools for changing files that a model is offered. The others stay callable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditTool {
    /// Those that the model's family knows best.
    #[default]
    Auto,
    /// `apply_patch`: any number of files in one patch.
    ApplyPatch,
    /// `edit_file` and `write_file`: one replacement, or a whole file.
    EditFile,
    /// None; calls of them fail, too.
    Disabled,
}

/// The web search of the model's server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WebSearch")]
pub(crate) enum WebSearchMode {
    /// The live web.
    Live,
    /// Pages that the server has stored.
    Cached,
    /// None.
    #[default]
    Disabled,
}

#[cfg(test)]
mod tests;
