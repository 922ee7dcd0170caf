//! What a child does to itself before it becomes the command: limits, privileges, Landlock, the filter.

use std::{
    ffi::{CStr, c_int, c_ulong},
    io,
    os::fd::RawFd,
    ptr,
};

use super::{
    arena::Arena,
    landlock::{self, Handled, last_errno},
};
use crate::{
    blueprint::Writable,
    seccomp::{Instruction, Sockets},
};

/// What the child is to be held to. The parent keeps what the slices point to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold<'a> {
    /// What a process goes into its cgroup by, if it has one.
    pub(crate) cgroup: Option<RawFd>,
    pub(crate) rlimits: &'a [(u32, u64)],
    pub(crate) files: Files<'a>,
    pub(crate) filter: Filter<'a>,
    pub(crate) canary: Canary<'a>,
}

/// What the child tries when it is held, and must fail at: then the walls really stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canary<'a> {
    /// A file the user could make and a held command must not.
    pub(crate) file: Option<&'a CStr>,
    /// How the network must be out of reach.
    pub(crate) network: Reach,
}

/// How far a held command must not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It may use the network.
    Granted,
    /// It can make no internet socket.
    NoSocket,
    /// It is in a network of its own: not in the one with this number.
    NotIn(u64),
}

/// How Landlock's rules come about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Files<'a> {
    /// Here, because some of the places are made here, too.
    Made(Handled, &'a [Writable<&'a CStr>]),
    /// Beforehand.
    Given(RawFd),
    /// Not at all: this kernel has no Landlock, and mounts hold the files.
    Mounts,
}

/// How the command comes by its filter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Filter<'a> {
    /// It gets one of its own, with a listener.
    Own(&'a [Instruction]),
    /// From the starter for these sockets, who is under it with all its children.
    Inherited(Sockets),
}

/// What could not be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Part {
    Limits = 0,
    Privileges = 1,
    Landlock = 2,
    Filter = 3,
    CanaryWrote = 4,
    CanaryReached = 5,
    Cgroup = 6,
}

impl Hold<'_> {
    /// The same where starters see it.
    pub(super) fn placed<'a>(&self, arena: &'a Arena) -> io::Result<Hold<'a>> {
        let files = match self.files {
            Files::Mounts => Files::Mounts,
            Files::Given(set) => Files::Given(set),
            Files::Made(handled, places) => {
                let moved = places.iter().map(|place| {
                    arena.text(place.path).map(|path| Writable { path, is_directory: place.is_directory })
                });
                Files::Made(handled, arena.try_list(moved)?)
            }
        };
        let filter = match self.filter {
            Filter::Own(filter) => Filter::Own(arena.list(filter.iter().copied())?),
            Filter::Inherited(sockets) => Filter::Inherited(sockets),
        };
        let file = self.canary.file.map(|file| arena.text(file)).transpose()?;
        Ok(Hold {
            cgroup: self.cgroup,
            rlimits: arena.list(self.rlimits.iter().copied())?,
            files,
            filter,
            canary: Canary { file, network: self.canary.network },
        })
    }
}

impl Part {
    /// A part by its number, in words.
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

/// Applies everything; gives the listener of the filter, or -1.
pub(super) fn apply(hold: &Hold<'_>) -> Result<RawFd, (Part, c_int)> {
    hold.cgroup.map_or(Ok(()), enter).map_err(|errno| (Part::Cgroup, errno))?;
    limit(hold.rlimits).map_err(|errno| (Part::Limits, errno))?;
    give_up_privileges().map_err(|errno| (Part::Privileges, errno))?;
    restrict_files(hold.files).map_err(|errno| (Part::Landlock, errno))?;
    let listener = match hold.filter {
        Filter::Own(instructions) => {
            filter_with_listener(instructions).map_err(|errno| (Part::Filter, errno))?
        }
        Filter::Inherited(_) => -1,
    };
    try_the_walls(hold.canary)?;
    Ok(listener)
}

/// Trusts no layer above: does what must not work, and takes it as a failure if it does.
fn try_the_walls(canary: Canary<'_>) -> Result<(), (Part, c_int)> {
    if let Some(file) = canary.file {
        // SAFETY: a C string; the descriptor, if there is one, is of no use to anybody.
        unsafe {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            if libc::open(file.as_ptr(), flags, 0o600) >= 0 {
                libc::unlink(file.as_ptr());
                return Err((Part::CanaryWrote, libc::EPERM));
            }
        }
    }
    // SAFETY: numbers, a constant C string, and a local that lives across the call.
    let reached = unsafe {
        match canary.network {
            Reach::Granted => false,
            Reach::NoSocket => libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) >= 0,
            Reach::NotIn(network) => {
                let mut found: libc::stat = std::mem::zeroed();
                libc::stat(c"/proc/self/ns/net".as_ptr(), &raw mut found) < 0 || found.st_ino == network
            }
        }
    };
    if reached { Err((Part::CanaryReached, libc::EPERM)) } else { Ok(()) }
}

