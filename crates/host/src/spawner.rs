//! The thread that starts children, and reaps those that were dropped while they ran.
//!
//! A thread of its own, because `PR_SET_PDEATHSIG` kills a child when the *thread* that forked it
//! ends, and a thread of an async runtime may end while the call goes on. It is also the place for
//! the blocking work of a start.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;
use windlass_contract::{
    Denial,
    grant::Held,
    host::{Exit, HostError},
};
use windlass_sandbox::{
    ChildPid, ChildStdio, ExitReport, LaunchedChild, Program, StartError, StartedChild, Zygotes,
};

use crate::{
    launch::CommandLaunch,
    workspace_guard::{CommandGuard, GuardReport, git_program::SandboxedGit},
};

/// The pause between two attempts to reap killed children that have not ended yet.
const REAP_PAUSE: Duration = Duration::from_millis(20);

/// Maximum time the last spawner waits for its thread to end. The thread lives longer only for a
/// child that is still held.
const THREAD_END_TIMEOUT: Duration = Duration::from_millis(200);

/// Starts children. The thread is spawned for the first of them, and ends with the last spawner and
/// the last child.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChildSpawner(Arc<LazyThread>);

#[derive(Debug, Default)]
struct LazyThread(Mutex<Option<SpawnerThread>>);

