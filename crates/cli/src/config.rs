//! Configuration: all keys, and how files, variables and options become one set of values.
//!
//! The doc comment of a field is its user documentation: it is the JSON Schema that `windlass config schema` prints and
//! that `docs/config.schema.json` holds. Known keys, types and the "did you mean" of an error are all derived from it.

use std::{collections::BTreeMap, iter, num::NonZeroU64, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use windlass::{
    ApprovalPolicy, OutwardEffect, SandboxMode,
    model::{Provider, presets},
    record::Keep,
    select::{FORMER_NAME, RULES},
};

use crate::spelling::nearness;

mod agent_settings;
mod environment;
mod key;
mod known;
mod layer;
mod limits;
mod load;
mod problem;
mod retention;
mod show;
mod undo;

pub(crate) use known::schema;
pub(crate) use load::{ConfigFlag, ConfigSources, LoadedConfig, file, home, load};
pub(crate) use show::{ConfigFormat, show};

use environment::ShellEnvironmentPolicy;
pub(crate) use limits::CommandLimits;
pub(crate) use retention::RetentionSettings;
use retention::SessionDurability;
pub(crate) use undo::UndoOfCommands;

/// The default time that a model may take for a verdict.
const JUDGE_TIME_LIMIT_SEC: NonZeroU64 = NonZeroU64::new(20).unwrap();

/// The default maximum time limit of a call: the longest builds and test suites end within it.
const MAX_TIMEOUT_SEC: NonZeroU64 = NonZeroU64::new(3600).unwrap();

/// The configuration of Windlass, read from `config.toml` in its home directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "Configuration of Windlass")]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub(crate) struct WindlassConfig {
    /// The model to use, by the name its provider has for it.
    pub(crate) model: Option<String>,
    /// The provider of the model: a key of `model_providers`.
    pub(crate) model_provider: Option<String>,
    /// Where models are served, by name. Some are built in (`openai`, `openrouter`, `ollama`, `lmstudio`, `llama.cpp`,
    /// `vllm`, `scripted`); a table of the same name changes only the keys it sets.
    pub(crate) model_providers: BTreeMap<String, Provider>,
    /// Where the built-in provider `openai` is reached: a short way to set `model_providers.openai.base_url`.
    pub(crate) openai_base_url: Option<String>,
    /// How much the model is to think: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, or what else its server
    /// understands. Unset means the server's choice.
    pub(crate) model_reasoning_effort: Option<String>,
    /// How the model is to summarise its reasoning. Unset means `auto` for models known to reason, and nothing for others.
    pub(crate) model_reasoning_summary: Option<ReasoningSummary>,
    /// How much the model is to write. Unset means the server's choice.
    pub(crate) model_verbosity: Option<ModelVerbosity>,
    /// The most tokens one answer of the model may have. Unset means the server's choice.
    pub(crate) model_max_output_tokens: Option<NonZeroU64>,
    /// A file whose text replaces the built-in instructions of the model.
    pub(crate) model_instructions_file: Option<PathBuf>,
    /// Instructions given to the model in addition to its own.
    pub(crate) developer_instructions: Option<String>,
    /// Whether the model may ask for several tool calls at once. Unset means what is known to work for the model.
    pub(crate) parallel_tool_calls: Option<bool>,
    /// When a person is asked.
    pub(crate) approval_policy: ApprovalPolicy,
    /// Effects beyond this machine that are asked about with the policies `untrusted` and `on-request`, also without a
    /// sandbox: `install`, `send`, `push`, `remote`, `publish`, `deploy`. Default: all of them.
    pub(crate) ask_before: Vec<OutwardEffect>,
    /// How tightly tools are held.
    pub(crate) sandbox_mode: SandboxMode,
    /// What `sandbox_mode = "workspace-write"` allows.
    pub(crate) sandbox_workspace_write: WorkspaceWrite,
    /// Files and directories with credentials that commands and file tools may read all the same.
    pub(crate) readable_secrets: Vec<PathBuf>,
    /// The environment of the programs that tools start.
    pub(crate) shell_environment_policy: ShellEnvironmentPolicy,
    /// Which shell tool the model is offered.
    pub(crate) shell_tool: ShellTool,
    /// Switches of other agents that have a key of their own here.
    pub(crate) features: FeatureSwitches,
    /// Whether the model is offered tools that read files: `read_file`, `grep_files`, `list_dir`, `view_image`.
    pub(crate) file_tools: FileToolsMode,
    /// Which tools for changing files the model is offered.
    pub(crate) edit_tool: EditTool,
    /// Whether the model is offered `update_plan`, by which it shows the steps of its work.
    pub(crate) include_plan_tool: bool,
    /// `true` offers `apply_patch` also to models that were not trained on patches; with `false` it is not there at all.
    /// Unset means as `edit_tool` says.
    pub(crate) include_apply_patch_tool: Option<bool>,
    /// Whether there is `view_image`. Models that cannot see are not offered it in any case.
    pub(crate) include_view_image_tool: bool,
    /// Whether `test_sync_tool` can be called, by which tests see that calls overlap. The model is never offered it.
    pub(crate) include_test_sync_tool: bool,
    /// Whether the model's server may search the web. Only the Responses API can.
    pub(crate) web_search: WebSearchMode,
    /// The same switches by names that other agents use.
    pub(crate) tools: ToolSwitches,
    /// Whether commands run beside each other even if they may change something. Commands known to change nothing
    /// always do.
    pub(crate) parallel_commands: bool,
    /// The most tokens of one tool's output that the model is given; the middle of a longer one is left out. Unset
    /// means what is known to work for the model.
    pub(crate) tool_output_token_limit: Option<NonZeroU64>,
    /// The same for some tools, by name.
    pub(crate) tool_output_token_limits: BTreeMap<String, NonZeroU64>,
    /// How many tokens the model can read at once. Unset means what is known of models of its name.
    pub(crate) model_context_window: Option<NonZeroU64>,
    /// How much of that the tools that are not built in may take, in percent. If they would take more, the model is not told
    /// of them and finds them with `tool_search`.
    #[serde(deserialize_with = "percent")]
    #[schemars(range(min = 1, max = 100))]
    pub(crate) tool_context_percent: u8,
    /// Who judges whether a call did what was asked.
    pub(crate) judge: VerdictJudge,
    /// How long the model is waited for with `judge = "model"`, in seconds; then the verdict stays as it is.
    pub(crate) judge_time_limit_sec: NonZeroU64,
    /// When the model reads the verdict on its call, as one line behind the result.
    pub(crate) show_verdict: ShowVerdict,
    /// The longest time limit that a call may ask for a command, in seconds. A longer one is cut to it, and the result says
    /// so.
    pub(crate) max_timeout_sec: NonZeroU64,
    /// The longest that all commands of a run may take together, in seconds; then those that run are ended and no more
    /// are started. Unset means no limit.
    pub(crate) command_time_limit_sec: Option<NonZeroU64>,
    /// The most time of the processors that all commands of a run may take together, in seconds; then no more are
    /// started. Unset means no limit.
    pub(crate) command_cpu_limit_sec: Option<NonZeroU64>,
    /// Limits of each command in the sandbox, where `--limit` sets no other.
    pub(crate) limits: CommandLimits,
    /// Recording what commands change, so that `windlass undo` can take it back.
    pub(crate) undo: UndoOfCommands,
    /// The longest a turn may take, in seconds. Unset means no limit.
    pub(crate) turn_time_limit_sec: Option<NonZeroU64>,
    /// The most tokens a turn may use, as servers count them, or estimated where they do not. Unset means no limit.
    pub(crate) turn_token_limit: Option<NonZeroU64>,
    /// What the index of calls remembers, which `windlass stats` and `windlass history` ask.
    pub(crate) history: HistoryLimits,
    /// When the session file is flushed to the disk.
    pub(crate) durability: SessionDurability,
    /// Limits on what is kept below the home directory of Windlass.
    pub(crate) retention: RetentionSettings,
    /// Accepted for clients of other agents. Has no effect: reasoning is shown whenever the server sends it.
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
            include_apply_patch_tool: None,
            include_view_image_tool: true,
            include_test_sync_tool: false,
            web_search: WebSearchMode::default(),
            tools: ToolSwitches::default(),
            parallel_commands: false,
            tool_output_token_limit: None,
            tool_output_token_limits: BTreeMap::new(),
            model_context_window: None,
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
            history: HistoryLimits::default(),
            durability: SessionDurability::default(),
            retention: RetentionSettings::default(),
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
        let near = known().filter_map(|known| Some((nearness(name, known)?, known))).min();
        let hint = match near {
            Some((_, known)) => format!("did you mean `{known}`?"),
            None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
        };
        Some(format!("`model_provider`: there is no provider `{name}`; {hint}"))
    }
}

