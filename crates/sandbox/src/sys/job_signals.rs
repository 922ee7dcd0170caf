//! Job-control signals: SIGTSTP and its like as the parent shell and the kernel expect them.

use std::{ffi::c_int, mem, ptr};

#[cfg(target_os = "linux")]
use super::init::{each_process, number_in, parent_in};

/// Returns whether the parent has set this signal to SIG_IGN, as `nohup` does. That must be kept.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all zeros is a valid `sigaction` to be filled, and it lives across the call.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Returns whether our process group is not orphaned: one of its processes has a parent in the same
/// session but another group, such as a shell, which can continue it. The kernel does not stop an
/// orphaned group.
#[cfg(target_os = "linux")]
pub fn can_be_continued() -> bool {
    // SAFETY: takes and gives numbers, -1 for a process that is gone.
    let group = |pid| unsafe { libc::getpgid(pid) };
    // SAFETY: likewise.
    let session = |pid| unsafe { libc::getsid(pid) };
    let mut found = false;
    each_process(|pid| {
        if libc::pid_t::try_from(pid).is_ok_and(|pid| group(pid) == group(0)) {
            let parent = number_in(pid, b"/stat", parent_in);
            // A parent outside our PID namespace shows as 0, which `getpgid` takes for ourselves.
            let parent = libc::pid_t::try_from(parent).ok().filter(|parent| *parent > 0);
            found |= parent.is_some_and(|parent| group(parent) != group(0) && session(parent) == session(0));
        }
    });
    found
}

/// Raises a signal with its default action, and returns when this process continues. The kernel
/// does not stop a process of an orphaned group.
pub fn raise_default(signal: c_int) {
    // SAFETY: all zeros is a valid `sigaction`, whose handler is then SIG_DFL; both live across the
    // calls. The signal is for this thread alone, so it has come before the handler is put back.
    unsafe {
        let default: libc::sigaction = mem::zeroed();
        let mut handler: libc::sigaction = mem::zeroed();
        if libc::sigaction(signal, &raw const default, &raw mut handler) == 0 {
            libc::raise(signal);
            libc::sigaction(signal, &raw const handler, ptr::null_mut());
        }
    }
}
