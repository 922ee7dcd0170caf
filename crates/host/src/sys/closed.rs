//! Whether stdout was closed when the program began.
//!
//! Before `main`, Rust puts `/dev/null` in the place of a standard descriptor that is closed, and everything written there
//! seems to arrive. Whoever wants to know must look earlier.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section is a list of functions that are called once, in one thread, before `main`. This one takes no
// arguments, calls nothing that needs Rust's runtime, and does not unwind.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asks for the flags of a descriptor by its number; there is no pointer, and any number may be asked about.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether nothing that is written to stdout can arrive, because the program was started without one.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
