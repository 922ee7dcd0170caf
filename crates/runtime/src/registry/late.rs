//! Tools that join a session while it runs: a server has started, or has changed its tools.
//!
//! Groups of tools are only ever added, so that a tool that was found stays where it is. The newest
//! tool of a name counts.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use windlass_contract::{
    AnyTool, ToolName, ToolSpec,
    remote::{SourceTools, ToolSource},
};

use super::{
    Deferral, Exposure, Quarantined, Registered, Registry, ToolAllowlist,
    definition::{DefinitionProblem, reason_of},
};
use crate::search::ToolSearch;

/// Maximum number of times that tools can join a session.
const MAX_GROUPS: usize = 1024;

/// Maximum number of tools that can join a session.
const MAX_JOINED_TOOLS: usize = 10_000;

/// The tools that have joined, and the source of others.
#[derive(Default)]
pub(super) struct LateTools {
    source: Option<Arc<dyn ToolSource>>,
    groups: Box<[OnceLock<Vec<Registered>>]>,
    state: Mutex<LateState>,
    allowed: ToolAllowlist,
}

#[derive(Default)]
struct LateState {
    /// The version of the source.
    version: u64,
    tools: usize,
    /// Absent if nothing is ever deferred.
    deferral: Option<LateDeferral>,
}

/// The room that is left for tools in the prompt.
pub(super) struct LateDeferral {
    /// Tools are deferred already, so that all others are.
    pub(super) is_full: bool,
    /// Number of tokens left.
    pub(super) room: usize,
    /// The tool that finds deferred tools, once there is one.
    pub(super) search: Option<ToolSearch>,
    pub(super) deferral: Deferral,
}

/// Tools that have joined a session.
#[derive(Debug, Default)]
pub struct JoinedTools {
    /// Specifications for the prompt of the next requests, to be added at its end.
    pub advertised: Vec<ToolSpec>,
    /// Specifications that replace earlier ones of the same name.
    pub replaced: Vec<ToolSpec>,
    /// Names of tools that can be searched for.
    pub deferred: Vec<ToolName>,
    /// Tools that cannot be used.
    pub quarantined: Vec<Quarantined>,
}

impl fmt::Debug for LateTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateTools").field("tools", &self.state().tools).finish_non_exhaustive()
    }
}

impl LateTools {
    /// Creates it for a source whose tools of a version are known.
    pub(super) fn new(source: Arc<dyn ToolSource>, version: u64, allowed: ToolAllowlist) -> Self {
        let groups = std::iter::repeat_with(OnceLock::new).take(MAX_GROUPS).collect();
        let state = Mutex::new(LateState { version, ..LateState::default() });
        Self { source: Some(source), groups, state, allowed }
    }

    pub(super) fn source(&self) -> Option<Arc<dyn ToolSource>> {
        self.source.clone()
    }

    /// Returns true if there are servers whose tools are not known yet.
    pub(super) fn has_unlisted(&self) -> bool {
        self.source.as_ref().is_some_and(|source| !source.unlisted().is_empty())
    }

    pub(super) fn set_deferral(&self, deferral: LateDeferral) {
        self.state().deferral = Some(deferral);
    }

    /// Returns the newest tool of a name.
    pub(super) fn find(&self, name: &str) -> Option<&Registered> {
        let named = |group: &&Vec<Registered>| group.iter().any(|tool| tool.spec.name.as_str() == name);
        let newest = self.groups().filter(named).last()?;
        newest.iter().find(|tool| tool.spec.name.as_str() == name)
    }

