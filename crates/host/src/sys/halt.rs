//! Signals as whoever started us and the kernel want them: ignored, and stopping at a terminal's wish, as by Ctrl-Z.

use std::{ffi::c_int, mem, ptr};

#[cfg(target_os = "linux")]
use super::init::{each_process, number_in, parent_in};

/// Whether whoever started us wants this signal to have no effect. Such a wish is to be left alone.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all zeros is a valid `sigaction` to be filled, and it lives across the call.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Whether the kernel would stop us at a terminal's wish: if one of our group has a parent outside it, in the same
/// session, who can continue it as a shell does.
#[cfg(target_os = "linux")]
pub(crate) fn can_be_continued() -> bool {
    // SAFETY: takes and gives numbers, -1 for a process that is gone.
    let group = |pid| unsafe { libc::getpgid(pid) };
    // SAFETY: likewise.
    let session = |pid| unsafe { libc::getsid(pid) };
    let mut found = false;
    each_process(|pid| {
        if libc::pid_t::try_from(pid).is_ok_and(|pid| group(pid) == group(0)) {
            let parent = number_in(pid, b"/stat", parent_in);
            // Where it is out of sight the kernel says 0, which would be ourselves.
            let parent = libc::pid_t::try_from(parent).ok().filter(|parent| *parent > 0);
            found |= parent.is_some_and(|parent| group(parent) != group(0) && session(parent) == session(0));
        }
    });
    found
}

/// Does what this signal does without a handler, and returns when this process goes on. That is left to the kernel: it does
/// not stop a process that nobody could continue, as one without a shell with job control.
pub(crate) fn act_by_default(signal: c_int) {
    // SAFETY: all zeros is a valid `sigaction`, whose handler is then SIG_DFL; both live across the calls. The signal is
    // for this thread alone, so it has come before the handler is put back.
    unsafe {
        let default: libc::sigaction = mem::zeroed();
        let mut handler: libc::sigaction = mem::zeroed();
        if libc::sigaction(signal, &raw const default, &raw mut handler) == 0 {
            libc::raise(signal);
            libc::sigaction(signal, &raw const handler, ptr::null_mut());
        }
    }
}
