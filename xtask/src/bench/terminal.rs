//! The cost of an interactive session, in a pseudo-terminal that answers as an emulator does.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use super::process::{self, Cost};
use crate::{recorder::TerminalRecorder, scratch::ScratchDirectory};

/// A flood, then output at a pace that is faster than a screen.
const SCRIPT: &str = r#"{"turns": [
{"calls": [{"name": "shell_command", "arguments": {"command": "seq 1 100000"}}]},
{"calls": [{"name": "shell_command", "arguments": {"command": "for i in $(seq 400); do echo $i; sleep 0.004; done"}}]},
{"text": "It is done."}]}"#;

const FULL_ACCESS: [&str; 4] = ["-s", "danger-full-access", "-a", "never"];

/// Time during which an idle session is watched.
const IDLE_TIME: Duration = Duration::from_secs(3);

/// The costs of the same turn in a session and without one.
pub(super) struct TerminalCosts {
    pub(super) session: Cost,
    pub(super) exec: Cost,
    /// Processor time of the session while it was idle.
    pub(super) idle_cpu: Duration,
    /// The most pictures in any second.
    pub(super) pictures: usize,
}

/// Measures a session.
pub(super) fn measure(binary: &Path) -> Result<TerminalCosts, Vec<String>> {
    let failed = |error: std::io::Error| vec![format!("cannot measure a session: {error}")];
    let directory = ScratchDirectory::create("bench-terminal").map_err(failed)?;
    let script = directory.path().join("script.json");
    fs::write(&script, SCRIPT).map_err(failed)?;
    let script = script.to_string_lossy().into_owned();
    let home = directory.path().join("home").to_string_lossy().into_owned();
    let arguments = [&["exec", "--script", &script], &FULL_ACCESS[..], &["go"]].concat();
    let exec = process::run_with(binary, &arguments, &[("WINDLASS_HOME", &home)], directory.path())?;
    let mut command = Command::new(binary);
    command.args(["chat", "--script", &script]).args(FULL_ACCESS);
    command.current_dir(directory.path()).env("WINDLASS_HOME", &home);
    let began = Instant::now();
    let mut terminal = TerminalRecorder::start(&command, (40, 120)).map_err(failed)?;
    terminal.wait_for("Ask, or /").map_err(failed)?;
    terminal.type_in("go\r").map_err(failed)?;
    terminal.wait_for("It is done.").map_err(failed)?;
    let child = terminal.take_child().ok_or_else(|| vec!["the session has ended".to_owned()])?;
    thread::sleep(Duration::from_secs(1));
    let before = cpu_ticks(child.id());
    thread::sleep(IDLE_TIME);
    let idle_cpu = Duration::from_millis(10 * cpu_ticks(child.id()).saturating_sub(before));
    terminal.type_in("\x04").map_err(failed)?;
    let session =
        process::end(child.id(), began).map_err(|status| vec![format!("chat ended with {status:#x}")])?;
    Ok(TerminalCosts { session, exec, idle_cpu, pictures: terminal.most_pictures() })
}

/// User and system time of a process, in hundredths of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}
