//! Walls in the form the system takes: everything a child needs to confine itself, worked out before it exists.
//!
//! What is here runs in the parent and may allocate. [`sys`](crate::sys) carries it out in the child and may not.

use std::{
    ffi::{CStr, CString},
    os::{
        fd::{AsFd, AsRawFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass_contract::{Network, Quota, Walls};

use crate::{
    ground::{Ground, Impossible, hidden, shown},
    seccomp::{self, Instruction, Processes, Scope, Sockets},
    temporary,
    workspace_guard::{CONFIG_NAME, PrivateConfig, ProtectedPaths, WorkspaceRoot},
};

mod terminal;

/// How many directories can be carried over into a new view of the files.
pub(crate) const HELD_LIMIT: usize = 60;

/// How far the kernel's own limit on processes is above the counted one, so that who counts can tell of it. Root has
/// no limit but the counted one.
const HEADROOM: u64 = 8;

/// Devices every program may use.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// One step on the way to a view of the files that holds a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<S = CString> {
    /// Takes hold of a tree of mounts as it is now.
    Hold { path: S, slot: usize },
    /// Takes hold of the tree of mounts at a path, if that is the open directory.
    HoldRoot { directory: RawFd, path: S, slot: usize },
    /// Makes every mount read-only.
    AllReadOnly,
    /// Puts a held tree at a path.
    Place { slot: usize, path: S },
    /// A fresh file system in memory.
    Memory { path: S, options: S },
    /// Terminals of the command's own.
    Terminals { path: S },
    /// Only the command's own processes.
    Processes { path: S },
    /// A directory, if it is not there.
    Directory { path: S, mode: u32 },
    /// An empty file.
    File { path: S, mode: u32 },
    /// A link.
    Link { path: S, target: S },
    /// Mounts a link itself on a file, so that the file leads where the link does.
    MountLink { path: S, link: S },
    /// A mount point that keeps what it is: it cannot be renamed or removed.
    Pin { path: S },
    /// The same, and nothing in it can change.
    Fix { path: S },
    /// Puts something else, unreadable, in the place of a path.
    Cover { path: S, with: S },
    /// Makes one mount read-only.
    Seal { path: S },
}

impl Step {
    /// The same step with its texts put elsewhere.
    pub(crate) fn moved<'a, E>(
        &self,
        put: impl Fn(&CString) -> Result<&'a CStr, E>,
    ) -> Result<Step<&'a CStr>, E> {
        Ok(match self {
            Self::Hold { path, slot } => Step::Hold { path: put(path)?, slot: *slot },
            Self::HoldRoot { directory, path, slot } => {
                Step::HoldRoot { directory: *directory, path: put(path)?, slot: *slot }
            }
            Self::AllReadOnly => Step::AllReadOnly,
            Self::Place { slot, path } => Step::Place { slot: *slot, path: put(path)? },
            Self::Memory { path, options } => Step::Memory { path: put(path)?, options: put(options)? },
            Self::Terminals { path } => Step::Terminals { path: put(path)? },
            Self::Processes { path } => Step::Processes { path: put(path)? },
            Self::Directory { path, mode } => Step::Directory { path: put(path)?, mode: *mode },
            Self::File { path, mode } => Step::File { path: put(path)?, mode: *mode },
            Self::Link { path, target } => Step::Link { path: put(path)?, target: put(target)? },
            Self::MountLink { path, link } => Step::MountLink { path: put(path)?, link: put(link)? },
            Self::Pin { path } => Step::Pin { path: put(path)? },
            Self::Fix { path } => Step::Fix { path: put(path)? },
            Self::Cover { path, with } => Step::Cover { path: put(path)?, with: put(with)? },
            Self::Seal { path } => Step::Seal { path: put(path)? },
        })
    }

    /// What is done, for an error.
    pub(crate) fn describe(&self) -> String {
        let (what, path) = match self {
            Self::AllReadOnly => return "making all mounts read-only".to_owned(),
            Self::Hold { path, .. } | Self::HoldRoot { path, .. } => ("carrying over", path),
            Self::Place { path, .. } => ("placing", path),
            Self::Memory { path, .. } => ("mounting memory at", path),
            Self::Terminals { path } => ("mounting terminals at", path),
            Self::Processes { path } => ("mounting processes at", path),
            Self::Directory { path, .. } | Self::File { path, .. } | Self::Link { path, .. } => {
                ("making", path)
            }
            Self::MountLink { path, .. } => ("mounting a link on", path),
            Self::Pin { path } => ("pinning", path),
            Self::Fix { path } => ("protecting", path),
            Self::Cover { path, .. } => ("hiding", path),
            Self::Seal { path } => ("sealing", path),
        };
        format!("{what} `{}`", path.to_string_lossy())
    }
}

