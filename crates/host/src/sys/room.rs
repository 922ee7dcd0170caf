//! Room for descriptors, made while that costs nothing.
//!
//! The kernel's table of a process's descriptors grows in steps, for the first time at 64. Once threads share it, whoever
//! makes it grow waits until every processor has taken notice, which takes 5 ms and more, and so does whoever opens
//! anything meanwhile: of 16 commands in one answer, none began for so long.

use std::ffi::c_int;

/// More than many commands at once take.
const DESCRIPTORS: c_int = 512;

/// Has the table grow now. To be called before the program has a second thread.
pub fn make_room_for_descriptors() {
    // SAFETY: numbers only; the copy is nobody else's, and is closed at once. Where there may be no such descriptor, the
    // table grows later.
    unsafe {
        let last = libc::fcntl(libc::STDIN_FILENO, libc::F_DUPFD_CLOEXEC, DESCRIPTORS - 1);
        if last >= 0 {
            libc::close(last);
        }
    }
}