/// What may be written and reached under `sandbox_mode = "workspace-write"`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WorkspaceWrite {
    /// Directories that may be written beside the workspace.
    pub(crate) writable_roots: Vec<PathBuf>,
    /// Whether the network may be used.
    pub(crate) network_access: bool,
    /// Has no effect: `TMPDIR` is a directory of the session's own, and the user's cannot be written.
    pub(crate) exclude_tmpdir_env_var: bool,
    /// Has no effect: `/tmp` is a directory of the session's own, and the system's cannot be written.
    pub(crate) exclude_slash_tmp: bool,
}

/// What the index of calls remembers. Session files are not touched by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "History")]
pub(crate) struct HistoryLimits {
    /// How many days a call is remembered.
    pub(crate) keep_days: u32,
    /// The most megabytes it may take; then the oldest calls are forgotten.
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

/// How reasoning is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningSummary {
    /// As the model sees fit.
    Auto,
    /// In a few words.
    Concise,
    /// At length.
    Detailed,
    /// Not at all.
    None,
}

/// How much a model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Verbosity")]
pub(crate) enum ModelVerbosity {
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
}

/// Which shell tool a model is offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShellTool {
    /// The one its family knows best.
    #[default]
    Auto,
    /// `shell`: a program and its arguments as a list.
    Shell,
    /// `shell_command`: one line for a shell.
    ShellCommand,
    /// `local_shell`: known to some models without a schema.
    LocalShell,
    /// `exec_command` and `write_stdin`: lines for a shell that may go on from call to call.
    UnifiedExec,
    /// None.
    Disabled,
}

