//! The pool of a process: the configured servers, and everything that they need to start.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use windlass::{
    host::{SandboxedServers, ServerSandboxSettings},
    mcp::{
        config::McpServerConfig,
        oauth::TokenSource,
        pool::{PoolSettings, ServerPool},
    },
};

use super::ConfiguredServer;
use crate::setup::{self, ProgramSetup};

/// Returns the directory of everything that is kept about servers.
pub(crate) fn directory(setup: &ProgramSetup) -> PathBuf {
    setup.home.join("mcp")
}

/// Creates a pool of servers. Nothing is started yet.
pub(crate) fn pool<'a>(
    setup: &ProgramSetup,
    servers: impl IntoIterator<Item = (&'a str, &'a ConfiguredServer)>,
) -> Arc<ServerPool> {
    pool_with_tokens(setup, servers).0
}

/// Creates a pool, and the source of its access tokens.
pub(super) fn pool_with_tokens<'a>(
    setup: &ProgramSetup,
    servers: impl IntoIterator<Item = (&'a str, &'a ConfiguredServer)>,
) -> (Arc<ServerPool>, Arc<TokenSource>) {
    let servers = servers.into_iter().map(|(name, server)| (name.to_owned(), server.config.clone()));
    let servers: BTreeMap<String, McpServerConfig> = servers.collect();
    let environment = setup::variables();
    let directory = directory(setup);
    let launcher = SandboxedServers::new(ServerSandboxSettings {
        workspace: setup.cwd.clone(),
        environment: environment.clone(),
        rules: setup.sandbox_rules(),
        defaults: setup.command_limits().defaults(),
        running_notes: Some(setup.storage().running_notes()),
    });
    let tokens = Arc::new(TokenSource::new(&directory, &servers));
    let pool = ServerPool::new(PoolSettings {
        servers,
        environment,
        directory: Some(directory),
        workspace: setup.cwd.clone(),
        launcher: Arc::new(launcher),
        tokens: Some(tokens.clone()),
    });
    (pool, tokens)
}
