//! Which tools there are, and which of them a model is told about.

use std::{collections::HashMap, fmt, sync::Arc};

use serde::Serialize;
use serde_json::Value;
use windlass_contract::{
    AnyTool, Input, Meta, ToolName, ToolSpec, call::InputKind, meta::Category, spec::SpecKind,
};
use windlass_schema::{Schema, SchemaError};
use windlass_select::repair::{is_alike, nearest, same_name};

use crate::search::{self, Indexer, SearchForm, ToolSearch};

/// The longest name every provider accepts.
const LONGEST_NAME: usize = 64;

/// How many tools are named where one is missing.
const MOST_TOLD: usize = 20;

/// Every tool of a session. Fixed once built: its order is part of the prompt, and prompt caches depend on it.
#[derive(Debug)]
pub struct Registry {
    tools: Vec<Registered>,
    names: HashMap<ToolName, usize>,
    quarantined: Vec<Quarantined>,
}

/// A tool with all that is known about it.
pub struct Registered {
    /// What the model is told.
    pub spec: ToolSpec,
    /// Everything else.
    pub meta: Meta,
    /// Whether and how the model gets to know it.
    pub exposure: Exposure,
    pub(crate) tool: Arc<dyn AnyTool>,
    /// The schema that arguments are held to, if it is not the one of `spec`.
    pub(crate) accepted: Option<Schema>,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Registered {
    /// Whether the model is told from the start.
    pub fn is_advertised(&self) -> bool {
        self.exposure == Exposure::Advertised
    }
}

/// Whether and how a model gets to know a tool. It can be called in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exposure {
    /// It is told from the start.
    Advertised,
    /// It finds it with `tool_search`.
    Deferred,
    /// It is not told.
    Hidden,
}

/// A tool from elsewhere that cannot be used, and why. The others go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Its name.
    pub name: ToolName,
    /// What is wrong with it.
    pub reason: String,
}

impl Registry {
    /// Begins a registry.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// The tool a name or alias stands for.
    pub fn find(&self, name: &str) -> Option<&Registered> {
        self.names.get(name).map(|at| &self.tools[*at])
    }

    /// The tool that must be meant by a name: its own, another one it has, or one of these but for case, separators and the
    /// name space before it. With a note if it is not the name itself.
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

    /// Says that there is no tool of a name, and which there are, the nearest first.
    pub fn unknown(&self, name: &str) -> String {
        // What was not advertised is named to whoever nearly knows it.
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
        let more = match (names.len().saturating_sub(MOST_TOLD), found) {
            (0, 0) => String::new(),
            (more, found) => format!(", and {} more", more + found),
        };
        let names = &names[..names.len().min(MOST_TOLD)];
        format!("there is no tool `{name}`; there are, the nearest first: {}{more}", names.join(", "))
    }

    /// All tools, in order.
    pub fn tools(&self) -> &[Registered] {
        &self.tools
    }

    /// What the model is told, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().filter(|tool| tool.is_advertised()).map(|tool| tool.spec.clone()).collect()
    }

    /// Tools that were left out.
    pub fn quarantined(&self) -> &[Quarantined] {
        &self.quarantined
    }
}

/// Collects tools. Nothing is checked before [`build`](Self::build), which then says all that is wrong at once.
#[derive(Default)]
pub struct RegistryBuilder {
    own: Vec<(Arc<dyn AnyTool>, Origin)>,
    foreign: Vec<Arc<dyn AnyTool>>,
    deferral: Option<Deferral>,
}

/// Where a tool comes from, and so what becomes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Part of the program: advertised, whatever it costs.
    Advertised,
    /// Part of the program and not advertised.
    Hidden,
    /// Brought by the user: advertised if there is room.
    Brought,
    /// The same from a list someone wrote: what cannot be used is left out alone.
    Listed,
    /// Part of the program, not advertised, and gone if another tool has its name.
    Fallback,
}

