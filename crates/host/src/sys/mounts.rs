//! Carries out the steps of a blueprint: a view of the files that holds a command. Runs in the child.

use std::{
    ffi::{CStr, c_int, c_long},
    mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use super::landlock::last_errno;
use crate::blueprint::{HELD_LIMIT, Step};

const READ_ONLY: u64 = 0x1;
const NO_SETUID: u64 = 0x2;
const NO_DEVICES: u64 = 0x4;
const NO_PROGRAMS: u64 = 0x8;

const RECURSIVE: c_int = 0x8000;
const EMPTY_PATH: c_int = 0x1000;
const CLONE_TREE: c_int = 1;
const FROM_EMPTY_PATH: c_int = 0x4;
const TO_EMPTY_PATH: c_int = 0x40;

#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Walks the steps. An error is the number of the step and what the system said.
pub(super) fn build(steps: &[Step<&CStr>]) -> Result<(), (usize, c_int)> {
    let mut held = [const { None }; HELD_LIMIT];
    // SAFETY: constant strings, no data.
    let private = unsafe {
        libc::mount(
            c"none".as_ptr(),
            c"/".as_ptr(),
            ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            ptr::null(),
        )
    };
    check(c_long::from(private)).map_err(|errno| (0, errno))?;
    for (number, step) in steps.iter().enumerate() {
        carry_out(step, &mut held).map_err(|errno| (number, errno))?;
    }
    Ok(())
}

/// What is put on a place.
#[derive(Clone, Copy)]
pub(super) enum Cover<'a> {
    /// What is there: then it can be neither renamed nor removed.
    Itself,
    /// The same, and nothing in it can change.
    ItselfReadOnly,
    /// What is at a path.
    ReadOnly(&'a CStr),
}

/// Covers a place, whatever has become of its name. It is never there without being as it must be.
pub(super) fn cover(place: &OwnedFd, with: Cover<'_>) -> Result<(), c_int> {
    let tree = match with {
        Cover::Itself | Cover::ItselfReadOnly => copy(place.as_raw_fd(), c"", EMPTY_PATH)?,
        Cover::ReadOnly(path) => copy(libc::AT_FDCWD, path, 0)?,
    };
    if !matches!(with, Cover::Itself) {
        set(tree.as_raw_fd(), c"", EMPTY_PATH | RECURSIVE, READ_ONLY)?;
    }
    attach(&tree, place.as_raw_fd(), c"", TO_EMPTY_PATH)
}

fn carry_out(step: &Step<&CStr>, held: &mut [Option<OwnedFd>; HELD_LIMIT]) -> Result<(), c_int> {
    match step {
        Step::Hold { path, slot } => hold(path, held.get_mut(*slot).ok_or(libc::EINVAL)?),
        Step::AllReadOnly => set(libc::AT_FDCWD, c"/", RECURSIVE, READ_ONLY | NO_SETUID | NO_DEVICES),
        Step::Place { slot, path } => {
            let tree = held.get_mut(*slot).and_then(Option::take).ok_or(libc::EINVAL)?;
            attach(&tree, libc::AT_FDCWD, path, 0)
        }
        Step::Memory { path, options } => {
            mount(c"tmpfs", path, c"tmpfs", libc::MS_NOSUID | libc::MS_NODEV, Some(options))
        }
        Step::Terminals { path } => {
            let options = c"newinstance,ptmxmode=0666,mode=620";
            mount(c"devpts", path, c"devpts", libc::MS_NOSUID | libc::MS_NOEXEC, Some(options))
        }
        Step::Processes { path } => {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            mount(c"proc", path, c"proc", flags, None)?;
            set(libc::AT_FDCWD, path, 0, READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS)
        }
        Step::Directory { path, mode } => {
            // SAFETY: `path` is a C string.
            existing(unsafe { libc::mkdir(path.as_ptr(), *mode) })
        }
        Step::File { path, mode } => {
            // SAFETY: `path` is a C string.
            existing(unsafe { libc::mknod(path.as_ptr(), libc::S_IFREG | *mode, 0) })
        }
        Step::Link { path, target } => {
            // SAFETY: both are C strings.
            existing(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) })
        }
        Step::Pin { path } => bind(path, path),
        Step::Fix { path } => fix(path),
        Step::Cover { path, with } => {
            bind(with, path)?;
            set(libc::AT_FDCWD, path, 0, READ_ONLY)
        }
        Step::Seal { path } => set(libc::AT_FDCWD, path, 0, READ_ONLY),
    }
}

/// Somebody outside who replaces the file between two calls takes the mount away; the next file is tried, so many times.
fn fix(path: &CStr) -> Result<(), c_int> {
    const TRIES: usize = 64;
    let once = || bind(path, path).and_then(|()| set(libc::AT_FDCWD, path, RECURSIVE, READ_ONLY));
    let was_replaced = |done: &Result<(), c_int>| matches!(done, Err(libc::ENOENT | libc::EINVAL));
    let mut done = once();
    for _ in 1..TRIES {
        if !was_replaced(&done) {
            break;
        }
        done = once();
    }
    done
}

/// Devices stay devices; everything else loses them.
fn hold(path: &CStr, slot: &mut Option<OwnedFd>) -> Result<(), c_int> {
    let tree = slot.insert(copy(libc::AT_FDCWD, path, 0)?);
    let no_devices = if path.to_bytes().starts_with(b"/dev/") { 0 } else { NO_DEVICES };
    set(tree.as_raw_fd(), c"", EMPTY_PATH | RECURSIVE, NO_SETUID | no_devices)
}

/// A tree of mounts as it is now, which is nowhere yet.
fn copy(at: RawFd, path: &CStr, flags: c_int) -> Result<OwnedFd, c_int> {
    let flags = CLONE_TREE | libc::O_CLOEXEC | RECURSIVE | flags;
    // SAFETY: `path` is a C string, and the descriptor is new.
    unsafe {
        let tree = check(libc::syscall(libc::SYS_open_tree, at, path.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(RawFd::try_from(tree).map_err(|_| libc::EBADF)?))
    }
}

fn attach(tree: &OwnedFd, at: RawFd, path: &CStr, flags: c_int) -> Result<(), c_int> {
    let (tree, empty, flags) = (tree.as_raw_fd(), c"".as_ptr(), FROM_EMPTY_PATH | flags);
    // SAFETY: both paths are C strings, and the descriptors are open.
    check(unsafe { libc::syscall(libc::SYS_move_mount, tree, empty, at, path.as_ptr(), flags) }).map(drop)
}

fn set(at: RawFd, path: &CStr, flags: c_int, attributes: u64) -> Result<(), c_int> {
    let attributes = Attributes { set: attributes, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the attributes are a local of the given size that lives across the call; `path` is a C string.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags,
            &raw const attributes,
            mem::size_of::<Attributes>(),
        )
    })
    .map(drop)
}

fn bind(from: &CStr, path: &CStr) -> Result<(), c_int> {
    mount(from, path, c"none", libc::MS_BIND | libc::MS_REC, None)
}

fn mount(
    from: &CStr,
    path: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> Result<(), c_int> {
    let options = options.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: all are C strings, but for options, which may be null.
    let mounted = unsafe { libc::mount(from.as_ptr(), path.as_ptr(), kind.as_ptr(), flags, options.cast()) };
    check(c_long::from(mounted)).map(drop)
}

/// What is already there is fine.
fn existing(result: c_int) -> Result<(), c_int> {
    match check(c_long::from(result)) {
        Ok(_) | Err(libc::EEXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn check(result: c_long) -> Result<c_long, c_int> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}
