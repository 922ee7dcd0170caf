//! Landlock: which files a process and all it starts may still write, whatever else they may do.

use std::{
    ffi::{CStr, c_int, c_long},
    io, mem,
    os::fd::{FromRawFd, OwnedFd, RawFd},
    ptr,
};

use crate::blueprint::Writable;

/// Rights over files, as the kernel numbers them, with the version that brought each of the later ones.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const REMOVE_DIRECTORY: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_ANYTHING: u64 = 0b111_1111 << 6;
const REFER: u64 = 1 << 13; // 2: linking and renaming across directories
const TRUNCATE: u64 = 1 << 14; // 3
const DEVICE_CONTROL: u64 = 1 << 15; // 5

/// Binding and connecting by TCP; version 4.
const TCP: u64 = 0b11;

/// Abstract sockets and signals; version 6.
const SCOPES: u64 = 0b11;

#[repr(C)]
struct Attributes {
    files: u64,
    network: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct Beneath {
    rights: u64,
    directory: RawFd,
}

/// What a set of rules is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handled {
    files: u64,
    network: u64,
    scopes: u64,
}

impl Handled {
    /// Everything that changes files, as far as this version of Landlock knows it, and what reaches beyond.
    pub(crate) fn writing(version: u32) -> Self {
        let since = |needed, rights| if version >= needed { rights } else { 0 };
        Self {
            files: WRITE_FILE
                | REMOVE_DIRECTORY
                | REMOVE_FILE
                | MAKE_ANYTHING
                | since(2, REFER)
                | since(3, TRUNCATE)
                | since(5, DEVICE_CONTROL),
            network: 0,
            scopes: since(6, SCOPES),
        }
    }

    /// Reading as well, and TCP.
    pub(crate) fn and_reading(self) -> Self {
        Self { files: self.files | READ_FILE, ..self }
    }

    /// No TCP either, where Landlock knows about it.
    pub(crate) fn and_tcp(self, version: u32) -> Self {
        Self { network: if version >= 4 { TCP } else { 0 }, ..self }
    }
}

/// The version of Landlock this kernel has; 0 if none.
pub(crate) fn version() -> u32 {
    const VERSION: c_int = 1;
    // SAFETY: with this flag the kernel takes no attributes and answers with a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<Attributes>(), 0_usize, VERSION)
    };
    u32::try_from(version).unwrap_or(0)
}

/// Makes a set of rules without any. The descriptor is the caller's to close.
pub(crate) fn begin(handled: Handled) -> Result<RawFd, c_int> {
    let attributes = Attributes { files: handled.files, network: handled.network, scopes: handled.scopes };
    // An older kernel takes a longer structure as long as what it does not know is zero.
    // SAFETY: the pointer and the size are those of a local that lives across the call.
    let set = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            mem::size_of::<Attributes>(),
            0,
        )
    };
    check(set).and_then(|set| RawFd::try_from(set).map_err(|_| libc::EBADF))
}

/// Takes charge of a set of rules made just now.
pub(crate) fn own(set: RawFd) -> OwnedFd {
    // SAFETY: `begin` made the descriptor for the caller, who gives it up.
    unsafe { OwnedFd::from_raw_fd(set) }
}

/// Lets a place be written, and read where reading is ruled.
pub(crate) fn allow_writing(set: RawFd, handled: Handled, place: Writable<&CStr>) -> Result<(), c_int> {
    let of_files = WRITE_FILE | READ_FILE | EXECUTE | TRUNCATE | DEVICE_CONTROL;
    let rights = if place.is_directory { handled.files } else { handled.files & of_files };
    allow(set, rights, place.path)
}

/// Lets a place be read.
pub(crate) fn allow_reading(set: RawFd, path: &CStr) -> Result<(), c_int> {
    allow(set, READ_FILE, path)
}

fn allow(set: RawFd, rights: u64, path: &CStr) -> Result<(), c_int> {
    const BENEATH: c_int = 1;
    // SAFETY: `path` is a C string.
    let directory = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    check(c_long::from(directory))?;
    let rule = Beneath { rights, directory };
    // SAFETY: the rule is a local that lives across the call; the descriptor was opened just now and is ours to close.
    let added = unsafe {
        let added = libc::syscall(libc::SYS_landlock_add_rule, set, BENEATH, &raw const rule, 0);
        let added = check(added);
        libc::close(directory);
        added
    };
    added.map(drop)
}

/// Holds this thread, and whatever it becomes or starts, to a set of rules.
pub(crate) fn enforce(set: RawFd) -> Result<(), c_int> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, set, 0) }).map(drop)
}

fn check(result: c_long) -> Result<c_long, c_int> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// The error of the last call.
pub(super) fn last_errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
