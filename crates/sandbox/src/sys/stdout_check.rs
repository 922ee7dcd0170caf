//! Checks whether stdout was closed when the program was started.
//!
//! Before `main`, Rust opens `/dev/null` in the place of a standard descriptor that is closed, and
//! everything written there seems to arrive. So the check runs earlier, from `.init_array`.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section is a list of functions that are called once, in one thread, before `main`.
// This one takes no arguments, calls nothing that needs Rust's runtime, and does not unwind.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static CHECK: extern "C" fn() = check;

extern "C" fn check() {
    // SAFETY: asks for the flags of a descriptor by its number; there is no pointer, and any number
    // may be asked about.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Returns whether the program was started without stdout, so that nothing written there arrives.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
