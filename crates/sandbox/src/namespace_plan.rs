//! Plan for a sandbox with namespaces: everything that a child needs to confine itself, prepared
//! before it exists.
//!
//! The code here runs in the parent and may allocate. [`sys`](crate::sys) carries it out in the
//! child and may not.

use std::{
    ffi::{CStr, CString},
    os::fd::RawFd,
    path::{Path, PathBuf},
};

use windlass_contract::{
    effects::Network,
    grant::{Quota, SandboxRules},
};

use crate::{
    hidden_paths::{hidden, shown},
    sandbox_paths::{PlanError, SandboxPaths},
    seccomp::{self, AllowedSockets, FilterScope, Instruction, VisibleProcesses},
    writable_plan::{PrivateFile, WritablePlan},
};

mod mount_planner;
mod mount_step;
mod private_directories;
mod terminal;

use mount_planner::{MountPlanner, ShownPaths};
use mount_step::c;
pub(crate) use mount_step::{HIDDEN_DIRECTORY, HIDDEN_FILE, MAX_HELD_TREES, MountStep};
use private_directories::{DEVICES, PRIVATE, TmpfsOptions, VAR_TMP, has_var_tmp};

/// Limitation of a layer, for the receipt.
const RENAME_ON_LAYER: &str = "on a layer rename(2) of a directory that was there before fails with EXDEV: `mv` copies it, \
                               other programs may stop";

/// Margin of the kernel's process limit above the counted one, so that the counter notices first.
/// Root has only the counted limit.
const HEADROOM: u64 = 8;
/// A path that Landlock lets a command write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WritablePath<S = CString> {
    pub(crate) path: S,
    pub(crate) is_directory: bool,
}

impl WritablePath {
    /// Returns the same with a borrowed path.
    pub(crate) fn borrowed(&self) -> WritablePath<&CStr> {
        WritablePath { path: &self.path, is_directory: self.is_directory }
    }
}

/// Limits that are enforced by counting while a command runs. Zero means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsageLimits {
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u64,
    pub(crate) disk_bytes: u64,
    /// Tells whether `/tmp` is a tmpfs of the command's own.
    pub(crate) tmp_is_tmpfs: bool,
    /// Tells whether `/var/tmp` is another.
    pub(crate) var_tmp_is_tmpfs: bool,
}

impl UsageLimits {
    /// Tells whether anything is counted.
    pub(crate) fn counts(&self) -> bool {
        self.memory_bytes > 0 || self.processes > 0 || self.disk_bytes > 0
    }

    /// Returns the tmpfs mounts that the command can write.
    pub(crate) fn tmpfs(&self) -> &'static [&'static CStr] {
        match (self.tmp_is_tmpfs, self.var_tmp_is_tmpfs) {
            (true, true) => &[c"/dev/shm", c"/tmp", c"/var/tmp"],
            (true, false) => &[c"/dev/shm", c"/tmp"],
            (false, _) => &[c"/dev/shm"],
        }
    }
}

/// Everything that a child needs to confine itself with namespaces.
#[derive(Debug)]
pub(crate) struct NamespacePlan {
    pub(crate) steps: Vec<MountStep>,
    pub(crate) writable: Vec<WritablePath>,
    pub(crate) filter: Vec<Instruction>,
    pub(crate) own_network: bool,
    pub(crate) forbidden: Option<CString>,
    pub(crate) rlimits: Vec<(u32, u64)>,
    /// Descriptor of `cgroup.procs`, if the command has a cgroup.
    pub(crate) cgroup: Option<RawFd>,
    pub(crate) watch: UsageLimits,
    /// Unreadable paths inside the writable directories.
    pub(crate) hidden_inside: Vec<PathBuf>,
    pub(crate) not_covered: Vec<String>,
}

