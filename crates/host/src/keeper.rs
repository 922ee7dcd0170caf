//! The thread that starts children and collects the ones nobody waits for.
//!
//! A thread of its own, because Linux kills a child that asked to die with its parent when the *thread* that started
//! it ends, and a thread of an async runtime may end while the call goes on. It also is the place for what blocks in a
//! start.

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
use windlass_contract::{Denial, Exit, Held, HostError};

use crate::{
    enclosure::{Enclosed, Enclosure},
    program::Program,
    sys::{LastWords, Pid, StartError, Started, Starters, Stdio},
    workspace_guard::{CommandGuard, GuardReport, git_program::SandboxedGit},
};

/// How long the thread waits before it looks again after killed children that are still dying.
const BURIAL_ROUND: Duration = Duration::from_millis(20);

/// How long the last keeper waits for the thread to collect what it has made. Longer than that it stays only for a child
/// that somebody still holds.
const PATIENCE: Duration = Duration::from_millis(200);

/// Starts children. The thread is made for the first of them, and ends with the last keeper and the last child.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keeper(Arc<Post>);

#[derive(Debug, Default)]
struct Post(Mutex<Option<Thread>>);

#[derive(Debug)]
struct Thread {
    jobs: Sender<Job>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

impl Drop for Post {
    /// Leaves nobody behind whom the system would have to collect when this process ends.
    fn drop(&mut self) {
        if let Some(Thread { jobs, ended }) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take()
        {
            drop(jobs);
            // Either way there is nothing more to do.
            let _ended = ended.recv_timeout(PATIENCE);
        }
    }
}

#[derive(Debug)]
enum Job {
    Start {
        order: Box<Order>,
        jobs: Sender<Job>,
        reply: Reply,
    },
    Check {
        guard: Box<CommandGuard>,
        reply: oneshot::Sender<GuardReport>,
    },
    Bury(Pid, Option<Box<CommandGuard>>),
    /// A command is over, and there is time to prepare for the next.
    Rest,
}

/// What is to be started, and behind what.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) program: Program,
    pub(crate) stdio: Stdio,
    pub(crate) enclosure: Enclosure,
}

type Reply = oneshot::Sender<Result<Child, HostError>>;

impl Keeper {
    /// Starts a program.
    pub(crate) async fn start(&self, order: Order) -> Result<Child, HostError> {
        let name = order.program.name().to_owned();
        let lost = |source| HostError::Spawn { program: name, source };
        let (reply, answer) = oneshot::channel();
        let jobs = match self.jobs() {
            Ok(jobs) => jobs,
            Err(error) => return Err(lost(error)),
        };
        let job = Job::Start { order: Box::new(order), jobs: jobs.clone(), reply };
        match jobs.send(job) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(lost(io::ErrorKind::BrokenPipe.into()))),
            Err(_) => Err(lost(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn jobs(&self) -> io::Result<Sender<Job>> {
        let mut running = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*running {
            return Ok(thread.jobs.clone());
        }
        let (jobs, inbox) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        thread::Builder::new().name("windlass-keeper".to_owned()).spawn(move || {
            keep(&inbox);
            drop(end);
        })?;
        *running = Some(Thread { jobs: jobs.clone(), ended });
        Ok(jobs)
    }
}

/// The thread's work.
fn keep(inbox: &Receiver<Job>) {
    #[cfg(target_os = "linux")]
    crate::sys::turns::short();
    let mut starters = Starters::default();
    let mut dying: Vec<(Pid, Option<Box<CommandGuard>>)> = Vec::new();
    loop {
        dying.retain_mut(|(pid, guard)| {
            let stays = matches!(pid.try_collect(), Ok(None));
            if let Some(guard) = guard.take_if(|_| !stays) {
                // No caller waits for the report; what was found is still put right.
                drop(check(*guard, &mut starters));
            }
            stays
        });
        let job = if dying.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(BURIAL_ROUND)
        };
        match job {
            Ok(Job::Start { order, jobs, reply }) => {
                // If others still run, nobody may stand by yet. They are made while the walls are drawn.
                starters.prepare();
                // If the caller is gone, the child comes back here, and dropping it kills it.
                drop(reply.send(start(*order, jobs, &mut starters)));
            }
            // If nobody waits for the answer, what was found is still put right.
            Ok(Job::Check { guard, reply }) => drop(reply.send(check(*guard, &mut starters))),
            Ok(Job::Rest) => starters.prepare(),
            Ok(Job::Bury(pid, guard)) => dying.push((pid, guard)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if dying.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => thread::sleep(BURIAL_ROUND),
        }
    }
}

/// Checks the workspace of a command that is gone.
fn check(command: CommandGuard, starters: &mut Starters) -> GuardReport {
    let guard = command.workspace();
    let writable = command.roots.iter().map(|root| root.path.clone()).collect();
    command.finish(&mut SandboxedGit { environment: &guard.git, writable, starters })
}

fn start(order: Order, jobs: Sender<Job>, starters: &mut Starters) -> Result<Child, HostError> {
    let Order { program, stdio, enclosure } = order;
    let (name, directory) = (program.name().to_owned(), program.directory().to_owned());
    match enclosure.start(&program, stdio, starters) {
        Ok(Enclosed { started, held, guard }) => Ok(Child { started, held, guard, jobs, collected: false }),
        Err(StartError::Directory(source)) => Err(HostError::Cwd { path: directory, source }),
        Err(StartError::Impossible(reason)) => Err(HostError::NotHeld { program: name, reason }),
        Err(StartError::Confine(step, source)) => Err(HostError::Confine { program: name, step, source }),
        Err(StartError::Program(source)) => Err(HostError::Spawn { program: name, source }),
    }
}

/// A running child. Dropped before it was collected, it and everything it started are killed.
#[derive(Debug)]
pub(crate) struct Child {
    started: Started,
    held: Held,
    guard: Option<CommandGuard>,
    jobs: Sender<Job>,
    collected: bool,
}

/// How a child ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Absent if it is still dying.
    pub(crate) exit: Option<Exit>,
    pub(crate) words: LastWords,
}

impl Child {
    /// Waits until the child has ended. Its number stays taken, so it can still be killed.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        self.started.ended().await
    }

