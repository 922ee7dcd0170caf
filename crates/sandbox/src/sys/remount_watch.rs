//! Mounts covers again when a program outside has replaced a covered file while a command runs.
//!
//! A mount belongs to a file, not to its name. If a program outside removes the file, the mount is
//! gone; if it renames the file, the mount goes along. An editor that saves a hidden `.env` would
//! make it readable for a running command. PID 1 shares the mount namespace with the command, so it
//! can mount again. Until it has, the command may be faster; a replaced file is reported at the end
//! in any case by the host.
//!
//! Like all code of the child, it allocates nothing and takes no locks.

use std::{
    ffi::{CStr, c_int},
    io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use super::{
    arena::SharedArena,
    init::now,
    landlock::last_errno,
    mounts::{self, CoverMount},
};
use crate::namespace_plan::{HIDDEN_DIRECTORY, HIDDEN_FILE, MountStep};

/// Commands that end before this are not watched, and most do.
const START_DELAY_MILLIS: i64 = 50;

/// The first pause before a path is tried again that could not be covered; and the longest, since
/// each pause is twice as long.
const RETRY_MILLIS: i64 = 2;
const MAX_RETRY_MILLIS: i64 = 1000;

/// The mount that must be at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum CoverKind {
    Pinned = 1,
    Fixed = 2,
    Hidden = 3,
    /// Settings in the place of others. A file that replaces them is hidden.
    StandIn = 4,
}

/// The covered paths in one piece of memory: for each a byte for its kind, the path, and a zero.
/// Paths inside others come after them.
#[derive(Clone, Copy)]
pub(super) struct CoveredPaths<'a>(&'a [u8]);

impl CoveredPaths<'_> {
    /// Copies the paths that mount steps cover to the arena, where the zygote sees them.
    pub(super) fn from_steps<'a>(
        steps: &[MountStep],
        arena: &'a SharedArena,
    ) -> io::Result<CoveredPaths<'a>> {
        let mut list = Vec::new();
        for step in steps {
            let (kind, path) = match step {
                MountStep::Pin { path } => (CoverKind::Pinned, path),
                // A file that replaces settings of git is the user's own, and no copy of them.
                MountStep::BindReadOnly { path } | MountStep::MountLink { path, .. } => {
                    (CoverKind::Fixed, path)
                }
                MountStep::Hide { path, .. } => (CoverKind::Hidden, path),
                MountStep::StandIn { path, .. } => (CoverKind::StandIn, path),
                _ => continue,
            };
            list.push(kind as u8);
            list.extend_from_slice(path.as_bytes_with_nul());
        }
        arena.list(list.into_iter()).map(CoveredPaths)
    }

    /// Copies the paths to private memory, which is never freed. Without memory the list is empty,
    /// and a replaced file is only reported at the end.
    pub(super) fn to_private_memory(self) -> CoveredPaths<'static> {
        if self.0.is_empty() {
            return CoveredPaths(&[]);
        }
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory of that length, which is never unmapped; it is filled before it is
        // read.
        unsafe {
            let place = libc::mmap(ptr::null_mut(), self.0.len(), rights, flags, -1, 0);
            if place == libc::MAP_FAILED {
                return CoveredPaths(&[]);
            }
            ptr::copy_nonoverlapping(self.0.as_ptr(), place.cast::<u8>(), self.0.len());
            CoveredPaths(std::slice::from_raw_parts(place.cast(), self.0.len()))
        }
    }

    fn for_each(self, mut visit: impl FnMut(CoverKind, &CStr)) {
        let mut rest = self.0;
        while let [kind, after @ ..] = rest
            && let Ok(path) = CStr::from_bytes_until_nul(after)
        {
            let kind = match kind {
                1 => CoverKind::Pinned,
                2 => CoverKind::Fixed,
                4 => CoverKind::StandIn,
                _ => CoverKind::Hidden,
            };
            visit(kind, path);
            rest = after.get(path.to_bytes_with_nul().len()..).unwrap_or_default();
        }
    }
}

