//! Covers again what somebody outside has replaced while a command runs.
//!
//! A mount belongs to a file, not to its name: whoever removes the file from outside takes the mount away, and whoever
//! renames it takes the mount along. The first process of a sandbox shares its mounts with the command, so it can put
//! them up again. Until it has, the command may be faster; what was replaced is told at the end in any case
//! ([`inspect`](crate::inspect)).
//!
//! Like all code of the child, it allocates nothing and takes no locks.

use std::{
    ffi::{CStr, c_int},
    io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use super::{
    arena::Arena,
    init::now,
    landlock::last_errno,
    mounts::{self, CoverMount},
};
use crate::blueprint::{HIDDEN_DIRECTORY, HIDDEN_FILE, Step};

/// Commands that end before this need nobody who looks after them, and most do.
const LATER_MILLIS: i64 = 50;

/// How soon a path is tried again that is being replaced right now; and one that will not be covered.
const SOON_MILLIS: i64 = 2;
const LATEST_MILLIS: i64 = 1000;

/// What is to stay at a path. The number stands before it in the list.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Pinned = 1,
    Fixed = 2,
    Hidden = 3,
}

/// Paths with what is to stay there: for each its kind, itself, and a zero. Those inside others come after them.
#[derive(Clone, Copy)]
pub(super) struct Covered<'a>(&'a [u8]);

impl Covered<'_> {
    /// Those that steps have covered, put where starters see them.
    pub(super) fn by<'a>(steps: &[Step], arena: &'a Arena) -> io::Result<Covered<'a>> {
        let mut list = Vec::new();
        for step in steps {
            let (kind, path) = match step {
                Step::Pin { path } => (Kind::Pinned, path),
                Step::Fix { path } => (Kind::Fixed, path),
                Step::Cover { path, .. } => (Kind::Hidden, path),
                _ => continue,
            };
            list.push(kind as u8);
            list.extend_from_slice(path.as_bytes_with_nul());
        }
        arena.list(list.into_iter()).map(Covered)
    }

    /// The same in memory of this process's own, for good. Nothing if there is none: then the end tells.
    pub(super) fn kept(self) -> Covered<'static> {
        if self.0.is_empty() {
            return Covered(&[]);
        }
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory of that length, which is never given back; it is filled before it is looked at.
        unsafe {
            let place = libc::mmap(ptr::null_mut(), self.0.len(), rights, flags, -1, 0);
            if place == libc::MAP_FAILED {
                return Covered(&[]);
            }
            ptr::copy_nonoverlapping(self.0.as_ptr(), place.cast::<u8>(), self.0.len());
            Covered(std::slice::from_raw_parts(place.cast(), self.0.len()))
        }
    }

    fn each(self, mut visit: impl FnMut(Kind, &CStr)) {
        let mut rest = self.0;
        while let [kind, after @ ..] = rest
            && let Ok(path) = CStr::from_bytes_until_nul(after)
        {
            let kind = match kind {
                1 => Kind::Pinned,
                2 => Kind::Fixed,
                _ => Kind::Hidden,
            };
            visit(kind, path);
            rest = after.get(path.to_bytes_with_nul().len()..).unwrap_or_default();
        }
    }
}

/// Looks after them.
pub(super) struct Covers {
    covered: Covered<'static>,
    /// When to look next without being told to, and how long after this look.
    due: i64,
    pause: i64,
    /// Tells of mounts that are gone; -1 before the first look.
    mounts: RawFd,
    /// Tells of files that have been renamed, and of new names where one is missing; -1 likewise.
    names: RawFd,
}

impl Covers {
    pub(super) fn new(covered: Covered<'static>, now: i64) -> Self {
        let due = if covered.0.is_empty() { i64::MAX } else { now.saturating_add(LATER_MILLIS) };
        Self { covered, due, pause: SOON_MILLIS, mounts: -1, names: -1 }
    }

    /// When to look again, if nothing happens.
    pub(super) fn due(&self) -> i64 {
        self.due
    }

    /// What to wait for meanwhile.
    pub(super) fn events(&self) -> [libc::pollfd; 2] {
        let event = |fd, events| libc::pollfd { fd, events, revents: 0 };
        [event(self.mounts, libc::POLLPRI), event(self.names, libc::POLLIN)]
    }

    /// Covers what is not.
    pub(super) fn look(&mut self) {
        self.listen();
        let (names, mut unsure) = (self.names, false);
        self.covered.each(|kind, path| {
            // Watched first: what is replaced after it was looked at is told of then.
            match kind {
                Kind::Pinned | Kind::Fixed => watch(names, path, libc::IN_MOVE_SELF),
                // At its path is what hides it, and that is moved by nobody.
                Kind::Hidden => watch_above(names, path, libc::IN_MOVED_FROM),
            }
            match at(kind, path) {
                Found::Cover => {}
                Found::Nothing => {
                    watch_above(names, path, libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_ONESHOT);
                    // It may have come before it was watched for.
                    unsure |= !matches!(at(kind, path), Found::Nothing);
                }
                Found::Bare { place, is_directory } => unsure |= cover(kind, &place, is_directory).is_err(),
                Found::Unknown => unsure = true,
            }
        });
        (self.due, self.pause) = if unsure {
            (now().saturating_add(self.pause), LATEST_MILLIS.min(self.pause * 2))
        } else {
            (i64::MAX, SOON_MILLIS)
        };
    }