/// Switches that other agents have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Features")]
pub(crate) struct FeatureSwitches {
    /// Where `shell_tool` is `auto`: `true` means `unified_exec`, and `false` that it is not chosen for the model.
    pub(crate) unified_exec: Option<bool>,
}

/// Switches of tools that other agents have in a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolSwitches {
    /// `false` is `include_view_image_tool = false`.
    pub(crate) view_image: Option<bool>,
    /// `true` is `web_search = "live"`, `false` is `web_search = "disabled"`. Where it is set, `web_search` does not count.
    pub(crate) web_search: Option<bool>,
}

/// Who judges calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Judge")]
pub(crate) enum VerdictJudge {
    /// What was observed and what its tool promises decide.
    #[default]
    Facts,
    /// After that the model is asked about each call that went well and may have changed something. It can only lower
    /// a verdict. Costs a request each.
    Model,
}

/// When a model reads verdicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ShowVerdict {
    /// Never.
    Never,
    /// When a call failed and the verdict says more than its result.
    #[default]
    OnFailure,
    /// With every call.
    Always,
}

/// Whether a model is offered tools that read files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FileTools")]
pub(crate) enum FileToolsMode {
    /// If its family knows them or nobody knows its family. Those trained to use a shell may still call them.
    #[default]
    Auto,
    /// Always.
    Enabled,
    /// They are not there at all.
    Disabled,
}

/// Which tools for changing files a model is offered. The others stay callable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EditTool {
    /// Those its family knows best.
    #[default]
    Auto,
    /// `apply_patch`: any number of files in one patch.
    ApplyPatch,
    /// `edit_file` and `write_file`: one piece of text, or a whole file.
    EditFile,
    /// None of them is there at all.
    Disabled,
}

/// How far the model's server may search the web.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WebSearch")]
pub(crate) enum WebSearchMode {
    /// The live web.
    Live,
    /// What the server has stored.
    Cached,
    /// Not at all.
    #[default]
    Disabled,
}

#[cfg(test)]
mod tests;