/// A place that Landlock lets a command write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writable<S = CString> {
    pub(crate) path: S,
    pub(crate) is_directory: bool,
}

impl Writable {
    /// The same, with its path where it is.
    pub(crate) fn borrowed(&self) -> Writable<&CStr> {
        Writable { path: &self.path, is_directory: self.is_directory }
    }
}

/// What is counted while a command runs. Zero means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u64,
    pub(crate) disk_bytes: u64,
    /// Tells whether `/tmp` is a tmpfs of the command's own.
    pub(crate) tmp_is_tmpfs: bool,
}

impl Watch {
    /// Tells whether anything is counted.
    pub(crate) fn counts(&self) -> bool {
        self.memory_bytes > 0 || self.processes > 0 || self.disk_bytes > 0
    }

    /// The file systems in memory that the command can write to.
    pub(crate) fn tmpfs(&self) -> &'static [&'static CStr] {
        if self.tmp_is_tmpfs { &[c"/dev/shm", c"/tmp"] } else { &[c"/dev/shm"] }
    }
}

/// Everything a child needs to put itself behind walls with namespaces.
#[derive(Debug)]
pub(crate) struct Blueprint {
    pub(crate) steps: Vec<Step>,
    pub(crate) writable: Vec<Writable>,
    pub(crate) filter: Vec<Instruction>,
    pub(crate) own_network: bool,
    pub(crate) forbidden: Option<CString>,
    pub(crate) rlimits: Vec<(u32, u64)>,
    /// What the command goes into its cgroup by, if it has one.
    pub(crate) cgroup: Option<RawFd>,
    pub(crate) watch: Watch,
    /// What may not be read inside what may be written.
    pub(crate) hidden_inside: Vec<PathBuf>,
    pub(crate) not_covered: Vec<String>,
}

