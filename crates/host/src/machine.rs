//! The machine that turns grants into hosts.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture, Grant, Host, Sandbox,
    edit::Archive,
    grant::{Confinement, Held, Mechanism, SandboxRules},
    host::{Command, ConfineError, HostError, Session},
    report::ProcessReport,
};
use windlass_files::{CommitObserver, ConfinedFiles, FileRules, ReadTracker, resolve_links};
use windlass_sandbox::{
    Diagnosis, HiddenPathHandles, Mechanisms, PrivateTmp, Program, SandboxSpec, package_cache,
};

use crate::{
    attached::AttachedStreams,
    direct_program,
    file_rules::SandboxFileRules,
    launch::{CommandLaunch, SandboxedLaunch},
    outputs::OutputDirectory,
    outside_lock::OutsideLock,
    preview::{self, Preview},
    process::OutputStreams,
    pty::RunningSession,
    spawner::ChildSpawner,
    spending::CommandSpending,
    undo_recorder::UndoRecorder,
    window::Window,
    workspace_guard::{GuardError, WorkspaceGuard, git_program::GitEnvironment},
};

mod command_host;

use command_host::{CommandHost, ProcesslessHost};

/// Variables that keep programs from waiting for input from a person. A variable that is already
/// set keeps its value.
const NONINTERACTIVE_VARIABLES: [(&str, &str); 4] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GCM_INTERACTIVE", "never"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// The reason for refusing a command on a preview layer.
const OUTSIDE_SANDBOX: &str = "the command would run outside of the sandbox";

/// Maximum size of the file that keeps one output.
const MAX_OUTPUT_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// This machine. Its children get the environment it was created with, and nothing from the
/// environment of this process.
#[derive(Debug, Clone)]
pub struct Machine {
    environment: Arc<BTreeMap<String, String>>,
    spawner: ChildSpawner,
    mechanisms: Arc<Mechanisms>,
    temporary: Arc<PrivateTmp>,
    hidden: Arc<HiddenPathHandles>,
    guard: Arc<WorkspaceGuard>,
    outputs: Option<Arc<OutputDirectory>>,
    /// The directory of the package manager caches, which has one subdirectory per workspace.
    package_caches: Option<PathBuf>,
    spending: CommandSpending,
    window: Window,
    /// The sessions that were started. Each session is owned by its user.
    sessions: Arc<Mutex<Vec<Weak<RunningSession>>>>,
    archive: Option<Arc<dyn Archive>>,
    undo_recorder: Option<Arc<UndoRecorder>>,
    read_tracker: Arc<ReadTracker>,
    /// The preview layer that commands run on, if any.
    preview: Option<Preview>,
    streams: OutputStreams,
    outside_lock: OutsideLock,
}

impl Machine {
    /// Creates a machine whose children see exactly these variables, plus a few that turn off
    /// interactive prompts. The private temporary directory of confined commands is shared by all
    /// of them and removed with the machine.
    pub fn new(environment: BTreeMap<String, String>) -> Self {
        Self::with_temporary(environment, PrivateTmp::new(true))
    }

    /// Creates a machine for a single command. Its temporary files are removed when the command
    /// ends.
    pub fn for_one_command(environment: BTreeMap<String, String>) -> Self {
        Self::with_temporary(environment, PrivateTmp::new(false))
    }

