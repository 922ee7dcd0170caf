//! Walls for the rung without namespaces: Landlock's rules and a filter.
//!
//! Landlock has no "all but". What may not be read is left out by naming everything around it.

use std::{
    ffi::CString,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    path::Path,
    sync::Arc,
};

use windlass_contract::{Network, Quota, Walls};

use crate::{
    blueprint::{WritablePlan, forbidden_file, rlimits},
    cgroup::REMEDY,
    ground::{Ground, Impossible, hidden, shown},
    seccomp::Sockets,
    sys::restrictions::{
        ChildRestrictions as Hold, EscapeTest as Canary, LandlockRules as Files, NetworkTest as Reach,
        SeccompFilter as Filter,
    },
};

mod rules;

pub(crate) use rules::Rules;
use rules::Wanted;

/// The first version that knows about truncation: before it, files outside could be emptied.
pub(crate) const NEEDED_VERSION: u32 = 3;

/// The first version that keeps signals and abstract sockets inside.
const SCOPING_VERSION: u32 = 6;

/// Everything a child needs to be held by Landlock and a filter.
#[derive(Debug)]
pub(crate) struct Fence {
    rules: Arc<OwnedFd>,
    sockets: Sockets,
    rlimits: Vec<(u32, u64)>,
    /// What the command goes into its cgroup by, if it has one.
    pub(crate) cgroup: Option<RawFd>,
    forbidden: Option<CString>,
    network: Reach,
    pub(crate) not_covered: Vec<String>,
}

impl<'a> From<&'a Fence> for Hold<'a> {
    fn from(fence: &'a Fence) -> Self {
        let files = Files::Given(fence.rules.as_raw_fd());
        let canary = Canary { file: fence.forbidden.as_deref(), network: fence.network };
        let cgroup = fence.cgroup;
        let filter = Filter::Inherited(fence.sockets);
        Self { cgroup, rlimits: &fence.rlimits, files, filter, canary }
    }
}

impl Fence {
    /// Draws walls for this rung, or says why it cannot hold them.
    pub(crate) fn draw(
        walls: &Walls,
        quota: &Quota,
        ground: Ground<'_>,
        writable: &WritablePlan<'_>,
        (version, rules): (u32, &Rules),
    ) -> Result<Self, Impossible> {
        if version < NEEDED_VERSION {
            return Err(Impossible(format!(
                "there are no namespaces here, and Landlock has version {version} where {NEEDED_VERSION} is needed"
            )));
        }
        let mut trees: Vec<_> = writable.roots.iter().map(|root| root.path.clone()).collect();
        let mut not_covered = self::not_covered(version);
        not_covered.extend(writable.protected.not_covered.iter().cloned());
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
        } else if quota.defaults.memory_bytes.is_some() {
            not_covered.push("the default limit on memory: without namespaces it is not counted".to_owned());
        }
        if quota.defaults.processes.is_some() {
            not_covered
                .push("the default limit on processes: without namespaces they are not counted".to_owned());
        }
        let (sockets, network) = match walls.network {
            Network::None => (Sockets::Pairs, Reach::NoSocket),
            Network::Any => (Sockets::Internet, Reach::Granted),
        };
        let forbidden = forbidden_file(&trees, ground.home);
        let shown = shown(walls, &hidden);
        trees.extend(ground.temporary.into_iter().chain(ground.package_cache).map(Path::to_owned));
        let offline = walls.network == Network::None;
        let wanted = Wanted { trees, hidden, shown, offline, version };
        let memory = quota.memory_bytes.map(|bytes| (libc::RLIMIT_DATA, bytes));
        Ok(Self {
            rules: rules.of(wanted)?,
            sockets,
            cgroup: None,
            rlimits: rlimits(quota, None).into_iter().chain(memory).collect(),
            forbidden,
            network,
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
