//! The tools of a session, and their exposure to the model.

use std::{collections::HashMap, fmt, sync::Arc};

use serde::Serialize;
use serde_json::Value;
use windlass_contract::{
    AnyTool, Input, Meta, ToolName, ToolSpec, call::InputKind, meta::Category, spec::SpecKind,
    wording::shortened,
};
use windlass_schema::{Schema, SchemaError};
use windlass_select::repair::{is_alike, nearest, same_name};

use crate::search::{self, Indexer, SearchForm, ToolSearch};

/// Maximum length of a name that every provider accepts.
const MAX_NAME_LENGTH: usize = 64;

/// Maximum number of tools listed when a tool is unknown.
const MAX_LISTED_NAMES: usize = 20;

/// All tools of a session. They are fixed once built: their order is part of the prompt, and prompt
/// caches depend on it.
#[derive(Debug)]
pub struct Registry {
    tools: Vec<Registered>,
    names: HashMap<ToolName, usize>,
    quarantined: Vec<Quarantined>,
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
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Registered {
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
        self.names.get(name).map(|at| &self.tools[*at])
    }

    /// Returns the tool that a name must mean: by its name, an alias, or one of these ignoring
    /// case, separators and a name space prefix. Adds a note if it is not the exact name.
    pub fn resolve(&self, name: &str) -> Option<(&Registered, Option<String>)> {
        if let Some(found) = self.find(name) {
            return Some((found, None));
        }
        let mut alike: Vec<usize> = self
            .names
            .iter()
            .filter(|(known, _)| same_name(known.as_str(), name))
            .map(|(_, at)| *at)
            .collect();
        alike.sort_unstable();
        alike.dedup();
        let [at] = alike[..] else { return None };
        let found = &self.tools[at];
        let note = format!("the tool `{}` was read as `{}`", shown(&name.into()), found.spec.name);
        Some((found, Some(note)))
    }

