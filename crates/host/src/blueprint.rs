//! Walls in the form the system takes: everything a child needs to confine itself, worked out before it exists.
//!
//! What is here runs in the parent and may allocate. [`sys`](crate::sys) carries it out in the child and may not.

use std::{
    ffi::{CStr, CString},
    os::{fd::RawFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use windlass_contract::{Network, Quota, Walls};

use crate::{
    ground::{Ground, Impossible, hidden, roots, shown},
    protect::Protection,
    seccomp::{self, Instruction, Processes, Scope, Sockets},
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
            Self::AllReadOnly => Step::AllReadOnly,
            Self::Place { slot, path } => Step::Place { slot: *slot, path: put(path)? },
            Self::Memory { path, options } => Step::Memory { path: put(path)?, options: put(options)? },
            Self::Terminals { path } => Step::Terminals { path: put(path)? },
            Self::Processes { path } => Step::Processes { path: put(path)? },
            Self::Directory { path, mode } => Step::Directory { path: put(path)?, mode: *mode },
            Self::File { path, mode } => Step::File { path: put(path)?, mode: *mode },
            Self::Link { path, target } => Step::Link { path: put(path)?, target: put(target)? },
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
            Self::Hold { path, .. } => ("carrying over", path),
            Self::Place { path, .. } => ("placing", path),
            Self::Memory { path, .. } => ("mounting memory at", path),
            Self::Terminals { path } => ("mounting terminals at", path),
            Self::Processes { path } => ("mounting processes at", path),
            Self::Directory { path, .. } | Self::File { path, .. } | Self::Link { path, .. } => {
                ("making", path)
            }
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
    pub(crate) protection: Protection,
    pub(crate) not_covered: Vec<String>,
}

impl Blueprint {
    /// Draws walls for the rung with namespaces.
    pub(crate) fn draw(walls: &Walls, quota: &Quota, ground: Ground<'_>) -> Result<Self, Impossible> {
        let roots = roots(walls)?;
        let mut protection = Protection::of(&roots, ground.begins);
        let mut writable_trees = roots.clone();
        writable_trees.extend(protection.also_writable.iter().cloned());
        let mut not_covered: Vec<_> = protection.not_covered().collect();
        let hidden = hidden(walls, ground, &writable_trees, &mut not_covered);
        for path in &hidden {
            if let Some(root) = writable_trees.iter().find(|root| path.starts_with(root)) {
                let above = path.ancestors().skip(1).take_while(|above| above != root);
                protection.pinned.extend(above.map(Path::to_owned));
            }
        }
        protection.cover(&hidden);
        let mut drawing = Drawing::default();
        let tmpfs = TmpfsOptions::new(quota, ground);
        let shown = shown(walls, &hidden);
        drawing.files(&writable_trees, &shown, ground, &tmpfs)?;
        drawing.inside(&protection, &hidden, &shown)?;
        let own_network = walls.network == Network::None;
        let scope = Scope { sockets: Sockets::Watched, processes: Processes::Own };
        if !own_network {
            not_covered.push("which hosts are reached: the network was granted as a whole".to_owned());
        }
        not_covered.extend(uncounted(quota));
        Ok(Self {
            steps: drawing.steps,
            writable: landlock_rules(&writable_trees)?,
            filter: match quota.disk_bytes {
                Some(_) => seccomp::filter_with_disk_limit(scope),
                None => seccomp::filter(scope),
            },
            own_network,
            forbidden: forbidden_file(&writable_trees),
            rlimits: rlimits(quota, quota.process_limit().map(|limit| limit.saturating_add(HEADROOM))),
            cgroup: None,
            watch: Watch {
                memory_bytes: quota.memory_limit().unwrap_or(0),
                processes: quota.process_limit().unwrap_or(0),
                disk_bytes: quota.disk_bytes.unwrap_or(0),
                tmp_is_tmpfs: tmpfs.at_tmp,
            },
            protection,
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

fn landlock_rules(trees: &[PathBuf]) -> Result<Vec<Writable>, Impossible> {
    let tree = |path: &Path| Ok(Writable { path: c(path)?, is_directory: true });
    let mut rules = trees.iter().map(|path| tree(path)).collect::<Result<Vec<_>, Impossible>>()?;
    for path in ["/tmp", "/dev/shm", "/dev/pts"] {
        rules.push(tree(Path::new(path))?);
    }
    for device in DEVICES {
        rules.push(Writable { path: c(Path::new("/dev").join(device))?, is_directory: false });
    }
    Ok(rules)
}

/// A file that any user could make, and no command may: unless it may write there.
pub(crate) fn forbidden_file(trees: &[PathBuf]) -> Option<CString> {
    let place = Path::new("/var/tmp");
    let free = place.is_dir() && !trees.iter().any(|tree| place.starts_with(tree));
    free.then(|| c(place.join(format!(".windlass-canary-{}", std::process::id()))).ok()).flatten()
}

/// Collects steps.
#[derive(Debug, Default)]
struct Drawing {
    steps: Vec<Step>,
    /// The first slot of what is shown inside something hidden.
    shown_slot: usize,
}

impl Drawing {
    /// The view from afar: what is held, what is new, what is read-only.
    fn files(
        &mut self,
        trees: &[PathBuf],
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
        }
        // What lies in the system's own /tmp disappears behind the private one, unless the command works there.
        let works = Some(ground.cwd.to_owned())
            .filter(|cwd| cwd.starts_with("/tmp") && !trees.iter().any(|tree| cwd.starts_with(tree)));
        held.extend(works.iter().chain(trees).map(|tree| (tree.clone(), tree.clone())));
        if held.len() + shown.len() > HELD_LIMIT {
            return Err(Impossible(format!("more than {HELD_LIMIT} directories are to be carried over")));
        }
        let held_paths = held.iter().map(|(path, _)| path);
        self.shown_slot = held.len();
        for (slot, path) in held_paths.chain(shown).enumerate() {
            self.steps.push(Step::Hold { path: c(path)?, slot });
        }
        self.steps.push(Step::AllReadOnly);
        if tmpfs.at_tmp {
            self.memory("/tmp", &tmpfs.options)?;
        }
        self.devices(tmpfs)?;
        self.steps.push(Step::Processes { path: c("/proc")? });
        for (slot, (_, path)) in held.iter().enumerate() {
            if path.starts_with("/tmp") && path != Path::new("/tmp") {
                self.directories(Path::new("/tmp"), path)?;
            }
            self.steps.push(Step::Place { slot, path: c(path)? });
        }
        if works.is_some() {
            self.steps.push(Step::Seal { path: c(ground.cwd)? });
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
        protection: &Protection,
        hidden: &[PathBuf],
        shown: &[PathBuf],
    ) -> Result<(), Impossible> {
        for path in &protection.pinned {
            self.steps.push(Step::Pin { path: c(path)? });
        }
        for path in &protection.fixed {
            self.steps.push(Step::Fix { path: c(path)? });
        }
        let visible = |path: &&PathBuf| {
            let in_tmp = path.starts_with("/tmp");
            let in_tree = self.steps.iter().any(|step| match step {
                Step::Place { path: place, .. } => {
                    place.as_bytes() != b"/tmp" && path.starts_with(as_path(place))
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
            let top = emptied.iter().find(|top| path.starts_with(top)).map_or(Path::new("/tmp"), |top| top);
            self.directories(top, path)?;
            self.steps.push(Step::Place { slot, path: c(path)? });
            self.steps.push(Step::Seal { path: c(path)? });
        }
        for path in emptied {
            self.steps.push(Step::Seal { path: c(path)? });
        }
        self.steps.push(Step::Seal { path: c("/dev")? });
        Ok(())
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
