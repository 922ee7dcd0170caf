//! Limits that the kernel keeps for all processes of a command together: a cgroup of its own, where
//! this process was given a part of the tree to divide.
//!
//! A cgroup that hands memory and processes on to others may hold no process itself, so this
//! process moves into one of those it makes. It does so only where no other processes live than
//! this one and its children: it moves no others.
#![expect(clippy::disallowed_methods, reason = "files of the kernel, which no command can write")]

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Component, Path, PathBuf},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use windlass_contract::grant::Quota;

/// The controllers for both limits.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The prefix of our names.
const NAME: &str = "windlass-";

/// Starts a program where it may divide its cgroup.
pub(crate) const REMEDY: &str = "systemd-run --user --scope -p Delegate=yes windlass …";

/// The tree, divided for this process. All machines of it share that.
static DIVIDED: OnceLock<Result<CgroupTree, String>> = OnceLock::new();

/// The part of the tree that this process may divide; divided for the first who needs it. The
/// reason, if there is none.
pub(crate) fn divided() -> Result<&'static CgroupTree, &'static str> {
    let tree = DIVIDED.get_or_init(|| {
        let place = DelegatedCgroup::find(Path::new("/proc"))?;
        place.divide().map_err(|error| format!("`{}` cannot be divided: {error}", place.0.display()))
    });
    tree.as_ref().map_err(String::as_str)
}

/// Tells whether there is such a part. Changes nothing.
pub(crate) fn available() -> Result<(), String> {
    match DIVIDED.get() {
        Some(divided) => divided.as_ref().map(drop).map_err(Clone::clone),
        None => DelegatedCgroup::find(Path::new("/proc")).map(drop),
    }
}

/// A cgroup that could be divided.
#[derive(Debug, PartialEq, Eq)]
struct DelegatedCgroup(PathBuf);

impl DelegatedCgroup {
    fn find(proc: &Path) -> Result<Self, String> {
        let read = |name: &str| {
            fs::read_to_string(proc.join(name)).map_err(|error| format!("/proc/{name}: {error}"))
        };
        let place = directory(&read("self/cgroup")?, &read("self/mountinfo")?)?;
        Self::check(place, |pid| descends_from_us(proc, pid))
    }

    /// Checks that it has the controllers, and no processes but ours.
    fn check(place: PathBuf, is_ours: impl Fn(u32) -> bool) -> Result<Self, String> {
        let shown = place.display().to_string();
        let read = |name: &str| {
            fs::read_to_string(place.join(name)).map_err(|error| format!("`{shown}/{name}`: {error}"))
        };
        let available = read("cgroup.controllers")?;
        let missing = CONTROLLERS.iter().find(|name| !available.split_whitespace().any(|has| has == **name));
        if let Some(missing) = missing {
            return Err(format!("`{shown}` has no controller `{missing}`"));
        }
        if rustix::fs::access(&place, rustix::fs::Access::WRITE_OK).is_err() {
            return Err(format!("`{shown}` was not given to this user"));
        }
        if members(&read("cgroup.procs")?).any(|pid| !is_ours(pid)) {
            return Err(format!("`{shown}` holds other processes than this one"));
        }
        Ok(Self(place))
    }

    /// Moves us into a cgroup of our own, and hands memory and processes on to all in this one.
    fn divide(&self) -> io::Result<CgroupTree> {
        let own = self.0.join(format!("{NAME}main"));
        fs::create_dir(&own).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        })?;
        for pid in members(&fs::read_to_string(self.0.join("cgroup.procs"))?) {
            write(&own.join("cgroup.procs"), &pid.to_string())?;
        }
        write(&self.0.join("cgroup.subtree_control"), &CONTROLLERS.map(|name| format!("+{name}")).join(" "))?;
        let tree = CgroupTree { place: self.0.clone(), made: AtomicU64::new(0), left: Mutex::default() };
        tree.remember_left();
        Ok(tree)
    }
}

/// The directory of the cgroup this process is in, by the lines that begin with `0::` and the
/// mounts.
fn directory(own: &str, mounts: &str) -> Result<PathBuf, String> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"));
    let own = Path::new(own.ok_or("there is no cgroup v2 here")?);
    // A line is: number, parent, device, root, place, options, more of them, `-`, kind, source,
    // options.
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        (kind.split(' ').next() == Some("cgroup2")).then(|| Some((fields.next()?, fields.next()?)))?
    });
    let (root, place) = mount.ok_or("cgroup v2 is not mounted")?;
    let below = own.strip_prefix(root).map_err(|_| "this process's cgroup is not mounted")?;
    if below.components().any(|part| part == Component::ParentDir) {
        return Err("this process's cgroup is not mounted".to_owned());
    }
    Ok(Path::new(place).join(below))
}

