//! The restrictions that a child puts on itself before `execve`: cgroup, rlimits, capabilities,
//! Landlock, seccomp.
//!
//! Runs between fork and exec: no allocation, no locks.

use std::{
    ffi::{CStr, c_int, c_ulong},
    io, mem,
    os::fd::RawFd,
    ptr,
};

use libc::{
    KEYCTL_JOIN_SESSION_KEYRING, SECBIT_NO_SETUID_FIXUP, SECBIT_NO_SETUID_FIXUP_LOCKED, SECBIT_NOROOT,
    SECBIT_NOROOT_LOCKED, SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
    SECCOMP_SET_MODE_FILTER, sock_fprog,
};
use linux_raw_sys::general::{
    __user_cap_data_struct, __user_cap_header_struct, _LINUX_CAPABILITY_U32S_3, _LINUX_CAPABILITY_VERSION_3,
};

use super::{
    arena::SharedArena,
    landlock::{self, HandledAccess, last_errno},
};
use crate::{
    namespace_plan::WritablePath,
    seccomp::{AllowedSockets, Instruction},
};

/// The restrictions of a child. The parent keeps what the slices point to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChildRestrictions<'a> {
    /// An open `cgroup.procs`, if the child is to enter a cgroup.
    pub(crate) cgroup: Option<RawFd>,
    /// `RLIMIT_*` and its value.
    pub(crate) rlimits: &'a [(u32, u64)],
    pub(crate) files: LandlockRules<'a>,
    pub(crate) filter: SeccompFilter<'a>,
    pub(crate) canary: EscapeTest<'a>,
}

/// Two operations that the restricted child tries and must fail at; else it is not executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EscapeTest<'a> {
    /// A file that the user could create and a restricted command must not.
    pub(crate) file: Option<&'a CStr>,
    pub(crate) network: NetworkTest,
}

/// The test that the network is out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkTest {
    /// None: the network was granted.
    Granted,
    /// An `AF_INET` socket cannot be made.
    NoSocket,
    /// The network namespace is not the one with this inode number.
    NotIn(u64),
}

/// The Landlock ruleset of a child.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LandlockRules<'a> {
    /// Made in the child, because some of the paths are mounted there.
    Made(HandledAccess, &'a [WritablePath<&'a CStr>]),
    /// Made by the parent.
    Given(RawFd),
    /// None: this kernel has no Landlock, and read-only mounts protect the files.
    Mounts,
}

/// The seccomp filter of a child.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SeccompFilter<'a> {
    /// Installed in the child, with a listener.
    Own(&'a [Instruction]),
    /// Inherited from the zygote for these sockets.
    Inherited(AllowedSockets),
}

/// A step of [`apply`], for the error if it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RestrictionStep {
    Rlimits = 0,
    Privileges = 1,
    Landlock = 2,
    Seccomp = 3,
    FileTest = 4,
    NetworkTest = 5,
    Cgroup = 6,
}

impl ChildRestrictions<'_> {
    /// Copies the restrictions to the arena, where the zygote sees them.
    pub(super) fn copy_to<'a>(&self, arena: &'a SharedArena) -> io::Result<ChildRestrictions<'a>> {
        let files = match self.files {
            LandlockRules::Mounts => LandlockRules::Mounts,
            LandlockRules::Given(set) => LandlockRules::Given(set),
            LandlockRules::Made(handled, places) => {
                let moved = places.iter().map(|place| {
                    arena.text(place.path).map(|path| WritablePath { path, is_directory: place.is_directory })
                });
                LandlockRules::Made(handled, arena.try_list(moved)?)
            }
        };
        let filter = match self.filter {
            SeccompFilter::Own(filter) => SeccompFilter::Own(arena.list(filter.iter().copied())?),
            SeccompFilter::Inherited(sockets) => SeccompFilter::Inherited(sockets),
        };
        let file = self.canary.file.map(|file| arena.text(file)).transpose()?;
        Ok(ChildRestrictions {
            cgroup: self.cgroup,
            rlimits: arena.list(self.rlimits.iter().copied())?,
            files,
            filter,
            canary: EscapeTest { file, network: self.canary.network },
        })
    }
}

