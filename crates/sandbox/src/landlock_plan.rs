//! A sandbox without namespaces: Landlock's rules and a seccomp filter.
//!
//! Landlock has no "all but". What may not be read is left out by naming everything around it.

use std::{
    ffi::CString,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    path::Path,
    sync::Arc,
};

use windlass_contract::{
    effects::Network,
    grant::{Quota, SandboxRules},
};

use crate::{
    cgroup::REMEDY,
    hidden_paths::{hidden, shown},
    namespace_plan::{forbidden_file, rlimits},
    sandbox_paths::{PlanError, SandboxPaths},
    seccomp::AllowedSockets,
    sys::restrictions::{ChildRestrictions, EscapeTest, LandlockRules, NetworkTest, SeccompFilter},
    writable_plan::WritablePlan,
};

mod rules;

pub(crate) use rules::RulesetCache;
use rules::RulesetRequest;

/// The first version that knows about truncation: before it, files outside could be emptied.
pub(crate) const NEEDED_VERSION: u32 = 3;

/// The first version that keeps signals and abstract sockets inside.
const SCOPING_VERSION: u32 = 6;

/// Everything that a child needs to be confined by Landlock and a seccomp filter.
#[derive(Debug)]
pub(crate) struct LandlockPlan {
    rules: Arc<OwnedFd>,
    sockets: AllowedSockets,
    rlimits: Vec<(u32, u64)>,
    /// Descriptor of `cgroup.procs`, if the command has a cgroup.
    pub(crate) cgroup: Option<RawFd>,
    forbidden: Option<CString>,
    network: NetworkTest,
    pub(crate) not_covered: Vec<String>,
}

impl<'a> From<&'a LandlockPlan> for ChildRestrictions<'a> {
    fn from(plan: &'a LandlockPlan) -> Self {
        let files = LandlockRules::Given(plan.rules.as_raw_fd());
        let canary = EscapeTest { file: plan.forbidden.as_deref(), network: plan.network };
        let cgroup = plan.cgroup;
        let filter = SeccompFilter::Inherited(plan.sockets);
        Self { cgroup, rlimits: &plan.rlimits, files, filter, canary }
    }
}

impl LandlockPlan {
    /// Makes the plan for Landlock, or returns the reason why Landlock cannot enforce the rules.
    pub(crate) fn new(
        sandbox_rules: &SandboxRules,
        quota: &Quota,
        paths: SandboxPaths<'_>,
        writable: &WritablePlan<'_>,
        (version, rules): (u32, &RulesetCache),
    ) -> Result<Self, PlanError> {
        if version < NEEDED_VERSION {
            return Err(PlanError(format!(
                "there are no namespaces here, and Landlock has version {version} where {NEEDED_VERSION} is needed"
            )));
        }
        let mut trees: Vec<_> = writable.roots.iter().map(|root| root.path.to_owned()).collect();
        let mut not_covered = self::not_covered(version);
        not_covered.extend(writable.protected.not_covered.iter().cloned());
        let hidden = hidden(sandbox_rules, paths, &trees, &mut not_covered);
        if let Some(path) = hidden.iter().find(|path| trees.iter().any(|tree| path.starts_with(tree))) {
            return Err(PlanError(format!(
                "without namespaces `{}` cannot be hidden inside a directory that may be written",
                path.display()
            )));
        }
        if quota.processes.is_some() {
            return Err(PlanError(format!(
                "without namespaces or a cgroup to divide, processes cannot be limited; remedy: {REMEDY}"
            )));
        }
        if quota.disk_bytes.is_some() {
            return Err(PlanError("without namespaces disk cannot be limited".to_owned()));
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
        let (sockets, network) = match sandbox_rules.network {
            Network::None => (AllowedSockets::Pairs, NetworkTest::NoSocket),
            Network::Any => (AllowedSockets::Internet, NetworkTest::Granted),
        };
        let forbidden = forbidden_file(&trees, paths.home);
        let shown = shown(sandbox_rules, &hidden);
        trees.extend(paths.temporary.into_iter().chain(paths.package_cache).map(Path::to_owned));
        let offline = sandbox_rules.network == Network::None;
        let request = RulesetRequest { trees, hidden, shown, offline, version };
        let memory = quota.memory_bytes.map(|bytes| (libc::RLIMIT_DATA, bytes));
        Ok(Self {
            rules: rules.get_or_create(request)?,
            sockets,
            cgroup: None,
            rlimits: rlimits(quota, None).into_iter().chain(memory).collect(),
            forbidden,
            network,
            not_covered,
        })
    }
}

/// Returns the limitations of this mechanism, one line each.
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