/// Watches the covered paths.
pub(super) struct RemountWatch {
    covered: CoveredPaths<'static>,
    /// When to check next without an event, in milliseconds of CLOCK_MONOTONIC, and the pause after
    /// that.
    due: i64,
    pause: i64,
    /// `/proc/self/mountinfo`, which has POLLPRI when a mount is gone; -1 before the first check.
    mountinfo: RawFd,
    /// Reports renamed files, and new names where one is missing; -1 before the first check.
    inotify: RawFd,
}

impl RemountWatch {
    pub(super) fn new(covered: CoveredPaths<'static>, now: i64) -> Self {
        let due = if covered.0.is_empty() { i64::MAX } else { now.saturating_add(START_DELAY_MILLIS) };
        Self { covered, due, pause: RETRY_MILLIS, mountinfo: -1, inotify: -1 }
    }

    /// Returns when to check again if there is no event.
    pub(super) fn due(&self) -> i64 {
        self.due
    }

    /// Returns the events to poll for.
    pub(super) fn events(&self) -> [libc::pollfd; 2] {
        let event = |fd, events| libc::pollfd { fd, events, revents: 0 };
        [event(self.mountinfo, libc::POLLPRI), event(self.inotify, libc::POLLIN)]
    }

    /// Mounts the covers that are missing.
    pub(super) fn check(&mut self) {
        self.open_and_drain();
        let (inotify, mut unsure) = (self.inotify, false);
        self.covered.for_each(|kind, path| {
            // Watched first: a file that is replaced after the check causes an event.
            match kind {
                CoverKind::Pinned | CoverKind::Fixed => watch(inotify, path, libc::IN_MOVE_SELF),
                // At its path is the cover, which is never moved: the hidden file itself cannot be
                // watched.
                CoverKind::Hidden | CoverKind::StandIn => watch_parent(inotify, path, libc::IN_MOVED_FROM),
            }
            match path_state(kind, path) {
                PathState::Covered => {}
                PathState::Missing => {
                    watch_parent(inotify, path, libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_ONESHOT);
                    // It may have appeared before the watch was added.
                    unsure |= !matches!(path_state(kind, path), PathState::Missing);
                }
                PathState::Uncovered { place, is_directory } => {
                    unsure |= cover(kind, &place, is_directory).is_err()
                }
                PathState::Unknown => unsure = true,
            }
        });
        (self.due, self.pause) = if unsure {
            (now().saturating_add(self.pause), MAX_RETRY_MILLIS.min(self.pause * 2))
        } else {
            (i64::MAX, RETRY_MILLIS)
        };
    }

    /// Opens the sources of events at the first check, and drops queued inotify events; those that
    /// do not fit cause another check.
    fn open_and_drain(&mut self) {
        let mut events = [0_u64; 512];
        // SAFETY: a constant C string, numbers, and a local of that size which lives across the
        // calls.
        unsafe {
            if self.mountinfo < 0 {
                let flags = libc::O_RDONLY | libc::O_CLOEXEC;
                self.mountinfo = libc::open(c"/proc/self/mountinfo".as_ptr(), flags);
            }
            if self.inotify < 0 {
                self.inotify = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
            }
            libc::read(self.inotify, events.as_mut_ptr().cast(), mem::size_of_val(&events));
        }
    }
}

/// The state of a covered path.
enum PathState {
    /// There is no file, or a symbolic link on the way. No link is followed: the command may have
    /// made it, and would choose what is covered.
    Missing,
    /// The right mount is there.
    Covered,
    /// Another file is there, opened with O_PATH so that it can be covered whatever its name is by
    /// then.
    Uncovered {
        place: OwnedFd,
        is_directory: bool,
    },
    Unknown,
}

