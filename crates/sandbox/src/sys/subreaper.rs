//! The first process of a command without a PID namespace: a subreaper (`PR_SET_CHILD_SUBREAPER`).
//!
//! A process that loses its parent below the subreaper becomes the subreaper's child. So a process
//! that hides (`setsid`, a double fork, closed descriptors) is found and killed with the command,
//! and with us: the kernel sends the subreaper SIGTERM when our thread ends. One subreaper per
//! command, because an orphan does not show which command it belonged to; and not this process,
//! because the orphans of a program that embeds us are not ours to reap.
//!
//! Like all code of the child, it allocates nothing and takes no locks.

use std::{
    ffi::{c_int, c_void},
    mem,
    os::fd::{AsRawFd, RawFd},
};

use super::{
    ChildStdio, ExecPlan, StartError, StartFailure, StartedChild, exec_plan,
    init::{
        FinalReport, GRACE_MILLIS, ReapedProcesses, SETTLING_MILLIS, bury, cpu_of_collected, event,
        name_killed, now, signals, take_termination_request,
    },
    process_tree::ProcessTree,
    report_pipe,
    restrictions::{ChildRestrictions, LandlockRules, SeccompFilter},
    vfork::{close_all_but, dup_standard, vfork_exec},
    zygote::{FirstProcess, ZygoteContext, Zygotes, report_begun},
};
use crate::program::Program;

/// Maximum time to wait for killed processes. They need more only if they are stuck in the kernel
/// or belong to another user.
const DYING_MILLIS: i64 = 2000;

/// The pause before the next round of SIGKILL, for processes that were forked while their parents
/// were killed.
const ROUND_MILLIS: c_int = 1;

/// Starts a program in a session of its own, with the given descriptors and no others, below a
/// subreaper. The subreaper kills it and everything it started when the calling thread ends.
pub(crate) fn start(
    program: &Program,
    stdio: ChildStdio,
    restrictions: Option<ChildRestrictions<'_>>,
    zygotes: &mut Zygotes,
) -> Result<StartedChild, StartError> {
    let stdio = stdio.above_standard()?;
    let (exit_pipe, exit_writer) = report_pipe()?;
    let zygote = zygotes.get(match restrictions.map(|restrictions| restrictions.filter) {
        Some(SeccompFilter::Inherited(sockets)) => ZygoteContext::Filtered(sockets),
        Some(SeccompFilter::Own(_)) | None => ZygoteContext::Host,
    })?;
    let arena = &zygote.arena;
    let plan = exec_plan(arena.exec_program(program)?, &stdio, zygote.report_fd());
    let (given, parent) = ([plan.input, plan.output, plan.error], plan.parent);
    let restrictions = restrictions.map(|restrictions| restrictions.copy_to(arena)).transpose()?;
    // By then the first process has moved them to 0, 1 and 2.
    let plan = ExecPlan { restrictions, parent: 0, input: 0, output: 1, error: 2, ..plan };
    let first =
        SubreaperStart { parent, given, plan, stack: arena.stack()?, exit_pipe: exit_writer.as_raw_fd() };
    let started = zygote.start(libc::SIGTERM, arena.put(first)?)?;
    let started = started.map_err(|failure| failure.explain(&[]))?;
    drop((stdio, exit_writer));
    Ok(StartedChild { exit_pipe: Some(exit_pipe), ..started })
}

/// Everything the subreaper needs, prepared before the fork.
#[derive(Clone, Copy)]
struct SubreaperStart<'a> {
    parent: libc::pid_t,
    given: [RawFd; 3],
    plan: ExecPlan<'a>,
    stack: *mut c_void,
    exit_pipe: RawFd,
}

impl FirstProcess for SubreaperStart<'_> {
    unsafe fn run(&self) -> ! {
        become_subreaper(self.parent);
        // SAFETY: passed on from the caller.
        match dup_standard(self.given).and_then(|()| unsafe { self.start_command() }) {
            Ok(subreaper) => subreaper.run(),
            Err(failure) => failure.send(self.plan.report),
        }
    }
}

