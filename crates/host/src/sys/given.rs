//! Descriptors that whoever started us has given us, by their numbers.

use std::{
    fs::File,
    io,
    os::fd::{FromRawFd, RawFd},
};

/// A copy of a descriptor. What is written there follows what others write to it, where a file opened anew would be
/// written from its start, and a socket could not be opened at all.
pub fn given_descriptor(number: RawFd) -> io::Result<File> {
    // SAFETY: there is no pointer, and any number may be asked for; one that is not open is an error.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) };
    if copy == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just opened it, so nobody else owns it.
    Ok(unsafe { File::from_raw_fd(copy) })
}
