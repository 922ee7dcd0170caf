//! Landlock: restricts which files a process and its descendants may write or read, and TCP,
//! signals and abstract sockets.
//!
//! The rules for namespaces are added in the child, between fork and exec, so this file allocates
//! nothing. Why it is not the `landlock` crate:
//! `docs/decisions/0037-landlock-and-mounts-by-system-call.md`.

use std::{
    ffi::{CStr, c_int, c_long},
    io, mem,
    os::fd::{FromRawFd, OwnedFd, RawFd},
    ptr,
};

use linux_raw_sys::landlock::{
    LANDLOCK_ACCESS_FS_EXECUTE, LANDLOCK_ACCESS_FS_IOCTL_DEV, LANDLOCK_ACCESS_FS_MAKE_BLOCK,
    LANDLOCK_ACCESS_FS_MAKE_CHAR, LANDLOCK_ACCESS_FS_MAKE_DIR, LANDLOCK_ACCESS_FS_MAKE_FIFO,
    LANDLOCK_ACCESS_FS_MAKE_REG, LANDLOCK_ACCESS_FS_MAKE_SOCK, LANDLOCK_ACCESS_FS_MAKE_SYM,
    LANDLOCK_ACCESS_FS_READ_FILE, LANDLOCK_ACCESS_FS_REFER, LANDLOCK_ACCESS_FS_REMOVE_DIR,
    LANDLOCK_ACCESS_FS_REMOVE_FILE, LANDLOCK_ACCESS_FS_TRUNCATE, LANDLOCK_ACCESS_FS_WRITE_FILE,
    LANDLOCK_ACCESS_NET_BIND_TCP, LANDLOCK_ACCESS_NET_CONNECT_TCP, LANDLOCK_CREATE_RULESET_VERSION,
    LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL, landlock_path_beneath_attr,
    landlock_rule_type::LANDLOCK_RULE_PATH_BENEATH, landlock_ruleset_attr,
};

use crate::namespace_plan::WritablePath;

/// Creating a file of any kind.
const LANDLOCK_ACCESS_FS_MAKE_ALL: u32 = LANDLOCK_ACCESS_FS_MAKE_CHAR
    | LANDLOCK_ACCESS_FS_MAKE_DIR
    | LANDLOCK_ACCESS_FS_MAKE_REG
    | LANDLOCK_ACCESS_FS_MAKE_SOCK
    | LANDLOCK_ACCESS_FS_MAKE_FIFO
    | LANDLOCK_ACCESS_FS_MAKE_BLOCK
    | LANDLOCK_ACCESS_FS_MAKE_SYM;

/// The rights that a rule for a regular file may have; the kernel refuses others with `EINVAL`.
const FILE_RIGHTS: u32 = LANDLOCK_ACCESS_FS_WRITE_FILE
    | LANDLOCK_ACCESS_FS_READ_FILE
    | LANDLOCK_ACCESS_FS_EXECUTE
    | LANDLOCK_ACCESS_FS_TRUNCATE
    | LANDLOCK_ACCESS_FS_IOCTL_DEV;

/// The rights that a ruleset handles: denied unless a rule allows them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandledAccess {
    fs: u32,
    net: u32,
    scoped: u32,
}

impl HandledAccess {
    /// Handles every way to change files that this ABI version knows, and the scopes.
    pub(crate) fn writing(abi: u32) -> Self {
        let since = |needed, rights| if abi >= needed { rights } else { 0 };
        Self {
            fs: LANDLOCK_ACCESS_FS_WRITE_FILE
                | LANDLOCK_ACCESS_FS_REMOVE_DIR
                | LANDLOCK_ACCESS_FS_REMOVE_FILE
                | LANDLOCK_ACCESS_FS_MAKE_ALL
                | since(2, LANDLOCK_ACCESS_FS_REFER)
                | since(3, LANDLOCK_ACCESS_FS_TRUNCATE)
                | since(5, LANDLOCK_ACCESS_FS_IOCTL_DEV),
            net: 0,
            scoped: since(6, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL),
        }
    }

    /// Handles reading files as well.
    pub(crate) fn and_reading(self) -> Self {
        Self { fs: self.fs | LANDLOCK_ACCESS_FS_READ_FILE, ..self }
    }

    /// Handles TCP as well, where this ABI version can.
    pub(crate) fn and_tcp(self, abi: u32) -> Self {
        let tcp = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;
        Self { net: if abi >= 4 { tcp } else { 0 }, ..self }
    }
}

/// Returns the Landlock ABI version of this kernel; 0 if it has none.
pub(crate) fn abi_version() -> u32 {
    // SAFETY: with this flag the kernel takes no attributes and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<landlock_ruleset_attr>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// Creates a ruleset without rules. The caller closes the descriptor.
pub(crate) fn create_ruleset(handled: HandledAccess) -> Result<RawFd, c_int> {
    let attributes = landlock_ruleset_attr {
        handled_access_fs: handled.fs.into(),
        handled_access_net: handled.net.into(),
        scoped: handled.scoped.into(),
    };
    let size = mem::size_of::<landlock_ruleset_attr>();
    // An older kernel takes a longer structure as long as what it does not know is zero.
    // SAFETY: the pointer and the size are those of a local that lives across the call.
    let ruleset = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0) };
    check(ruleset).and_then(|ruleset| RawFd::try_from(ruleset).map_err(|_| libc::EBADF))
}

/// Takes ownership of a ruleset that was just created.
pub(crate) fn own(ruleset: RawFd) -> OwnedFd {
    // SAFETY: `create_ruleset` made the descriptor for the caller, who gives it up.
    unsafe { OwnedFd::from_raw_fd(ruleset) }
}

/// Adds a rule that allows writing below a path, and reading where reading is handled.
pub(crate) fn allow_writing(
    ruleset: RawFd,
    handled: HandledAccess,
    place: WritablePath<&CStr>,
) -> Result<(), c_int> {
    let rights = if place.is_directory { handled.fs } else { handled.fs & FILE_RIGHTS };
    add_rule(ruleset, rights, place.path)
}

/// Adds a rule that allows reading below a path.
pub(crate) fn allow_reading(ruleset: RawFd, path: &CStr) -> Result<(), c_int> {
    add_rule(ruleset, LANDLOCK_ACCESS_FS_READ_FILE, path)
}

fn add_rule(ruleset: RawFd, rights: u32, path: &CStr) -> Result<(), c_int> {
    // SAFETY: `path` is a C string.
    let parent_fd = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    check(c_long::from(parent_fd))?;
    let rule = landlock_path_beneath_attr { allowed_access: rights.into(), parent_fd };
    let kind = LANDLOCK_RULE_PATH_BENEATH as c_int;
    // SAFETY: the rule is a local that lives across the call; the descriptor was opened just now
    // and is ours to close.
    let added = unsafe {
        let added = check(libc::syscall(libc::SYS_landlock_add_rule, ruleset, kind, &raw const rule, 0));
        libc::close(parent_fd);
        added
    };
    added.map(drop)
}

/// Enforces a ruleset on this thread and on everything it executes or starts.
pub(crate) fn restrict_self(ruleset: RawFd) -> Result<(), c_int> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) }).map(drop)
}

fn check(result: c_long) -> Result<c_long, c_int> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// Returns the `errno` of the last call.
pub(super) fn last_errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
