//! `windlass sandbox`: runs any command in the sandbox, without an agent.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;
use windlass::{
    ApprovalPolicy, Command, HostError, Network, ProcessReport, Stop,
    host::{Machine, OutputFile, Window, inherited_descriptor},
    record::Edits,
};
use windlass_tui::render::visible::visible_json;

use crate::{
    args::{CommonOptions, SandboxRun},
    exit::ProgramExit,
    interrupts,
    preview::{RequestedPreview, SettledPreview},
    problem::{CliProblem, chain},
    screen::visible,
    setup::ProgramSetup,
};

/// The sandbox could not be set up.
const NOT_CONFINED: u8 = 125;
/// The command could not be started.
const NOT_STARTED: u8 = 126;
/// There is no such command.
const NOT_FOUND: u8 = 127;

/// Runs the command and returns its exit code.
pub(crate) fn run(common: &CommonOptions, args: &SandboxRun) -> Result<ExitCode, CliProblem> {
    let common = CommonOptions {
        sandbox: args.policy.or(common.sandbox),
        cd: args.cwd.clone().or_else(|| common.cd.clone()),
        ..common.clone()
    };
    let setup = ProgramSetup::for_tools(&common)?.limited(&args.limits)?;
    let mut policy = setup.policy(ApprovalPolicy::Never);
    policy.walls.writable.extend(absolute(&args.writable)?);
    policy.walls.unreadable.extend(absolute(&args.deny_read)?);
    if args.network {
        policy.walls.network = Network::Any;
    }
    let writable = setup.written_by_commands(&policy.walls.writable);
    let receipt = args.json.as_deref().map(|to| ReceiptWriter::open(to, &writable)).transpose()?;
    let preview = RequestedPreview::new(args.preview, &setup)?;
    if preview.is_some() {
        RequestedPreview::recover(&setup);
    }
    let (environment, storage) = (setup.environment()?, setup.storage());
    let command = Command { argv: args.command.clone(), cwd: None, env: BTreeMap::new(), time_limit: None };
    let mut machine = Machine::for_one_command(environment)
        .with_package_caches(storage.package_caches())
        .with_running_notes(storage.running_notes());
    if let Some(requested) = &preview {
        machine = machine.with_preview(requested.preview.clone());
    }
    let stop = Stop::default();
    // The command shares our terminal and gets the window size from it.
    interrupts::watch(stop.clone(), Window::default())?;
    let grant = policy.grant_to_person();
    let ran = crate::runtime()?.block_on(machine.run_attached(&grant, &command, &stop.token()));
    let report = match ran {
        Ok(report) => report,
        Err(error) => return Ok(not_run(&error)),
    };
    for denial in &report.denials {
        crate::note(&format!("denied: {}: {}", visible(&denial.what), visible(&denial.rule)));
    }
    let settled = preview.map(|preview| preview.settle(&Edits::outside(&setup.home), &stop)).transpose()?;
    let own = code(&report);
    if settled.is_some() {
        crate::note(&format!("the command exited with {own}"));
    }
    if let Some(receipt) = receipt {
        receipt.write(&report, settled.as_ref())?;
    }
    let lost = settled.map_or(ProgramExit::Done, |settled| settled.end.exit(ProgramExit::Done));
    let is_own = lost == ProgramExit::Done || (own != 0 && lost != ProgramExit::Interrupted);
    Ok(ExitCode::from(if is_own { own } else { lost.code() }))
}

/// Returns our exit code.
fn code(report: &ProcessReport) -> u8 {
    match report.exit {
        windlass::Exit::Cancelled => ProgramExit::Interrupted.code(),
        exit => u8::try_from(exit.code()).unwrap_or(u8::MAX),
    }
}

/// Makes paths of the command line absolute, relative to the current directory.
fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliProblem> {
    let one = |path: &PathBuf| {
        std::path::absolute(path).map_err(|error| CliProblem::file("cannot find", path, &error))
    };
    paths.iter().map(one).collect()
}

fn not_run(error: &HostError) -> ExitCode {
    crate::note(&format!("error: {}", chain(error)));
    match error {
        HostError::NotHeld { .. }
        | HostError::NotApart { .. }
        | HostError::Confine { .. }
        | HostError::Wait { .. } => NOT_CONFINED.into(),
        HostError::Spawn { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND.into(),
        HostError::Spawn { .. } | HostError::Cwd { .. } => NOT_STARTED.into(),
        HostError::EmptyCommand
        | HostError::Nul
        | HostError::NotGranted { .. }
        | HostError::TimeUsedUp { .. }
        | HostError::CpuUsedUp { .. } => ProgramExit::Usage.into(),
    }
}

/// The destination of the receipt. It is opened before anything runs: an unwritable one is a usage
/// error, and a link that the command puts in its place is not followed.
struct ReceiptWriter<'a> {
    to: &'a str,
    destination: ReceiptDestination,
}

enum ReceiptDestination {
    Descriptor(File),
    File(OutputFile),
}

impl<'a> ReceiptWriter<'a> {
    fn open(to: &'a str, writable: &[PathBuf]) -> Result<Self, CliProblem> {
        let opened = if is_descriptor(to) {
            let file = to.parse().map_err(io::Error::other).and_then(inherited_descriptor);
            // An empty write already fails if the file is not writable.
            let tried = file.and_then(|mut file| file.write(&[]).map(|_| file));
            tried.map(ReceiptDestination::Descriptor)
        } else {
            OutputFile::new(Path::new(to), writable)
                .and_then(OutputFile::opened)
                .map(ReceiptDestination::File)
        };
        opened.map(|destination| Self { to, destination }).map_err(|error| cannot_write(to, &error))
    }

    fn write(self, report: &ProcessReport, settled: Option<&SettledPreview>) -> Result<(), CliProblem> {
        let mut receipt = json!({
            "exit": report.exit,
            "exit_code": code(report),
            "duration_ms": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
            "held": report.held,
            "killed": report.killed,
            "denials": report.denials,
        });
        if let Some(settled) = settled {
            receipt["preview"] = settled.report.clone();
        }
        let text = visible_json(&format!("{receipt}\n"));
        let written = match self.destination {
            ReceiptDestination::Descriptor(mut file) => file.write_all(text.as_bytes()),
            ReceiptDestination::File(file) => file.write(text.as_bytes(), 0o666),
        };
        written.map_err(|error| cannot_write(self.to, &error))
    }
}

fn is_descriptor(to: &str) -> bool {
    to.bytes().all(|byte| byte.is_ascii_digit())
}

fn cannot_write(to: &str, error: &io::Error) -> CliProblem {
    CliProblem::file("cannot write the receipt to", Path::new(to), error)
}
