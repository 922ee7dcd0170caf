//! From a grant to a host.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture, CallId, Grant, Host, Sandbox,
    edit::Archive,
    files::Files,
    grant::{Confinement, DirectProgram, Held, Limits, Mechanism, SandboxRules},
    host::{Command, ConfineError, Finished, HostError, Keyboard, Listener, OutputListener, Session},
};
use windlass_files::{CommitObserver, ConfinedFiles, FileRules, ReadTracker};
use windlass_sandbox::{
    Diagnosis, HiddenPathHandles, Mechanisms, PrivateTmp, Program, SandboxSpec, package_cache,
};

use crate::{
    attached::{Attached, Streams},
    direct_program,
    file_rules::SandboxFileRules,
    kept::Kept,
    launch::{Launch, SandboxedLaunch},
    outputs::Outputs,
    preview::{self, Preview},
    process::{self, OutputStreams},
    pty::{Opening, Running},
    spawner::Spawner,
    spending::Spending,
    undo_recorder::{CommandTicket, UndoRecorder},
    window::Window,
    workspace_guard::{GuardError, WorkspaceGuard, git_program::GitEnvironment},
};

/// What keeps programs from waiting for a person, set unless it is set already.
const NOBODY_IS_THERE: [(&str, &str); 4] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GCM_INTERACTIVE", "never"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Why a command cannot be on a layer.
const OUTSIDE: &str = "the command would run outside of the sandbox";

/// How much of one output is kept in a file.
const OUTPUT_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// This machine. Children get the environment it was made with, and nothing from this process's own.
#[derive(Debug, Clone)]
pub struct Machine {
    environment: Arc<BTreeMap<String, String>>,
    spawner: Spawner,
    mechanisms: Arc<Mechanisms>,
    temporary: Arc<PrivateTmp>,
    hidden: Arc<HiddenPathHandles>,
    guard: Arc<WorkspaceGuard>,
    outputs: Option<Arc<Outputs>>,
    /// Where caches of package managers are, one directory for each workspace.
    package_caches: Option<PathBuf>,
    spending: Spending,
    window: Window,
    /// Whoever uses a session holds it; here is only known which there are.
    sessions: Arc<Mutex<Vec<Weak<Running>>>>,
    archive: Option<Arc<dyn Archive>>,
    undo_recorder: Option<Arc<UndoRecorder>>,
    read_tracker: Arc<ReadTracker>,
    /// The layer that commands run on, if they do.
    preview: Option<Preview>,
    streams: OutputStreams,
}

impl Machine {
    /// A machine whose children see exactly these variables, beside a few that say that nobody is there to ask. What
    /// confined ones leave in their temporary directory stays for the next, and goes with the machine.
    pub fn new(environment: BTreeMap<String, String>) -> Self {
        Self::with_temporary(environment, PrivateTmp::new(true))
    }

    /// A machine for a single command, which forgets its temporary files at once.
    pub fn for_one_command(environment: BTreeMap<String, String>) -> Self {
        Self::with_temporary(environment, PrivateTmp::new(false))
    }

    fn with_temporary(mut environment: BTreeMap<String, String>, temporary: PrivateTmp) -> Self {
        for (name, value) in NOBODY_IS_THERE {
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
            spawner: Spawner::default(),
            mechanisms,
            temporary,
            hidden: Arc::default(),
            guard: Arc::new(WorkspaceGuard::new(git)),
            outputs: None,
            package_caches: None,
            spending: Spending::default(),
            window: Window::default(),
            sessions: Arc::default(),
            archive: None,
            undo_recorder: None,
            read_tracker: Arc::new(ReadTracker::new(None)),
            preview: None,
            streams: OutputStreams::default(),
        }
    }

    /// The same machine, which keeps what files were before tools change them, and what to do about a change that this
    /// process does not live to finish. Without an archive, a change to several files that is cut short by the end of this
    /// process stays half done.
    #[must_use]
    pub fn with_archive(mut self, archive: Arc<dyn Archive>) -> Self {
        self.read_tracker = Arc::new(ReadTracker::new(Some(Arc::clone(&archive))));
        self.archive = Some(archive);
        self
    }

