//! Which tools there are, and which of them a model is told about.

use std::{collections::HashMap, fmt, sync::Arc};

use serde_json::Value;
use windlass_contract::{AnyTool, Input, InputKind, Meta, SchemaError, SpecKind, ToolName, ToolSpec};

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
    /// Whether the model is told at all.
    pub advertised: bool,
    pub(crate) tool: Arc<dyn AnyTool>,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("spec", &self.spec).finish_non_exhaustive()
    }
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

    /// All tools, in order.
    pub fn tools(&self) -> &[Registered] {
        &self.tools
    }

    /// What the model is told, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().filter(|tool| tool.advertised).map(|tool| tool.spec.clone()).collect()
    }

    /// Tools that were left out.
    pub fn quarantined(&self) -> &[Quarantined] {
        &self.quarantined
    }
}

/// Collects tools. Nothing is checked before [`build`](Self::build), which then says all that is wrong at once.
#[derive(Default)]
pub struct RegistryBuilder {
    own: Vec<(Arc<dyn AnyTool>, Offer)>,
    foreign: Vec<Arc<dyn AnyTool>>,
}

/// Whether a model is told about a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offer {
    Advertised,
    Hidden,
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
        self.own.push((tool, Offer::Advertised));
        self
    }

    /// Adds a tool that is callable, but not advertised.
    #[must_use]
    pub fn hidden(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own.push((tool, Offer::Hidden));
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
        for (tool, offer) in self.own {
            if let Err(problems) = registry.admit(&tool, offer) {
                errors.extend(
                    problems.into_iter().map(|problem| DefinitionError { tool: tool.name(), problem }),
                );
            }
        }
        // Servers list their tools in any order; ours must not change because theirs does.
        self.foreign.sort_by_key(|tool| tool.name());
        for tool in self.foreign {
            if let Err(problems) = registry.admit(&tool, Offer::Advertised) {
                let reason = problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ");
                registry.quarantined.push(Quarantined { name: tool.name(), reason });
            }
        }
        if errors.is_empty() { Ok(registry) } else { Err(DefinitionErrors(errors)) }
    }
}

impl Registry {
    /// Takes a tool in, or says everything that is wrong with it.
    fn admit(&mut self, tool: &Arc<dyn AnyTool>, offer: Offer) -> Result<(), Vec<Problem>> {
        let (name, meta) = (tool.name(), tool.meta());
        let mut problems = Vec::new();
        if !is_name(name.as_str()) {
            problems.push(Problem::Name);
        }
        let aliases = meta.aliases.iter().map(|alias| ToolName::from(*alias));
        let names: Vec<_> = std::iter::once(name).chain(aliases).collect();
        problems
            .extend(names.iter().filter(|name| self.names.contains_key(*name)).cloned().map(Problem::Taken));
        let spec = tool.spec();
        match &spec {
            Ok(spec) => problems.extend(problems_of(tool, spec, &meta)),
            Err(error) => problems.push(Problem::Schema(error.clone())),
        }
        let Some(spec) = spec.ok().filter(|_| problems.is_empty()) else { return Err(problems) };
        self.names.extend(names.into_iter().map(|name| (name, self.tools.len())));
        let advertised = offer == Offer::Advertised;
        self.tools.push(Registered { spec, meta, advertised, tool: Arc::clone(tool) });
        Ok(())
    }
}

/// A name every provider accepts.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
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
    });
    let errors = inputs.filter_map(|input| Arc::clone(tool).prepare(&input).err());
    errors.map(|error| Problem::Example(error.message)).collect()
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
#[error("tool `{tool}`: {problem}")]
pub struct DefinitionError {
    /// The tool.
    pub tool: ToolName,
    problem: Problem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("the name must be 1 to 64 letters, digits, `_` or `-`")]
    Name,
    #[error("the name `{0}` is taken")]
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

#[cfg(test)]
mod tests;
