//! The private temporary directory of a machine's commands. It is kept between commands and removed
//! with the machine.
#![expect(
    clippy::disallowed_methods,
    reason = "a directory of our own; the standard library removes it by descriptor and follows no link"
)]

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// A temporary directory, made when it is first needed.
#[derive(Debug)]
pub struct PrivateTmp {
    keeps: bool,
    made: OnceLock<LockedDirectory>,
}

/// A directory with a lock that marks it as in use. The lock distinguishes it from the directory of
/// a killed process.
#[derive(Debug)]
struct LockedDirectory {
    path: PathBuf,
    _lock: File,
}

impl PrivateTmp {
    /// Makes a directory that keeps files between commands, or one that exists only if a tmpfs
    /// cannot replace it.
    pub fn new(keeps: bool) -> Self {
        Self { keeps, made: OnceLock::new() }
    }

    /// Returns the directory if it keeps files between commands.
    pub fn lasting(&self) -> io::Result<Option<&Path>> {
        if self.keeps { self.path().map(Some) } else { Ok(None) }
    }

    /// Returns the directory if it exists already.
    pub fn made(&self) -> Option<&Path> {
        self.made.get().map(|made| made.path.as_path())
    }

    /// Returns the directory, and makes it if needed.
    pub fn path(&self) -> io::Result<&Path> {
        if let Some(made) = self.made.get() {
            return Ok(&made.path);
        }
        let made = make()?;
        // Another thread may have been faster; its directory counts then, and ours goes.
        if let Err(surplus) = self.made.set(made) {
            fs::remove_dir(surplus.path)?;
        }
        self.made().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        if let Some(LockedDirectory { path, .. }) = self.made.get() {
            // What cannot be removed is the system's to clean.
            drop(fs::remove_dir_all(path));
            drop(fs::remove_dir_all(second(path)));
        }
    }
}

/// Makes the directory beside a temporary one that is the command's `/var/tmp`. It is outside of
/// what commands can see, so that none can put a link in its place; what another user has put there
/// is not used.
#[cfg(target_os = "linux")]
pub(crate) fn make_second(temporary: &Path) -> Option<PathBuf> {
    let path = second(temporary);
    // It is there from the command before, perhaps.
    drop(DirBuilder::new().mode(0o700).create(&path));
    let own = fs::symlink_metadata(temporary).ok()?.uid();
    let found = fs::symlink_metadata(&path).ok()?;
    (found.is_dir() && found.uid() == own).then_some(path)
}

fn second(temporary: &Path) -> PathBuf {
    let mut name = temporary.as_os_str().to_owned();
    name.push("-var");
    PathBuf::from(name)
}

/// Parent of the directories.
const PARENT: &str = "/tmp";

/// Prefix of the names; the process id and a number follow.
const NAME_PREFIX: &str = "windlass-";

/// Makes a directory that no other user can access. Names are tried until one is free, so no other
/// process can prepare it in advance.
fn make() -> io::Result<LockedDirectory> {
    const MAX_TRIES: u32 = 100;
    /// No name is used twice, so that one that was removed stays gone.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    for _ in 0..MAX_TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(PARENT).join(format!("{NAME_PREFIX}{process}-{number}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        }
        match lock(&path) {
            Ok(lock) => {
                sweep(Path::new(PARENT), lock.metadata()?.uid());
                return Ok(LockedDirectory { path, _lock: lock });
            }
            Err(error) => {
                // Where someone who sweeps has it or had it, another name helps; where too many
                // files are open, it would only leave another directory behind.
                drop(fs::remove_dir(&path));
                if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock) {
                    return Err(error);
                }
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Locks a directory if it is one, still exists and is not locked.
fn lock(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = File::options().read(true).custom_flags(flags).open(path)?;
    directory.try_lock()?;
    // A sweep may have removed it in between.
    let (held, named) = (directory.metadata()?, fs::symlink_metadata(path)?);
    if held.ino() == named.ino() { Ok(directory) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Removes directories that killed processes of this user left behind: they are unlocked, and the
/// process in their name is gone. The lock alone is not enough, because it is taken a moment after
/// the directory is made. Neither is the name, because processes in other containers have the same
/// ids.
fn sweep(place: &Path, user: u32) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)?.split_once('-'));
        let Some(process) = process.and_then(|(process, _)| process.parse::<u32>().ok()) else { continue };
        let is_ours = entry.metadata().is_ok_and(|entry| entry.is_dir() && entry.uid() == user);
        if is_ours
            && !Path::new("/proc").join(process.to_string()).exists()
            && Path::new("/proc/self").exists()
            && let Ok(_lock) = lock(&entry.path())
        {
            // What cannot be removed is the system's to clean.
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than any process has.
    const NOBODY: u32 = u32::MAX;

    #[test]
    fn what_a_killed_process_left_is_swept_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let user = fs::metadata(place.path()).unwrap().uid();
        let (left, in_use) = (format!("windlass-{NOBODY}-0"), format!("windlass-{NOBODY}-1"));
        let alive = format!("windlass-{}-0", std::process::id());
        let names = [&left, &in_use, &alive, "windlass-x-0", "windlass-1", "other"];
        for name in names {
            fs::create_dir(path(name)).unwrap();
        }
        fs::write(path(&left).join("file"), "").unwrap();
        std::os::unix::fs::symlink(path("other"), path(&format!("windlass-{NOBODY}-2"))).unwrap();
        let _lock = lock(&path(&in_use)).unwrap();
        sweep(place.path(), user.wrapping_add(1));
        assert!(path(&left).exists());
        sweep(place.path(), user);
        assert!(!path(&left).exists());
        for name in &names[1..] {
            assert!(path(name).exists(), "{name}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_second_directory_is_ours_and_goes_with_the_first() {
        let temporary = PrivateTmp::new(true);
        let path = temporary.path().unwrap().to_owned();
        let second = make_second(&path).unwrap();
        assert_eq!(make_second(&path).as_ref(), Some(&second));
        fs::remove_dir(&second).unwrap();
        std::os::unix::fs::symlink("/etc", &second).unwrap();
        assert_eq!(make_second(&path), None);
        fs::remove_file(&second).unwrap();
        make_second(&path).unwrap();
        drop(temporary);
        assert!(!second.exists());
    }

    #[test]
    fn a_directory_is_locked_as_long_as_it_is_used() {
        let temporary = PrivateTmp::new(true);
        let path = temporary.path().unwrap().to_owned();
        assert!(lock(&path).is_err());
        drop(temporary);
        assert!(!path.exists());
    }
}