impl Blueprint {
    /// Draws walls for the rung with namespaces.
    pub(crate) fn draw(
        walls: &Walls,
        quota: &Quota,
        ground: Ground<'_>,
        plan: &WritablePlan<'_>,
    ) -> Result<Self, Impossible> {
        let writable_trees: Vec<_> = plan.roots.iter().map(|root| root.path.clone()).collect();
        let mut protected = plan.protected.clone();
        let mut not_covered = protected.not_covered.clone();
        let hidden = hidden(walls, ground, &writable_trees, &mut not_covered);
        for path in &hidden {
            if let Some(root) = writable_trees.iter().find(|root| path.starts_with(root)) {
                let above = path.ancestors().skip(1).take_while(|above| above != root);
                protected.pinned.extend(above.map(Path::to_owned));
            }
        }
        let is_inside = |path: &&PathBuf| writable_trees.iter().any(|tree| path.starts_with(tree));
        let hidden_inside = hidden.iter().filter(is_inside).cloned().collect();
        let mut drawing = Drawing::default();
        let tmpfs = TmpfsOptions::new(quota, ground);
        let mut shown = shown(walls, &hidden);
        let cache = ground.package_cache.map(Path::to_owned);
        // The home of Windlass is hidden, and the cache is in it.
        let (inside, beside) = cache.iter().partition::<Vec<_>, _>(|cache| is_below(cache, &hidden));
        shown.extend(inside.into_iter().cloned());
        drawing.beside = beside.into_iter().cloned().collect();
        drawing.files(plan, &shown, ground, &tmpfs)?;
        drawing.inside(&protected, &hidden, Shown { all: &shown, writable: cache.as_deref() })?;
        let own_network = walls.network == Network::None;
        let scope = Scope { sockets: Sockets::Watched, processes: Processes::Own };
        if !own_network {
            not_covered.push("which hosts are reached: the network was granted as a whole".to_owned());
        }
        not_covered.extend(uncounted(quota));
        Ok(Self {
            steps: drawing.steps,
            writable: landlock_rules(
                &[writable_trees.as_slice(), cache.as_slice()].concat(),
                !plan.private_configs.is_empty(),
            )?,
            filter: match quota.disk_bytes {
                Some(_) => seccomp::filter_with_disk_limit(scope),
                None => seccomp::filter(scope),
            },
            own_network,
            forbidden: forbidden_file(&writable_trees, ground.home),
            rlimits: rlimits(quota, quota.process_limit().map(|limit| limit.saturating_add(HEADROOM))),
            cgroup: None,
            watch: Watch {
                memory_bytes: quota.memory_limit().unwrap_or(0),
                processes: quota.process_limit().unwrap_or(0),
                disk_bytes: quota.disk_bytes.unwrap_or(0),
                tmp_is_tmpfs: tmpfs.at_tmp,
            },
            hidden_inside,
            not_covered,
        })
    }
}

/// What counting leaves out, one line each.
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

/// How the file systems in memory are mounted.
#[derive(Debug)]
struct TmpfsOptions {
    /// Mode and size: what lies there counts as memory, and where disk is limited, as disk.
    options: String,
    /// Tells whether `/tmp` is one of them. Where disk is limited it is: nothing else limits what lies there.
    at_tmp: bool,
}

impl TmpfsOptions {
    fn new(quota: &Quota, ground: Ground<'_>) -> Self {
        let limits = [quota.disk_bytes, quota.memory_limit()];
        let size = limits.into_iter().flatten().min();
        let size = size.map_or_else(String::new, |bytes| format!(",size={bytes}"));
        let at_tmp = ground.temporary.is_none() || quota.disk_bytes.is_some();
        Self { options: format!("mode=1777{size}"), at_tmp }
    }
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

fn landlock_rules(trees: &[PathBuf], with_git_configs: bool) -> Result<Vec<Writable>, Impossible> {
    let tree = |path: &Path| Ok(Writable { path: c(path)?, is_directory: true });
    let mut rules = trees.iter().map(|path| tree(path)).collect::<Result<Vec<_>, Impossible>>()?;
    let configs = with_git_configs.then_some(GIT_CONFIGS);
    let var_tmp = has_var_tmp().then_some(VAR_TMP);
    for path in ["/tmp", "/dev/shm", "/dev/pts"].into_iter().chain(var_tmp).chain(configs) {
        rules.push(tree(Path::new(path))?);
    }
    for device in DEVICES {
        rules.push(Writable { path: c(Path::new("/dev").join(device))?, is_directory: false });
    }
    Ok(rules)
}

/// Returns a file that the user could make, and no command may: unless it may write there.
pub(crate) fn forbidden_file(trees: &[PathBuf], home: Option<&Path>) -> Option<CString> {
    let is_private = |place: &Path| PRIVATE.iter().any(|private| place.starts_with(private));
    let free = |place: &&Path| {
        place.is_dir() && !is_private(place) && !trees.iter().any(|tree| place.starts_with(tree))
    };
    let place = home.into_iter().chain(["/run/lock", "/var"].map(Path::new)).find(free)?;
    c(place.join(format!(".windlass-canary-{}", std::process::id()))).ok()
}

/// The second directory for temporary files, kept across restarts of the system. Confined commands have their own.
const VAR_TMP: &str = "/var/tmp";

/// Directories of which confined commands have their own.
const PRIVATE: [&str; 2] = ["/tmp", VAR_TMP];

/// Returns whether there is a `/var/tmp`, and it is no link to another directory.
fn has_var_tmp() -> bool {
    Path::new(VAR_TMP).symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Returns which directory that commands have their own of a path lies in.
fn private_top(path: &Path) -> Option<&'static Path> {
    PRIVATE.iter().map(Path::new).find(|private| path.starts_with(private))
}

/// Returns what of the system's `/var/tmp` stays to be seen in the command's own: the directories there that hold the
/// workspace, another root or the home directory.
fn kept_in_var_tmp(trees: &[PathBuf], ground: Ground<'_>) -> Vec<PathBuf> {
    let needed = trees.iter().map(PathBuf::as_path).chain([ground.cwd]).chain(ground.home);
    let mut kept: Vec<_> = needed
        .filter_map(|path| path.strip_prefix(VAR_TMP).ok()?.iter().next())
        .map(|name| Path::new(VAR_TMP).join(name))
        .filter(|path| has_var_tmp() && path.symlink_metadata().is_ok_and(|found| found.is_dir()))
        .collect();
    kept.sort();
    kept.dedup();
    kept
}

fn is_below(path: &Path, trees: &[PathBuf]) -> bool {
    trees.iter().any(|tree| path.starts_with(tree))
}

/// What is seen inside what is hidden.
#[derive(Debug, Clone, Copy)]
struct Shown<'a> {
    all: &'a [PathBuf],
    /// The one of them that may be written.
    writable: Option<&'a Path>,
}