impl RestrictionStep {
    /// Describes a step by its number, for an error message.
    pub(super) fn describe(number: u16) -> &'static str {
        match number {
            0 => "setting limits",
            1 => "giving up privileges",
            2 => "Landlock",
            3 => "filtering system calls",
            4 => "the test that a forbidden file cannot be written",
            5 => "the test that the network cannot be reached",
            _ => "going into a cgroup",
        }
    }
}

/// Applies all restrictions. Returns the listener of the seccomp filter, or -1.
pub(super) fn apply(restrictions: &ChildRestrictions<'_>) -> Result<RawFd, (RestrictionStep, c_int)> {
    restrictions.cgroup.map_or(Ok(()), enter_cgroup).map_err(|errno| (RestrictionStep::Cgroup, errno))?;
    set_rlimits(restrictions.rlimits).map_err(|errno| (RestrictionStep::Rlimits, errno))?;
    drop_privileges().map_err(|errno| (RestrictionStep::Privileges, errno))?;
    enforce_landlock(restrictions.files).map_err(|errno| (RestrictionStep::Landlock, errno))?;
    let listener = match restrictions.filter {
        SeccompFilter::Own(instructions) => {
            filter_with_listener(instructions).map_err(|errno| (RestrictionStep::Seccomp, errno))?
        }
        SeccompFilter::Inherited(_) => -1,
    };
    test_escape(restrictions.canary)?;
    Ok(listener)
}

/// Tries what must fail, and fails if it succeeds: a check that trusts none of the layers above.
fn test_escape(test: EscapeTest<'_>) -> Result<(), (RestrictionStep, c_int)> {
    if let Some(file) = test.file {
        // SAFETY: a C string; the descriptor, if there is one, closes when this process ends with
        // the error.
        unsafe {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            if libc::open(file.as_ptr(), flags, 0o600) >= 0 {
                libc::unlink(file.as_ptr());
                return Err((RestrictionStep::FileTest, libc::EPERM));
            }
        }
    }
    // SAFETY: numbers, a constant C string, and a local that lives across the call.
    let reached = unsafe {
        match test.network {
            NetworkTest::Granted => false,
            NetworkTest::NoSocket => {
                libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) >= 0
            }
            NetworkTest::NotIn(network) => {
                let mut found: libc::stat = mem::zeroed();
                libc::stat(c"/proc/self/ns/net".as_ptr(), &raw mut found) < 0 || found.st_ino == network
            }
        }
    };
    if reached { Err((RestrictionStep::NetworkTest, libc::EPERM)) } else { Ok(()) }
}

/// Moves this process, and so all its children, into a cgroup.
fn enter_cgroup(cgroup: RawFd) -> Result<(), c_int> {
    // SAFETY: a constant byte.
    if unsafe { libc::write(cgroup, c"0".as_ptr().cast(), 1) } == 1 { Ok(()) } else { Err(last_errno()) }
}

fn set_rlimits(limits: &[(u32, u64)]) -> Result<(), c_int> {
    for (resource, limit) in limits {
        // SAFETY: all zeros is a valid value; both structures are locals that live across the
        // calls.
        let set = unsafe {
            let mut current: libc::rlimit = mem::zeroed();
            libc::getrlimit(*resource, &raw mut current);
            let soft = (*limit).min(current.rlim_max);
            // At the soft limit of CPU time a process gets SIGXCPU, which says why; at the hard
            // limit SIGKILL.
            let is_cpu = *resource == libc::RLIMIT_CPU;
            let hard = if is_cpu { soft.saturating_add(1).min(current.rlim_max) } else { soft };
            // Of open files only the ceiling is lowered: programs that use `select` fail with more
            // than they ask for.
            let is_files = *resource == libc::RLIMIT_NOFILE;
            let soft = if is_files { soft.min(current.rlim_cur) } else { soft };
            let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
            libc::setrlimit(*resource, &raw const limit)
        };
        if set < 0 {
            return Err(last_errno());
        }
    }
    Ok(())
}

/// This thread, in the 64-bit form of `capget` and `capset`.
const CAP_HEADER: __user_cap_header_struct =
    __user_cap_header_struct { version: _LINUX_CAPABILITY_VERSION_3, pid: 0 };

/// The low and the high 32 capabilities, all empty.
const NO_CAPABILITIES: [__user_cap_data_struct; _LINUX_CAPABILITY_U32S_3 as usize] =
    [__user_cap_data_struct { effective: 0, permitted: 0, inheritable: 0 };
        _LINUX_CAPABILITY_U32S_3 as usize];

