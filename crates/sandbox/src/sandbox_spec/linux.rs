//! The two mechanisms of Linux: namespaces, and Landlock with a seccomp filter alone.

use std::{os::fd::AsRawFd, path::Path, sync::OnceLock};

use windlass_contract::grant::{Accounting, DefaultLimits, Limits, Mechanism, Quota, SandboxRules};

use super::{LaunchedChild, SandboxSpec, confine, no_layer, plan_error};
use crate::{
    cgroup::{self, CommandCgroup},
    id_maps::IdMaps,
    landlock_plan::{LandlockPlan, NEEDED_VERSION, RulesetCache},
    namespace_plan::NamespacePlan,
    program::Program,
    sandbox_paths::{PlanError, SandboxPaths},
    sys::{
        self, ChildStdio, StartError, Zygotes, landlock,
        namespaces::{self, NamespaceSupport},
        restrictions::ChildRestrictions,
        shared_namespaces::SharedNamespaces,
    },
    writable_plan::WritablePlan,
};

/// The mechanisms of this machine, detected when they are needed.
#[derive(Debug, Default)]
pub struct Mechanisms {
    /// Reason why there are no namespaces, once that is known.
    no_namespaces: OnceLock<String>,
    version: OnceLock<u32>,
    shared: OnceLock<SharedNamespaces>,
    /// Shared namespaces for commands on a layer, where more ids than the user's own can be mapped.
    layered: OnceLock<SharedNamespaces>,
    rules: RulesetCache,
}

impl Mechanisms {
    /// Returns the version of Landlock, or 0 if there is none.
    pub fn landlock(&self) -> u32 {
        *self.version.get_or_init(landlock::abi_version)
    }

    /// Returns the mechanism for the next command: namespaces, unless this machine is known to have
    /// none.
    pub fn preferred(&self) -> Mechanism {
        if self.no_namespaces.get().is_none() { Mechanism::Namespaces } else { Mechanism::Landlock }
    }

    /// Checks that there is a mechanism for commands. An error says what is missing.
    pub fn probe(&self) -> Result<(), String> {
        let version = self.landlock();
        if version >= NEEDED_VERSION || self.shared.get().is_some() {
            return Ok(());
        }
        self.try_namespaces().map_err(|reason| {
            format!("no namespaces ({reason}), and Landlock has version {version} where {NEEDED_VERSION} is needed")
        })
    }

    /// Returns the shared state that namespaces need. Made for the first command.
    fn namespace_support(&self) -> Result<NamespaceSupport<'_>, StartError> {
        let landlock = self.landlock();
        if let Some(commons) = self.shared.get() {
            return Ok(NamespaceSupport { landlock, shared: commons });
        }
        let commons = SharedNamespaces::new()?;
        Ok(NamespaceSupport { landlock, shared: self.shared.get_or_init(|| commons) })
    }

    /// Returns the shared state for a command on a layer: an overlay cannot change a file whose
    /// owner is not mapped.
    fn layer_support(&self) -> Result<NamespaceSupport<'_>, StartError> {
        let maps = IdMaps::for_layers();
        if !maps.has_others() {
            return self.namespace_support();
        }
        let shared = if let Some(shared) = self.layered.get() {
            shared
        } else {
            let made = SharedNamespaces::with_id_maps(&maps)?;
            self.layered.get_or_init(|| made)
        };
        Ok(NamespaceSupport { landlock: self.landlock(), shared })
    }

    /// Tries namespaces with nothing in them. The reason, if this machine does not have them.
    pub fn try_namespaces(&self) -> Result<(), String> {
        if let Some(reason) = self.no_namespaces.get() {
            return Err(reason.clone());
        }
        let paths = SandboxPaths {
            home: None,
            cwd: Path::new("/"),
            temporary: None,
            sockets: None,
            package_cache: None,
            hidden: None,
            named: &[],
        };
        let tried = NamespacePlan::new(
            &SandboxRules::default(),
            &Limits::default().quota,
            paths,
            &WritablePlan::nothing(),
        )
        .map_err(|PlanError(reason)| reason)
        .and_then(|empty| {
            let rehearsed =
                self.namespace_support().and_then(|support| namespaces::rehearse(&empty, support));
            rehearsed.map_err(|error| in_words(&error))
        });
        tried.map_err(|reason| self.no_namespaces.get_or_init(|| reason).clone())
    }

    /// Leaves namespaces out, for tests and measurements of Landlock alone.
    pub fn without_namespaces(&self, reason: &str) {
        // Someone else may have said so before.
        let _known = self.no_namespaces.set(reason.to_owned());
    }
}

fn in_words(error: &StartError) -> String {
    match error {
        StartError::Directory(error) | StartError::Program(error) => error.to_string(),
        StartError::Confine(step, error) => format!("{step}: {error}"),
        StartError::Impossible(reason) => reason.clone(),
    }
}

