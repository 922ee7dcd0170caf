//! The MCP servers of a program that embeds agents: connects the pool, the sandbox and the pins.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use windlass_contract::{
    elicitation::Elicitor,
    grant::{DefaultLimits, SandboxRules},
};
use windlass_host::{SandboxedServers, ServerSandboxSettings};
use windlass_mcp::{
    config::{McpConfigError, McpServerConfig},
    oauth::TokenSource,
    output::ImageFitter,
    pins::Pins,
    pool::{PoolSettings, ServerPool},
    tool_source::{RemoteTools, RemoteToolsSettings},
};

use crate::{StorageSettings, image_url};

/// Collects MCP servers and everything they need. Each runs in a sandbox of its own, by its
/// configuration.
#[must_use]
pub struct McpServers {
    servers: BTreeMap<String, McpServerConfig>,
    workspace: PathBuf,
    home: Option<PathBuf>,
    environment: BTreeMap<String, String>,
    rules: SandboxRules,
    limits: DefaultLimits,
    elicitor: Option<Arc<dyn Elicitor>>,
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.servers.keys().collect();
        f.debug_struct("McpServers").field("servers", &names).finish_non_exhaustive()
    }
}

impl McpServers {
    /// Creates an empty collection. Servers start in the workspace.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            servers: BTreeMap::new(),
            workspace: workspace.into(),
            home: None,
            environment: BTreeMap::new(),
            rules: SandboxRules::default(),
            limits: DefaultLimits::default(),
            elicitor: None,
        }
    }

    /// Adds a server, or replaces the one of this name.
    pub fn server(mut self, name: impl Into<String>, config: McpServerConfig) -> Self {
        self.servers.insert(name.into(), config);
        self
    }

    /// Adds servers.
    pub fn servers(mut self, servers: impl IntoIterator<Item = (String, McpServerConfig)>) -> Self {
        self.servers.extend(servers);
        self
    }

    /// Keeps lists of tools, approvals and credentials below the home directory of Windlass, which
    /// no server may read. Without it nothing is kept, and each run approves what it finds.
    pub fn home(self, directory: PathBuf) -> Self {
        Self { home: Some(directory), ..self }
    }

    /// Sets the environment. A server gets a few harmless variables of it, such as `PATH`, and
    /// those that its configuration names.
    pub fn environment(self, variables: BTreeMap<String, String>) -> Self {
        Self { environment: variables, ..self }
    }

    /// Sets the sandbox rules: the paths that no server may read, and the directories that those
    /// may write which may write the workspace.
    pub fn sandbox(self, rules: SandboxRules) -> Self {
        Self { rules, ..self }
    }

    /// Sets limits that apply where the sandbox can enforce them.
    pub fn limits(self, limits: DefaultLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the front end that answers questions of servers. Without it they are declined.
    pub fn elicitor(self, elicitor: Arc<dyn Elicitor>) -> Self {
        Self { elicitor: Some(elicitor), ..self }
    }

    /// Connects everything, and starts the servers whose tools are not known yet in the background.
    /// Must be called within a runtime. The servers end when the result and its tools are dropped.
    pub fn start(self) -> Result<Arc<RemoteTools>, McpConfigError> {
        for (name, config) in &self.servers {
            config.check(name)?;
        }
        let Self { servers, workspace, home, environment, mut rules, limits, elicitor } = self;
        rules.unreadable.extend(home.clone());
        let launcher = SandboxedServers::new(ServerSandboxSettings {
            workspace: workspace.clone(),
            environment: environment.clone(),
            rules,
            defaults: limits,
            running_notes: home.clone().map(|home| StorageSettings::new(home).running_notes()),
        });
        let directory = home.map(|home| home.join(DIRECTORY));
        let tokens = directory.as_ref().map(|directory| TokenSource::new(directory, &servers));
        let pins = directory.clone().map_or_else(Pins::in_memory, Pins::open);
        let pool = ServerPool::new(PoolSettings {
            servers,
            environment,
            directory,
            workspace,
            launcher: Arc::new(launcher),
            tokens: tokens.map(|tokens| Arc::new(tokens) as _),
        });
        let images = ImageFitter::new(image_url);
        let tools = RemoteTools::new(RemoteToolsSettings { pool, pins: Arc::new(pins), elicitor, images });
        tools.start();
        Ok(tools)
    }
}

/// Directory of everything that is kept about servers, below the home directory.
const DIRECTORY: &str = "mcp";
