//! The pool with real server processes, well-behaved and hostile ones.
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::expect_used, reason = "in the helpers of a test, too, a failed expect is a failed test")]
#![expect(clippy::print_stderr, reason = "the server of the tests writes to its standard error")]

mod calls;
mod fake_server;
mod hostile;
mod http;
mod launcher;
mod life_cycle;
mod questions;
mod tasks;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_contract::elicitation::Elicitor;
use windlass_mcp::{
    access_tokens::AccessTokens,
    config::McpServerConfig,
    pool::{PoolSettings, RemoteError, RemoteProgress, RemoteToolCall, ServerPool},
    result::{RemoteContent, RemoteResult},
    status::{ServerState, ServerStatus},
};

use crate::launcher::ChildLauncher;

/// Every wait of these tests has this bound.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pool whose servers are named after the mode in which they run.
struct TestPool {
    pool: Arc<ServerPool>,
    launcher: Arc<ChildLauncher>,
    /// Answers the questions of all calls.
    elicitor: Option<Arc<dyn Elicitor>>,
}

impl TestPool {
    fn new(modes: &[&str]) -> Self {
        Self::with(modes, &json!({}))
    }

    /// Adds keys to the configuration of every server.
    fn with(modes: &[&str], keys: &Value) -> Self {
        Self::kept_in(modes, keys, None)
    }

    fn kept_in(modes: &[&str], keys: &Value, directory: Option<&std::path::Path>) -> Self {
        let servers = modes.iter().map(|mode| ((*mode).to_owned(), config(mode, keys))).collect();
        Self::of(servers, directory, None)
    }

    fn of(
        servers: BTreeMap<String, McpServerConfig>,
        directory: Option<&std::path::Path>,
        tokens: Option<Arc<dyn AccessTokens>>,
    ) -> Self {
        let launcher = Arc::new(ChildLauncher::default());
        let pool = ServerPool::new(PoolSettings {
            servers,
            environment: BTreeMap::from([("FROM_US".to_owned(), "inherited".to_owned())]),
            directory: directory.map(Into::into),
            workspace: "/".into(),
            launcher: Arc::clone(&launcher) as _,
            tokens,
        });
        Self { pool, launcher, elicitor: None }
    }

    async fn call(&self, server: &str, tool: &str) -> Result<RemoteResult, RemoteError> {
        self.call_with(server, tool, json!({})).await
    }

    async fn call_with(
        &self,
        server: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<RemoteResult, RemoteError> {
        self.cancellable(server, tool, arguments, &CancellationToken::new(), &|_| {}).await
    }

    async fn cancellable(
        &self,
        server: &str,
        tool: &str,
        arguments: Value,
        cancel: &CancellationToken,
        progress: &(dyn Fn(RemoteProgress) + Send + Sync),
    ) -> Result<RemoteResult, RemoteError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let call = RemoteToolCall {
            server,
            tool,
            arguments: &arguments,
            progress,
            elicitor: self.elicitor.clone(),
            cancel,
        };
        tokio::time::timeout(PATIENCE, self.pool.call(call)).await.expect("a call that ends")
    }

    fn status(&self, server: &str) -> ServerStatus {
        self.pool.status().into_iter().find(|status| status.server == server).unwrap()
    }

    /// Waits until the state of a server is as expected.
    async fn wait_for(&self, server: &str, is_expected: impl Fn(&ServerState) -> bool) {
        let mut changes = self.pool.changes();
        let waited = tokio::time::timeout(PATIENCE, async {
            while !is_expected(&self.status(server).state) {
                changes.changed().await.unwrap();
            }
        });
        assert!(waited.await.is_ok(), "{:?}", self.status(server));
    }

    /// Shuts the pool down and checks that no process is left.
    async fn close(self) {
        tokio::time::timeout(PATIENCE, self.pool.shut_down()).await.expect("an end");
        self.launcher.assert_all_gone().await;
    }
}

fn config(mode: &str, keys: &Value) -> McpServerConfig {
    let program = std::env::current_exe().unwrap();
    let mut config = json!({
        "command": program,
        "args": ["fake_server::serves_when_asked", "--exact", "--nocapture"],
        "env": {"FAKE_MODE": mode},
    });
    config.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    serde_json::from_value(config).unwrap()
}

fn text(result: &RemoteResult) -> &str {
    match &result.content[..] {
        [RemoteContent::Text { text }] => text,
        other => panic!("one text expected: {other:?}"),
    }
}