/// Collects steps.
#[derive(Debug, Default)]
struct Drawing {
    steps: Vec<Step>,
    /// The first slot of what is shown inside something hidden.
    shown_slot: usize,
    /// Writable directories beside the roots.
    beside: Vec<PathBuf>,
    /// To be mounted after the directories they are in were pinned.
    git_links: Vec<Step>,
}

impl Drawing {
    /// The view from afar: what is held, what is new, what is read-only.
    fn files(
        &mut self,
        plan: &WritablePlan<'_>,
        shown: &[PathBuf],
        ground: Ground<'_>,
        tmpfs: &TmpfsOptions,
    ) -> Result<(), Impossible> {
        let mut held: Vec<(PathBuf, PathBuf)> = DEVICES
            .iter()
            .map(|name| Path::new("/dev").join(name))
            .map(|path| (path.clone(), path))
            .collect();
        if let Some(temporary) = ground.temporary.filter(|_| !tmpfs.at_tmp) {
            held.push((temporary.to_owned(), "/tmp".into()));
            let second = has_var_tmp().then(|| temporary::make_second(temporary)).flatten();
            held.extend(second.map(|second| (second, VAR_TMP.into())));
        }
        let private = held.len();
        let trees: Vec<_> = plan.roots.iter().map(|root| root.path.clone()).collect();
        let kept = kept_in_var_tmp(&trees, ground);
        // What lies in the system's own /tmp disappears behind the private one, unless the command works there.
        let works = Some(ground.cwd.to_owned())
            .filter(|cwd| private_top(cwd).is_some() && !trees.iter().any(|tree| cwd.starts_with(tree)));
        held.extend(works.iter().chain(&self.beside).map(|tree| (tree.clone(), tree.clone())));
        let configs = plan.private_configs.first().and_then(|config| config.directory.parent());
        held.extend(configs.map(|store| (store.to_owned(), PathBuf::from(GIT_CONFIGS))));
        let by_path = held.len();
        held.extend(trees.iter().map(|tree| (tree.clone(), tree.clone())));
        if held.len() + shown.len() + kept.len() > HELD_LIMIT {
            return Err(Impossible(format!("more than {HELD_LIMIT} directories are to be carried over")));
        }
        let held_paths = held.iter().take(by_path).map(|(path, _)| path);
        self.shown_slot = held.len();
        for (slot, path) in held_paths.enumerate() {
            self.steps.push(Step::Hold { path: c(path)?, slot });
        }
        for (slot, root) in (by_path..).zip(plan.roots) {
            let directory = root.handle.as_fd().as_raw_fd();
            self.steps.push(Step::HoldRoot { directory, path: c(&root.path)?, slot });
        }
        for (slot, path) in (self.shown_slot..).zip(shown) {
            self.steps.push(Step::Hold { path: c(path)?, slot });
        }
        self.steps.push(Step::AllReadOnly);
        // Held read-only, as everything is by now.
        let kept_slot = self.shown_slot + shown.len();
        for (slot, path) in (kept_slot..).zip(&kept) {
            self.steps.push(Step::Hold { path: c(path)?, slot });
        }
        if tmpfs.at_tmp {
            self.memory("/tmp", &tmpfs.options)?;
            if has_var_tmp() {
                self.memory(VAR_TMP, &tmpfs.options)?;
            }
        }
        self.devices(tmpfs)?;
        if configs.is_some() {
            self.steps.push(Step::Directory { path: c(GIT_CONFIGS)?, mode: 0o755 });
        }
        self.steps.push(Step::Processes { path: c("/proc")? });
        let places = held.iter().map(|(_, path)| path).enumerate();
        let (first, rest) = places.partition::<Vec<_>, _>(|(slot, _)| *slot < private);
        for (slot, path) in first.into_iter().chain((kept_slot..).zip(&kept)).chain(rest) {
            if let Some(top) = private_top(path).filter(|top| path != top) {
                self.directories(top, path)?;
            }
            self.steps.push(Step::Place { slot, path: c(path)? });
        }
        if works.is_some() {
            self.steps.push(Step::Seal { path: c(ground.cwd)? });
        }
        self.git_configs(plan.private_configs)
    }