    /// Kills the child, if it still runs, and everything it left behind.
    pub(crate) fn kill(&self) {
        self.started.kill();
    }

    /// Its number, which is its own until it is collected.
    pub(crate) fn pid(&self) -> Pid {
        self.started.pid
    }

    /// What holds it.
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// Asks the child to end, and everything with it.
    pub(crate) fn ask_to_end(&self) {
        self.started.pid.ask_to_end();
    }

    /// How it ended, if it has.
    pub(crate) fn collect(&mut self) -> io::Result<Ended> {
        let exit = self.started.pid.try_collect()?;
        self.collected = exit.is_some();
        if self.collected {
            self.started.hear_out();
        }
        let words = self.started.words();
        Ok(Ended { exit: told(&words).or(exit), words })
    }

    /// Looks at what the child must not have touched, and puts right what it has. To be called when it is gone.
    pub(crate) async fn inspect(&mut self) -> Vec<Denial> {
        let Some(guard) = self.guard.take() else { return Vec::new() };
        let (reply, answer) = oneshot::channel();
        // Without the thread nothing could have been started.
        drop(self.jobs.send(Job::Check { guard: Box::new(guard), reply }));
        let GuardReport { denials, not_covered } = answer.await.unwrap_or_default();
        self.held.not_covered.extend(not_covered);
        denials
    }
}

/// How the first process says that the command ended. One that exceeded a limit was killed, also if the command itself had
/// ended well by then and it was what it left behind: it must not pass for done.
fn told(words: &LastWords) -> Option<Exit> {
    words.over.map(|_| Exit::KILLED).or(words.exit)
}

impl Drop for Child {
    fn drop(&mut self) {
        let guard = self.guard.take().map(Box::new);
        if !self.collected {
            self.kill();
            // Fails only if the thread has panicked, and then nobody is left to tell.
            drop(self.jobs.send(Job::Bury(self.started.pid, guard)));
            return;
        }
        if let Some(guard) = guard {
            let (reply, _nobody) = oneshot::channel();
            drop(self.jobs.send(Job::Check { guard, reply }));
        }
        drop(self.jobs.send(Job::Rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_limit_ended_did_not_end_well() {
        let well = LastWords { exit: Some(Exit::Code(0)), ..LastWords::default() };
        assert_eq!(told(&well), Some(Exit::Code(0)));
        assert_eq!(told(&LastWords { over: Some("memory"), ..well.clone() }), Some(Exit::Signal(9)));
        assert_eq!(told(&LastWords { held_back: Some("processes"), ..well }), Some(Exit::Code(0)));
    }
}
