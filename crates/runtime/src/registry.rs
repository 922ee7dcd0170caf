//! The tools of a session, and their exposure to the model.

use std::{collections::HashMap, fmt, sync::Arc};

use serde::Serialize;
use windlass_contract::{AnyTool, Meta, ToolName, ToolSpec, meta::Category, remote::ToolSource};
use windlass_schema::Schema;
use windlass_select::repair::{is_alike, nearest, same_name};

use crate::search::{self, Indexer, SearchForm, ToolSearch};
use definition::{DefinitionProblem, reason_of, shown};
use late::{LateDeferral, LateTools};

mod definition;
mod late;

pub use definition::{DefinitionError, DefinitionErrors};
pub use late::JoinedTools;

/// Maximum number of tools listed when a tool is unknown.
const MAX_LISTED_NAMES: usize = 20;

/// All tools of a session. Those it is built with stay as they are: their order is part of the
/// prompt, and prompt caches depend on it. Tools of a source can [join](Self::join_new) later.
#[derive(Debug)]
pub struct Registry {
    tools: Vec<Registered>,
    names: HashMap<ToolName, usize>,
    quarantined: Vec<Quarantined>,
    late: LateTools,
}

/// A tool with its specification and metadata.
pub struct Registered {
    /// The specification that the model gets.
    pub spec: ToolSpec,
    /// The metadata for Windlass itself.
    pub meta: Meta,
    /// The way the model learns of the tool.
    pub exposure: Exposure,
    pub(crate) tool: Arc<dyn AnyTool>,
    /// The schema that arguments are checked against, if it is not the one of `spec`.
    pub(crate) accepted: Option<Schema>,
    /// It comes from another program, which chose its name.
    is_foreign: bool,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Registered {
    /// Marks a tool of another program. It has no other names.
    fn mark_foreign(&mut self) {
        self.is_foreign = true;
        self.meta.aliases.clear();
    }

    /// Returns true if the tool is in the prompt from the start.
    pub fn is_advertised(&self) -> bool {
        self.exposure == Exposure::Advertised
    }
}

/// The way a model learns of a tool. Every tool can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exposure {
    /// In the prompt from the start.
    Advertised,
    /// Found with `tool_search`.
    Deferred,
    /// Not mentioned to the model.
    Hidden,
}

/// A foreign tool that cannot be used, with the reason. The other tools are not affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The name of the tool.
    pub name: ToolName,
    /// The problem with its definition.
    pub reason: String,
}

impl Registry {
    /// Creates a builder.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// Returns the tool with this name or alias.
    pub fn find(&self, name: &str) -> Option<&Registered> {
        self.late.find(name).or_else(|| self.names.get(name).map(|at| &self.tools[*at]))
    }

    /// Returns the tool that a name must mean: by its name, an alias, or one of these ignoring
    /// case, separators and a name space prefix. Adds a note if it is not the exact name.
    pub fn resolve(&self, name: &str) -> Option<(&Registered, Option<String>)> {
        if let Some(found) = self.find(name) {
            return Some((found, None));
        }
        let found = self.only_alike(name)?;
        let note = format!("the tool `{}` was read as `{}`", shown(&name.into()), found.spec.name);
        Some((found, Some(note)))
    }

    /// Returns the only tool whose name or alias differs from a name in the way of writing alone.
    /// Tools of other programs come last: they chose their names.
    fn only_alike(&self, name: &str) -> Option<&Registered> {
        let known = self.names.iter().filter(|(known, _)| same_name(known.as_str(), name));
        let mut alike: Vec<usize> = known.map(|(_, at)| *at).collect();
        alike.sort_unstable();
        alike.dedup();
        let own = || alike.iter().map(|at| &self.tools[*at]).filter(|tool| !tool.is_foreign);
        match (own().next(), own().nth(1)) {
            (Some(only), None) => return Some(only),
            (Some(_), Some(_)) => return None,
            (None, _) => {}
        }
        let foreign = alike.iter().map(|at| &self.tools[*at]).map(|tool| tool.spec.name.clone());
        let late = self.late.iter().filter(|tool| same_name(tool.spec.name.as_str(), name));
        let mut names: Vec<_> = foreign.chain(late.map(|tool| tool.spec.name.clone())).collect();
        names.sort();
        names.dedup();
        let [only] = &names[..] else { return None };
        self.find(only.as_str())
    }