#[derive(Debug)]
struct SpawnerThread {
    jobs: Sender<SpawnerJob>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl Drop for LazyThread {
    /// Waits for the thread to reap its children, so that none is left when this process ends.
    fn drop(&mut self) {
        let thread = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(SpawnerThread { jobs, ended }) = thread {
            drop(jobs);
            // There is nothing more to do, in time or not.
            let _ended = ended.recv_timeout(THREAD_END_TIMEOUT);
        }
    }
}

/// A job for the thread.
#[derive(Debug)]
enum SpawnerJob {
    Start {
        request: Box<SpawnRequest>,
        jobs: Sender<SpawnerJob>,
        reply: oneshot::Sender<Result<RunningChild, HostError>>,
    },
    /// Check the workspace of a command that is gone.
    Check { guard: Box<CommandGuard>, reply: oneshot::Sender<GuardReport> },
    /// Reap a killed child, and check the workspace after that.
    Reap(ChildPid, Option<Box<CommandGuard>>),
}

/// A program to start, with its descriptors and its confinement.
#[derive(Debug)]
pub(crate) struct SpawnRequest {
    pub(crate) program: Program,
    pub(crate) stdio: ChildStdio,
    pub(crate) launch: CommandLaunch,
}

impl ChildSpawner {
    /// Starts a program.
    pub(crate) async fn spawn(&self, request: SpawnRequest) -> Result<RunningChild, HostError> {
        let name = request.program.name().to_owned();
        let lost = |source| HostError::Spawn { program: name, source };
        let (reply, answer) = oneshot::channel();
        let jobs = match self.jobs() {
            Ok(jobs) => jobs,
            Err(error) => return Err(lost(error)),
        };
        let job = SpawnerJob::Start { request: Box::new(request), jobs: jobs.clone(), reply };
        match jobs.send(job) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(lost(io::ErrorKind::BrokenPipe.into()))),
            Err(_) => Err(lost(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn jobs(&self) -> io::Result<Sender<SpawnerJob>> {
        let mut running = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*running {
            return Ok(thread.jobs.clone());
        }
        let (jobs, inbox) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::Builder::new().name("windlass-spawner".to_owned()).spawn(move || {
            run_jobs(&inbox);
            drop(end);
        })?;
        *running = Some(SpawnerThread { jobs: jobs.clone(), ended });
        Ok(jobs)
    }
}

/// Runs jobs until the last sender is gone and all children are reaped.
fn run_jobs(inbox: &Receiver<SpawnerJob>) {
    let mut zygotes = Zygotes::default();
    let mut dying: Vec<(ChildPid, Option<Box<CommandGuard>>)> = Vec::new();
    loop {
        dying.retain_mut(|(pid, guard)| {
            let stays = matches!(pid.try_reap(), Ok(None));
            if let Some(guard) = guard.take_if(|_| !stays) {
                // The call is over, so the denials have no reader; what was moved aside shows by
                // its name.
                drop(check(*guard, &mut zygotes));
            }
            stays
        });
        let job = if dying.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(REAP_PAUSE)
        };
        match job {
            Ok(SpawnerJob::Start { request, jobs, reply }) => {
                // If the caller is gone, the child comes back here, and dropping it kills it.
                drop(reply.send(start(*request, jobs, &mut zygotes)));
            }
            // Without a reader of the answer, what was found is still put right.
            Ok(SpawnerJob::Check { guard, reply }) => drop(reply.send(check(*guard, &mut zygotes))),
            Ok(SpawnerJob::Reap(pid, guard)) => dying.push((pid, guard)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if dying.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(REAP_PAUSE),
        }
    }
}

/// Checks the workspace of a command that is gone.
fn check(command: CommandGuard, zygotes: &mut Zygotes) -> GuardReport {
    let guard = command.workspace();
    let writable = command.roots.iter().map(|root| root.path.clone()).collect();
    command.finish(&mut SandboxedGit { environment: &guard.git, writable, zygotes })
}

fn start(
    request: SpawnRequest,
    jobs: Sender<SpawnerJob>,
    zygotes: &mut Zygotes,
) -> Result<RunningChild, HostError> {
    let SpawnRequest { program, stdio, launch } = request;
    let (name, directory) = (program.name().to_owned(), program.directory().to_owned());
    match launch.start(&program, stdio, zygotes) {
        Ok((LaunchedChild { started, held, .. }, guard)) => {
            Ok(RunningChild { started, held, guard, jobs, reaped: false })
        }
        Err(StartError::Directory(source)) => Err(HostError::Cwd { path: directory, source }),
        Err(StartError::Impossible(reason)) => Err(HostError::NotHeld { program: name, reason }),
        Err(StartError::Confine(step, source)) => Err(HostError::Confine { program: name, step, source }),
        Err(StartError::Program(source)) => Err(HostError::Spawn { program: name, source }),
    }
}

/// A running child. Dropped before it was reaped, it and everything it started are killed.
#[derive(Debug)]
pub(crate) struct RunningChild {
    started: StartedChild,
    held: Held,
    guard: Option<CommandGuard>,
    jobs: Sender<SpawnerJob>,
    reaped: bool,
}

/// The end of a child.
#[derive(Debug)]
pub(crate) struct ChildEnd {
    /// Absent if it has been killed and has not ended yet.
    pub(crate) exit: Option<Exit>,
    pub(crate) report: ExitReport,
}

impl RunningChild {
    /// Waits until the child has ended. Its PID stays taken, so it can still be killed.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        self.started.ended().await
    }

    /// Kills the child, if it still runs, and everything it left behind.
    pub(crate) fn kill(&self) {
        self.started.kill();
    }

    /// Returns the PID, which is valid until the child is reaped.
    pub(crate) fn pid(&self) -> ChildPid {
        self.started.pid
    }

    /// Returns the confinement of the child.
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// Sends SIGTERM to the child and its descendants.
    pub(crate) fn terminate(&self) {
        self.started.pid.terminate();
    }

    /// Reaps the child if it has ended, and returns its exit and the report of its first process.
    pub(crate) fn try_reap(&mut self) -> io::Result<ChildEnd> {
        let exit = self.started.pid.try_reap()?;
        self.reaped = exit.is_some();
        if self.reaped {
            self.started.read_exit_report();
        }
        let report = self.started.exit_report();
        Ok(ChildEnd { exit: reported_exit(&report).or(exit), report })
    }

    /// Checks what the child must not have touched, and puts it right. To be called when the child
    /// is gone.
    pub(crate) async fn check_workspace(&mut self) -> Vec<Denial> {
        let Some(guard) = self.guard.take() else { return Vec::new() };
        let (reply, answer) = oneshot::channel();
        // Without the thread nothing could have been started.
        drop(self.jobs.send(SpawnerJob::Check { guard: Box::new(guard), reply }));
        let GuardReport { denials, not_covered } = answer.await.unwrap_or_default();
        self.held.not_covered.extend(not_covered);
        denials
    }
}

/// Returns the exit of the command as its first process reports it. A command that exceeded a limit
/// counts as killed, even if it had ended well itself and only what it left behind was killed: it
/// must not pass for done.
fn reported_exit(report: &ExitReport) -> Option<Exit> {
    report.over.map(|_| Exit::KILLED).or(report.exit)
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        let guard = self.guard.take().map(Box::new);
        if !self.reaped {
            self.kill();
            // Fails only if the thread has panicked; then nothing can reap it.
            drop(self.jobs.send(SpawnerJob::Reap(self.started.pid, guard)));
        } else if let Some(guard) = guard {
            let (reply, _unread) = oneshot::channel();
            drop(self.jobs.send(SpawnerJob::Check { guard, reply }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_exceeded_a_limit_counts_as_killed() {
        let well = ExitReport { exit: Some(Exit::Code(0)), ..ExitReport::default() };
        assert_eq!(reported_exit(&well), Some(Exit::Code(0)));
        assert_eq!(
            reported_exit(&ExitReport { over: Some("memory"), ..well.clone() }),
            Some(Exit::Signal(9))
        );
        assert_eq!(reported_exit(&ExitReport { held_back: Some("processes"), ..well }), Some(Exit::Code(0)));
    }
}
