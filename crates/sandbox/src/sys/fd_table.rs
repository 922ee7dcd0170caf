//! Grows the descriptor table while the process has one thread.
//!
//! The kernel's descriptor table grows in steps, first at 64. Once threads share it, growing waits
//! for an RCU grace period (5 ms and more), and so does every other `open`: 16 commands in one
//! answer all began 10 ms later.

use std::ffi::c_int;

/// More than many commands at once need.
const TABLE_SIZE: c_int = 512;

/// Grows the descriptor table. To be called before the program has a second thread.
pub fn grow_descriptor_table() {
    // SAFETY: numbers only; the duplicate has no other owner and is closed at once. If
    // RLIMIT_NOFILE is lower, the table grows later.
    unsafe {
        let last = libc::fcntl(libc::STDIN_FILENO, libc::F_DUPFD_CLOEXEC, TABLE_SIZE - 1);
        if last >= 0 {
            libc::close(last);
        }
    }
}