    /// Returns a message that there is no tool with a name, and lists the existing ones, nearest
    /// first.
    pub fn unknown(&self, name: &str) -> String {
        // Tools that are not advertised are listed if the name is similar to theirs.
        let is_told = |tool: &&Registered| {
            let is_test = tool.meta.category == Category::Testing;
            tool.is_advertised() || !is_test && is_alike(name, tool.spec.name.as_str())
        };
        let joined = self.late.iter().filter(|tool| !self.names.contains_key(&tool.spec.name));
        let told = self.tools.iter().chain(joined).filter(is_told);
        let names = nearest(name, told.map(|tool| tool.spec.name.as_str()));
        let found = self.tools.iter().filter(|tool| tool.exposure == Exposure::Deferred).count();
        let name = shown(&name.into());
        if names.is_empty() {
            return format!("there is no tool `{name}`, nor any other");
        }
        let more = match (names.len().saturating_sub(MAX_LISTED_NAMES), found) {
            (0, 0) => String::new(),
            (more, found) => format!(", and {} more", more + found),
        };
        let names = &names[..names.len().min(MAX_LISTED_NAMES)];
        format!("there is no tool `{name}`; there are, the nearest first: {}{more}", names.join(", "))
    }

    /// Returns the tools it was built with, in order.
    pub fn tools(&self) -> &[Registered] {
        &self.tools
    }

    /// Returns the specifications of the advertised tools it was built with, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().filter(|tool| tool.is_advertised()).map(|tool| tool.spec.clone()).collect()
    }

    /// Returns the tools that were left out.
    pub fn quarantined(&self) -> &[Quarantined] {
        &self.quarantined
    }
}

/// Collects tools. Only [`build`](Self::build) checks them, and returns all errors at once.
#[derive(Default)]
pub struct RegistryBuilder {
    own: Vec<(Arc<dyn AnyTool>, ToolOrigin)>,
    foreign: Vec<Arc<dyn AnyTool>>,
    deferral: Option<Deferral>,
    source: Option<Arc<dyn ToolSource>>,
    allowed: ToolAllowlist,
}

/// The lists of tools that may be registered, by name. A tool must be in each of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolAllowlist(Vec<Vec<String>>);

impl ToolAllowlist {
    fn allow(&self, tool: &dyn AnyTool) -> bool {
        let fits = |pattern: &String, name: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        let name = tool.name();
        self.0.iter().all(|allowed| allowed.iter().any(|pattern| fits(pattern, name.as_str())))
    }
}

/// The origin of a tool, which decides its exposure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolOrigin {
    /// Part of the program, and always advertised.
    Advertised,
    /// Part of the program, not advertised.
    Hidden,
    /// Added by the user: advertised if there is room.
    User,
    /// Like `User`, but from a list: a tool that cannot be used is left out without an error.
    Listed,
    /// Part of the program, not advertised, and left out if another tool has its name.
    Fallback,
}

/// The condition for deferring tools that are not part of the program.
#[derive(Clone)]
pub struct Deferral {
    /// Maximum number of tokens that they may cost in the prompt together.
    pub room: usize,
    /// The form of the search.
    pub form: SearchForm,
    /// Builds the index for the search.
    pub indexer: Indexer,
}

impl fmt::Debug for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferral").field("room", &self.room).field("form", &self.form).finish_non_exhaustive()
    }
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryBuilder").finish_non_exhaustive()
    }
}