impl NamespacePlan {
    /// Makes the plan for the mechanism with namespaces.
    pub(crate) fn new(
        sandbox_rules: &SandboxRules,
        quota: &Quota,
        paths: SandboxPaths<'_>,
        plan: &WritablePlan<'_>,
    ) -> Result<Self, PlanError> {
        let writable_trees: Vec<_> = plan.roots.iter().map(|root| root.path.to_owned()).collect();
        let mut protected = plan.protected.clone();
        let mut not_covered = protected.not_covered.clone();
        let hidden = hidden(sandbox_rules, paths, &writable_trees, &mut not_covered);
        for path in &hidden {
            if let Some(root) = writable_trees.iter().find(|root| path.starts_with(root)) {
                let above = path.ancestors().skip(1).take_while(|above| above != root);
                protected.pinned.extend(above.map(Path::to_owned));
            }
        }
        let is_inside = |path: &&PathBuf| writable_trees.iter().any(|tree| path.starts_with(tree));
        let hidden_inside = hidden.iter().filter(is_inside).cloned().collect();
        let mut planner = MountPlanner::default();
        let tmpfs = TmpfsOptions::new(quota, paths);
        let mut shown = shown(sandbox_rules, &hidden);
        let cache = paths.package_cache.map(Path::to_owned);
        // The home of Windlass is hidden, and the cache is in it.
        let (inside, beside) = cache.iter().partition::<Vec<_>, _>(|cache| is_below(cache, &hidden));
        shown.extend(inside.into_iter().cloned());
        planner.beside = beside.into_iter().cloned().collect();
        planner.files(plan, &shown, paths, &tmpfs)?;
        planner.inside(&protected, &hidden, ShownPaths { all: &shown, writable: cache.as_deref() })?;
        if plan.has_layers() {
            not_covered.push(RENAME_ON_LAYER.to_owned());
        }
        let own_network = sandbox_rules.network == Network::None;
        let scope = FilterScope { sockets: AllowedSockets::Watched, processes: VisibleProcesses::Own };
        if !own_network {
            not_covered.push("which hosts are reached: the network was granted as a whole".to_owned());
        }
        not_covered.extend(uncounted(quota));
        Ok(Self {
            steps: planner.steps,
            writable: landlock_rules(
                &[writable_trees.as_slice(), cache.as_slice()].concat(),
                !plan.private_files.is_empty(),
            )?,
            filter: match quota.disk_bytes {
                Some(_) => seccomp::filter_with_disk_limit(scope),
                None => seccomp::filter(scope),
            },
            own_network,
            forbidden: forbidden_file(&writable_trees, paths.home),
            rlimits: rlimits(quota, quota.process_limit().map(|limit| limit.saturating_add(HEADROOM))),
            cgroup: None,
            watch: UsageLimits {
                memory_bytes: quota.memory_limit().unwrap_or(0),
                processes: quota.process_limit().unwrap_or(0),
                disk_bytes: quota.disk_bytes.unwrap_or(0),
                tmp_is_tmpfs: tmpfs.at_tmp && !is_mounted_over("/tmp", &writable_trees, paths.cwd),
                var_tmp_is_tmpfs: tmpfs.at_tmp
                    && has_var_tmp()
                    && !is_mounted_over(VAR_TMP, &writable_trees, paths.cwd),
            },
            hidden_inside,
            not_covered,
        })
    }
}

/// Returns true if a private directory is hidden by a directory of the disk mounted over it: a
/// root, or the working directory itself. The content of the disk is no memory of the command.
fn is_mounted_over(private: &str, writable_trees: &[PathBuf], cwd: &Path) -> bool {
    let private = Path::new(private);
    cwd == private || writable_trees.iter().any(|tree| private.starts_with(tree))
}

/// Returns the limitations of counting, one line each.
fn uncounted(quota: &Quota) -> impl Iterator<Item = String> {
    let (memory, processes) = (quota.memory_limit().is_some(), quota.process_limit().is_some());
    let counts = processes || memory || quota.disk_bytes.is_some();
    let lines = [
        (
            counts,
            "a burst between two counts: memory, processes and disk are counted every 5 to 250 ms, and what is over \
             is killed",
        ),
        (
            memory,
            "memory in pipes, in socket buffers, and in shared memory that is neither open nor fully mapped anywhere",
        ),
        (
            quota.disk_bytes.is_some(),
            "disk: writes of children whose parent ignores SIGCHLD, and directory entries",
        ),
    ];
    lines.into_iter().filter(|(applies, _)| *applies).map(|(_, line)| line.to_owned())
}

