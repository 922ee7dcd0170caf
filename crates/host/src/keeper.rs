//! The thread that starts children and collects the ones nobody waits for.
//!
//! A thread of its own, because Linux kills a child that asked to die with its parent when the *thread* that started
//! it ends, and a thread of an async runtime may end while the call goes on. It also is the place for what blocks in a
//! start.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;
use windlass_contract::{Exit, HostError};

use crate::{
    program::Program,
    sys::{self, Pid, StartError, Started},
};

/// How long the thread waits before it looks again after killed children that are still dying.
const BURIAL_ROUND: Duration = Duration::from_millis(20);

/// Starts children. The thread is made for the first of them, and ends with the last keeper and the last child.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keeper {
    jobs: Arc<Mutex<Option<Sender<Job>>>>,
}

#[derive(Debug)]
enum Job {
    Start { program: Box<Program>, output: OwnedFd, jobs: Sender<Job>, reply: Reply },
    Bury(Pid),
}

type Reply = oneshot::Sender<Result<Child, HostError>>;

impl Keeper {
    /// Starts a program that writes to `output`.
    pub(crate) async fn start(&self, program: Program, output: OwnedFd) -> Result<Child, HostError> {
        let name = program.name().to_owned();
        let lost = |source| HostError::Spawn { program: name, source };
        let (reply, answer) = oneshot::channel();
        let jobs = match self.jobs() {
            Ok(jobs) => jobs,
            Err(error) => return Err(lost(error)),
        };
        let job = Job::Start { program: Box::new(program), output, jobs: jobs.clone(), reply };
        match jobs.send(job) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(lost(io::ErrorKind::BrokenPipe.into()))),
            Err(_) => Err(lost(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn jobs(&self) -> io::Result<Sender<Job>> {
        let mut running = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = &*running {
            return Ok(jobs.clone());
        }
        let (jobs, inbox) = mpsc::channel();
        thread::Builder::new().name("windlass-keeper".to_owned()).spawn(move || keep(&inbox))?;
        *running = Some(jobs.clone());
        Ok(jobs)
    }
}

/// The thread's work.
fn keep(inbox: &Receiver<Job>) {
    let mut dying: Vec<Pid> = Vec::new();
    loop {
        dying.retain(|pid| matches!(pid.try_collect(), Ok(None)));
        let job = if dying.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(BURIAL_ROUND)
        };
        match job {
            Ok(Job::Start { program, output, jobs, reply }) => {
                // If the caller is gone, the child comes back here, and dropping it kills it.
                drop(reply.send(start(&program, output, jobs)));
            }
            Ok(Job::Bury(pid)) => dying.push(pid),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if dying.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(BURIAL_ROUND),
        }
    }
}

fn start(program: &Program, output: OwnedFd, jobs: Sender<Job>) -> Result<Child, HostError> {
    let input = File::open("/dev/null").map_err(StartError::Program);
    match input.and_then(|input| sys::start(program, input.into(), output)) {
        Ok(started) => Ok(Child { started, jobs, collected: false }),
        Err(StartError::Directory(source)) => {
            Err(HostError::Cwd { path: program.directory().to_owned(), source })
        }
        Err(StartError::Program(source)) => {
            Err(HostError::Spawn { program: program.name().to_owned(), source })
        }
    }
}

/// A running child. Dropped before it was collected, it and its group are killed.
#[derive(Debug)]
pub(crate) struct Child {
    started: Started,
    jobs: Sender<Job>,
    collected: bool,
}

impl Child {
    /// Waits until the child has ended. Its number stays taken, so its group can still be killed.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        self.started.ended().await
    }

    /// Kills the child, if it still runs, and everything it left behind in its group.
    pub(crate) fn kill_group(&self) {
        self.started.pid.kill_group();
    }

    /// How it ended, if it has.
    pub(crate) fn collect(mut self) -> io::Result<Option<Exit>> {
        let exit = self.started.pid.try_collect();
        self.collected = !matches!(exit, Ok(None));
        exit
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.collected {
            self.kill_group();
            // Fails only if the thread has panicked, and then nobody is left to tell.
            drop(self.jobs.send(Job::Bury(self.started.pid)));
        }
    }
}
