//! What one run of a program costs, as the kernel counts it.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The cost of one run.
pub(super) struct Cost {
    pub(super) wall: Duration,
    /// User and system time, children that were waited for included.
    pub(super) cpu: Duration,
    pub(super) peak_kb: u64,
}

/// Runs a program to its end.
pub(super) fn run(program: &Path, arguments: &[&str], cwd: &Path) -> Result<Cost, Vec<String>> {
    run_with(program, arguments, &[], cwd)
}

/// The same with more variables.
pub(super) fn run_with(
    program: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    cwd: &Path,
) -> Result<Cost, Vec<String>> {
    let began = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().copied()).current_dir(cwd);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child =
        command.spawn().map_err(|error| vec![format!("cannot run {}: {error}", program.display())])?;
    end(child.id(), began).map_err(|status| {
        vec![format!("{} {} ended with {status:#x}", program.display(), arguments.join(" "))]
    })
}

/// Waits for the end of a child that began at this time. The error is its status.
pub(super) fn end(pid: u32, began: Instant) -> Result<Cost, i32> {
    let (status, usage) = wait(pid);
    let wall = began.elapsed();
    if status != 0 {
        return Err(status);
    }
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs()) + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    Ok(Cost {
        wall,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_kb: usage.ru_maxrss.unsigned_abs(),
    })
}

/// `wait4`, which alone tells what a child used.
fn wait(pid: u32) -> (i32, libc::rusage) {
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right type; the pid is that of a child nobody
    // else waits for.
    unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage) };
    (status, usage)
}
