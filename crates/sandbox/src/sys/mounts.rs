//! Builds the mount namespace of a sandboxed command. Runs in the child: no allocation, no locks.
//!
//! Uses `open_tree`, `mount_setattr` and `move_mount` where a mount must have its flags before it
//! can be reached, and `mount` where a new file system is mounted.

use std::{
    ffi::{CStr, c_int, c_long, c_uint},
    mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use libc::{
    AT_EMPTY_PATH, AT_FDCWD, AT_RECURSIVE, AT_SYMLINK_NOFOLLOW, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC,
    MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY, MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH, MS_BIND,
    MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_REC, OPEN_TREE_CLOEXEC, OPEN_TREE_CLONE, mount_attr,
};

use super::landlock::last_errno;
use crate::namespace_plan::{MAX_HELD_TREES, MountStep};

/// Carries out the mount steps in order. An error is the index of the step and its `errno`.
pub(super) fn build(steps: &[MountStep<&CStr>]) -> Result<(), (usize, c_int)> {
    let mut held = [const { None }; MAX_HELD_TREES];
    // Nothing mounted here may propagate to the mount namespace of the host.
    // SAFETY: both paths are constant C strings; with these flags type and data may be null.
    let private = unsafe {
        libc::mount(c"none".as_ptr(), c"/".as_ptr(), ptr::null(), MS_REC | MS_PRIVATE, ptr::null())
    };
    check(c_long::from(private)).map_err(|errno| (0, errno))?;
    for (number, step) in steps.iter().enumerate() {
        carry_out(step, &mut held).map_err(|errno| (number, errno))?;
    }
    Ok(())
}

/// The mount that covers a path.
#[derive(Clone, Copy)]
pub(super) enum CoverMount<'a> {
    /// A bind mount of the path itself: a mount point can be neither renamed nor removed.
    Itself,
    /// The same, with `MOUNT_ATTR_RDONLY`.
    ItselfReadOnly,
    /// A read-only bind mount of another path.
    ReadOnly(&'a CStr),
}

/// Covers the file or directory that `target` refers to, by descriptor, so that a changed
/// name does not matter. The mount has its flags before it is attached.
pub(super) fn cover(target: &OwnedFd, mount: CoverMount<'_>) -> Result<(), c_int> {
    let tree = match mount {
        CoverMount::Itself | CoverMount::ItselfReadOnly => open_tree(target.as_raw_fd(), c"", AT_EMPTY_PATH)?,
        CoverMount::ReadOnly(path) => open_tree(AT_FDCWD, path, 0)?,
    };
    if !matches!(mount, CoverMount::Itself) {
        mount_setattr(tree.as_raw_fd(), c"", AT_EMPTY_PATH | AT_RECURSIVE, MOUNT_ATTR_RDONLY)?;
    }
    move_mount(&tree, target.as_raw_fd(), c"", MOVE_MOUNT_T_EMPTY_PATH)
}

fn carry_out(step: &MountStep<&CStr>, held: &mut [Option<OwnedFd>; MAX_HELD_TREES]) -> Result<(), c_int> {
    match step {
        MountStep::CloneTree { path, slot } => hold(path, held.get_mut(*slot).ok_or(libc::EINVAL)?),
        MountStep::CloneRoot { directory, path, slot } => {
            hold(path, held.get_mut(*slot).ok_or(libc::EINVAL)?)?;
            let tree = held.get(*slot).and_then(Option::as_ref).ok_or(libc::EINVAL)?;
            if is_same_file(tree.as_raw_fd(), *directory)? { Ok(()) } else { Err(libc::ESTALE) }
        }
        MountStep::AllReadOnly => {
            let attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
            mount_setattr(AT_FDCWD, c"/", AT_RECURSIVE, attributes)
        }
        MountStep::Attach { slot, path } => {
            let tree = held.get_mut(*slot).and_then(Option::take).ok_or(libc::EINVAL)?;
            move_mount(&tree, AT_FDCWD, path, 0)
        }
        MountStep::Tmpfs { path, options } => {
            mount(c"tmpfs", path, c"tmpfs", MS_NOSUID | MS_NODEV, Some(options))
        }
        MountStep::Devpts { path } => {
            let options = c"newinstance,ptmxmode=0666,mode=620";
            mount(c"devpts", path, c"devpts", MS_NOSUID | MS_NOEXEC, Some(options))
        }
        MountStep::Proc { path } => mount_proc(path),
        MountStep::Directory { path, mode } => {
            // SAFETY: `path` is a C string.
            existing(unsafe { libc::mkdir(path.as_ptr(), *mode) })
        }
        MountStep::File { path, mode } => {
            // SAFETY: `path` is a C string.
            existing(unsafe { libc::mknod(path.as_ptr(), libc::S_IFREG | *mode, 0) })
        }
        MountStep::TextFile { path, text } => write_file(path, text.to_bytes()),
        MountStep::Link { path, target } => {
            // SAFETY: both are C strings.
            existing(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) })
        }
        MountStep::MountLink { path, link } => {
            let tree = open_tree(AT_FDCWD, link, AT_SYMLINK_NOFOLLOW)?;
            move_mount(&tree, AT_FDCWD, path, 0)
        }
        MountStep::Pin { path } => bind_mount(path, path),
        MountStep::BindReadOnly { path } => protect(path),
        // The source is read-only by now, and so is a bind mount of it.
        MountStep::Hide { path, with } | MountStep::StandIn { path, with } => bind_mount(with, path),
        MountStep::SetReadOnly { path } => mount_setattr(AT_FDCWD, path, 0, MOUNT_ATTR_RDONLY),
        MountStep::Overlay { path, options } => {
            mount(c"overlay", path, c"overlay", MS_NOSUID | MS_NODEV, Some(options))
        }
        MountStep::Detach { path } => {
            // SAFETY: `path` is a C string.
            check(c_long::from(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) })).map(drop)
        }
    }
}