    fn with_temporary(mut environment: BTreeMap<String, String>, temporary: PrivateTmp) -> Self {
        for (name, value) in NONINTERACTIVE_VARIABLES {
            environment.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        let (mechanisms, temporary) = (Arc::<Mechanisms>::default(), Arc::new(temporary));
        let git = GitEnvironment {
            search_path: environment.get("PATH").cloned(),
            home: environment.get("HOME").map(PathBuf::from),
            mechanisms: Arc::clone(&mechanisms),
            temporary: Arc::clone(&temporary),
            store: PrivateTmp::new(true),
            leading: Mutex::default(),
        };
        Self {
            environment: Arc::new(environment),
            spawner: ChildSpawner::default(),
            mechanisms,
            temporary,
            hidden: Arc::default(),
            guard: Arc::new(WorkspaceGuard::new(git)),
            outputs: None,
            package_caches: None,
            spending: CommandSpending::default(),
            window: Window::default(),
            sessions: Arc::default(),
            archive: None,
            undo_recorder: None,
            read_tracker: Arc::new(ReadTracker::new(None)),
            preview: None,
            streams: OutputStreams::default(),
            outside_lock: OutsideLock::default(),
        }
    }

    /// Saves the previous content of files before tools change them, and the steps to recover an
    /// interrupted change. Without an archive, a change to several files stays half done if this
    /// process dies.
    #[must_use]
    pub fn with_archive(mut self, archive: Arc<dyn Archive>) -> Self {
        self.read_tracker = Arc::new(ReadTracker::new(Some(Arc::clone(&archive))));
        self.archive = Some(archive);
        self
    }

    /// Records the changes that commands make.
    #[must_use]
    pub fn with_undo_recorder(self, recorder: Arc<UndoRecorder>) -> Self {
        Self { undo_recorder: Some(recorder), ..self }
    }

    /// Keeps outputs of more than `above_bytes` bytes in files below a directory. Commands may read
    /// these files even if the directory is hidden from them.
    #[must_use]
    pub fn with_output_files(self, directory: PathBuf, above_bytes: usize) -> Self {
        let outputs = OutputDirectory::new(directory, above_bytes, MAX_OUTPUT_FILE_BYTES);
        Self { outputs: Some(Arc::new(outputs)), ..self }
    }

    /// Keeps the package manager caches of confined commands below a directory, separately for each
    /// workspace. Without it, commands can read the user's caches but not write them.
    #[must_use]
    pub fn with_package_caches(self, directory: PathBuf) -> Self {
        Self { package_caches: Some(directory), ..self }
    }

    /// Runs commands on a layer, one at a time. The workspace does not change until the preview is
    /// applied. Commands outside of the sandbox, sessions and file tools that write are refused.
    #[must_use]
    pub fn with_preview(self, preview: Preview) -> Self {
        Self { preview: Some(preview), ..self }
    }

    /// Returns true if commands run on a layer.
    pub fn has_preview(&self) -> bool {
        self.preview.is_some()
    }

    /// Keeps notes of running commands below a directory. If this process is killed, the next one
    /// checks the changes of its commands to protected names.
    #[must_use]
    pub fn with_running_notes(self, directory: PathBuf) -> Self {
        self.guard.keep_notes_in(directory);
        self
    }

    /// Captures standard output and standard error of commands separately, too.
    #[must_use]
    pub fn with_apart_streams(mut self) -> Self {
        self.streams = OutputStreams::Apart;
        self
    }

    /// Sets the window that programs on a terminal print to.
    #[must_use]
    pub fn with_window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// Limits the wall time of all commands together, sessions included. When it is used up,
    /// running commands are ended and new ones are refused.
    #[must_use]
    pub fn with_command_time(mut self, limit: Duration) -> Self {
        self.spending.wall.limit = limit;
        self
    }

    /// Limits the CPU time of all commands together. It is counted when a command ends; when it is
    /// used up, new commands are refused. If the system does not report CPU time, wall time is
    /// counted.
    #[must_use]
    pub fn with_command_cpu(mut self, limit: Duration) -> Self {
        self.spending.cpu.limit = limit;
        self
    }

    /// Turns off namespaces, so that commands are confined as on a system without them.
    #[must_use]
    pub fn without_namespaces(self) -> Self {
        self.mechanisms.without_namespaces("left out on request");
        self
    }

    /// Runs a command with the standard input, output and error of this process. If a terminal or a
    /// shell stops this process, the command and its descendants stop first and continue after it.
    /// The handlers of `SIGTSTP`, `SIGTTIN` and `SIGTTOU` are replaced for good, unless these
    /// signals are ignored.
    pub async fn run_attached(
        &self,
        grant: &Grant,
        command: &Command,
        cancel: &CancellationToken,
    ) -> Result<ProcessReport, HostError> {
        let program = Program::new(command, &self.environment, grant.cwd())?;
        let quota = &grant.limits().quota;
        let time_limit = command.time_limit.unwrap_or(Duration::MAX).min(quota.wall());
        let streams = quota.output_bytes.map_or(AttachedStreams::Inherited, AttachedStreams::Limited);
        let _turn = match &self.preview {
            Some(_) if !matches!(grant.confinement(), Confinement::Sandboxed(_)) => {
                let reason = preview::refusal(OUTSIDE_SANDBOX);
                return Err(HostError::NotHeld { program: program.name().to_owned(), reason });
            }
            Some(preview) => Some(preview.take_turn().await),
            None => None,
        };
        streams.run(program, self.launch(grant), time_limit, &self.spawner, cancel).await
    }

    /// Starts an empty sandbox, tries to escape from it, and reports the result.
    pub fn diagnose(&self) -> Diagnosis {
        self.mechanisms.diagnose()
    }

    /// Returns the environment of the children.
    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Returns the mechanisms, shared with servers.
    pub(crate) fn mechanisms(&self) -> Arc<Mechanisms> {
        Arc::clone(&self.mechanisms)
    }

    /// Returns the hidden paths, shared with servers.
    pub(crate) fn hidden(&self) -> Arc<HiddenPathHandles> {
        Arc::clone(&self.hidden)
    }

    /// Returns the guard of the workspace, shared with servers.
    pub(crate) fn guard(&self) -> Arc<WorkspaceGuard> {
        Arc::clone(&self.guard)
    }

    /// Returns the spawner of its children, shared with servers.
    pub(crate) fn spawner(&self) -> &ChildSpawner {
        &self.spawner
    }

    /// See [`ProgramFinder`](windlass_contract::program::ProgramFinder).
    pub(crate) fn obstacle_outside(&self, writable: &[PathBuf]) -> Option<String> {
        let home = self.environment.get("HOME").map(Path::new);
        if home.is_some_and(|home| direct_program::hold_settings(writable, home)) {
            let reason =
                "commands in the sandbox can write settings in the home directory, which programs obey";
            return Some(reason.to_owned());
        }
        let running = if self.outside_lock.is_held() {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let open = sessions.iter().filter_map(Weak::upgrade).find(|session| session.ended().is_none());
            open.map_or("another command".to_owned(), |session| format!("`{}`", session.line()))
        } else if self.guard.runs_elsewhere(writable) {
            "a command of another session".to_owned()
        } else {
            return None;
        };
        Some(format!("{running} still runs and could change files that this program obeys"))
    }

    fn launch(&self, grant: &Grant) -> CommandLaunch {
        let variable = |name: &str| self.environment.get(name).map(PathBuf::from);
        match grant.confinement() {
            Confinement::InProcess | Confinement::Unconfined => CommandLaunch::Unconfined,
            Confinement::External(network) => CommandLaunch::External(*network),
            Confinement::Sandboxed(rules) => CommandLaunch::Sandboxed(Arc::new(SandboxedLaunch {
                spec: SandboxSpec {
                    rules: self.with_outputs(rules),
                    limits: self.spending.within(grant.limits()),
                    cwd: grant.cwd().clone(),
                    home: variable("HOME"),
                    agent_socket: variable("SSH_AUTH_SOCK"),
                    mechanisms: Arc::clone(&self.mechanisms),
                    temporary: Arc::clone(&self.temporary),
                    package_cache: self.package_cache(grant, rules),
                    hidden: Arc::clone(&self.hidden),
                    named: Vec::new(),
                },
                guard: Some(Arc::clone(&self.guard)),
                preview: self.preview.clone(),
            })),
        }
    }
}

impl Machine {
    /// Returns the package cache of the workspace for commands that may write. Returns `None` if it
    /// cannot be created, and with Seatbelt, which cannot show it inside a hidden directory.
    fn package_cache(&self, grant: &Grant, rules: &SandboxRules) -> Option<PathBuf> {
        let is_held = cfg!(target_os = "linux") && !rules.writable.is_empty();
        let directory = self.package_caches.as_ref().filter(|_| is_held)?;
        package_cache::of_workspace(directory, grant.cwd()).ok()
    }