/// When tools that are not part of the program are found instead of told.
#[derive(Clone)]
pub struct Deferral {
    /// How many tokens all of them together may cost to tell.
    pub room: usize,
    /// How they are found.
    pub form: SearchForm,
    /// What they are found with.
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
    /// Adds a tool. A mistake in its definition is an error of the program.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, Origin::Advertised));
        self
    }

    /// Adds a tool that the model may have to search for. A mistake in its definition is an error of the program.
    #[must_use]
    pub fn brought(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, Origin::Brought));
        self
    }

    /// Adds a tool of a list. One that cannot be used is put in quarantine, and the others go on.
    #[must_use]
    pub fn listed(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, Origin::Listed));
        self
    }

    /// Adds a tool that is callable by a name no other tool has, and not advertised.
    #[must_use]
    pub fn fallback(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, Origin::Fallback));
        self
    }

    /// Keeps what was brought, or comes from elsewhere, out of the prompt if it would cost more than there is room for.
    #[must_use]
    pub fn deferring(mut self, deferral: Deferral) -> Self {
        self.deferral = Some(deferral);
        self
    }

    /// Adds a tool that is callable, but not advertised.
    #[must_use]
    pub fn hidden(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, Origin::Hidden));
        self
    }

    /// Adds a tool someone else defined. One that cannot be used is put in quarantine, and the others go on.
    #[must_use]
    pub fn foreign(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.foreign.push(tool);
        self
    }

    /// Checks every definition.
    pub fn build(mut self) -> Result<Registry, DefinitionErrors> {
        let mut registry = Registry { tools: Vec::new(), names: HashMap::new(), quarantined: Vec::new() };
        let mut errors = Vec::new();
        let mut brought = Vec::new();
        let (fallbacks, own): (Vec<_>, Vec<_>) =
            self.own.into_iter().partition(|(_, origin)| *origin == Origin::Fallback);
        for (tool, origin) in own {
            let admitted = match origin {
                Origin::Advertised => registry.admit(&tool, Exposure::Advertised).map(|_| None),
                Origin::Hidden | Origin::Fallback => registry.admit(&tool, Exposure::Hidden).map(|_| None),
                Origin::Brought | Origin::Listed => registry.admit_guest(&tool).map(Some),
            };
            match admitted {
                Ok(guest) => brought.extend(guest),
                Err(problems) if origin == Origin::Listed => registry.quarantine(&tool, &problems),
                Err(problems) => errors.extend(
                    problems.into_iter().map(|problem| DefinitionError { tool: tool.name(), problem }),
                ),
            }
        }
        // Servers list their tools in any order; ours must not change because theirs does.
        self.foreign.sort_by_key(|tool| tool.name());
        for tool in self.foreign {
            match registry.admit_guest(&tool) {
                Ok(at) => brought.push(at),
                Err(problems) => registry.quarantine(&tool, &problems),
            }
        }
        if let Some(deferral) = self.deferral
            && let Err(problem) = registry.defer(&brought, deferral)
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
    /// Takes a tool in, or says everything that is wrong with it.
    fn admit(&mut self, tool: &Arc<dyn AnyTool>, exposure: Exposure) -> Result<usize, Vec<Problem>> {
        let (name, meta) = (tool.name(), tool.meta());
        let mut problems = Vec::new();
        if !is_name(name.as_str()) {
            problems.push(Problem::Name);
        }
        if self.names.contains_key(&name) {
            problems.push(Problem::Taken(name.clone()));
        }
        let spec = tool.spec();
        match &spec {
            Ok(spec) => problems.extend(problems_of(tool, spec, &meta)),
            Err(error) => problems.push(Problem::Schema(error.clone())),
        }
        let Some(spec) = spec.ok().filter(|_| problems.is_empty()) else { return Err(problems) };
        self.names.insert(name, self.tools.len());
        let accepted = tool.accepted();
        self.tools.push(Registered { spec, meta, exposure, tool: Arc::clone(tool), accepted });
        Ok(self.tools.len() - 1)
    }

    /// Adds the other names of all tools, once all names are known: a tool is found by its own name first.
    fn add_aliases(&mut self) {
        for (at, tool) in self.tools.iter().enumerate() {
            for alias in &tool.meta.aliases {
                self.names.entry(ToolName::from(*alias)).or_insert(at);
            }
        }
    }

    fn quarantine(&mut self, tool: &Arc<dyn AnyTool>, problems: &[Problem]) {
        let reason = problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ");
        self.quarantined.push(Quarantined { name: tool.name(), reason });
    }

    /// Takes a tool in that may have to be searched for, and so cannot itself be called like the search: not even while
    /// there is room, which depends on the others.
    fn admit_guest(&mut self, tool: &Arc<dyn AnyTool>) -> Result<usize, Vec<Problem>> {
        if tool.name().as_str() == search::NAME {
            return Err(vec![Problem::Taken(tool.name())]);
        }
        self.admit(tool, Exposure::Advertised)
    }

    /// Leaves tools to be found if there is no room to tell of them. All or none: which of them are told must not depend on how
    /// long the others are.
    fn defer(&mut self, brought: &[usize], deferral: Deferral) -> Result<(), DefinitionError> {
        let cost: usize = brought.iter().map(|at| self.tools[*at].spec.tokens()).sum();
        if cost <= deferral.room {
            return Ok(());
        }
        for at in brought {
            self.tools[*at].exposure = Exposure::Deferred;
        }
        let deferred = brought.iter().map(|at| &self.tools[*at]);
        let search = ToolSearch::over(deferred, deferral.form, deferral.indexer);
        let tool: Arc<dyn AnyTool> = Arc::new(search);
        let admitted = self.admit(&tool, Exposure::Advertised);
        admitted.map(|_| ()).map_err(|problems| DefinitionError {
            tool: tool.name(),
            problem: problems.into_iter().next().unwrap_or(Problem::Name),
        })
    }
}

/// A name every provider accepts.
fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// What is wrong with what a tool says about itself.
fn problems_of(tool: &Arc<dyn AnyTool>, spec: &ToolSpec, meta: &Meta) -> Vec<Problem> {
    let mut problems = Vec::new();
    if spec.description.trim().is_empty()
        && !matches!(spec.kind, SpecKind::LocalShell | SpecKind::WebSearch(_))
    {
        problems.push(Problem::NoDescription);
    }
    problems.extend(required_with_default(&spec.kind).map(Problem::RequiredWithDefault));
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

/// Examples are part of what a model learns from; one that does not work teaches it nonsense.
fn broken_examples(tool: &Arc<dyn AnyTool>, kind: &SpecKind, meta: &Meta) -> Vec<Problem> {
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
    inputs.filter_map(broken).map(Problem::Example).collect()
}

/// Everything wrong with the definitions of a program's tools.
#[derive(Debug, PartialEq, Eq)]
pub struct DefinitionErrors(pub Vec<DefinitionError>);

impl fmt::Display for DefinitionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(DefinitionError::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for DefinitionErrors {}

/// One thing wrong with one tool.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("tool `{}`: {problem}", shown(.tool))]
pub struct DefinitionError {
    /// The tool.
    pub tool: ToolName,
    problem: Problem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("the name must be 1 to {LONGEST_NAME} letters, digits, `_` or `-`")]
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

/// A name as far as one may go, on one line: what is wrong with it may be anything.
fn shown(name: &ToolName) -> String {
    let mut chars = name.as_str().chars();
    let begun: String = chars.by_ref().take(LONGEST_NAME).flat_map(char::escape_debug).collect();
    if chars.next().is_some() { format!("{begun}…") } else { begun }
}

#[cfg(test)]
mod tests;