fn path_state(kind: CoverKind, path: &CStr) -> PathState {
    let place = match open_path(path) {
        Ok(place) => place,
        Err(libc::ENOENT | libc::ENOTDIR | libc::ELOOP) => return PathState::Missing,
        Err(_) => return PathState::Unknown,
    };
    let Some((attributes, mode)) = statx(&place) else { return PathState::Unknown };
    // A program outside can rename a directory, and its mount goes along to a name that must have
    // another cover.
    let fits = match kind {
        CoverKind::Pinned => true,
        CoverKind::Fixed => is_read_only(&place),
        CoverKind::Hidden => is_read_only(&place) && mode & !libc::S_IFMT == 0,
        CoverKind::StandIn => is_read_only(&place) && mode & 0o222 == 0,
    };
    match mode & libc::S_IFMT {
        libc::S_IFLNK => PathState::Missing,
        _ if attributes & u64::from(libc::STATX_ATTR_MOUNT_ROOT.cast_unsigned()) != 0 && fits => {
            PathState::Covered
        }
        kind => PathState::Uncovered { place, is_directory: kind == libc::S_IFDIR },
    }
}

/// Opens a path with O_PATH, following no symbolic link.
fn open_path(path: &CStr) -> Result<OwnedFd, c_int> {
    let size = mem::size_of::<libc::open_how>();
    // SAFETY: all zeros is a valid `open_how`; it and the C string live across the call; the
    // descriptor is new.
    unsafe {
        let mut how: libc::open_how = mem::zeroed();
        how.flags = (libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC) as u64;
        how.resolve = libc::RESOLVE_NO_SYMLINKS;
        let opened = libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &raw const how, size);
        match RawFd::try_from(opened) {
            Ok(place @ 0..) => Ok(OwnedFd::from_raw_fd(place)),
            _ => Err(last_errno()),
        }
    }
}

/// Returns `stx_attributes` and `stx_mode`.
fn statx(place: &OwnedFd) -> Option<(u64, u32)> {
    // SAFETY: all zeros is a valid value of this plain structure, which has the size that the
    // kernel fills and lives across the call; the path is a C string.
    unsafe {
        let mut found: libc::statx = mem::zeroed();
        let flags = libc::AT_EMPTY_PATH | libc::AT_NO_AUTOMOUNT;
        let mask = libc::STATX_TYPE | libc::STATX_MODE;
        let (fd, path) = (place.as_raw_fd(), c"".as_ptr());
        let result = libc::syscall(libc::SYS_statx, fd, path, flags, mask, &raw mut found);
        (result == 0).then(|| (found.stx_attributes, u32::from(found.stx_mode)))
    }
}

/// Returns whether the mount is read-only.
fn is_read_only(place: &OwnedFd) -> bool {
    // SAFETY: the descriptor is open, and all zeros is a valid value of this plain structure, which
    // lives across the call.
    unsafe {
        let mut found: libc::statvfs = mem::zeroed();
        libc::fstatvfs(place.as_raw_fd(), &raw mut found) == 0 && found.f_flag & libc::ST_RDONLY != 0
    }
}

fn cover(kind: CoverKind, place: &OwnedFd, is_directory: bool) -> Result<(), c_int> {
    let with = if is_directory { HIDDEN_DIRECTORY } else { HIDDEN_FILE };
    mounts::cover(
        place,
        match kind {
            CoverKind::Pinned => CoverMount::Itself,
            CoverKind::Fixed => CoverMount::ItselfReadOnly,
            CoverKind::Hidden | CoverKind::StandIn => CoverMount::ReadOnly(with),
        },
    )
}

/// Watches a path; one that cannot be watched is checked at the next event.
fn watch(inotify: RawFd, path: &CStr, what: u32) {
    // SAFETY: a number and a C string.
    unsafe {
        libc::inotify_add_watch(inotify, path.as_ptr(), what | libc::IN_DONT_FOLLOW | libc::IN_MASK_ADD)
    };
}

/// Watches the directory of a path.
fn watch_parent(inotify: RawFd, path: &CStr, what: u32) {
    let mut parent = [0_u8; libc::PATH_MAX as usize];
    let bytes = path.to_bytes();
    let end = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    if let (Some(from), Some(to)) = (bytes.get(..end), parent.get_mut(..end)) {
        to.copy_from_slice(from);
    }
    if let Ok(parent) = CStr::from_bytes_until_nul(&parent) {
        watch(inotify, parent, what);
    }
}
