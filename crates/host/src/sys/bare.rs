//! Starting a program where the system has neither namespaces nor wardens: only its group can be killed.

use std::{io, os::fd::AsRawFd};

use super::{
    Pid, Plan, StartError, Started, Stdio, become_program, child::Words, hear, plan, report_pipe,
    without_signals,
};
use crate::program::Program;

/// There is nobody to start by.
#[derive(Debug, Default)]
pub(crate) struct Starters;

/// Starts a program in a session of its own, with the given descriptors and no others.
pub(crate) fn start(
    program: &Program,
    stdio: Stdio,
    _starters: &mut Starters,
) -> Result<Started, StartError> {
    let stdio = stdio.above_standard()?;
    let (mut reports, report) = report_pipe()?;
    let pointers = program.pointers();
    let words = Words {
        candidates: pointers.candidates.as_ptr(),
        argv: pointers.argv.as_ptr(),
        env: pointers.env.as_ptr(),
        cwd: program.cwd.as_ptr(),
    };
    let plan = plan(words, &stdio, report.as_raw_fd());
    let started = without_signals(|| split(&plan))?;
    drop((stdio, report));
    hear(started, &mut reports)
}

/// Makes the child, with a copy of our memory.
fn split(plan: &Plan<'_>) -> io::Result<Started> {
    // SAFETY: the child calls nothing but `become_program`, which is safe after `fork` in a process with threads
    // because it only makes calls that are safe in signal handlers.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: this is the child, and it has its own copy of everything `plan` points to.
        0 => unsafe { become_program(plan, &mut -1) },
        pid => Ok(Started { pid: Pid(pid), kill_signal: libc::SIGKILL }),
    }
}
