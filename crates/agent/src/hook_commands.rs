//! The hooks of a program that embeds agents: connects their configuration and their sandbox.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use windlass_contract::grant::{DefaultLimits, SandboxRules};
use windlass_hooks::{
    CommandHooks,
    config::{HookConfigError, HooksConfig},
};
use windlass_host::{SandboxedServers, ServerSandboxSettings};

use crate::StorageSettings;

/// Directory of hooks below the home directory: the only part of it that they may read.
const HOOK_DIRECTORY: &str = "hooks";

/// Collects hooks and everything they need. Each runs in a sandbox of its own, by its
/// configuration: by default it reads everything but secrets, writes nothing, and has no network.
#[must_use]
pub struct HookCommands {
    configs: Vec<(HooksConfig, String)>,
    workspace: PathBuf,
    home: Option<PathBuf>,
    environment: BTreeMap<String, String>,
    rules: SandboxRules,
    limits: DefaultLimits,
}

impl fmt::Debug for HookCommands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookCommands").field("configs", &self.configs).finish_non_exhaustive()
    }
}

impl HookCommands {
    /// Creates an empty collection. Hooks start in the workspace.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            configs: Vec::new(),
            workspace: workspace.into(),
            home: None,
            environment: BTreeMap::new(),
            rules: SandboxRules::default(),
            limits: DefaultLimits::default(),
        }
    }

    /// Adds the hooks of a configuration. `source` names its file.
    pub fn config(mut self, config: HooksConfig, source: impl Into<String>) -> Self {
        self.configs.push((config, source.into()));
        self
    }

    /// Sets the home directory of Windlass, of which hooks may read only the folder `hooks`.
    pub fn home(self, directory: PathBuf) -> Self {
        Self { home: Some(directory), ..self }
    }

    /// Sets the environment. A hook gets a few harmless variables of it, such as `PATH`, and those
    /// of its configuration.
    pub fn environment(self, variables: BTreeMap<String, String>) -> Self {
        Self { environment: variables, ..self }
    }

    /// Sets the sandbox rules: the paths that no hook may read, and the directories that those may
    /// write which may write the workspace.
    pub fn sandbox(self, rules: SandboxRules) -> Self {
        Self { rules, ..self }
    }

    /// Sets limits that apply where the sandbox can enforce them.
    pub fn limits(self, limits: DefaultLimits) -> Self {
        Self { limits, ..self }
    }

    /// Connects everything. Starts nothing.
    pub fn build(self) -> Result<Arc<CommandHooks>, HookConfigError> {
        let Self { configs, workspace, home, environment, mut rules, limits } = self;
        rules.unreadable.extend(home.clone());
        rules.readable_again.extend(home.as_ref().map(|home| home.join(HOOK_DIRECTORY)));
        let launcher = SandboxedServers::new(ServerSandboxSettings {
            workspace: workspace.clone(),
            environment,
            rules,
            defaults: limits,
            running_notes: home.map(|home| StorageSettings::new(home).running_notes()),
        });
        let hooks = CommandHooks::new(workspace, Arc::new(launcher));
        let add = |hooks: CommandHooks, (config, source): (HooksConfig, String)| {
            hooks.with_config(&config, &source)
        };
        configs.into_iter().try_fold(hooks, add).map(Arc::new)
    }
}