    /// Returns the tools that have joined, without those that were replaced.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Registered> {
        let is_newest = |tool: &&Registered| {
            self.find(tool.spec.name.as_str()).is_some_and(|newest| std::ptr::eq(newest, *tool))
        };
        self.groups().flatten().filter(is_newest)
    }

    fn groups(&self) -> impl Iterator<Item = &Vec<Registered>> {
        self.groups.iter().map_while(OnceLock::get)
    }

    fn state(&self) -> MutexGuard<'_, LateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// Adds the tools that the source has got since the last time. To be called before each request
    /// to the model.
    pub fn join_new(&self) -> JoinedTools {
        let mut joined = JoinedTools::default();
        let Some(source) = &self.late.source else { return joined };
        let mut state = self.late.state();
        let SourceTools { version, mut tools } = source.tools_since(state.version);
        state.version = version;
        tools.retain(|tool| self.late.allowed.allow(&**tool));
        if tools.is_empty() {
            return joined;
        }
        // Servers list their tools in any order. The order here must not change with it.
        tools.sort_by_key(|tool| tool.name());
        let mut group = Vec::new();
        for tool in &tools {
            let is_full = state.tools + group.len() >= MAX_JOINED_TOOLS;
            let problems = if is_full { vec![DefinitionProblem::TooMany] } else { Vec::new() };
            match self.check_late(tool, problems) {
                Ok(checked) => group.push(checked),
                Err(problems) => {
                    let reason = reason_of(&problems);
                    joined.quarantined.push(Quarantined { name: tool.name(), reason });
                }
            }
        }
        group.dedup_by(|later, earlier| later.spec.name == earlier.spec.name);
        state.expose(self, &mut group, &mut joined);
        self.push_group(&mut state, group, &mut joined);
        joined
    }

    /// Checks a tool. It may replace one of another program, and none of this one.
    fn check_late(
        &self,
        tool: &Arc<dyn AnyTool>,
        problems: Vec<DefinitionProblem>,
    ) -> Result<Registered, Vec<DefinitionProblem>> {
        self.refuse_imitation(&tool.name())?;
        let mut checked = Registered::check(tool, Exposure::Advertised, problems)?;
        checked.mark_foreign();
        Ok(checked)
    }

    fn push_group(&self, state: &mut LateState, group: Vec<Registered>, joined: &mut JoinedTools) {
        state.tools += group.len();
        let Some(free) = self.late.groups.iter().find(|group| group.get().is_none()) else {
            let reason = || DefinitionProblem::TooMany.to_string();
            let left_out = group.iter().map(|tool| tool.spec.name.clone());
            let quarantined = left_out.map(|name| Quarantined { name, reason: reason() }).collect::<Vec<_>>();
            *joined = JoinedTools { quarantined, ..JoinedTools::default() };
            return;
        };
        // It is free: groups are pushed under the lock of the state.
        let _pushed = free.set(group);
    }
}

impl LateState {
    /// Decides how the model learns of each tool of a group.
    fn expose(&mut self, registry: &Registry, group: &mut Vec<Registered>, joined: &mut JoinedTools) {
        let (known, new): (Vec<_>, Vec<_>) =
            group.iter_mut().partition(|tool| registry.find(tool.spec.name.as_str()).is_some());
        for tool in known {
            let before = registry.find(tool.spec.name.as_str()).map(|known| known.exposure);
            tool.exposure = before.unwrap_or(tool.exposure);
            joined.replaced.push(tool.spec.clone());
        }
        let cost: usize = new.iter().map(|tool| tool.spec.tokens()).sum();
        let is_deferred = self.deferral.as_mut().is_some_and(|deferral| !deferral.take_room(cost));
        for tool in new {
            if is_deferred {
                tool.exposure = Exposure::Deferred;
                joined.deferred.push(tool.spec.name.clone());
            } else {
                joined.advertised.push(tool.spec.clone());
            }
        }
        let searched = group.iter().filter(|tool| tool.exposure == Exposure::Deferred);
        let Some(deferral) = self.deferral.as_mut().filter(|_| searched.clone().next().is_some()) else {
            return;
        };
        if let Some(search) = &deferral.search {
            search.add(searched);
            return;
        }
        let search = ToolSearch::new(searched, &deferral.deferral, registry.late.source());
        let tool: Arc<dyn AnyTool> = Arc::new(search.clone());
        // Its definition is part of this program.
        if let Ok(checked) = Registered::check(&tool, Exposure::Advertised, Vec::new()) {
            joined.advertised.push(checked.spec.clone());
            group.push(checked);
        }
        deferral.search = Some(search);
    }
}

impl LateDeferral {
    /// Takes room for tools that are added together. Returns false if there is none.
    fn take_room(&mut self, cost: usize) -> bool {
        self.is_full |= cost > self.room;
        if !self.is_full {
            self.room -= cost;
        }
        !self.is_full
    }
}

#[cfg(test)]
mod tests;