    /// The same machine, which records what its commands change.
    #[must_use]
    pub fn with_undo_recorder(self, recorder: Arc<UndoRecorder>) -> Self {
        Self { undo_recorder: Some(recorder), ..self }
    }

    /// The same machine, which keeps outputs of more than so many bytes in files below a directory. Commands may read
    /// them there, whatever else is hidden from them.
    #[must_use]
    pub fn keeping_outputs(self, directory: PathBuf, above_bytes: usize) -> Self {
        let outputs = Outputs::new(directory, above_bytes, OUTPUT_FILE_BYTES);
        Self { outputs: Some(Arc::new(outputs)), ..self }
    }

    /// The same machine, whose confined commands keep the caches of package managers below a directory, each workspace its
    /// own. Without one, the user's caches can be read and not written.
    #[must_use]
    pub fn with_package_caches(self, directory: PathBuf) -> Self {
        Self { package_caches: Some(directory), ..self }
    }

    /// The same machine, whose commands run on a layer, one after the other: the workspace stays as it is until the preview is
    /// applied. What cannot be on one is refused: commands outside of the sandbox, sessions, and file tools that write.
    #[must_use]
    pub fn with_preview(self, preview: Preview) -> Self {
        Self { preview: Some(preview), ..self }
    }

    /// The same machine, which keeps notes of commands that run below a directory. If this process is killed, the next one
    /// checks what its commands did to protected names.
    #[must_use]
    pub fn with_running_notes(self, directory: PathBuf) -> Self {
        self.guard.keep_notes_in(directory);
        self
    }

    /// The same machine, which keeps standard output and error of its commands for themselves too.
    #[must_use]
    pub fn with_apart_streams(mut self) -> Self {
        self.streams = OutputStreams::Apart;
        self
    }

    /// The same machine, whose programs on a terminal print to this window.
    #[must_use]
    pub fn with_window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// The same machine, whose commands may take so much time together, those in sessions included. Then those that run are
    /// ended and no more are started.
    #[must_use]
    pub fn with_command_time(mut self, limit: Duration) -> Self {
        self.spending.wall.limit = limit;
        self
    }

    /// The same machine, whose commands may take so much time of the processors together. It is counted when a command
    /// ends; then no more are started. Where the system does not tell how much it was, the time by the clock counts.
    #[must_use]
    pub fn with_command_cpu(mut self, limit: Duration) -> Self {
        self.spending.cpu.limit = limit;
        self
    }

    /// The same machine without namespaces: what commands would be held by where the system has none.
    #[must_use]
    pub fn without_namespaces(self) -> Self {
        self.mechanisms.without_namespaces("left out on request");
        self
    }

    /// Runs a command with this process's own standard input, output and error. When a terminal or a shell wants this
    /// process to stop (`SIGTSTP`, `SIGTTIN`, `SIGTTOU`, which are taken over for good unless they are ignored), the command
    /// and everything it has started stop first, and go on after it.
    pub async fn run_attached(
        &self,
        grant: &Grant,
        command: &Command,
        cancel: &CancellationToken,
    ) -> Result<Attached, HostError> {
        let program = Program::new(command, &self.environment, grant.cwd())?;
        let quota = &grant.limits().quota;
        let time_limit = command.time_limit.unwrap_or(Duration::MAX).min(quota.wall());
        let streams = quota.output_bytes.map_or(Streams::Inherited, Streams::Limited);
        let _turn = match &self.preview {
            Some(_) if !matches!(grant.confinement(), Confinement::Sandboxed(_)) => {
                let reason = preview::refusal(OUTSIDE);
                return Err(HostError::NotHeld { program: program.name().to_owned(), reason });
            }
            Some(preview) => Some(preview.take_turn().await),
            None => None,
        };
        streams.run(program, self.launch(grant), time_limit, &self.spawner, cancel).await
    }

    /// Starts a sandbox around nothing, tries to get out of it, and reports.
    pub fn diagnose(&self) -> Diagnosis {
        self.mechanisms.diagnose()
    }