    /// Returns rules that allow reading the outputs kept so far.
    fn with_outputs(&self, rules: &SandboxRules) -> SandboxRules {
        let mut rules = rules.clone();
        let existing = self.outputs.as_ref().and_then(|outputs| outputs.existing());
        rules.readable_again.extend(existing.map(Path::to_owned));
        rules
    }
}

/// Returns the rules that restrict file access of a call like that of its commands.
fn file_rules(launch: &CommandLaunch) -> Option<Arc<dyn FileRules>> {
    match launch {
        CommandLaunch::Unconfined | CommandLaunch::External(_) => None,
        CommandLaunch::Sandboxed(sandbox) => Some(Arc::new(SandboxFileRules::new(Arc::clone(sandbox)))),
    }
}

impl Sandbox for Machine {
    fn real_path(&self, path: &Path) -> PathBuf {
        resolve_links(path)
    }

    fn confine(&self, grant: &Grant) -> Result<Arc<dyn Host>, ConfineError> {
        let unusable = |error: GuardError| ConfineError::Workspace {
            asked: Box::new(grant.confinement().clone()),
            reason: error.to_string(),
        };
        // For every confinement: a workspace that a killed session left in doubt must not be used.
        self.guard.check_interrupted(std::slice::from_ref(grant.cwd())).map_err(unusable)?;
        let held = match grant.confinement() {
            Confinement::InProcess => return Ok(Arc::new(ProcesslessHost { outputs: self.outputs.clone() })),
            Confinement::Unconfined | Confinement::External(_) if self.preview.is_some() => {
                let (asked, reason) =
                    (Box::new(grant.confinement().clone()), preview::refusal(OUTSIDE_SANDBOX));
                return Err(ConfineError::Unsupported { asked, reason });
            }
            Confinement::Unconfined => Held::by(Mechanism::Unconfined),
            Confinement::External(network) => Held::externally(*network),
            // Corrected after the first command: the mechanism is only known when it is used. Until
            // then no process runs, and this process enforces the rules for files.
            Confinement::Sandboxed(rules) => {
                let asked = || Box::new(grant.confinement().clone());
                if grant.runs_command() {
                    let missing = |reason| ConfineError::Unsupported { asked: asked(), reason };
                    self.mechanisms.probe().map_err(missing)?;
                }
                self.guard.open_roots(&rules.writable).map_err(unusable)?;
                Held { writable: rules.writable.clone(), ..Held::by(Mechanism::InProcess) }
            }
        };
        let launch = self.launch(grant);
        let observer = self.undo_recorder.clone().map(|recorder| recorder as Arc<dyn CommitObserver>);
        Ok(Arc::new(CommandHost {
            machine: self.clone(),
            cwd: grant.cwd().clone(),
            limits: grant.limits().clone(),
            files: ConfinedFiles::new(
                grant.cwd().clone(),
                file_rules(&launch),
                self.archive.clone(),
                Arc::clone(&self.read_tracker),
            )
            .with_observer(observer),
            call: grant.call().cloned(),
            direct: grant.direct().cloned(),
            undo_limits: Mutex::default(),
            launch,
            held: Mutex::new(held),
        }))
    }

    fn close(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            let all = std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner));
            let open: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
            let open: Vec<_> = open.into_iter().filter(|session| session.ended().is_none()).collect();
            // Ask all of them first, so that their grace periods run at the same time.
            for session in &open {
                session.tell_to_end();
            }
            for session in &open {
                session.end().await;
            }
            open.iter().map(|session| session.line().to_owned()).collect()
        })
    }
}
