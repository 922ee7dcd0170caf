//! Paths that commands may not read: secret paths, daemons and what the user has denied.
//!
//! What was hidden from one command of a session stays hidden from the next. Each hidden path is
//! kept open (`O_PATH`), so that a file or directory is found again by its descriptor wherever it
//! was moved.

use std::{
    collections::{BTreeMap, HashSet},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, open, statat},
    process::{Resource, getrlimit},
};
use windlass_contract::grant::SandboxRules;

use crate::{directory_names, sandbox_paths::SandboxPaths, secrets};

/// Paths in `/run` of daemons that execute requests of any client. Hidden even if the network may
/// be used.
#[rustfmt::skip]
const DAEMONS: &[&str] = &[
    "docker.sock",        // starts containers as root
    "containerd",
    "podman",
    "crio",
    "dbus",               // the system's services
    "systemd/private",
    "user",               // the session's services, keyrings and agents
    "libvirt",
    "snapd.socket",
    "lxd.socket",
];

/// Maximum number of hidden paths of a session that stay open, and the maximum share (one part in
/// so many) of this process's descriptors.
const MAX_OPEN: usize = 512;
const MAX_OPEN_SHARE: u64 = 16;

/// The hidden paths of a session, each with a descriptor of what was there when it was first
/// hidden.
#[derive(Debug, Default)]
pub struct HiddenPathHandles(Mutex<OpenPaths>);

#[derive(Debug, Default)]
struct OpenPaths {
    /// The paths that were found for the last command.
    last: Vec<PathBuf>,
    handles: BTreeMap<(PathBuf, FileIdentity), OwnedFd>,
}

/// The device and the inode of a file.
type FileIdentity = (u64, u64);

impl HiddenPathHandles {
    /// Opens what is new among hidden paths, and returns where else things are that were hidden
    /// before. `is_in_root` tells of paths that commands can rename.
    fn update(&self, found: &[PathBuf], is_in_root: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_same_paths = open.last == found && !found.iter().any(|path| is_in_root(path));
        if !has_same_paths {
            open.last = found.to_vec();
            let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / MAX_OPEN_SHARE;
            let limit = usize::try_from(limit).unwrap_or(MAX_OPEN).min(MAX_OPEN);
            let new: Vec<_> = found.iter().filter_map(|path| Some((path.clone(), identity(path)?))).collect();
            for key in new {
                if open.handles.len() < limit
                    && !open.handles.contains_key(&key)
                    && let Some(handle) = open_path(&key.0)
                {
                    open.handles.insert(key, handle);
                }
            }
        }
        let found: HashSet<&Path> = found.iter().map(PathBuf::as_path).collect();
        let is_elsewhere = |(path, id): &(PathBuf, FileIdentity)| {
            !found.contains(&**path) || is_in_root(path) && identity(path) != Some(*id)
        };
        let elsewhere = open.handles.iter().filter(|(key, _)| is_elsewhere(key));
        elsewhere.filter_map(|(_, handle)| current_path(handle)).collect()
    }
}

fn open_path(path: &Path) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY | OFlags::NONBLOCK;
    open(path, access | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn identity(path: &Path) -> Option<FileIdentity> {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|found| identity_of(&found))
}

#[cfg_attr(target_os = "linux", expect(clippy::unnecessary_cast, reason = "other systems have other types"))]
fn identity_of(found: &Stat) -> FileIdentity {
    (found.st_dev as u64, found.st_ino as u64)
}

/// Returns the path by which an open file or directory is reached now, if any.
fn current_path(handle: &OwnedFd) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    let path = {
        use std::os::{fd::AsRawFd, unix::ffi::OsStringExt};
        let link = rustix::fs::readlink(format!("/proc/self/fd/{}", handle.as_raw_fd()), Vec::new()).ok()?;
        PathBuf::from(std::ffi::OsString::from_vec(link.into_bytes()))
    };
    #[cfg(not(target_os = "linux"))]
    let path = {
        use std::os::unix::ffi::OsStringExt;
        let path = rustix::fs::getpath(handle).ok()?;
        PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes()))
    };
    // A deleted file has a path that leads nowhere, or to another file.
    let own = fstat(handle).ok().map(|found| identity_of(&found));
    (identity(&path) == own).then_some(path)
}