    /// Has the settings of each repository lead to the command's copy of them. Git follows a link to write them, but
    /// could not rename a file over a mount.
    fn git_configs(&mut self, configs: &[PrivateConfig]) -> Result<(), Impossible> {
        for (number, config) in configs.iter().enumerate() {
            let name = config.directory.file_name().unwrap_or_default();
            let link = c(format!("/dev/.git-config-{number}"))?;
            let target = c(Path::new(GIT_CONFIGS).join(name).join(CONFIG_NAME))?;
            self.steps.push(Step::Link { path: link.clone(), target });
            self.git_links.push(Step::MountLink { path: c(&config.path)?, link });
        }
        Ok(())
    }

    fn directories(&mut self, top: &Path, path: &Path) -> Result<(), Impossible> {
        for above in directories_between(top, path) {
            self.steps.push(Step::Directory { path: c(above)?, mode: 0o755 });
        }
        Ok(())
    }

    fn memory(&mut self, path: &str, options: &str) -> Result<(), Impossible> {
        self.steps.push(Step::Memory { path: c(path)?, options: c(options)? });
        Ok(())
    }

    /// A `/dev` with what every program may use, and nothing else.
    fn devices(&mut self, tmpfs: &TmpfsOptions) -> Result<(), Impossible> {
        self.memory("/dev", "mode=755")?;
        for device in DEVICES {
            self.steps.push(Step::File { path: c(Path::new("/dev").join(device))?, mode: 0o666 });
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            self.steps.push(Step::Link { path: c(Path::new("/dev").join(name))?, target: c(target)? });
        }
        for name in ["/dev/pts", "/dev/shm"] {
            self.steps.push(Step::Directory { path: c(name)?, mode: 0o755 });
        }
        self.steps.push(Step::File { path: HIDDEN_FILE.to_owned(), mode: 0 });
        self.steps.push(Step::Directory { path: HIDDEN_DIRECTORY.to_owned(), mode: 0 });
        self.steps.push(Step::Terminals { path: c("/dev/pts")? });
        self.memory("/dev/shm", &tmpfs.options)
    }

