//! Test doubles for crates that use only the traits. They use no process, file or network.
//!
//! A dev-dependency, never part of the product: no row of the table in `ARCHITECTURE.md` lists it,
//! and `cargo xtask tidy` refuses any other dependency on it.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture, Clean, Cx, Effects, Event, Grant, Host, Journal, Output, ParsedCall, Sandbox, ToolError,
    event::{EventEmitter, EventSink},
    grant::{Confinement, Held, Limits, Mechanism},
    host::{Command, ConfineError, Exit, FinishedCommand, HostError, OutputListener},
    journal::{JournalError, Record},
    report::ProcessReport,
};
use windlass_seal::{CleanSeal, GrantSeal};

/// Makes a grant as the gate would.
pub fn issue_grant(cwd: PathBuf, effects: &Effects, limits: Limits, confinement: Confinement) -> Grant {
    Grant::issue(GrantSeal, cwd, effects, limits, confinement)
}

/// Marks a value as clean without cleaning it.
pub fn clean<T>(value: T) -> Clean<T> {
    Clean::new(CleanSeal, value)
}

/// A journal in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    lines: Mutex<Vec<Value>>,
    broken: AtomicBool,
}

impl MemoryJournal {
    /// Returns every record so far, as it would be written.
    pub fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the types of the records so far.
    pub fn types(&self) -> Vec<String> {
        self.lines().iter().filter_map(|line| line["type"].as_str().map(str::to_owned)).collect()
    }

    /// Makes every later append fail.
    pub fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }
}

impl Journal for MemoryJournal {
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError> {
        let line = serde_json::to_value(record).unwrap_or_default();
        if self.broken.load(Ordering::SeqCst) || line.is_null() {
            return Err(JournalError { path: "memory".into(), kind: std::io::ErrorKind::StorageFull });
        }
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Ok(())
    }
}

/// Keeps every event it receives.
#[derive(Debug, Default)]
pub struct EventRecorder(Mutex<Vec<Event>>);

impl EventRecorder {
    /// Returns every event so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl EventSink for EventRecorder {
    fn emit(&self, event: &Clean<Event>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone().into_inner());
    }
}

impl EventEmitter for EventRecorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

/// Returns the context of a call on this host.
pub fn context(host: Arc<dyn Host>, events: Arc<dyn EventEmitter>) -> Cx {
    Cx { id: "call-1".into(), host, cancel: CancellationToken::new(), events }
}

/// Runs a call, after its look if it needs one. The runtime asks the gate about each of the two
/// steps; a test of one tool has no gate.
pub async fn run_parsed(parsed: &ParsedCall, cx: &Cx) -> Result<Output, ToolError> {
    match parsed {
        ParsedCall::Runs(ready) => ready.run(cx).await,
        ParsedCall::LooksFirst(look) => look.look(cx).await?.run(cx).await,
    }
}

/// Returns a finished command with this end and output, and no other facts.
pub fn finished(exit: Exit, output: &[u8]) -> FinishedCommand {
    let report = ProcessReport { output_bytes: output.len() as u64, ..ProcessReport::new(exit) };
    FinishedCommand { report, output: output.to_vec(), gap: None, apart: None }
}

/// A machine on which every command prints its arguments and exits with 0.
#[derive(Debug, Clone, Copy)]
pub struct EchoMachine;

impl Sandbox for EchoMachine {
    fn confine(&self, grant: &Grant) -> Result<Arc<dyn Host>, ConfineError> {
        let rung = match grant.confinement() {
            Confinement::InProcess => Mechanism::InProcess,
            Confinement::Unconfined => Mechanism::Unconfined,
            Confinement::External(_) => Mechanism::External,
            Confinement::Sandboxed(_) => Mechanism::Namespaces,
        };
        Ok(Arc::new(EchoHost(rung)))
    }
}

struct EchoHost(Mechanism);

impl Host for EchoHost {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        _cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        Box::pin(async move {
            let text = format!("{}\n", command.argv.join(" ")).into_bytes();
            output(&text);
            Ok(finished(Exit::Code(0), &text))
        })
    }

    fn held(&self) -> Held {
        Held::by(self.0)
    }
}