    /// Begins to listen, or forgets some of what was heard: what is left is told of again.
    fn listen(&mut self) {
        let mut heard = [0_u64; 512];
        // SAFETY: a constant C string, numbers, and a local of that size which lives across the calls.
        unsafe {
            if self.mounts < 0 {
                let flags = libc::O_RDONLY | libc::O_CLOEXEC;
                self.mounts = libc::open(c"/proc/self/mountinfo".as_ptr(), flags);
            }
            if self.names < 0 {
                self.names = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
            }
            libc::read(self.names, heard.as_mut_ptr().cast(), mem::size_of_val(&heard));
        }
    }
}

/// What is at a path.
enum Found {
    /// Nothing that a mount could be put on: no file, or a link somewhere on the way. None is followed, since the command
    /// may have made it: it would choose by that what is covered.
    Nothing,
    /// What is to be there.
    Cover,
    /// Something else, by which it can be covered whatever its name leads to by then.
    Bare {
        place: OwnedFd,
        is_directory: bool,
    },
    Unknown,
}

fn at(kind: Kind, path: &CStr) -> Found {
    let place = match open(path) {
        Ok(place) => place,
        Err(libc::ENOENT | libc::ENOTDIR | libc::ELOOP) => return Found::Nothing,
        Err(_) => return Found::Unknown,
    };
    let Some((attributes, mode)) = state(&place) else { return Found::Unknown };
    // Somebody outside can rename a directory, and what is mounted on it goes along: to a name that is to have another
    // cover.
    let fits = match kind {
        Kind::Pinned => true,
        Kind::Fixed => is_read_only(&place),
        Kind::Hidden => is_read_only(&place) && mode & !libc::S_IFMT == 0,
    };
    match mode & libc::S_IFMT {
        libc::S_IFLNK => Found::Nothing,
        _ if attributes & u64::from(libc::STATX_ATTR_MOUNT_ROOT.cast_unsigned()) != 0 && fits => Found::Cover,
        kind => Found::Bare { place, is_directory: kind == libc::S_IFDIR },
    }
}

/// Takes hold of what is at a path, to which no link leads.
fn open(path: &CStr) -> Result<OwnedFd, c_int> {
    let size = mem::size_of::<libc::open_how>();
    // SAFETY: all zeros is a valid `open_how`; it and the C string live across the call; the descriptor is new.
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

/// What the kernel says of something: its attributes, its kind and its permissions.
fn state(place: &OwnedFd) -> Option<(u64, u32)> {
    // SAFETY: all zeros is a valid value of this plain structure, which has the size that the kernel fills and lives
    // across the call; the path is a C string.
    unsafe {
        let mut found: libc::statx = mem::zeroed();
        let flags = libc::AT_EMPTY_PATH | libc::AT_NO_AUTOMOUNT;
        let mask = libc::STATX_TYPE | libc::STATX_MODE;
        let (fd, path) = (place.as_raw_fd(), c"".as_ptr());
        let told = libc::syscall(libc::SYS_statx, fd, path, flags, mask, &raw mut found);
        (told == 0).then(|| (found.stx_attributes, u32::from(found.stx_mode)))
    }
}

/// Whether nothing can be changed by way of this mount.
fn is_read_only(place: &OwnedFd) -> bool {
    // SAFETY: the descriptor is open, and all zeros is a valid value of this plain structure, which lives across the call.
    unsafe {
        let mut told: libc::statvfs = mem::zeroed();
        libc::fstatvfs(place.as_raw_fd(), &raw mut told) == 0 && told.f_flag & libc::ST_RDONLY != 0
    }
}

fn cover(kind: Kind, place: &OwnedFd, is_directory: bool) -> Result<(), c_int> {
    let with = if is_directory { HIDDEN_DIRECTORY } else { HIDDEN_FILE };
    mounts::cover(
        place,
        match kind {
            Kind::Pinned => CoverMount::Itself,
            Kind::Fixed => CoverMount::ItselfReadOnly,
            Kind::Hidden => CoverMount::ReadOnly(with),
        },
    )
}

/// Watches for something at a path; what cannot be watched is looked at when something else happens.
fn watch(names: RawFd, path: &CStr, what: u32) {
    // SAFETY: a number and a C string.
    unsafe { libc::inotify_add_watch(names, path.as_ptr(), what | libc::IN_DONT_FOLLOW | libc::IN_MASK_ADD) };
}

/// Watches for something in the directory of a path.
fn watch_above(names: RawFd, path: &CStr, what: u32) {
    let mut above = [0_u8; libc::PATH_MAX as usize];
    let bytes = path.to_bytes();
    let end = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    if let (Some(from), Some(to)) = (bytes.get(..end), above.get_mut(..end)) {
        to.copy_from_slice(from);
    }
    if let Ok(above) = CStr::from_bytes_until_nul(&above) {
        watch(names, above, what);
    }
}