    /// The view from near: what must not change or be seen inside what may be written.
    fn inside(
        &mut self,
        protected: &ProtectedPaths,
        hidden: &[PathBuf],
        Shown { all: shown, writable }: Shown<'_>,
    ) -> Result<(), Impossible> {
        for path in &protected.pinned {
            self.steps.push(Step::Pin { path: c(path)? });
        }
        for path in &protected.read_only {
            self.steps.push(Step::Fix { path: c(path)? });
        }
        self.steps.append(&mut self.git_links);
        let visible = |path: &&PathBuf| {
            let in_tmp = private_top(path).is_some();
            let in_tree = self.steps.iter().any(|step| match step {
                Step::Place { path: place, .. } => {
                    let place = as_path(place);
                    !PRIVATE.iter().any(|private| place == Path::new(private)) && path.starts_with(place)
                }
                _ => false,
            });
            !in_tmp || in_tree
        };
        let hidden: Vec<_> = hidden.iter().filter(visible).collect();
        // An empty place that the shown can be put into, where there is something to show.
        let (emptied, covered): (Vec<&PathBuf>, Vec<_>) =
            hidden.into_iter().partition(|path| shown.iter().any(|each| each.starts_with(path)));
        for path in covered {
            let with = if path.is_dir() { HIDDEN_DIRECTORY } else { HIDDEN_FILE };
            self.steps.push(Step::Cover { path: c(path)?, with: with.to_owned() });
        }
        for path in &emptied {
            self.steps.push(Step::Memory { path: c(path)?, options: c("mode=755,size=64k")? });
        }
        for (slot, path) in (self.shown_slot..).zip(shown) {
            let emptied = emptied.iter().find(|top| path.starts_with(top)).map(|top| top.as_path());
            let top = emptied.or_else(|| private_top(path)).unwrap_or(Path::new("/tmp"));
            self.directories(top, path)?;
            self.steps.push(Step::Place { slot, path: c(path)? });
            if Some(path.as_path()) != writable {
                self.steps.push(Step::Seal { path: c(path)? });
            }
        }
        for path in emptied {
            self.steps.push(Step::Seal { path: c(path)? });
        }
        self.steps.push(Step::Seal { path: c("/dev")? });
        Ok(())
    }
}

/// Where a command finds its copies of git's settings.
const GIT_CONFIGS: &str = "/dev/.git-config";

/// What a command may write, and what of it must not change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WritablePlan<'a> {
    pub(crate) roots: &'a [Arc<WorkspaceRoot>],
    pub(crate) protected: &'a ProtectedPaths,
    pub(crate) private_configs: &'a [PrivateConfig],
}

impl WritablePlan<'static> {
    /// Nothing may be written.
    pub(crate) fn nothing() -> Self {
        static NOTHING: ProtectedPaths = ProtectedPaths::nothing();
        Self { roots: &[], protected: &NOTHING, private_configs: &[] }
    }
}

/// What is put in the place of what may not be read.
pub(crate) const HIDDEN_FILE: &CStr = c"/dev/.hidden-file";
pub(crate) const HIDDEN_DIRECTORY: &CStr = c"/dev/.hidden-directory";

fn directories_between<'a>(top: &Path, path: &'a Path) -> Vec<&'a Path> {
    let mut between: Vec<_> = path.ancestors().take_while(|above| *above != top).collect();
    between.reverse();
    between
}

fn as_path(string: &CString) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(string.as_bytes()))
}

fn c(path: impl AsRef<Path>) -> Result<CString, Impossible> {
    let path = path.as_ref();
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Impossible(format!("`{}` contains a NUL byte", path.display())))
}