impl RegistryBuilder {
    /// Adds a tool. An error in its definition is an error of the program.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, ToolOrigin::Advertised));
        self
    }

    /// Adds a tool of the user, which may be deferred. An error in its definition is an error of
    /// the program.
    #[must_use]
    pub fn user_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, ToolOrigin::User));
        self
    }

    /// Adds a tool of a list. If it cannot be used, it is quarantined.
    #[must_use]
    pub fn listed(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, ToolOrigin::Listed));
        self
    }

    /// Adds a tool that can be called by a name that no other tool has. It is not advertised.
    #[must_use]
    pub fn fallback(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, ToolOrigin::Fallback));
        self
    }

    /// Defers tools of the user and foreign tools if they cost more tokens than there is room for.
    #[must_use]
    pub fn with_deferral(mut self, deferral: Deferral) -> Self {
        self.deferral = Some(deferral);
        self
    }

    /// Adds a tool that can be called but is not advertised.
    #[must_use]
    pub fn hidden(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, ToolOrigin::Hidden));
        self
    }

    /// Adds a foreign tool. If it cannot be used, it is quarantined.
    #[must_use]
    pub fn foreign(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.foreign.push(tool);
        self
    }

    /// Adds the tools of a source, now and when they become known. One that cannot be used is
    /// quarantined.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.source = Some(source);
        self
    }

    /// Leaves out every other tool, also those that join later. A `*` at the end of a name stands
    /// for any rest.
    #[must_use]
    pub fn only(mut self, names: Vec<String>) -> Self {
        self.allowed.0.push(names);
        self
    }

    /// Checks every definition.
    pub fn build(mut self) -> Result<Registry, DefinitionErrors> {
        let mut registry = Registry {
            tools: Vec::new(),
            names: HashMap::new(),
            quarantined: Vec::new(),
            late: LateTools::default(),
        };
        if let Some(source) = self.source {
            let known = source.tools_since(0);
            self.foreign.extend(known.tools);
            registry.late = LateTools::new(source, known.version, self.allowed.clone());
        }
        self.own.retain(|(tool, _)| self.allowed.allow(&**tool));
        self.foreign.retain(|tool| self.allowed.allow(&**tool));
        let mut errors = Vec::new();
        let mut guests = Vec::new();
        let (fallbacks, own): (Vec<_>, Vec<_>) =
            self.own.into_iter().partition(|(_, origin)| *origin == ToolOrigin::Fallback);
        for (tool, origin) in own {
            let admitted = match origin {
                ToolOrigin::Advertised => registry.admit(&tool, Exposure::Advertised).map(|_| None),
                ToolOrigin::Hidden | ToolOrigin::Fallback => {
                    registry.admit(&tool, Exposure::Hidden).map(|_| None)
                }
                ToolOrigin::User | ToolOrigin::Listed => registry.admit_guest(&tool).map(Some),
            };
            match admitted {
                Ok(guest) => guests.extend(guest),
                Err(problems) if origin == ToolOrigin::Listed => registry.quarantine(&tool, &problems),
                Err(problems) => errors.extend(
                    problems.into_iter().map(|problem| DefinitionError { tool: tool.name(), problem }),
                ),
            }
        }
        // Servers list their tools in any order. The order here must not change with it.
        self.foreign.sort_by_key(|tool| tool.name());
        for tool in self.foreign {
            match registry.admit_foreign(&tool) {
                Ok(at) => guests.push(at),
                Err(problems) => registry.quarantine(&tool, &problems),
            }
        }
        if let Some(deferral) = self.deferral
            && let Err(problem) = registry.defer(&guests, deferral)
        {
            errors.push(problem);
        }
        for (tool, _) in fallbacks {
            if !registry.names.contains_key(&tool.name()) {
                let admitted = registry.admit(&tool, Exposure::Hidden);
                let problems = admitted.err().unwrap_or_default().into_iter();
                errors.extend(problems.map(|problem| DefinitionError { tool: tool.name(), problem }));
            }
        }
        registry.add_aliases();
        if errors.is_empty() { Ok(registry) } else { Err(DefinitionErrors(errors)) }
    }
}