    /// The environment of its children.
    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    fn launch(&self, grant: &Grant) -> Launch {
        let variable = |name: &str| self.environment.get(name).map(PathBuf::from);
        match grant.confinement() {
            Confinement::InProcess | Confinement::Unconfined => Launch::Unconfined,
            Confinement::External(network) => Launch::External(*network),
            Confinement::Sandboxed(walls) => Launch::Sandboxed(Arc::new(SandboxedLaunch {
                spec: SandboxSpec {
                    rules: self.with_outputs(walls),
                    limits: self.spending.within(grant.limits()),
                    cwd: grant.cwd().clone(),
                    home: variable("HOME"),
                    agent_socket: variable("SSH_AUTH_SOCK"),
                    mechanisms: Arc::clone(&self.mechanisms),
                    temporary: Arc::clone(&self.temporary),
                    package_cache: self.package_cache(grant, walls),
                    hidden: Arc::clone(&self.hidden),
                },
                guard: Some(Arc::clone(&self.guard)),
                preview: self.preview.clone(),
            })),
        }
    }
}

impl Machine {
    /// The cache of the workspace, for commands that may write it. Where it cannot be made, there is none; nor is there one
    /// with Seatbelt, which cannot show it inside what is hidden.
    fn package_cache(&self, grant: &Grant, walls: &SandboxRules) -> Option<PathBuf> {
        let is_held = cfg!(target_os = "linux") && !walls.writable.is_empty();
        let directory = self.package_caches.as_ref().filter(|_| is_held)?;
        package_cache::of_workspace(directory, grant.cwd()).ok()
    }

    /// Rules by which the outputs so far can be read.
    fn with_outputs(&self, walls: &SandboxRules) -> SandboxRules {
        let mut walls = walls.clone();
        let made = self.outputs.as_ref().and_then(|outputs| outputs.made());
        walls.readable_again.extend(made.map(Path::to_owned));
        walls
    }
}

/// Rules for files that hold a call to what its commands are held to.
fn file_rules(launch: &Launch) -> Option<Arc<dyn FileRules>> {
    match launch {
        Launch::Unconfined | Launch::External(_) => None,
        Launch::Sandboxed(sandbox) => Some(Arc::new(SandboxFileRules::new(Arc::clone(sandbox)))),
    }
}