impl SandboxSpec {
    /// Starts a program held by one mechanism of this machine. A mechanism that it does not have is
    /// an error.
    pub fn launch(
        &self,
        mechanism: Mechanism,
        writable: &WritablePlan<'_>,
        (program, stdio): (&Program, ChildStdio),
        zygotes: &mut Zygotes,
    ) -> Result<LaunchedChild, StartError> {
        match mechanism {
            Mechanism::Landlock if writable.has_layers() => Err(no_layer()),
            Mechanism::Namespaces => self.launch_in_namespaces(writable, program, stdio, zygotes),
            Mechanism::Landlock => self.launch_with_landlock(writable, program, stdio, zygotes),
            other => Err(StartError::Impossible(format!("Linux has no `{}`", other.name()))),
        }
    }

    /// A cgroup for what the kernel can limit there, if any of it is limited and there can be one;
    /// and the limits that are left to others.
    fn create_cgroup(&self) -> Result<(Option<CommandCgroup>, Quota), StartError> {
        let quota = self.limits.quota;
        if quota.memory_bytes.is_none() && quota.processes.is_none() {
            return Ok((None, quota));
        }
        let Ok(tree) = cgroup::divided() else { return Ok((None, quota)) };
        let cgroup = tree.create_cgroup(&quota).map_err(|error| confine("making a cgroup", error))?;
        Ok((Some(cgroup), quota.without_memory_and_processes()))
    }

    fn launch_in_namespaces(
        &self,
        writable: &WritablePlan<'_>,
        program: &Program,
        stdio: ChildStdio,
        zygotes: &mut Zygotes,
    ) -> Result<LaunchedChild, StartError> {
        let temporary =
            self.temporary.lasting().map_err(|error| confine("making a temporary directory", error))?;
        let (cgroup, quota) = self.create_cgroup()?;
        let paths = self.paths(temporary);
        let mut plan = NamespacePlan::new(&self.rules, &quota, paths, writable).map_err(plan_error)?;
        plan.show_terminal(&stdio.input);
        plan.cgroup = cgroup.as_ref().map(|cgroup| cgroup.cgroup_procs.as_raw_fd());
        let changes = self.variables(Mechanism::Namespaces, Path::new("/tmp"), program);
        let program = program.with(&changes)?;
        let mechanisms = &self.mechanisms;
        let support =
            if writable.has_layers() { mechanisms.layer_support() } else { mechanisms.namespace_support() }?;
        let started = namespaces::start(&program, &plan, support, stdio, zygotes)?;
        let held = self.held(Mechanism::Namespaces, accounting(cgroup.as_ref(), &quota), plan.not_covered);
        Ok(LaunchedChild { started: started.within(cgroup), held, hidden_in_roots: plan.hidden_inside })
    }

    fn launch_with_landlock(
        &self,
        writable: &WritablePlan<'_>,
        program: &Program,
        stdio: ChildStdio,
        zygotes: &mut Zygotes,
    ) -> Result<LaunchedChild, StartError> {
        let temporary =
            self.temporary.path().map_err(|error| confine("making a temporary directory", error))?;
        let (cgroup, quota) = self.create_cgroup()?;
        let landlock = (self.mechanisms.landlock(), &self.mechanisms.rules);
        let paths = self.paths(Some(temporary));
        let mut plan =
            LandlockPlan::new(&self.rules, &quota, paths, writable, landlock).map_err(plan_error)?;
        plan.cgroup = cgroup.as_ref().map(|cgroup| cgroup.cgroup_procs.as_raw_fd());
        let program = program.with(&self.variables(Mechanism::Landlock, temporary, program))?;
        let started = sys::start(&program, stdio, Some(ChildRestrictions::from(&plan)), zygotes)?;
        let asked_for = Quota { defaults: DefaultLimits::default(), ..quota };
        let held = self.held(Mechanism::Landlock, accounting(cgroup.as_ref(), &asked_for), plan.not_covered);
        Ok(LaunchedChild { started: started.within(cgroup), held, hidden_in_roots: Vec::new() })
    }
}

/// Returns the mechanism that enforces limits on memory and processes; `left` has those without a
/// cgroup.
fn accounting(cgroup: Option<&CommandCgroup>, left: &Quota) -> Option<Accounting> {
    let counted = left.memory_limit().is_some() || left.process_limit().is_some();
    cgroup.map(|_| Accounting::Cgroup).or(counted.then_some(Accounting::Counted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_any_mechanism_is_told_from_one_with_the_weaker() {
        let without = |version| Mechanisms {
            no_namespaces: OnceLock::from("forbidden".to_owned()),
            version: OnceLock::from(version),
            ..Mechanisms::default()
        };
        assert_eq!(without(NEEDED_VERSION).probe(), Ok(()));
        assert!(without(0).probe().is_err_and(|reason| reason.contains("forbidden")));
    }
}
