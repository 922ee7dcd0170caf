//! Starts MCP servers in sandboxes of their own.
//!
//! The confinement of a server follows from the user's configuration, not from the grant of a call:
//! it lives longer than a call, and agents share it. The mechanisms are those of commands.

use std::{
    collections::BTreeMap,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_contract::{
    BoxFuture,
    effects::Network,
    grant::{DefaultLimits, Limits, Quota, SandboxRules},
    host::{Command, HostError},
    remote::{LaunchedServer, ServerCommand, ServerLauncher, ServerProfile, ServerSandbox},
};
use windlass_sandbox::{ChildStdio, PrivateTmp, Program, SandboxSpec};

use crate::{
    Machine,
    denial_check::DenialCheck,
    launch::{CommandLaunch, SandboxedLaunch},
    process,
    server_process::{RunningServer, ServerTask},
    spawner::SpawnRequest,
};

/// Variables that every server gets, if they are set.
const INHERITED: [&str; 10] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// The things that all servers of a process have in common.
#[derive(Debug, Clone, Default)]
pub struct ServerSandboxSettings {
    /// Directory in which servers start.
    pub workspace: PathBuf,
    /// Environment from which a few harmless variables are taken. The others are left out.
    pub environment: BTreeMap<String, String>,
    /// The sandbox rules of commands. Their writable directories count for servers that may write
    /// the workspace, the unreadable ones for all in a sandbox. Their network does not count.
    pub rules: SandboxRules,
    /// Limits that apply where the sandbox can enforce them. The memory comes from the profile of a
    /// server.
    pub defaults: DefaultLimits,
    /// Directory for notes of servers that may write, which are shared by all processes.
    pub running_notes: Option<PathBuf>,
}

/// Starts MCP servers, each with a temporary directory of its own.
#[derive(Debug, Clone)]
pub struct SandboxedServers {
    machine: Machine,
    settings: ServerSandboxSettings,
}

impl SandboxedServers {
    /// Creates a launcher. It starts nothing yet.
    pub fn new(mut settings: ServerSandboxSettings) -> Self {
        settings.environment.retain(|name, _| INHERITED.contains(&name.as_str()));
        let machine = Machine::new(settings.environment.clone());
        let machine = match &settings.running_notes {
            Some(directory) => machine.with_running_notes(directory.clone()),
            None => machine,
        };
        Self { machine, settings }
    }

    /// Turns off namespaces, so that servers are confined as on a system without them.
    #[must_use]
    pub fn without_namespaces(self) -> Self {
        Self { machine: self.machine.without_namespaces(), ..self }
    }

    async fn start(&self, server: &ServerCommand) -> Result<LaunchedServer, HostError> {
        let command = Command {
            argv: server.argv.clone(),
            cwd: server.cwd.clone(),
            env: server.environment.clone(),
            time_limit: None,
        };
        let program = Program::new(&command, self.machine.environment(), &self.settings.workspace)?;
        let name = program.name().to_owned();
        let launch = self.launch_of(&server.profile, program.named_paths());
        if let CommandLaunch::Sandboxed(sandbox) = &launch {
            let missing = |reason| HostError::NotHeld { program: name.clone(), reason };
            sandbox.spec.mechanisms.probe().map_err(missing)?;
        }
        let check = DenialCheck::new(&program, &launch);
        let lost = |source| HostError::Spawn { program: name.clone(), source };
        let (stdio, pipes) = ServerPipes::open().map_err(lost)?;
        let (errors, writer) = process::pipe().map_err(lost)?;
        let stdio = ChildStdio { error: writer, ..stdio };
        let relay = tokio::net::unix::pipe::Sender::from_owned_fd(pipes.relay).map_err(lost)?;
        let child = self.machine.spawner().spawn(SpawnRequest { program, stdio, launch }).await?;
        let profile = server.profile.clone();
        let task = ServerTask { child, errors, relay: Some(relay), check, profile };
        Ok(LaunchedServer {
            stdin: pipes.stdin,
            stdout: pipes.stdout,
            stderr: pipes.stderr,
            process: Arc::new(RunningServer::attend(task)),
        })
    }

    fn launch_of(&self, profile: &ServerProfile, named: Vec<PathBuf>) -> CommandLaunch {
        if profile.sandbox == ServerSandbox::None {
            return CommandLaunch::Unconfined;
        }
        let quota = Quota {
            memory_bytes: profile.memory_bytes,
            defaults: DefaultLimits { memory_bytes: None, ..self.settings.defaults },
            ..Quota::default()
        };
        let spec = SandboxSpec {
            rules: self.rules(profile),
            limits: Limits { quota, ..Limits::default() },
            cwd: self.settings.workspace.clone(),
            home: self.machine.environment().get("HOME").map(PathBuf::from),
            agent_socket: None,
            mechanisms: self.machine.mechanisms(),
            temporary: Arc::new(PrivateTmp::new(false)),
            package_cache: None,
            hidden: self.machine.hidden(),
            named,
        };
        let guard = Some(self.machine.guard());
        CommandLaunch::Sandboxed(Arc::new(SandboxedLaunch { spec, guard, preview: None }))
    }

    /// Returns the rules for a profile.
    fn rules(&self, profile: &ServerProfile) -> SandboxRules {
        let Self { settings: ServerSandboxSettings { workspace, rules, .. }, .. } = self;
        let roots: Vec<&Path> = match profile.sandbox {
            ServerSandbox::ReadOnly | ServerSandbox::None => Vec::new(),
            ServerSandbox::WorkspaceWrite => {
                [workspace].into_iter().chain(&rules.writable).map(PathBuf::as_path).collect()
            }
        };
        let writable = profile.writable.iter().map(PathBuf::as_path);
        SandboxRules {
            writable: roots.into_iter().chain(writable).map(|path| workspace.join(path)).collect(),
            unreadable: rules.unreadable.clone(),
            readable_again: rules.readable_again.clone(),
            network: if profile.network { Network::Any } else { Network::None },
        }
    }
}

impl ServerLauncher for SandboxedServers {
    fn launch<'a>(&'a self, command: &'a ServerCommand) -> BoxFuture<'a, Result<LaunchedServer, HostError>> {
        Box::pin(self.start(command))
    }
}

/// This process's ends of the pipes of a server. Its errors pass through this process, which keeps
/// their end to find out what the sandbox blocked.
struct ServerPipes {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    relay: OwnedFd,
}

impl ServerPipes {
    /// Opens them. The errors of the descriptors for the server are to be replaced.
    fn open() -> io::Result<(ChildStdio, Self)> {
        let (requests, stdin) = io::pipe()?;
        let (stdout, answers) = io::pipe()?;
        let (stderr, relay) = io::pipe()?;
        let theirs =
            ChildStdio { input: requests.into(), output: answers.into(), error: process::null_device()? };
        let pipes =
            Self { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into(), relay: relay.into() };
        Ok((theirs, pipes))
    }
}