/// Goes into a cgroup: everyone this process starts will be there, too.
fn enter(cgroup: RawFd) -> Result<(), c_int> {
    // SAFETY: a constant byte.
    if unsafe { libc::write(cgroup, c"0".as_ptr().cast(), 1) } == 1 { Ok(()) } else { Err(last_errno()) }
}

fn limit(limits: &[(u32, u64)]) -> Result<(), c_int> {
    for (what, most) in limits {
        // SAFETY: all zeros is a valid value; both structures are locals that live across the calls.
        let set = unsafe {
            let mut limit: libc::rlimit = std::mem::zeroed();
            libc::getrlimit(*what, &raw mut limit);
            let most = (*most).min(limit.rlim_max);
            // At the first of the two a process gets a signal that says what for; at the second it is killed.
            let last =
                if *what == libc::RLIMIT_CPU { most.saturating_add(1).min(limit.rlim_max) } else { most };
            // Of open files only the ceiling is lowered: programs that use `select` fail with more than they ask for.
            let soft = if *what == libc::RLIMIT_NOFILE { most.min(limit.rlim_cur) } else { most };
            let limit = libc::rlimit { rlim_cur: soft, rlim_max: last };
            libc::setrlimit(*what, &raw const limit)
        };
        if set < 0 {
            return Err(last_errno());
        }
    }
    Ok(())
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// Gives up what no child is to get by becoming another program. Those who have no right to have nothing to lose.
pub(super) fn bound_privileges() {
    const LAST_CAPABILITY: c_ulong = 63;
    // The first that fails does not exist, or there is no right to; what counts is checked in the child.
    // SAFETY: takes numbers only.
    (0..=LAST_CAPABILITY)
        .all(|capability| unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) == 0 });
}

/// Leaves the user's keys behind, for an empty ring that only the children of this process share.
pub(super) fn leave_keys() {
    const JOIN_SESSION_KEYRING: c_int = 1;
    // Without keyrings in the kernel there is nothing to leave behind.
    // SAFETY: a number and a null pointer.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, ptr::null::<u8>()) };
}

/// No capability, no way to one, and no core dump that tells more than the command knows.
fn give_up_privileges() -> Result<(), c_int> {
    /// Root is a user like any other, and cannot change that: no-root and no-setuid-fixup, each locked.
    const NO_ROOT: c_ulong = 0b1111;
    // SAFETY: numbers, null pointers, and locals that live across the calls.
    unsafe {
        let powerful = libc::geteuid() == 0 || has_capabilities();
        if powerful && libc::prctl(libc::PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0) < 0 && libc::geteuid() == 0 {
            return Err(last_errno());
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        let header = CapabilityHeader { version: 0x2008_0522, pid: 0 };
        let none = [0_u32; 6];
        if libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) < 0 {
            return Err(last_errno());
        }
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 {
            return Err(last_errno());
        }
    }
    if has_capabilities() { Err(libc::EPERM) } else { Ok(()) }
}

/// Whether this thread may do anything an ordinary user may not.
fn has_capabilities() -> bool {
    let header = CapabilityHeader { version: 0x2008_0522, pid: 0 };
    let mut sets = [0_u32; 6];
    // SAFETY: locals of the sizes this version has, which live across the call.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) };
    got < 0 || sets.iter().any(|set| *set != 0)
}

fn restrict_files(files: Files<'_>) -> Result<(), c_int> {
    match files {
        Files::Mounts => Ok(()),
        Files::Given(set) => landlock::enforce(set),
        Files::Made(handled, places) => {
            let set = landlock::begin(handled)?;
            for place in places {
                landlock::allow_writing(set, handled, *place)?;
            }
            landlock::enforce(set)
        }
    }
}

/// Installs a filter with a descriptor on which the kernel puts calls before us. Once we have received one, only a
/// fatal signal interrupts the caller (Linux 5.19): otherwise a handler would have the caller repeat what we have
/// already done for it.
fn filter_with_listener(instructions: &[Instruction]) -> Result<RawFd, c_int> {
    const WITH_LISTENER: c_ulong = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    match filter(instructions, WITH_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(libc::EINVAL) => filter(instructions, WITH_LISTENER),
        result => result,
    }
}

fn filter(instructions: &[Instruction], flags: c_ulong) -> Result<RawFd, c_int> {
    let len = u16::try_from(instructions.len()).map_err(|_| libc::E2BIG)?;
    let program = libc::sock_fprog { len, filter: instructions.as_ptr().cast_mut() };
    // SAFETY: the program is a local that lives across the call, and its pointer and length are a slice's, which the
    // kernel only reads.
    let set =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    match RawFd::try_from(set) {
        Ok(listener @ 0..) => Ok(listener),
        _ => Err(last_errno()),
    }
}

/// Puts this process and all its children under a filter.
pub(super) fn filter_all(instructions: &[Instruction]) -> Result<(), c_int> {
    // SAFETY: takes numbers only.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } < 0 {
        return Err(last_errno());
    }
    filter(instructions, 0).map(drop)
}
