//! Starting a program where the system has neither namespaces nor subreapers: only its process
//! group can be killed.

use std::{
    io::{self, PipeReader, Read},
    os::fd::AsRawFd,
};

use super::{
    ChildPid, ChildStdio, ExecPlan, StartError, StartFailure, StartedChild,
    child::{ExecAttempt, ExecProgram},
    exec_plan, exec_program, report_pipe, without_signals,
};
use crate::program::Program;

/// Stands for the zygotes of Linux: here each child is forked from this process.
#[derive(Debug, Default)]
pub struct Zygotes;

/// Starts a program in a session of its own, with the given descriptors and no others.
pub(crate) fn start(
    program: &Program,
    stdio: ChildStdio,
    _zygotes: &mut Zygotes,
) -> Result<StartedChild, StartError> {
    let stdio = stdio.above_standard()?;
    let (mut reports, report) = report_pipe()?;
    let pointers = program.pointers();
    let program = ExecProgram {
        attempts: pointers
            .attempts
            .each_ref()
            .map(|(candidates, argv)| ExecAttempt { candidates: candidates.as_ptr(), argv: argv.as_ptr() }),
        env: pointers.env.as_ptr(),
        cwd: program.cwd.as_ptr(),
    };
    let plan = exec_plan(program, &stdio, report.as_raw_fd());
    let started = without_signals(|| fork(&plan))?;
    drop((stdio, report));
    read_report(started, &mut reports)
}

/// Waits until the child has executed its program, or reports why it has not.
fn read_report(started: StartedChild, reports: &mut PipeReader) -> Result<StartedChild, StartError> {
    let mut message = [0; 8];
    let read = match reports.read_exact(&mut message) {
        // The last writing end was closed by a successful `exec`.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(started),
        read => read,
    };
    started.kill();
    started.pid.reap(0)?;
    read?;
    Err(StartFailure::read(message).explain())
}

/// Forks the child.
fn fork(plan: &ExecPlan<'_>) -> io::Result<StartedChild> {
    // SAFETY: the child calls nothing but `exec_program`, which is safe after `fork` in a process
    // with threads because it only makes calls that are safe in signal handlers.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: this is the child, and it has its own copy of everything `plan` points to.
        0 => unsafe { exec_program(plan, &mut -1).send(plan.report) },
        pid => Ok(StartedChild { pid: ChildPid(pid), kill_signal: libc::SIGKILL }),
    }
}
