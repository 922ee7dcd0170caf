//! Pseudoterminals for sessions.

use std::{
    ffi::c_int,
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

/// Rows and columns, as in `struct winsize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize {
    /// The height.
    pub rows: u16,
    /// The width.
    pub columns: u16,
}

/// Both ends of a new pseudoterminal.
#[derive(Debug)]
pub struct PtyPair {
    /// The master, for this process; O_NONBLOCK.
    pub ours: OwnedFd,
    /// The slave, for the command.
    pub theirs: OwnedFd,
}

impl PtyPair {
    /// Opens a pseudoterminal of this size.
    pub fn open(size: WindowSize) -> io::Result<Self> {
        let terminal = open()?;
        set_size(&terminal.ours, size)?;
        Ok(terminal)
    }
}

/// Sets the window size by `TIOCSWINSZ`; the kernel sends SIGWINCH to the foreground group.
pub fn set_size(ours: &OwnedFd, size: WindowSize) -> io::Result<()> {
    let size = libc::winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is open, and the structure is a local that lives across the call.
    let set = unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCSWINSZ as _, &raw const size) };
    checked(set).map(|_| ())
}

/// Returns the window size; `None` if this is no terminal, or one without a size, such as a serial
/// line.
pub fn size(terminal: &impl AsFd) -> Option<WindowSize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    let descriptor = terminal.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the structure is a local that lives across the call.
    checked(unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ as _, &raw mut size) }).ok()?;
    Some(WindowSize { rows: size.ws_row, columns: size.ws_col })
        .filter(|size| size.rows > 0 && size.columns > 0)
}

/// Opens both ends with O_CLOEXEC from the start, so that no other child inherits them, and with
/// O_NOCTTY.
#[cfg(target_os = "linux")]
fn open() -> io::Result<PtyPair> {
    use std::{fs::File, os::unix::fs::OpenOptionsExt};

    let ours = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
        .open("/dev/ptmx")?;
    let unlocked: c_int = 0;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the descriptor is open; the first call reads a local that lives across it, the second
    // takes a number.
    let theirs = unsafe {
        checked(libc::ioctl(ours.as_raw_fd(), libc::TIOCSPTLCK as libc::Ioctl, &raw const unlocked))?;
        checked(libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER as libc::Ioctl, flags))?
    };
    // SAFETY: the kernel has just made this descriptor for us, and it has no other owner.
    let theirs = unsafe { OwnedFd::from_raw_fd(theirs) };
    Ok(PtyPair { ours: ours.into(), theirs })
}

#[cfg(not(target_os = "linux"))]
fn open() -> io::Result<PtyPair> {
    use std::ptr;

    let (mut ours, mut theirs): (c_int, c_int) = (-1, -1);
    // SAFETY: both numbers are locals that live across the call; the other pointers may be null.
    let opened = unsafe {
        libc::openpty(&raw mut ours, &raw mut theirs, ptr::null_mut(), ptr::null_mut(), ptr::null_mut())
    };
    checked(opened)?;
    // SAFETY: the system has just made these descriptors for us; the calls on them take numbers.
    unsafe {
        let terminal = PtyPair { ours: OwnedFd::from_raw_fd(ours), theirs: OwnedFd::from_raw_fd(theirs) };
        checked(libc::fcntl(ours, libc::F_SETFL, libc::O_NONBLOCK))?;
        checked(libc::fcntl(ours, libc::F_SETFD, libc::FD_CLOEXEC))?;
        checked(libc::fcntl(theirs, libc::F_SETFD, libc::FD_CLOEXEC))?;
        Ok(terminal)
    }
}

/// Returns the foreground process group of a terminal.
#[cfg(target_os = "linux")]
pub fn foreground_group(ours: &OwnedFd) -> Option<u32> {
    // SAFETY: takes and gives numbers.
    let group = unsafe { libc::tcgetpgrp(ours.as_raw_fd()) };
    u32::try_from(group).ok().filter(|group| *group > 0)
}

/// Returns the process group of this process.
#[cfg(target_os = "linux")]
pub fn own_group() -> u32 {
    // SAFETY: takes nothing and gives a number.
    unsafe { libc::getpgrp() }.cast_unsigned()
}

/// Turns -1 into the last OS error.
fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
