//! How fast and how small the release binary is, beside the floor of the same machine in the same
//! minute.
//!
//! Numbers are reported, never asserted: a busy machine must not fail a build.
//! `docs/performance.md` keeps them.

mod process;
mod server;
mod servers;
mod terminal;

use std::{fs, io, path::Path, process::Command, time::Duration};

use process::Cost;
use server::Server;

use crate::scratch::ScratchDirectory;

const RUNS: usize = 15;
const CALLS: usize = 300;
const FILES: usize = 1000;

/// Measures and reports.
pub(crate) fn run(root: &Path) -> Result<String, Vec<String>> {
    let binary = root.join("target/release/windlass");
    if !binary.exists() {
        return Err(vec!["build it first: cargo build --release".to_owned()]);
    }
    let mut rows = vec!["| what | wall ms | CPU ms | peak MB |".to_owned(), "|---|---|---|---|".to_owned()];
    rows.push(row("floor: `true`", &repeat(|| process::run(Path::new("/bin/true"), &[], root))?));
    rows.push(row("`windlass --version`", &repeat(|| process::run(&binary, &["--version"], root))?));
    for wire in ["responses", "chat"] {
        let cost = repeat(|| Ok(session(&binary, Scene { wire, ..Scene::default() }, 0)?.0))?;
        rows.push(row(&format!("one turn of text, {wire}, loopback"), &cost));
    }
    let [without, with] = servers::measure(&binary)?;
    rows.push(row("one scripted turn of text, no MCP server", &without));
    let (count, tools) = (servers::SERVERS, servers::TOOLS);
    rows.push(row(&format!("the same with {count} saved MCP servers of {tools} tools"), &with));
    let (cost, gaps, connections) = session(&binary, Scene::default(), CALLS)?;
    rows.push(row(&format!("{CALLS} calls of `true`"), &cost));
    let workspace = workspace().map_err(|error| vec![format!("cannot make a workspace: {error}")])?;
    let scene = Scene { sandbox: "workspace-write", directory: workspace.path(), ..Scene::default() };
    let (cost, sandboxed, _) = session(&binary, scene, CALLS)?;
    rows.push(row(&format!("the same, sandboxed, with undo, in a repository of {FILES} files"), &cost));
    let terminal = terminal::measure(&binary)?;
    rows.push(row("`exec`: 100,000 lines of output, then 400 within 2 s", &terminal.exec));
    rows.push(row("the same in an interactive session, which is then idle for 4 s", &terminal.session));
    let early = median(gaps[5..35].to_vec());
    let late = median(gaps[gaps.len() - 30..].to_vec());
    let shell = repeat(|| process::run(Path::new("/bin/bash"), &["-c", "true"], root))?;
    let size = fs::metadata(&binary).map_or(0, |file| file.len());
    let packages =
        fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default().matches("[[package]]").count();
    rows.push(String::new());
    rows.push(format!(
        "client time per call, early {:.2} ms, late {:.2} ms ({:.2}x), in the repository {:.2} ms; \
         floor `bash -c true` {:.2} ms; {connections} connection(s)",
        millis(early),
        millis(late),
        late.as_secs_f64() / early.as_secs_f64(),
        millis(median(sandboxed)),
        millis(shell.wall),
    ));
    rows.push(format!(
        "interactive session: at most {} pictures in a second, {:.0} ms of CPU in 3 idle seconds, \
         {:.1} MB more memory than `exec`",
        terminal.pictures,
        millis(terminal.idle_cpu),
        (terminal.session.peak_kb as f64 - terminal.exec.peak_kb as f64) / 1024.0,
    ));
    rows.push(format!("binary {:.1} MB, {packages} packages in Cargo.lock", size as f64 / 1e6));
    Ok(rows.join("\n"))
}

/// How and where a session runs.
#[derive(Clone, Copy)]
struct Scene<'a> {
    wire: &'a str,
    sandbox: &'a str,
    directory: &'a Path,
}

impl Default for Scene<'_> {
    fn default() -> Self {
        Self { wire: "responses", sandbox: "danger-full-access", directory: Path::new("/") }
    }
}

/// Makes a repository with files in 50 directories.
fn workspace() -> io::Result<ScratchDirectory> {
    let workspace = ScratchDirectory::create("bench-work")?;
    for at in 0..FILES {
        let directory = workspace.path().join(format!("d{}/e{}", at % 5, at % 50));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("{at}.txt")), format!("file {at}\n").repeat(100))?;
    }
    let commit = "git init -q && git add -A && git -c user.name=bench -c user.email= commit -qm files";
    let made = Command::new("sh").args(["-c", commit]).current_dir(workspace.path()).status()?;
    if made.success() { Ok(workspace) } else { Err(io::Error::other("git does not work")) }
}

/// One session of so many calls: its cost, the time the client took for each, and the connections
/// it opened.
fn session(
    binary: &Path,
    scene: Scene<'_>,
    calls: usize,
) -> Result<(Cost, Vec<Duration>, usize), Vec<String>> {
    let server = Server::start(calls).map_err(|error| vec![format!("cannot listen: {error}")])?;
    let home = std::env::temp_dir().join(format!("windlass-bench-{}-{}", std::process::id(), server.port));
    let provider = format!(
        r#"model_providers.bench={{base_url="http://127.0.0.1:{}/v1", wire_api="{}"}}"#,
        server.port, scene.wire
    );
    let home_variable = home.to_string_lossy().into_owned();
    let arguments =
        ["exec", "--json", "-s", scene.sandbox, "-m", "bench", "-p", "bench", "-c", &provider, "go"];
    let cost = process::run_with(binary, &arguments, &[("WINDLASS_HOME", &home_variable)], scene.directory);
    // The directory holds nothing but this session.
    let _gone = fs::remove_dir_all(&home);
    let (gaps, connections) = server.stop();
    if gaps.len() != calls {
        return Err(vec![format!("the session made {} of {calls} calls", gaps.len())]);
    }
    Ok((cost?, gaps, connections))
}

fn repeat(mut once: impl FnMut() -> Result<Cost, Vec<String>>) -> Result<Cost, Vec<String>> {
    let costs = (0..RUNS).map(|_| once()).collect::<Result<Vec<_>, _>>()?;
    let of = |part: fn(&Cost) -> Duration| median(costs.iter().map(part).collect());
    let peak_kb = costs.iter().map(|cost| cost.peak_kb).max().unwrap_or(0);
    Ok(Cost { wall: of(|cost| cost.wall), cpu: of(|cost| cost.cpu), peak_kb })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn row(name: &str, cost: &Cost) -> String {
    format!(
        "| {name} | {:.1} | {:.1} | {:.1} |",
        millis(cost.wall),
        millis(cost.cpu),
        cost.peak_kb as f64 / 1024.0
    )
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
