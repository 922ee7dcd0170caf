//! Walls for the rung without namespaces: Landlock's rules and a filter.
//!
//! Landlock has no "all but". What may not be read is left out by naming everything around it.

use std::{
    ffi::CString,
    fs,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use windlass_contract::{Network, Quota, Walls};

use crate::{
    blueprint::{Writable, forbidden_file, rlimits},
    cgroup::REMEDY,
    ground::{Ground, Impossible, hidden, roots, shown},
    protect::Protection,
    seccomp::{self, Instruction, Processes, Scope, Sockets},
    sys::{
        hold::{Canary, Files, Hold, Reach},
        landlock::{self, Handled},
    },
};

/// The first version that knows about truncation: before it, files outside could be emptied.
pub(crate) const NEEDED_VERSION: u32 = 3;

/// The first version that keeps signals and abstract sockets inside.
const SCOPING_VERSION: u32 = 6;

/// How many paths are named around what may not be read.
const NAMED_LIMIT: usize = 8192;

/// Everything a child needs to be held by Landlock and a filter.
#[derive(Debug)]
pub(crate) struct Fence {
    rules: OwnedFd,
    filter: Vec<Instruction>,
    rlimits: Vec<(u32, u64)>,
    /// What the command goes into its cgroup by, if it has one.
    pub(crate) cgroup: Option<RawFd>,
    forbidden: Option<CString>,
    network: Reach,
    pub(crate) protection: Protection,
    pub(crate) not_covered: Vec<String>,
}

impl<'a> From<&'a Fence> for Hold<'a> {
    fn from(fence: &'a Fence) -> Self {
        let files = Files::Given(fence.rules.as_raw_fd());
        let canary = Canary { file: fence.forbidden.as_deref(), network: fence.network };
        let cgroup = fence.cgroup;
        Self { cgroup, rlimits: &fence.rlimits, files, filter: &fence.filter, listens: false, canary }
    }
}

impl Fence {
    /// Draws walls for this rung, or says why it cannot hold them.
    pub(crate) fn draw(
        walls: &Walls,
        quota: &Quota,
        ground: Ground<'_>,
        version: u32,
    ) -> Result<Self, Impossible> {
        if version < NEEDED_VERSION {
            return Err(Impossible(format!(
                "there are no namespaces here, and Landlock has version {version} where {NEEDED_VERSION} is needed"
            )));
        }
        let mut trees = roots(walls)?;
        let mut protection = Protection::of(&trees, ground.begins);
        protection.save();
        trees.extend(protection.also_writable.iter().cloned());
        let mut not_covered = self::not_covered(version);
        not_covered.extend(protection.not_covered());
        let hidden = hidden(walls, ground, &trees, &mut not_covered);
        if let Some(path) = hidden.iter().find(|path| trees.iter().any(|tree| path.starts_with(tree))) {
            return Err(Impossible(format!(
                "without namespaces `{}` cannot be hidden inside a directory that may be written",
                path.display()
            )));
        }
        if quota.processes.is_some() {
            return Err(Impossible(format!(
                "without namespaces or a cgroup to divide, processes cannot be limited; what helps: {REMEDY}"
            )));
        }
        if quota.disk_bytes.is_some() {
            return Err(Impossible("without namespaces disk cannot be limited".to_owned()));
        }
        if quota.memory_bytes.is_some() {
            not_covered.push("memory of all processes together: it is limited for each".to_owned());
        }
        let (sockets, network) = match walls.network {
            Network::None => (Sockets::Pairs, Reach::NoSocket),
            Network::Any => (Sockets::Internet, Reach::Granted),
        };
        let memory = quota.memory_bytes.map(|bytes| (libc::RLIMIT_DATA, bytes));
        Ok(Self {
            rules: rules(&trees, walls, &hidden, ground, version)?,
            filter: seccomp::filter(Scope { sockets, processes: Processes::Everyones }),
            cgroup: None,
            rlimits: rlimits(quota, None).into_iter().chain(memory).collect(),
            forbidden: forbidden_file(&trees),
            network,
            protection,
            not_covered,
        })
    }
}

/// What this rung leaves open.
pub(crate) fn not_covered(version: u32) -> Vec<String> {
    let mut lines = vec![
        "modes, owners, times and attributes of the user's files outside the roots can be changed".to_owned(),
        "the command lines of the user's other processes can be read".to_owned(),
        "protected files that exist can be changed while the command runs; they are put back when it has ended"
            .to_owned(),
    ];
    if version < SCOPING_VERSION {
        lines.push("the user's other processes can be sent signals".to_owned());
    }
    lines
}

fn rules(
    trees: &[PathBuf],
    walls: &Walls,
    hidden: &[PathBuf],
    ground: Ground<'_>,
    version: u32,
) -> Result<OwnedFd, Impossible> {
    let failed = |errno| {
        Impossible(format!("Landlock's rules cannot be made: {}", std::io::Error::from_raw_os_error(errno)))
    };
    let handled = Handled::writing(version).and_reading();
    let handled = if walls.network == Network::None { handled.and_tcp(version) } else { handled };
    let set = landlock::begin(handled).map_err(failed)?;
    let rules = landlock::own(set);
    let devices =
        ["null", "zero", "full", "random", "urandom", "tty"].map(|name| Path::new("/dev").join(name));
    for (path, is_directory) in trees
        .iter()
        .map(PathBuf::as_path)
        .chain(ground.temporary)
        .map(|path| (path, true))
        .chain(devices.iter().map(|path| (path.as_path(), false)))
    {
        let path = c(path)?;
        let place = Writable { path: path.as_c_str(), is_directory };
        landlock::allow_writing(set, handled, place).map_err(failed)?;
    }
    let mut around = Vec::new();
    name_around(Path::new("/"), hidden, &mut around)?;
    around.extend(shown(walls, hidden));
    for path in &around {
        match landlock::allow_reading(set, &c(path)?) {
            // Gone, or none of the user's: not naming it allows nothing.
            Ok(()) | Err(libc::ENOENT | libc::EACCES | libc::ENXIO) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(rules)
}

/// Names everything below a path but what is hidden.
fn name_around(path: &Path, hidden: &[PathBuf], named: &mut Vec<PathBuf>) -> Result<(), Impossible> {
    if named.len() > NAMED_LIMIT {
        return Err(Impossible("too many files lie around what may not be read".to_owned()));
    }
    if hidden.iter().any(|each| each == path) {
        return Ok(());
    }
    if !hidden.iter().any(|each| each.starts_with(path)) {
        named.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        // A link is followed by whoever opens it, and what it leads to is judged there.
        if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            name_around(&entry.path(), hidden, named)?;
        }
    }
    Ok(())
}

fn c(path: &Path) -> Result<CString, Impossible> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Impossible(format!("`{}` contains a NUL byte", path.display())))
}