/// Makes a file that can be read, if it is not there, and writes a short text to it.
fn write_file(path: &CStr, text: &[u8]) -> Result<(), c_int> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: `path` is a C string, and the descriptor is new.
    let file = match check(c_long::from(unsafe { libc::open(path.as_ptr(), flags, 0o444) })) {
        // SAFETY: the descriptor is new, and only the `OwnedFd` knows it.
        Ok(file) => unsafe { OwnedFd::from_raw_fd(RawFd::try_from(file).map_err(|_| libc::EBADF)?) },
        Err(libc::EEXIST) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    // SAFETY: the text is a slice that lives across the call.
    let written = unsafe { libc::write(file.as_raw_fd(), text.as_ptr().cast(), text.len()) };
    if usize::try_from(written) == Ok(text.len()) { Ok(()) } else { Err(libc::EIO) }
}

/// Mounts a read-only `/proc` of the new PID namespace.
fn mount_proc(path: &CStr) -> Result<(), c_int> {
    mount(c"proc", path, c"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)?;
    let attributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    mount_setattr(AT_FDCWD, path, 0, attributes)
}

/// Bind-mounts a path on itself, read-only. If a program outside replaces the file between the two
/// calls, the mount goes with the old file; then the new file is tried, at most `MAX_TRIES` times.
fn protect(path: &CStr) -> Result<(), c_int> {
    const MAX_TRIES: usize = 64;
    let once = || {
        bind_mount(path, path).and_then(|()| mount_setattr(AT_FDCWD, path, AT_RECURSIVE, MOUNT_ATTR_RDONLY))
    };
    let was_replaced = |done: &Result<(), c_int>| matches!(done, Err(libc::ENOENT | libc::EINVAL));
    let mut done = once();
    for _ in 1..MAX_TRIES {
        if !was_replaced(&done) {
            break;
        }
        done = once();
    }
    done
}

/// Clones a mount tree into a slot, without set-user-ID programs and, except below `/dev`, without
/// devices.
fn hold(path: &CStr, slot: &mut Option<OwnedFd>) -> Result<(), c_int> {
    let tree = slot.insert(open_tree(AT_FDCWD, path, 0)?);
    let nodev = if path.to_bytes().starts_with(b"/dev/") { 0 } else { MOUNT_ATTR_NODEV };
    mount_setattr(tree.as_raw_fd(), c"", AT_EMPTY_PATH | AT_RECURSIVE, MOUNT_ATTR_NOSUID | nodev)
}

/// Tells whether two descriptors are of the same file. A descriptor from the host's mount namespace
/// cannot be cloned with `open_tree` here, so what its path leads to is compared with it.
fn is_same_file(one: RawFd, other: RawFd) -> Result<bool, c_int> {
    // SAFETY: all zeros is a valid `stat` to be filled; both live across the calls.
    unsafe {
        let (mut first, mut second): (libc::stat, libc::stat) = (mem::zeroed(), mem::zeroed());
        check(c_long::from(libc::fstat(one, &raw mut first)))?;
        check(c_long::from(libc::fstat(other, &raw mut second)))?;
        Ok((first.st_dev, first.st_ino) == (second.st_dev, second.st_ino))
    }
}

/// Clones a mount tree with `open_tree`. It is attached nowhere until [`move_mount`].
fn open_tree(directory: RawFd, path: &CStr, flags: c_int) -> Result<OwnedFd, c_int> {
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (AT_RECURSIVE | flags).cast_unsigned();
    // SAFETY: `path` is a C string; the kernel returns a new descriptor, which only the `OwnedFd`
    // knows.
    unsafe {
        let tree = check(libc::syscall(libc::SYS_open_tree, directory, path.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(RawFd::try_from(tree).map_err(|_| libc::EBADF)?))
    }
}

fn move_mount(tree: &OwnedFd, directory: RawFd, path: &CStr, flags: c_uint) -> Result<(), c_int> {
    let (tree, empty, flags) = (tree.as_raw_fd(), c"".as_ptr(), MOVE_MOUNT_F_EMPTY_PATH | flags);
    // SAFETY: both paths are C strings, and the descriptors are open.
    check(unsafe { libc::syscall(libc::SYS_move_mount, tree, empty, directory, path.as_ptr(), flags) })
        .map(drop)
}

/// Adds attributes to a mount, and with `AT_RECURSIVE` to all mounts below it.
fn mount_setattr(directory: RawFd, path: &CStr, flags: c_int, attr_set: u64) -> Result<(), c_int> {
    let attributes = mount_attr { attr_set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let size = mem::size_of::<mount_attr>();
    // SAFETY: the attributes are a local of the given size that lives across the call; `path` is a
    // C string.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory,
            path.as_ptr(),
            flags.cast_unsigned(),
            &raw const attributes,
            size,
        )
    })
    .map(drop)
}

/// Makes a bind mount (`MS_BIND`). `MOUNT_ATTR_RDONLY` instead of a remount with `MS_RDONLY` makes
/// it read-only afterwards.
fn bind_mount(source: &CStr, target: &CStr) -> Result<(), c_int> {
    mount(source, target, c"none", MS_BIND | MS_REC, None)
}

fn mount(
    source: &CStr,
    target: &CStr,
    filesystem: &CStr,
    flags: libc::c_ulong,
    data: Option<&CStr>,
) -> Result<(), c_int> {
    let data = data.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: all are C strings, but for `data`, which may be null.
    let mounted =
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), filesystem.as_ptr(), flags, data.cast()) };
    check(c_long::from(mounted)).map(drop)
}

/// Turns `EEXIST` into success.
fn existing(result: c_int) -> Result<(), c_int> {
    match check(c_long::from(result)) {
        Ok(_) | Err(libc::EEXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn check(result: c_long) -> Result<c_long, c_int> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}