impl SubreaperStart<'_> {
    /// Starts the command and closes the descriptors that only the command needs.
    ///
    /// # Safety
    ///
    /// As for [`vfork_exec`].
    unsafe fn start_command(&self) -> Result<SubreaperProcess, StartFailure> {
        let (ruleset, cgroup) = match self.plan.restrictions {
            Some(ChildRestrictions { files: LandlockRules::Given(ruleset), cgroup, .. }) => {
                (ruleset, cgroup.unwrap_or(-1))
            }
            _ => (-1, -1),
        };
        close_all_but([self.plan.report, self.exit_pipe, ruleset, cgroup]);
        // SAFETY: passed on from the caller; the other calls take numbers.
        unsafe {
            let command = vfork_exec(&self.plan, self.stack)?;
            let subreaper = SubreaperProcess { command: command.pid, exit_pipe: self.exit_pipe };
            for descriptor in [0, 1, 2, ruleset, cgroup] {
                libc::close(descriptor);
            }
            report_begun(self.plan.report);
            Ok(subreaper)
        }
    }
}

/// Makes this process a subreaper in a process group of its own, and asks for SIGTERM when the
/// parent's thread ends.
fn become_subreaper(parent: libc::pid_t) {
    // SAFETY: numbers and a constant C string.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        if libc::getppid() != parent {
            libc::_exit(127);
        }
        // A process group is enough to be killed by, and keeps away the signals of a terminal. A
        // session of its own would have its own autogroup, whose processes wait behind all other
        // work each time they wake.
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"windlass-reaper".as_ptr());
    }
}

struct SubreaperProcess {
    command: libc::pid_t,
    exit_pipe: RawFd,
}

impl SubreaperProcess {
    /// Waits for the command and what it left behind, kills what does not end, and writes the
    /// report.
    fn run(&self) -> ! {
        let mut last = FinalReport::new();
        let signals = signals();
        let (mut deadline, mut terminated) = (i64::MAX, false);
        let left = loop {
            wait(signals, deadline.saturating_sub(now()));
            if take_termination_request(signals) && !terminated {
                terminated = true;
                ProcessTree::of_self().signal(libc::SIGTERM);
                deadline = deadline.min(now().saturating_add(GRACE_MILLIS));
            }
            match self.reap(&mut last.status) {
                ReapedProcesses::All => break false,
                ReapedProcesses::Command => deadline = deadline.min(now().saturating_add(SETTLING_MILLIS)),
                ReapedProcesses::Others => {}
            }
            if now() >= deadline {
                break true;
            }
        };
        if left {
            ProcessTree::of_self().each(|pid| name_killed(&mut last, pid));
            self.kill(signals, &mut last.status);
        } else {
            last.all_gone = 1;
        }
        last.cpu_micros = cpu_of_collected();
        // SAFETY: the structure is a local that lives across the call.
        unsafe {
            libc::write(self.exit_pipe, (&raw const last).cast(), mem::size_of::<FinalReport>());
            libc::_exit(0)
        }
    }

    /// Kills until no process is left. One round is not enough: a process that forks while it is
    /// killed leaves a child.
    fn kill(&self, signals: RawFd, status: &mut c_int) {
        let end = now().saturating_add(DYING_MILLIS);
        loop {
            ProcessTree::of_self().signal(libc::SIGKILL);
            if matches!(self.reap(status), ReapedProcesses::All) || now() >= end {
                return;
            }
            wait(signals, ROUND_MILLIS.into());
            take_termination_request(signals);
        }
    }

    /// Reaps all children that have ended.
    fn reap(&self, status: &mut c_int) -> ReapedProcesses {
        self.kill_group_without_proc();
        bury(self.command, status)
    }

    /// Kills the command's process group as soon as the command has ended, if there is no `/proc`
    /// to find other processes by. The group's number is only known to be its own until the command
    /// is reaped.
    fn kill_group_without_proc(&self) {
        // SAFETY: all zeros is a valid value, and it lives across the call; the rest are numbers
        // and a C string.
        unsafe {
            let mut link = [0_u8; 16];
            if libc::readlink(c"/proc/self".as_ptr(), link.as_mut_ptr().cast(), link.len()) > 0 {
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
