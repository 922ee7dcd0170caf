//! The process between us and a command that has no process namespace of its own.
//!
//! Whoever loses its parent below the warden becomes the warden's child, so however a process has hidden (`setsid`, a
//! double fork, closed descriptors) it is found and ends with the command, and with us: the warden is told to end when
//! we are gone. One warden per command, because an orphan does not tell whose it was; and a process of its own, because
//! the orphans of a program that embeds us are none of our business.
//!
//! Like all code of the child, it allocates nothing and takes no locks.

use std::{
    ffi::{c_int, c_void},
    mem,
    os::fd::{AsRawFd, RawFd},
};

use super::{
    Failure, Plan, StartError, Started, Stdio,
    hold::{Files, Filter, Hold},
    init::{
        Buried, GRACE_MILLIS, Last, SETTLING_MILLIS, bury, cpu_of_collected, event, name_killed, now,
        signals, told_to_end,
    },
    plan, report_pipe,
    split::{borrow, close_all_but, place_standard},
    starter::{First, Place, Starters, begun},
    tree::Tree,
};
use crate::program::Program;

/// How long what was killed is waited for. It needs more only if it is stuck in the kernel, or not ours to kill.
const DYING_MILLIS: i64 = 2000;

/// How soon the rest is killed again: those who were forked while their parents were killed.
const ROUND_MILLIS: c_int = 1;

/// Starts a program in a session of its own, with the given descriptors and no others, below a warden. The warden ends
/// it and everything it started when the calling thread ends.
pub(crate) fn start(
    program: &Program,
    stdio: Stdio,
    hold: Option<Hold<'_>>,
    starters: &mut Starters,
) -> Result<Started, StartError> {
    let stdio = stdio.above_standard()?;
    let (words, last_words) = report_pipe()?;
    let maker = starters.at(match hold.map(|hold| hold.filter) {
        Some(Filter::Inherited(sockets)) => Place::Fenced(sockets),
        Some(Filter::Own(_)) | None => Place::Here,
    })?;
    let arena = &maker.arena;
    let plan = plan(arena.words(program)?, &stdio, maker.report());
    let (given, parent) = ([plan.input, plan.output, plan.error], plan.parent);
    let hold = hold.map(|hold| hold.placed(arena)).transpose()?;
    // By then they are where they belong.
    let plan = Plan { hold, parent: 0, input: 0, output: 1, error: 2, ..plan };
    let (stack, last_words_number) = (arena.stack()?, last_words.as_raw_fd());
    let watched = arena.put(Watched { parent, given, plan, stack, last_words: last_words_number })?;
    let started = maker.start(libc::SIGTERM, watched)?.map_err(|failure| failure.explain(&[]))?;
    drop((stdio, last_words));
    Ok(Started { last_words: Some(words), ..started })
}

/// Everything the first process needs, prepared beforehand.
#[derive(Clone, Copy)]
struct Watched<'a> {
    parent: libc::pid_t,
    given: [RawFd; 3],
    plan: Plan<'a>,
    stack: *mut c_void,
    last_words: RawFd,
}

impl First for Watched<'_> {
    /// Starts the command and stays with it.
    unsafe fn run(&self) -> ! {
        stay_with(self.parent);
        // SAFETY: passed on from the caller.
        match place_standard(self.given).and_then(|()| unsafe { self.begin() }) {
            Ok(warden) => warden.run(),
            Err(failure) => failure.send(self.plan.report),
        }
    }
}

impl Watched<'_> {
    /// Starts the command and keeps nothing that is its own.
    ///
    /// # Safety
    ///
    /// As for [`borrow`].
    unsafe fn begin(&self) -> Result<Warden, Failure> {
        let (rules, cgroup) = match self.plan.hold {
            Some(Hold { files: Files::Given(rules), cgroup, .. }) => (rules, cgroup.unwrap_or(-1)),
            _ => (-1, -1),
        };
        close_all_but([self.plan.report, self.last_words, rules, cgroup]);
        // SAFETY: passed on from the caller; the rest are numbers.
        unsafe {
            let command = borrow(&self.plan, self.stack)?;
            let warden = Warden { command: command.pid, last_words: self.last_words };
            for descriptor in [0, 1, 2, rules, cgroup] {
                libc::close(descriptor);
            }
            begun(self.plan.report);
            Ok(warden)
        }
    }
}

/// Becomes the one to whom orphans go, and who is told when the parent's thread ends.
fn stay_with(parent: libc::pid_t) {
    // SAFETY: numbers and a constant C string.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        if libc::getppid() != parent {
            libc::_exit(127);
        }
        // A group is enough to be killed by, and keeps away what a terminal sends. In a session of its own it would be a
        // stranger to the scheduler, and wait behind everyone else's work each time it wakes.
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"windlass-warden".as_ptr());
    }
}

struct Warden {
    command: libc::pid_t,
    last_words: RawFd,
}

impl Warden {
    /// Waits for the command and what it left behind, and kills what does not end.
    fn run(&self) -> ! {
        let mut last = Last::before_the_end();
        let signals = signals();
        let (mut deadline, mut told) = (i64::MAX, false);
        let left = loop {
            wait(signals, deadline.saturating_sub(now()));
            if told_to_end(signals) && !told {
                told = true;
                Tree::ours().signal(libc::SIGTERM);
                deadline = deadline.min(now().saturating_add(GRACE_MILLIS));
            }
            match self.bury(&mut last.status) {
                Buried::All => break false,
                Buried::Command => deadline = deadline.min(now().saturating_add(SETTLING_MILLIS)),
                Buried::Others => {}
            }
            if now() >= deadline {
                break true;
            }
        };
        if left {
            Tree::ours().each(|pid| name_killed(&mut last, pid));
            self.kill(signals, &mut last.status);
        } else {
            last.all_gone = 1;
        }
        last.cpu_micros = cpu_of_collected();
        // SAFETY: the structure is a local that lives across the call.
        unsafe {
            libc::write(self.last_words, (&raw const last).cast(), mem::size_of::<Last>());
            libc::_exit(0)
        }
    }

    /// Kills until nobody is left. One round is not enough: whoever forks while it dies leaves a child to the next.
    fn kill(&self, signals: RawFd, status: &mut c_int) {
        let end = now().saturating_add(DYING_MILLIS);
        loop {
            Tree::ours().signal(libc::SIGKILL);
            if matches!(self.bury(status), Buried::All) || now() >= end {
                return;
            }
            wait(signals, ROUND_MILLIS.into());
            told_to_end(signals);
        }
    }

    /// Collects everyone who has ended.
    fn bury(&self, status: &mut c_int) -> Buried {
        self.end_group_unseen();
        bury(self.command, status)
    }

    /// Without /proc nobody can be found but by the command's group, whose number is only known to be its own until
    /// the command is collected. So the group ends with the command, at once.
    fn end_group_unseen(&self) {
        // SAFETY: all zeros is a valid value, and it lives across the call; the rest are numbers and a C string.
        unsafe {
            let mut own = [0_u8; 16];
            if libc::readlink(c"/proc/self".as_ptr(), own.as_mut_ptr().cast(), own.len()) > 0 {
                return;
            }
            let mut info: libc::siginfo_t = mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.command.cast_unsigned(), &raw mut info, flags);
            if info.si_pid() == self.command {
                libc::kill(-self.command, libc::SIGKILL);
            }
        }
    }
}

fn wait(signals: RawFd, millis: i64) {
    let mut waiting = event(signals);
    // SAFETY: one element, which lives across the call.
    unsafe { libc::poll(&raw mut waiting, 1, c_int::try_from(millis.max(0)).unwrap_or(-1)) };
}
