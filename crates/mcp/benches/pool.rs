//! The cost of a call through the pool, beside a bare client of rmcp over the same kind of pipe.
//!
//! Run with `cargo bench -p windlass-mcp --bench pool`, or the program it builds with one of
//! `calls`, `shared`, `many` and `large`. Prints medians; asserts nothing.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]

#[path = "../tests/pool/launcher.rs"]
mod launcher;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, Write},
    path::Path,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use rmcp::{
    RoleClient, ServiceExt, model::CallToolRequestParams, service::Peer,
    transport::async_rw::AsyncRwTransport,
};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use windlass_mcp::{
    config::McpServerConfig,
    pool::{PoolSettings, RemoteToolCall, ServerPool},
    result::RemoteResult,
};

use crate::launcher::ChildLauncher;

const ROUNDS: usize = 20;
const CALLS: usize = 100;
const USERS: usize = 8;
const SERVERS: usize = 50;
const LARGE: usize = 30 * 1024 * 1024;
const VALUES: usize = 990_000;
/// Bound of the waits of the launcher.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() {
    if std::env::var_os("BENCH_SERVER").is_some() {
        return serve();
    }
    let part = std::env::args().nth(1).filter(|part| part != "--bench");
    let wanted = |name: &str| part.as_deref().is_none_or(|part| part == name);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    if wanted("calls") {
        runtime.block_on(calls());
    }
    if wanted("shared") {
        runtime.block_on(shared());
    }
    if wanted("many") {
        runtime.block_on(many());
    }
    if wanted("large") {
        runtime.block_on(large());
    }
}

/// One call after the other, and the memory after 1,000 more.
async fn calls() {
    let (pool, launcher) = pool(1, None);
    let bare = bare_client().await;
    for _ in 0..CALLS {
        call(&pool, "echo").await;
        call_bare(&bare).await;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push(per_call(async || call_bare(&bare).await).await);
        ours.push(per_call(async || drop(call(&pool, "echo").await)).await);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let share = 100.0 * (ours.as_secs_f64() / theirs.as_secs_f64() - 1.0);
    println!("a call of a bare client {theirs:.1?}, through the pool {ours:.1?} ({share:+.1} %)");
    let before = memory_kb("VmRSS:");
    for _ in 0..10 * CALLS {
        call(&pool, "echo").await;
    }
    println!("memory before and after {} calls: {before} kB, {} kB", 10 * CALLS, memory_kb("VmRSS:"));
    pool.shut_down().await;
    launcher.assert_all_gone().await;
}

/// Several users of one server at once.
async fn shared() {
    let (pool, launcher) = pool(1, None);
    let bare = bare_client().await;
    call(&pool, "echo").await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let users = (0..USERS).map(|_| per_call(async || call_bare(&bare).await));
        let start = Instant::now();
        join_all(users).await;
        theirs.push(start.elapsed() / u32::try_from(USERS * CALLS).unwrap());
        let users = (0..USERS).map(|_| per_call(async || drop(call(&pool, "echo").await)));
        let start = Instant::now();
        join_all(users).await;
        ours.push(start.elapsed() / u32::try_from(USERS * CALLS).unwrap());
    }
    println!(
        "{USERS} users of one server, per call: bare {:.1?}, through the pool {:.1?}; {} process",
        median(theirs),
        median(ours),
        launcher.launches()
    );
    pool.shut_down().await;
}

/// Many configured servers that ran before.
async fn many() {
    let directory = tempfile::tempdir().unwrap();
    let (first, _launcher) = pool(SERVERS, Some(directory.path()));
    for server in first.servers().map(|(name, _)| name.to_owned()).collect::<Vec<_>>() {
        first.start(&server).await.unwrap();
    }
    first.shut_down().await;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let (pool, launcher) = pool(SERVERS, Some(directory.path()));
        pool.start_in_background();
        let tools: usize = pool.servers().map(|(name, _)| pool.listing(name).unwrap().tools.len()).sum();
        times.push(start.elapsed());
        assert_eq!((tools, launcher.launches()), (SERVERS, 0));
    }
    println!("the tools of {SERVERS} servers that ran before: {:.1?}", median(times));
}

/// Answers near the limits: one long text, and many small values.
async fn large() {
    let (pool, _launcher) = pool(1, None);
    for tool in ["text", "values"] {
        let before = memory_kb("VmRSS:");
        // Writing the file resets the peak.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let start = Instant::now();
        drop(call(&pool, tool).await);
        let (time, peak) = (start.elapsed(), memory_kb("VmHWM:"));
        let more = peak.saturating_sub(before) >> 10;
        println!("the largest answer of {tool}: {time:.0?}, {more} MiB more at the peak");
    }
    pool.shut_down().await;
}

fn pool(servers: usize, directory: Option<&Path>) -> (Arc<ServerPool>, Arc<ChildLauncher>) {
    let launcher = Arc::new(ChildLauncher::default());
    let config: McpServerConfig = serde_json::from_value(json!({
        "command": std::env::current_exe().unwrap(), "env": {"BENCH_SERVER": "1"},
    }))
    .unwrap();
    let servers = (0..servers).map(|number| (format!("s{number}"), config.clone())).collect();
    let pool = ServerPool::new(PoolSettings {
        servers,
        environment: BTreeMap::new(),
        directory: directory.map(Into::into),
        workspace: "/".into(),
        launcher: Arc::clone(&launcher) as _,
        tokens: None,
    });
    (pool, launcher)
}

async fn call(pool: &ServerPool, tool: &str) -> RemoteResult {
    let call = RemoteToolCall {
        server: "s0",
        tool,
        arguments: &arguments(),
        progress: &|_| {},
        elicitor: None,
        cancel: &CancellationToken::new(),
    };
    pool.call(call).await.unwrap()
}

async fn bare_client() -> Peer<RoleClient> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env("BENCH_SERVER", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let service = ().serve(AsyncRwTransport::new_client(output, input)).await.unwrap();
    let peer = service.peer().clone();
    // Both live as long as the program.
    std::mem::forget((service, child));
    peer
}

async fn call_bare(peer: &Peer<RoleClient>) {
    let params = CallToolRequestParams::new("echo").with_arguments(arguments());
    peer.call_tool(params).await.unwrap();
}

fn arguments() -> serde_json::Map<String, Value> {
    [("text".to_owned(), json!("x".repeat(200)))].into_iter().collect()
}

async fn per_call(call: impl AsyncFn()) -> Duration {
    let start = Instant::now();
    for _ in 0..CALLS {
        call().await;
    }
    start.elapsed() / u32::try_from(CALLS).unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn memory_kb(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A server of 2025-11-25.
fn serve() {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = &message["id"];
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
            "tools/call" => match params["name"].as_str().unwrap() {
                "text" => json!({"content": [{"type": "text", "text": "x".repeat(LARGE)}]}),
                "values" => json!({"content": [], "structuredContent": vec![0; VALUES]}),
                _ => json!({"content": [{"type": "text", "text": params["arguments"]["text"]}]}),
            },
            "ping" => json!({}),
            "server/discover" => {
                let error = json!({"code": -32601, "message": "unknown"});
                writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "error": error})).unwrap();
                continue;
            }
            _ => continue,
        };
        writeln!(output, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result})).unwrap();
        output.flush().unwrap();
    }
}