impl Registry {
    /// Adds a tool, or returns all problems with its definition.
    fn admit(
        &mut self,
        tool: &Arc<dyn AnyTool>,
        exposure: Exposure,
    ) -> Result<usize, Vec<DefinitionProblem>> {
        let name = tool.name();
        let taken = self.names.contains_key(&name).then(|| DefinitionProblem::Taken(name.clone()));
        let checked = Registered::check(tool, exposure, taken.into_iter().collect())?;
        self.names.insert(name, self.tools.len());
        self.tools.push(checked);
        Ok(self.tools.len() - 1)
    }

    /// Adds the aliases of all tools, once all names are known: names take precedence over aliases.
    fn add_aliases(&mut self) {
        for (at, tool) in self.tools.iter().enumerate() {
            for alias in &tool.meta.aliases {
                self.names.entry(ToolName::from(*alias)).or_insert(at);
            }
        }
    }

    fn quarantine(&mut self, tool: &Arc<dyn AnyTool>, problems: &[DefinitionProblem]) {
        self.quarantined.push(Quarantined { name: tool.name(), reason: reason_of(problems) });
    }

    /// Adds a tool that may be deferred. It cannot have the name of the search tool, even if there
    /// is room: that depends on the other tools.
    fn admit_guest(&mut self, tool: &Arc<dyn AnyTool>) -> Result<usize, Vec<DefinitionProblem>> {
        if tool.name().as_str() == search::NAME {
            return Err(vec![DefinitionProblem::Taken(tool.name())]);
        }
        self.admit(tool, Exposure::Advertised)
    }

    /// Adds a tool of another program, which must not be taken for one of ours.
    fn admit_foreign(&mut self, tool: &Arc<dyn AnyTool>) -> Result<usize, Vec<DefinitionProblem>> {
        self.refuse_imitation(&tool.name())?;
        let at = self.admit_guest(tool)?;
        self.tools[at].mark_foreign();
        Ok(at)
    }

    /// Returns an error if a name is that of a tool of this program, or reads like it.
    fn refuse_imitation(&self, name: &ToolName) -> Result<(), Vec<DefinitionProblem>> {
        let own = self.tools.iter().filter(|tool| !tool.is_foreign);
        let is_own = |tool: &Registered| {
            let aliases = tool.meta.aliases.iter().copied();
            aliases.chain([tool.spec.name.as_str()]).any(|own| same_name(own, name.as_str()))
        };
        let imitated = own.into_iter().find(|tool| is_own(tool)).map(|tool| tool.spec.name.clone());
        let search = (same_name(search::NAME, name.as_str())).then(|| search::NAME.into());
        match imitated.or(search) {
            Some(imitated) => Err(vec![DefinitionProblem::Taken(imitated)]),
            None => Ok(()),
        }
    }

    /// Defers all tools if there is no room for all of them. The choice must not depend on the
    /// length of other tools. There is a search as well if servers have not listed their tools yet.
    fn defer(&mut self, guests: &[usize], deferral: Deferral) -> Result<(), DefinitionError> {
        let cost: usize = guests.iter().map(|at| self.tools[*at].spec.tokens()).sum();
        let is_full = cost > deferral.room;
        if is_full {
            for at in guests {
                self.tools[*at].exposure = Exposure::Deferred;
            }
        }
        let search = if is_full || self.late.has_unlisted() {
            let deferred = guests.iter().map(|at| &self.tools[*at]).filter(|_| is_full);
            let search = ToolSearch::new(deferred, &deferral, self.late.source());
            let tool: Arc<dyn AnyTool> = Arc::new(search.clone());
            self.admit(&tool, Exposure::Advertised).map_err(|problems| DefinitionError {
                tool: tool.name(),
                problem: problems.into_iter().next().unwrap_or(DefinitionProblem::Name),
            })?;
            Some(search)
        } else {
            None
        };
        self.late.set_deferral(LateDeferral {
            is_full,
            room: deferral.room.saturating_sub(cost),
            search,
            deferral,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
