//! Starting a program where the system has neither namespaces nor wardens: only its group can be killed.

use std::{
    io::{self, PipeReader, Read},
    os::fd::AsRawFd,
};

use super::{
    Failure, Pid, Plan, StartError, Started, Stdio, become_program,
    child::{Call, Words},
    plan, report_pipe, without_signals,
};
use crate::program::Program;

/// There is nobody to start by.
#[derive(Debug, Default)]
pub(crate) struct Starters;

impl Starters {
    /// Nobody can stand by.
    #[expect(clippy::unused_self, reason = "elsewhere they are prepared")]
    pub(crate) fn prepare(&self) {}
}

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
        calls: pointers
            .calls
            .each_ref()
            .map(|(candidates, argv)| Call { candidates: candidates.as_ptr(), argv: argv.as_ptr() }),
        env: pointers.env.as_ptr(),
        cwd: program.cwd.as_ptr(),
    };
    let plan = plan(words, &stdio, report.as_raw_fd());
    let started = without_signals(|| split(&plan))?;
    drop((stdio, report));
    hear(started, &mut reports)
}

/// Waits until the child has become its program, or says why it has not.
fn hear(started: Started, reports: &mut PipeReader) -> Result<Started, StartError> {
    let mut message = [0; 8];
    let heard = match reports.read_exact(&mut message) {
        // The last writing end was closed by a successful `exec`.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(started),
        heard => heard,
    };
    started.kill();
    started.pid.collect(0)?;
    heard?;
    Err(Failure::read(message).explain())
}

/// Makes the child, with a copy of our memory.
fn split(plan: &Plan<'_>) -> io::Result<Started> {
    // SAFETY: the child calls nothing but `become_program`, which is safe after `fork` in a process with threads
    // because it only makes calls that are safe in signal handlers.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: this is the child, and it has its own copy of everything `plan` points to.
        0 => unsafe { become_program(plan, &mut -1).send(plan.report) },
        pid => Ok(Started { pid: Pid(pid), kill_signal: libc::SIGKILL }),
    }
}
