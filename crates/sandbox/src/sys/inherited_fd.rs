//! Descriptors that the parent process has passed to us by number.

use std::{
    fs::File,
    io,
    os::fd::{FromRawFd, RawFd},
};

/// Duplicates an inherited descriptor. The duplicate shares its file offset; opening `/dev/fd/N`
/// again would write from the start, and fails for a socket.
pub fn inherited_descriptor(number: RawFd) -> io::Result<File> {
    // SAFETY: there is no pointer, and any number may be asked for; one that is not open is an
    // error.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) };
    if copy == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just opened it, so it has no other owner.
    Ok(unsafe { File::from_raw_fd(copy) })
}
