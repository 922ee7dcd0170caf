//! `windlass sandbox`: any command in the sandbox, with no agent around it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;
use windlass::{
    ApprovalPolicy, Command, HostError, Network, Stop,
    host::{Attached, Machine, Window},
};

use crate::{
    args::{Common, SandboxRun},
    exit::Exit,
    interrupts,
    problem::{Problem, chain},
    setup::Setup,
};

/// The sandbox could not be set up.
const NOT_CONFINED: u8 = 125;
/// The command could not be started.
const NOT_STARTED: u8 = 126;
/// There is no such command.
const NOT_FOUND: u8 = 127;

/// Runs the command. What it ends with is what we end with.
pub(crate) fn run(common: &Common, args: &SandboxRun) -> Result<ExitCode, Problem> {
    let common = Common {
        sandbox: args.policy.or(common.sandbox),
        cd: args.cwd.clone().or_else(|| common.cd.clone()),
        ..common.clone()
    };
    let setup = Setup::for_tools(&common)?.limited(&args.limits)?;
    let mut policy = setup.policy(ApprovalPolicy::Never);
    policy.walls.writable.extend(absolute(&args.writable)?);
    policy.walls.unreadable.extend(absolute(&args.deny_read)?);
    if args.network {
        policy.walls.network = Network::Any;
    }
    let environment = setup.environment()?;
    let command = Command { argv: args.command.clone(), cwd: None, env: BTreeMap::new(), time_limit: None };
    let machine = Machine::for_one_command(environment);
    let stop = Stop::default();
    // The command has our own terminal, which tells it itself.
    interrupts::watch(stop.clone(), Window::default())?;
    let grant = policy.grant_to_person();
    let ran = crate::runtime()?.block_on(machine.run_attached(&grant, &command, &stop.token()));
    let attached = match ran {
        Ok(attached) => attached,
        Err(error) => return Ok(not_run(&error)),
    };
    attached
        .denials
        .iter()
        .for_each(|denial| crate::note(&format!("denied: {}: {}", denial.what, denial.rule)));
    if let Some(to) = &args.json {
        write_receipt(to, &attached)?;
    }
    Ok(ExitCode::from(code(&attached)))
}

/// What we end with.
fn code(attached: &Attached) -> u8 {
    match attached.exit {
        windlass::Exit::Cancelled => Exit::Interrupted.code(),
        exit => u8::try_from(exit.code()).unwrap_or(u8::MAX),
    }
}

/// Paths of the command line, from where the person is.
fn absolute(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let one = |path: &PathBuf| {
        std::path::absolute(path).map_err(|error| Problem::file("cannot find", path, &error))
    };
    paths.iter().map(one).collect()
}

fn not_run(error: &HostError) -> ExitCode {
    crate::note(&format!("error: {}", chain(error)));
    match error {
        HostError::NotHeld { .. } | HostError::Confine { .. } | HostError::Wait { .. } => NOT_CONFINED.into(),
        HostError::Spawn { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND.into(),
        HostError::Spawn { .. } | HostError::Cwd { .. } => NOT_STARTED.into(),
        HostError::EmptyCommand
        | HostError::Nul
        | HostError::NotGranted { .. }
        | HostError::TimeUsedUp { .. }
        | HostError::CpuUsedUp { .. } => Exit::Usage.into(),
    }
}

fn write_receipt(to: &str, attached: &Attached) -> Result<(), Problem> {
    let receipt = json!({
        "exit": attached.exit,
        "exit_code": code(attached),
        "duration_ms": u64::try_from(attached.duration.as_millis()).unwrap_or(u64::MAX),
        "held": attached.held,
        "killed": attached.killed,
        "denials": attached.denials,
    });
    let line = format!("{receipt}\n");
    let written = if to.bytes().all(|byte| byte.is_ascii_digit()) {
        let descriptor = Path::new("/dev/fd").join(to);
        File::options().append(true).open(descriptor).and_then(|mut file| file.write_all(line.as_bytes()))
    } else {
        fs::write(to, line)
    };
    written.map_err(|error| Problem::file("cannot write the receipt to", Path::new(to), &error))
}