/// Returns what may be read inside something that may not. Found after what is hidden is known.
pub(crate) fn shown(rules: &SandboxRules, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let again = rules.readable_again.iter().filter_map(|path| path.canonicalize().ok());
    again.filter(|path| hidden.iter().any(|above| path.starts_with(above) && path != above)).collect()
}

/// Returns what may not be read and exists, without what lies inside something else that may not.
/// Secrets are found by their names, by links inside them, at every mount point, and by the
/// descriptors of those hidden before. Adds what was not looked at to `not_covered`.
pub(crate) fn hidden(
    rules: &SandboxRules,
    paths: SandboxPaths<'_>,
    roots: &[PathBuf],
    not_covered: &mut Vec<String>,
) -> Vec<PathBuf> {
    let again: Vec<_> = rules.readable_again.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_kept =
        |path: &Path| !again.iter().any(|again| path == again) && !secrets::is_no_secret(path, paths.home);
    let daemons = directory_names::there(Path::new("/run"), DAEMONS.iter().copied())
        .chain(paths.sockets.map(Path::to_owned));
    let default = secrets::find(paths.home).into_iter().chain(daemons);
    let default = default.filter_map(|path| path.canonicalize().ok()).filter(|path| is_kept(path));
    let asked = rules.unreadable.iter().filter_map(|path| path.canonicalize().ok());
    let mut all: Vec<_> = default.chain(asked).collect();
    secrets::linked::follow(&mut all, is_kept, not_covered);
    #[cfg(target_os = "linux")]
    all.extend(secrets::mounts::other_paths(&all).into_iter().filter(|path| is_kept(path)));
    if let Some(handles) = paths.hidden {
        all = outermost(all);
        let is_in_root = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        all.extend(handles.update(&all, is_in_root).into_iter().filter(|path| is_kept(path)));
    }
    let works_inside =
        |path: &PathBuf| roots.iter().any(|root| root.starts_with(path)) || paths.cwd.starts_with(path);
    let (open, kept): (Vec<_>, _) = all.into_iter().partition(works_inside);
    not_covered.extend(
        outermost(open)
            .iter()
            .map(|path| format!("reading `{}`: the command works inside it", path.display())),
    );
    outermost(kept)
}

/// Sorts paths and leaves out those that lie inside another one.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        // What lies inside another path is sorted directly behind it, or behind others that do.
        if !kept.last().is_some_and(|above| path.starts_with(above)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_hidden_is_found_wherever_it_was_moved() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let (secret, moved) = (top.join("dotfiles/aws"), top.join("elsewhere/x"));
        fs::create_dir_all(&secret).unwrap();
        fs::create_dir(top.join("elsewhere")).unwrap();
        let handles = HiddenPathHandles::default();
        let update = |found: &[&Path]| {
            let found: Vec<_> = found.iter().map(|path| path.to_path_buf()).collect();
            handles.update(&found, |path| path.starts_with(&top))
        };
        assert_eq!(update(&[&secret]), Vec::<PathBuf>::new());
        fs::rename(&secret, &moved).unwrap();
        assert_eq!(update(&[]), [&*moved]);
        fs::create_dir(&secret).unwrap();
        assert_eq!(update(&[&secret]), [&*moved], "another directory has its name now");
        fs::remove_dir(&moved).unwrap();
        assert_eq!(update(&[&secret]), Vec::<PathBuf>::new());
        fs::create_dir(&moved).unwrap();
        assert_eq!(
            update(&[&secret]),
            Vec::<PathBuf>::new(),
            "a new directory of that name was never hidden"
        );
    }
}