/// Drops the capability bounding set, so that no child gains a capability by `execve`. Without
/// CAP_SETPCAP this does nothing: then there is nothing to lose, and [`drop_privileges`] checks the
/// result.
pub(super) fn drop_bounding_set() {
    /// Capability sets have 64 bits.
    const LAST_CAPABILITY: c_ulong = 63;
    // The first that fails does not exist in this kernel, or CAP_SETPCAP is missing.
    // SAFETY: takes numbers only.
    (0..=LAST_CAPABILITY)
        .all(|capability| unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) == 0 });
}

/// Replaces the user's session keyring by an empty one for this process and its children.
pub(super) fn join_new_keyring() {
    // A kernel without keyrings has nothing to hide.
    // SAFETY: a number and a null pointer.
    unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, ptr::null::<u8>()) };
}

/// Drops all capabilities and every way to regain one, and checks that.
fn drop_privileges() -> Result<(), c_int> {
    /// Root gets no capability by `exec` or by a change of user, and cannot change that.
    const SECBITS: c_int =
        SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED;
    // SAFETY: numbers, null pointers, and locals that live across the calls.
    unsafe {
        let secbits = c_ulong::from(SECBITS.cast_unsigned());
        let privileged = libc::geteuid() == 0 || has_capabilities();
        if privileged && libc::prctl(libc::PR_SET_SECUREBITS, secbits, 0, 0, 0) < 0 && libc::geteuid() == 0 {
            return Err(last_errno());
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        let (header, none) = (CAP_HEADER, NO_CAPABILITIES);
        if libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) < 0 {
            return Err(last_errno());
        }
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 {
            return Err(last_errno());
        }
    }
    if has_capabilities() { Err(libc::EPERM) } else { Ok(()) }
}

/// Returns whether this thread has any capability; an error counts as yes.
fn has_capabilities() -> bool {
    let mut header = CAP_HEADER;
    let mut sets = NO_CAPABILITIES;
    // SAFETY: the kernel may write its version into the header and fills as many sets as that
    // version has; both are locals that live across the call.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) };
    got < 0 || sets.iter().any(|set| set.effective | set.permitted | set.inheritable != 0)
}

fn enforce_landlock(files: LandlockRules<'_>) -> Result<(), c_int> {
    match files {
        LandlockRules::Mounts => Ok(()),
        LandlockRules::Given(set) => landlock::restrict_self(set),
        LandlockRules::Made(handled, places) => {
            let set = landlock::create_ruleset(handled)?;
            for place in places {
                landlock::allow_writing(set, handled, *place)?;
            }
            landlock::restrict_self(set)
        }
    }
}

/// Installs a filter with a descriptor on which PID 1 receives calls. Once it has received one,
/// only a fatal signal interrupts the caller (Linux 5.19): otherwise a handler would have the
/// caller repeat what was already done for it.
fn filter_with_listener(instructions: &[Instruction]) -> Result<RawFd, c_int> {
    let flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    match set_filter(instructions, flags) {
        Err(libc::EINVAL) => set_filter(instructions, SECCOMP_FILTER_FLAG_NEW_LISTENER),
        result => result,
    }
}

/// Installs a seccomp filter for this thread. Returns the listener with
/// `SECCOMP_FILTER_FLAG_NEW_LISTENER`, else 0.
fn set_filter(instructions: &[Instruction], flags: c_ulong) -> Result<RawFd, c_int> {
    const { assert!(mem::size_of::<Instruction>() == mem::size_of::<libc::sock_filter>()) };
    let len = u16::try_from(instructions.len()).map_err(|_| libc::E2BIG)?;
    let program = sock_fprog { len, filter: instructions.as_ptr().cast_mut().cast() };
    // SAFETY: the program is a local that lives across the call. Its pointer and length are a
    // slice's, whose elements are laid out as `sock_filter`; the kernel only reads them.
    let set = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    match RawFd::try_from(set) {
        Ok(listener @ 0..) => Ok(listener),
        _ => Err(last_errno()),
    }
}

/// Puts this process and all its children under a seccomp filter without a listener.
pub(super) fn filter_all(instructions: &[Instruction]) -> Result<(), c_int> {
    // SAFETY: takes numbers only.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } < 0 {
        return Err(last_errno());
    }
    set_filter(instructions, 0).map(drop)
}