fn members(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.lines().filter_map(|line| line.parse().ok())
}

/// Tells whether a process is this one or a descendant of it. One that is gone counts as ours: it
/// need not be moved.
fn descends_from_us(proc: &Path, pid: u32) -> bool {
    const MAX_DEPTH: u32 = 64;
    let mut above = pid;
    for _ in 0..MAX_DEPTH {
        if above == std::process::id() {
            return true;
        }
        let stat = fs::read_to_string(proc.join(above.to_string()).join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        match parent {
            Some(parent @ 2..) => above = parent,
            Some(parent) => return parent == std::process::id(),
            None => return above == pid && !proc.join(pid.to_string()).exists(),
        }
    }
    false
}

/// A divided cgroup.
#[derive(Debug)]
pub(crate) struct CgroupTree {
    place: PathBuf,
    made: AtomicU64,
    /// Cgroups whose processes were still dying.
    left: Mutex<Vec<PathBuf>>,
}

impl CgroupTree {
    /// Makes one for a command.
    pub(crate) fn create_cgroup(&'static self, quota: &Quota) -> io::Result<CommandCgroup> {
        self.sweep();
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = self.place.join(format!("{NAME}{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        match limit(&path, quota) {
            Ok(cgroup_procs) => Ok(CommandCgroup { tree: self, path, cgroup_procs }),
            Err(error) => {
                fs::remove_dir(&path)?;
                Err(error)
            }
        }
    }

    /// Finds the cgroups that an earlier process left because it was killed.
    fn remember_left(&self) {
        let left = fs::read_dir(&self.place).into_iter().flatten().flatten().map(|entry| entry.path());
        let left = left.filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(NAME));
            name.is_some_and(|name| name.split_once('-').is_some())
        });
        self.left.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
    }

    /// Removes those that are empty by now. The kernel removes no others.
    fn sweep(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|path| fs::remove_dir(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound));
    }
}

/// Sets limits, and opens what a process goes in by.
fn limit(path: &Path, quota: &Quota) -> io::Result<File> {
    if let Some(bytes) = quota.memory_limit() {
        write(&path.join("memory.max"), &bytes.to_string())?;
        // Without swap there is nothing to be limited.
        absent_is_fine(write(&path.join("memory.swap.max"), "0"))?;
        // All of a command goes when one process must: half a command is of no use.
        write(&path.join("memory.oom.group"), "1")?;
    }
    if let Some(most) = quota.process_limit() {
        write(&path.join("pids.max"), &most.to_string())?;
    }
    File::options().write(true).open(path.join("cgroup.procs"))
}

/// The cgroup of one command. Dropping it kills every process in it and removes it.
#[derive(Debug)]
pub(crate) struct CommandCgroup {
    tree: &'static CgroupTree,
    path: PathBuf,
    /// `cgroup.procs`: a process that writes a zero here moves into the cgroup.
    pub(crate) cgroup_procs: File,
}

impl CommandCgroup {
    /// Kills every process in it.
    pub(crate) fn kill(&self) {
        // Kernels before 5.14 have no such file; there, processes are killed by other means only.
        drop(write(&self.path.join("cgroup.kill"), "1"));
    }

    /// Returns the limits that the command reached.
    pub(crate) fn met(&self) -> CgroupEvents {
        let read = |name: &str| fs::read_to_string(self.path.join(name)).unwrap_or_default();
        CgroupEvents {
            memory: count(&read("memory.events"), "oom_kill") > 0,
            processes: count(&read("pids.events"), "max") > 0,
        }
    }
}

impl Drop for CommandCgroup {
    fn drop(&mut self) {
        self.kill();
        if fs::remove_dir(&self.path).is_err() {
            self.tree.left.lock().unwrap_or_else(PoisonError::into_inner).push(self.path.clone());
        }
    }
}

/// The limits that the command reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CgroupEvents {
    /// A process was killed for it.
    pub(crate) memory: bool,
    /// A process could not be started.
    pub(crate) processes: bool,
}

/// Returns the number after a name, in lines of both.
fn count(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Writes to an existing file. A missing one means that the directory is no cgroup.
fn write(path: &Path, text: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