    /// Returns a message that there is no tool with a name, and lists the existing ones, nearest
    /// first.
    pub fn unknown(&self, name: &str) -> String {
        // Tools that are not advertised are listed if the name is similar to theirs.
        let is_told = |tool: &&Registered| {
            let is_test = tool.meta.category == Category::Testing;
            tool.is_advertised() || !is_test && is_alike(name, tool.spec.name.as_str())
        };
        let told = self.tools.iter().filter(is_told);
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

    /// Returns all tools, in order.
    pub fn tools(&self) -> &[Registered] {
        &self.tools
    }

    /// Returns the specifications of the advertised tools, in order.
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

    /// Checks every definition.
    pub fn build(mut self) -> Result<Registry, DefinitionErrors> {
        let mut registry = Registry { tools: Vec::new(), names: HashMap::new(), quarantined: Vec::new() };
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
            match registry.admit_guest(&tool) {
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
        let (name, meta) = (tool.name(), tool.meta());
        let mut problems = Vec::new();
        if !is_name(name.as_str()) {
            problems.push(DefinitionProblem::Name);
        }
        if self.names.contains_key(&name) {
            problems.push(DefinitionProblem::Taken(name.clone()));
        }
        let spec = tool.spec();
        match &spec {
            Ok(spec) => problems.extend(problems_of(tool, spec, &meta)),
            Err(error) => problems.push(DefinitionProblem::Schema(error.clone())),
        }
        let Some(spec) = spec.ok().filter(|_| problems.is_empty()) else { return Err(problems) };
        self.names.insert(name, self.tools.len());
        let accepted = tool.accepted();
        self.tools.push(Registered { spec, meta, exposure, tool: Arc::clone(tool), accepted });
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
        let reason = problems.iter().map(DefinitionProblem::to_string).collect::<Vec<_>>().join("; ");
        self.quarantined.push(Quarantined { name: tool.name(), reason });
    }

    /// Adds a tool that may be deferred. It cannot have the name of the search tool, even if there
    /// is room: that depends on the other tools.
    fn admit_guest(&mut self, tool: &Arc<dyn AnyTool>) -> Result<usize, Vec<DefinitionProblem>> {
        if tool.name().as_str() == search::NAME {
            return Err(vec![DefinitionProblem::Taken(tool.name())]);
        }
        self.admit(tool, Exposure::Advertised)
    }

    /// Defers all tools if there is no room for all of them. The choice must not depend on the
    /// length of other tools.
    fn defer(&mut self, guests: &[usize], deferral: Deferral) -> Result<(), DefinitionError> {
        let cost: usize = guests.iter().map(|at| self.tools[*at].spec.tokens()).sum();
        if cost <= deferral.room {
            return Ok(());
        }
        for at in guests {
            self.tools[*at].exposure = Exposure::Deferred;
        }
        let deferred = guests.iter().map(|at| &self.tools[*at]);
        let search = ToolSearch::new(deferred, deferral.form, deferral.indexer);
        let tool: Arc<dyn AnyTool> = Arc::new(search);
        let admitted = self.admit(&tool, Exposure::Advertised);
        admitted.map(|_| ()).map_err(|problems| DefinitionError {
            tool: tool.name(),
            problem: problems.into_iter().next().unwrap_or(DefinitionProblem::Name),
        })
    }
}

/// Returns true if every provider accepts the name.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Returns the problems in the specification of a tool.
fn problems_of(tool: &Arc<dyn AnyTool>, spec: &ToolSpec, meta: &Meta) -> Vec<DefinitionProblem> {
    let mut problems = Vec::new();
    if spec.description.trim().is_empty()
        && !matches!(spec.kind, SpecKind::LocalShell | SpecKind::WebSearch(_))
    {
        problems.push(DefinitionProblem::NoDescription);
    }
    problems.extend(required_with_default(&spec.kind).map(DefinitionProblem::RequiredWithDefault));
    problems.extend(broken_examples(tool, &spec.kind, meta));
    problems
}

fn required_with_default(kind: &SpecKind) -> impl Iterator<Item = String> {
    let parameters = match kind {
        SpecKind::Function { parameters } => Some(parameters),
        _ => None,
    };
    let properties =
        parameters.into_iter().flat_map(|schema| schema.properties().map(move |each| (schema, each)));
    properties.filter_map(|(schema, (name, property))| {
        let both =
            schema.requires(name) && property.get("default").is_some_and(|value| *value != Value::Null);
        both.then(|| name.to_owned())
    })
}

/// Returns the examples that do not work. A model learns from examples, so each must work.
fn broken_examples(tool: &Arc<dyn AnyTool>, kind: &SpecKind, meta: &Meta) -> Vec<DefinitionProblem> {
    let input_kind = if matches!(kind, SpecKind::Custom { .. }) { InputKind::Text } else { InputKind::Json };
    let inputs = meta.examples.iter().map(|example| match input_kind {
        InputKind::Json => Input::Json(example.input.to_owned()),
        InputKind::Text => Input::Text(example.input.to_owned()),
        InputKind::Search => Input::Search(example.input.to_owned()),
    });
    let broken = |input: Input| {
        let unfit = match (kind, serde_json::from_str(input.as_str())) {
            (SpecKind::Function { parameters }, Ok(value)) => parameters.check(&value),
            _ => Vec::new(),
        };
        let unparsed = Arc::clone(tool).prepare(&input).err().map(|error| error.message);
        if unfit.is_empty() { unparsed } else { Some(unfit.join("; ")) }
    };
    inputs.filter_map(broken).map(DefinitionProblem::Example).collect()
}

/// All errors in the definitions of a program's tools.
#[derive(Debug, PartialEq, Eq)]
pub struct DefinitionErrors(pub Vec<DefinitionError>);

impl fmt::Display for DefinitionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(DefinitionError::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for DefinitionErrors {}

/// One error in the definition of a tool.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("tool `{}`: {problem}", shown(.tool))]
pub struct DefinitionError {
    /// The name of the tool.
    pub tool: ToolName,
    problem: DefinitionProblem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum DefinitionProblem {
    #[error("the name must be 1 to {MAX_NAME_LENGTH} letters, digits, `_` or `-`")]
    Name,
    #[error("the name `{}` is taken", shown(.0))]
    Taken(ToolName),
    #[error("there is no description, and a model cannot guess what the tool is for")]
    NoDescription,
    #[error("parameter `{0}` is required and has a default; it can only be one of them")]
    RequiredWithDefault(String),
    #[error("an example does not work: {0}")]
    Example(String),
    #[error("{0}")]
    Schema(SchemaError),
}

/// Returns a name on one line, escaped and shortened: an invalid name may contain anything.
fn shown(name: &ToolName) -> String {
    shortened(name.as_str(), MAX_NAME_LENGTH).chars().flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