/// Limits the kernel keeps for each process.
pub(crate) fn rlimits(quota: &Quota, processes: Option<u64>) -> Vec<(u32, u64)> {
    let limits = [
        (libc::RLIMIT_CORE, Some(0)),
        (libc::RLIMIT_CPU, quota.cpu_seconds),
        (libc::RLIMIT_FSIZE, quota.file_bytes),
        (libc::RLIMIT_NOFILE, quota.open_file_limit()),
        (libc::RLIMIT_NPROC, processes),
    ];
    limits.into_iter().filter_map(|(what, limit)| Some((what, limit?))).collect()
}

fn landlock_rules(trees: &[PathBuf], with_private_files: bool) -> Result<Vec<WritablePath>, PlanError> {
    let tree = |path: &Path| Ok(WritablePath { path: c(path)?, is_directory: true });
    let mut rules = trees.iter().map(|path| tree(path)).collect::<Result<Vec<_>, PlanError>>()?;
    let private = with_private_files.then_some(PrivateFile::SANDBOX_DIRECTORY);
    let var_tmp = has_var_tmp().then_some(VAR_TMP);
    for path in ["/tmp", "/dev/shm", "/dev/pts"].into_iter().chain(var_tmp).chain(private) {
        rules.push(tree(Path::new(path))?);
    }
    for device in DEVICES {
        rules.push(WritablePath { path: c(Path::new("/dev").join(device))?, is_directory: false });
    }
    Ok(rules)
}

/// Returns a file that the user could make, and no command may: unless it may write there. A home
/// directory may be a link to a place where it may, so real paths are compared.
pub(crate) fn forbidden_file(trees: &[PathBuf], home: Option<&Path>) -> Option<CString> {
    let trees: Vec<_> =
        trees.iter().map(|tree| tree.canonicalize().unwrap_or_else(|_| tree.clone())).collect();
    let is_private = |place: &Path| PRIVATE.iter().any(|private| place.starts_with(private));
    let free = |place: &PathBuf| place.is_dir() && !is_private(place) && !is_below(place, &trees);
    let places = home.into_iter().chain(["/run/lock", "/var"].map(Path::new));
    let place = places.filter_map(|place| place.canonicalize().ok()).find(free)?;
    c(place.join(format!(".windlass-canary-{}", std::process::id()))).ok()
}

fn is_below(path: &Path, trees: &[PathBuf]) -> bool {
    trees.iter().any(|tree| path.starts_with(tree))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_private_directory_that_is_the_workspace_is_not_counted_as_memory() {
        let roots = |roots: &[&str]| roots.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert!(is_mounted_over("/tmp", &[], Path::new("/tmp")));
        assert!(is_mounted_over("/tmp", &roots(&["/tmp"]), Path::new("/tmp/a")));
        assert!(is_mounted_over(VAR_TMP, &roots(&["/var"]), Path::new("/var")));
        assert!(!is_mounted_over("/tmp", &roots(&["/tmp/a"]), Path::new("/tmp/a")));
        assert!(!is_mounted_over("/tmp", &roots(&["/home/me"]), Path::new("/home/me")));
    }

    #[test]
    fn no_file_is_forbidden_in_a_home_that_is_a_link_to_what_may_be_written() {
        // Where tests are built is hardly one of the private directories.
        let place = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
        let [tree, home, link] = ["tree", "home", "link"].map(|name| place.path().join(name));
        for directory in [&tree, &home] {
            std::fs::create_dir(directory).unwrap();
        }
        symlink(&tree, &link).unwrap();
        let forbidden = |home: &Path| {
            let file = forbidden_file(std::slice::from_ref(&tree), Some(home));
            PathBuf::from(file.map(|file| file.into_string().unwrap()).unwrap_or_default())
        };
        let is_private = PRIVATE.iter().any(|private| place.path().starts_with(private));
        assert_eq!(forbidden(&home).starts_with(&home), !is_private);
        for home in [&tree, &link] {
            let file = forbidden(home);
            assert!(!file.starts_with(&tree) && !file.starts_with(&link), "{file:?}");
        }
    }
}