impl Sandbox for Machine {
    fn confine(&self, grant: &Grant) -> Result<Arc<dyn Host>, ConfineError> {
        let unusable = |error: GuardError| ConfineError::Workspace {
            asked: Box::new(grant.confinement().clone()),
            reason: error.to_string(),
        };
        // Whatever this call is held to: what a killed session left must not be used.
        self.guard.check_interrupted(std::slice::from_ref(grant.cwd())).map_err(unusable)?;
        let held = match grant.confinement() {
            Confinement::InProcess => return Ok(Arc::new(Nothing)),
            Confinement::Unconfined | Confinement::External(_) if self.preview.is_some() => {
                let (asked, reason) = (Box::new(grant.confinement().clone()), preview::refusal(OUTSIDE));
                return Err(ConfineError::Unsupported { asked, reason });
            }
            Confinement::Unconfined => Held::by(Mechanism::Unconfined),
            Confinement::External(network) => Held::externally(*network),
            // Corrected once a command has run: which rung holds is found out by using it. Until then nothing was
            // started, and files are held by us.
            Confinement::Sandboxed(walls) => {
                let asked = || Box::new(grant.confinement().clone());
                if grant.runs_command() {
                    let missing = |reason| ConfineError::Unsupported { asked: asked(), reason };
                    self.mechanisms.probe().map_err(missing)?;
                }
                self.guard.open_roots(&walls.writable).map_err(unusable)?;
                Held { writable: walls.writable.clone(), ..Held::by(Mechanism::InProcess) }
            }
        };
        let launch = self.launch(grant);
        let observer = self.undo_recorder.clone().map(|recorder| recorder as Arc<dyn CommitObserver>);
        Ok(Arc::new(Commands {
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
            // First all are told, so that each has its grace at the same time as the others.
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

/// For calls that declared to start no process: they do not get to.
struct Nothing;

impl Host for Nothing {
    fn held(&self) -> Held {
        Held::by(Mechanism::InProcess)
    }
}

/// Runs commands, held as the grant says.
struct Commands {
    machine: Machine,
    cwd: PathBuf,
    limits: Limits,
    launch: Launch,
    files: ConfinedFiles,
    /// What runs instead of any command, if the grant is for one program.
    direct: Option<DirectProgram>,
    /// The call that the changes of commands belong to.
    call: Option<CallId>,
    undo_limits: Mutex<Vec<String>>,
    held: Mutex<Held>,
}

impl Commands {
    fn kept(&self) -> Kept {
        Kept::new(self.limits.output_bytes, self.machine.outputs.clone())
    }

    /// What a command starts: its own program, or the one that the grant is for.
    fn program(&self, command: &Command) -> Result<Program, HostError> {
        let environment = &self.machine.environment;
        match &self.direct {
            Some(direct) => {
                let command = direct_program::command(direct, command, environment);
                Program::new(&command, environment, &direct.cwd)
            }
            None => Program::new(command, environment, &self.cwd)?.with_shell_bypass(command),
        }
    }

    /// Makes sure that what a command changes can be undone. The ticket is held until the command is gone.
    async fn record(&self, program: &Program) -> Option<CommandTicket> {
        // On a layer it changes nothing yet; what is applied later is kept then.
        let may_change = self.launch.may_write() && self.machine.preview.is_none();
        let recorder = self.machine.undo_recorder.as_ref().filter(|_| may_change)?;
        let (ticket, limits) = recorder.begin(self.call.clone()?, program.line()).await;
        *self.undo_limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
        ticket
    }
}

impl Commands {
    async fn complete(
        &self,
        command: &Command,
        streams: OutputStreams,
        cancel: &CancellationToken,
        output: OutputListener<'_>,
    ) -> Result<Finished, HostError> {
        let _turn = match &self.machine.preview {
            Some(preview) => Some(preview.take_turn().await),
            None => None,
        };
        let spending = &self.machine.spending;
        let (left, quota) = (spending.left()?, &self.limits.quota);
        let program = self.program(command)?;
        let _ticket = self.record(&program).await;
        let _meter = spending.wall.count();
        let run = process::Run {
            program,
            launch: self.launch.clone(),
            time_limit: command
                .time_limit
                .unwrap_or(self.limits.default_time)
                .min(self.limits.max_time)
                .min(left)
                .min(quota.wall()),
            kept: self.kept(),
            output_limit: quota.output_bytes,
            cpu: spending.cpu.count_later(),
            streams,
            output,
        };
        let (finished, held) = run.complete(&self.machine.spawner, cancel).await?;
        if let Some(held) = held {
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
        }
        Ok(finished)
    }
}

impl Host for Commands {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<Finished, HostError>> {
        Box::pin(self.complete(command, self.machine.streams, cancel, output))
    }

    fn run_apart<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<Finished, HostError>> {
        Box::pin(self.complete(command, OutputStreams::Apart, cancel, output))
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn open<'a>(
        &'a self,
        command: &'a Command,
        input: Keyboard,
        output: Listener,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, HostError>> {
        Box::pin(async move {
            if self.machine.preview.is_some() {
                let program = command.argv.first().cloned().unwrap_or_default();
                let reason = preview::refusal("it is for commands that end, and a session goes on");
                return Err(HostError::NotHeld { program, reason });
            }
            let spending = &self.machine.spending;
            let quota = &self.limits.quota;
            let time_left = spending.left()?.min(quota.wall());
            let program = self.program(command)?;
            let opening = Opening {
                ticket: self.record(&program).await,
                program,
                launch: self.launch.clone(),
                keyboard: input,
                window: self.machine.window.clone(),
                kept: self.kept(),
                time_left,
                output_limit: quota.output_bytes,
                wall: spending.wall.count(),
                cpu: spending.cpu.count_later(),
                output,
            };
            let running = Arc::new(opening.start(&self.machine.spawner).await?);
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = running.held();
            let mut sessions = self.machine.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.retain(|session| session.strong_count() > 0);
            sessions.push(Arc::downgrade(&running));
            Ok(running as Arc<dyn Session>)
        })
    }

    fn held(&self) -> Held {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn undo_limits(&self) -> Vec<String> {
        self.undo_limits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
