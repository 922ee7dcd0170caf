//! The tools of servers as tools of a session, with real server processes.
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]

mod calls;
mod listed_server;
mod resources;
mod sessions;

#[path = "../pool/launcher.rs"]
mod launcher;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    AnyTool, Cx, Effects, Event, Host, Input, Output, Sandbox, ToolError,
    event::EventEmitter,
    grant::{Confinement, Limits},
};
use windlass_fakes::{EchoMachine, issue_grant, run_parsed};
use windlass_mcp::{
    config::McpServerConfig,
    output::ImageFitter,
    pins::Pins,
    pool::{PoolSettings, ServerPool},
    tool_source::{RemoteTools, RemoteToolsSettings},
};

use crate::launcher::ChildLauncher;

/// Every wait of these tests has this bound.
const PATIENCE: Duration = Duration::from_secs(30);

/// A home directory and the files in which the servers find their tools.
struct TestHome {
    directory: TempDir,
}

impl TestHome {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// Sets the tools of a server. It reads them for each list.
    fn set_tools(&self, server: &str, tools: &Value) {
        fs::write(self.tool_file(server), tools.to_string()).unwrap();
    }

    fn tool_file(&self, server: &str) -> PathBuf {
        self.directory.path().join(format!("{server}.json"))
    }

    /// Begins a session with these servers and further keys of their configuration.
    fn session(&self, servers: &[&str], keys: &Value) -> TestSession {
        let configs = servers.iter().map(|server| ((*server).to_owned(), self.config(server, keys)));
        self.session_with(configs.collect())
    }

    fn session_with(&self, servers: BTreeMap<String, McpServerConfig>) -> TestSession {
        let launcher = Arc::new(ChildLauncher::default());
        let directory = self.directory.path().join("mcp");
        let pool = ServerPool::new(PoolSettings {
            servers,
            environment: BTreeMap::new(),
            directory: Some(directory.clone()),
            workspace: "/".into(),
            launcher: Arc::clone(&launcher) as _,
            tokens: None,
        });
        let pins = Arc::new(Pins::open(directory));
        let tools = RemoteTools::new(RemoteToolsSettings {
            pool: Arc::clone(&pool),
            pins: Arc::clone(&pins),
            elicitor: None,
            images: ImageFitter::new(|_| Err("no images".to_owned())),
        });
        TestSession { pool, pins, tools, launcher }
    }

    fn config(&self, server: &str, keys: &Value) -> McpServerConfig {
        let mut config = json!({
            "command": std::env::current_exe().unwrap(),
            "args": ["listed_server::serves_when_asked", "--exact", "--nocapture"],
            "env": {"LISTED_TOOLS": self.tool_file(server)},
        });
        config.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        serde_json::from_value(config).unwrap()
    }
}

struct TestSession {
    pool: Arc<ServerPool>,
    pins: Arc<Pins>,
    tools: Arc<RemoteTools>,
    launcher: Arc<ChildLauncher>,
}

impl TestSession {
    /// Starts the servers that have to start, and waits for their lists.
    async fn listed(&self) {
        self.tools.start();
        self.tools.wait_until_listed(PATIENCE).await;
    }

    fn names(&self) -> Vec<String> {
        self.tools.tools().iter().map(|tool| tool.name().to_string()).collect()
    }

    fn tool(&self, name: &str) -> Arc<dyn AnyTool> {
        self.tools.tools().into_iter().find(|tool| tool.name().as_str() == name).unwrap()
    }

    async fn close(self) {
        tokio::time::timeout(PATIENCE, self.pool.shut_down()).await.unwrap();
        self.launcher.assert_all_gone().await;
    }
}

/// Runs a call of a tool without a gate.
async fn run(tool: &Arc<dyn AnyTool>, arguments: &Value) -> Result<Output, ToolError> {
    let running = RunningCall::default();
    run_in(tool, arguments, &running).await
}

async fn run_in(
    tool: &Arc<dyn AnyTool>,
    arguments: &Value,
    running: &RunningCall,
) -> Result<Output, ToolError> {
    let parsed = Arc::clone(tool).prepare(&Input::Json(arguments.to_string()))?;
    let cx = Cx {
        id: "call_1".into(),
        host: host(&parsed.effects()),
        cancel: running.cancel.clone(),
        events: Arc::clone(&running.events) as _,
    };
    tokio::time::timeout(PATIENCE, run_parsed(&parsed, &cx)).await.unwrap()
}

fn host(effects: &Effects) -> Arc<dyn Host> {
    let grant = issue_grant("/".into(), effects, Limits::default(), Confinement::InProcess);
    EchoMachine.confine(&grant).unwrap()
}

/// The surroundings of a call that a test can cancel and watch.
#[derive(Default)]
struct RunningCall {
    cancel: CancellationToken,
    events: Arc<EventList>,
}

#[derive(Default)]
struct EventList(Mutex<Vec<Value>>);

impl EventEmitter for EventList {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(json!(event));
    }
}

fn text(output: &Output) -> String {
    windlass_contract::Content::join(&output.content)
}

/// Returns a tool that says its arguments.
fn echo(description: &str) -> Value {
    json!({"name": "echo", "description": description, "inputSchema": {"type": "object"}})
}
