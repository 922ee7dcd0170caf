//! The two rungs of Linux: namespaces, and below them Landlock with a filter alone.

use std::{os::fd::AsRawFd, path::Path, sync::OnceLock};

use windlass_contract::{Accounting, DefaultLimits, Limits, Quota, Rung, Walls};

use super::{Enclosed, Site, confine, impossible};
use crate::{
    blueprint::{Blueprint, WritablePlan},
    cgroup::{self, Leaf},
    fence::{Fence, Rules},
    ground::{Ground, Impossible},
    program::Program,
    sys::{
        self, ChildStdio as Stdio, StartError, Zygotes as Starters, landlock,
        namespaces::{self as confined, NamespaceSupport as Standing},
        restrictions::ChildRestrictions as Hold,
        shared_namespaces::SharedNamespaces as Commons,
    },
};

/// How often walls are put up for one command.
const TRIES: usize = 8;

/// Which rungs this machine has, found out when it matters.
#[derive(Debug, Default)]
pub(crate) struct Ladder {
    /// Why there are no namespaces, once that is known.
    no_namespaces: OnceLock<String>,
    version: OnceLock<u32>,
    commons: OnceLock<Commons>,
    rules: Rules,
}

impl Ladder {
    /// The version of Landlock; 0 if there is none.
    pub(crate) fn landlock(&self) -> u32 {
        *self.version.get_or_init(landlock::abi_version)
    }

    /// What walls with namespaces stand on here. Made for the first command.
    fn standing(&self) -> Result<Standing<'_>, StartError> {
        let landlock = self.landlock();
        if let Some(commons) = self.commons.get() {
            return Ok(Standing { landlock, shared: commons });
        }
        let commons = Commons::new()?;
        Ok(Standing { landlock, shared: self.commons.get_or_init(|| commons) })
    }

    /// Tries namespaces with nothing in them. The reason, if this machine does not have them.
    pub(crate) fn try_namespaces(&self) -> Result<(), String> {
        if let Some(reason) = self.no_namespaces.get() {
            return Err(reason.clone());
        }
        let ground =
            Ground { home: None, cwd: Path::new("/"), temporary: None, sockets: None, package_cache: None };
        let tried =
            Blueprint::draw(&Walls::default(), &Limits::default().quota, ground, &WritablePlan::nothing())
                .map_err(|Impossible(reason)| reason)
                .and_then(|empty| {
                    let rehearsed = self.standing().and_then(|ground| confined::rehearse(&empty, ground));
                    rehearsed.map_err(|error| in_words(&error))
                });
        tried.map_err(|reason| self.no_namespaces.get_or_init(|| reason).clone())
    }

    /// Leaves namespaces out, for tests and measurements of the rung below.
    pub(crate) fn without_namespaces(&self, reason: &str) {
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

impl Site {
    /// Starts a program behind these walls.
    pub(crate) fn start(
        &self,
        program: &Program,
        stdio: Stdio,
        starters: &mut Starters,
    ) -> Result<Enclosed, StartError> {
        let mut tries = 0;
        while self.ladder.no_namespaces.get().is_none() {
            tries += 1;
            match self.behind_namespaces(program, stdio.try_clone()?, starters) {
                Err(StartError::Confine(step, error)) if tries == TRIES => {
                    let step =
                        format!("{step}, {TRIES} times over, perhaps as another program kept replacing it,");
                    return Err(StartError::Confine(step, error));
                }
                // Not this command's fault, perhaps: an empty sandbox tells. If there are namespaces, somebody may have
                // renamed or removed what was to be covered while the walls went up; drawn again, they fit.
                Err(StartError::Confine(..)) => drop(self.ladder.try_namespaces()),
                Err(StartError::Impossible(_)) if tries == 1 => drop(self.ladder.try_namespaces()),
                result => return result,
            }
        }
        self.behind_landlock(program, stdio, starters)
    }

    /// A cgroup for what the kernel can limit there, if any of it is limited and there can be one; and the limits that
    /// are left to others.
    fn leaf(&self) -> Result<(Option<Leaf>, Quota), StartError> {
        let quota = self.limits.quota;
        if quota.memory_bytes.is_none() && quota.processes.is_none() {
            return Ok((None, quota));
        }
        let Ok(tree) = cgroup::divided() else { return Ok((None, quota)) };
        let leaf = tree.leaf(&quota).map_err(|error| confine("making a cgroup", error))?;
        Ok((Some(leaf), quota.without_memory_and_processes()))
    }

    fn behind_namespaces(
        &self,
        program: &Program,
        stdio: Stdio,
        starters: &mut Starters,
    ) -> Result<Enclosed, StartError> {
        let temporary =
            self.temporary.lasting().map_err(|error| confine("making a temporary directory", error))?;
        let (leaf, quota) = self.leaf()?;
        let mut workspace = self.begin(true, starters)?;
        let plan = WritablePlan {
            roots: &workspace.roots,
            protected: &workspace.protected,
            private_configs: workspace.command.as_ref().map_or(&[], |command| &command.private_configs),
        };
        let ground = self.ground(temporary);
        let mut blueprint = Blueprint::draw(&self.walls, &quota, ground, &plan).map_err(impossible)?;
        blueprint.show_terminal(&stdio.input);
        blueprint.cgroup = leaf.as_ref().map(|leaf| leaf.door.as_raw_fd());
        let changes = self.variables(Rung::Namespaces, Path::new("/tmp"), program);
        let program = program.with(&changes)?;
        let started = confined::start(&program, &blueprint, self.ladder.standing()?, stdio, starters)?;
        if let Some(command) = &mut workspace.command {
            command.hidden = blueprint.hidden_inside;
        }
        let held = self.held(Rung::Namespaces, accounting(leaf.as_ref(), &quota), blueprint.not_covered);
        Ok(Enclosed { started: started.within(leaf), held, guard: workspace.command })
    }

    fn behind_landlock(
        &self,
        program: &Program,
        stdio: Stdio,
        starters: &mut Starters,
    ) -> Result<Enclosed, StartError> {
        let temporary =
            self.temporary.path().map_err(|error| confine("making a temporary directory", error))?;
        let (leaf, quota) = self.leaf()?;
        let workspace = self.begin(false, starters)?;
        let writable =
            WritablePlan { roots: &workspace.roots, protected: &workspace.protected, private_configs: &[] };
        let landlock = (self.ladder.landlock(), &self.ladder.rules);
        let ground = self.ground(Some(temporary));
        let mut fence = Fence::draw(&self.walls, &quota, ground, &writable, landlock).map_err(impossible)?;
        fence.cgroup = leaf.as_ref().map(|leaf| leaf.door.as_raw_fd());
        let program = program.with(&self.variables(Rung::Landlock, temporary, program))?;
        let started = sys::start(&program, stdio, Some(Hold::from(&fence)), starters)?;
        let asked_for = Quota { defaults: DefaultLimits::default(), ..quota };
        let held = self.held(Rung::Landlock, accounting(leaf.as_ref(), &asked_for), fence.not_covered);
        Ok(Enclosed { started: started.within(leaf), held, guard: workspace.command })
    }
}

/// Who keeps the limits on memory and processes, given what is left to limit without a cgroup.
fn accounting(leaf: Option<&Leaf>, left: &Quota) -> Option<Accounting> {
    let counted = left.memory_limit().is_some() || left.process_limit().is_some();
    leaf.map(|_| Accounting::Cgroup).or(counted.then_some(Accounting::Counted))
}
