//! Checks the definition of a tool before a model sees it.

use std::{fmt, sync::Arc};

use serde_json::Value;
use windlass_contract::{
    AnyTool, Input, Meta, ToolName, ToolSpec, call::InputKind, spec::SpecKind, wording::shortened,
};
use windlass_schema::SchemaError;

use super::{Exposure, Registered};

/// Maximum length of a name that every provider accepts.
const MAX_NAME_LENGTH: usize = 64;

impl Registered {
    /// Checks a tool, or returns all problems with its definition, beside those known already.
    pub(super) fn check(
        tool: &Arc<dyn AnyTool>,
        exposure: Exposure,
        mut problems: Vec<DefinitionProblem>,
    ) -> Result<Self, Vec<DefinitionProblem>> {
        let meta = tool.meta();
        if !is_name(tool.name().as_str()) {
            problems.insert(0, DefinitionProblem::Name);
        }
        let spec = tool.spec();
        match &spec {
            Ok(spec) => problems.extend(problems_of(tool, spec, &meta)),
            Err(error) => problems.push(DefinitionProblem::Schema(error.clone())),
        }
        let Some(spec) = spec.ok().filter(|_| problems.is_empty()) else { return Err(problems) };
        let (tool, accepted) = (Arc::clone(tool), tool.accepted());
        Ok(Self { spec, meta, exposure, tool, accepted, is_foreign: false })
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
    pub(super) problem: DefinitionProblem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DefinitionProblem {
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
    #[error("too many tools were added during this session; those of a new session are all there")]
    TooMany,
}

/// Returns all problems on one line.
pub(super) fn reason_of(problems: &[DefinitionProblem]) -> String {
    problems.iter().map(DefinitionProblem::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns a name on one line, escaped and shortened: an invalid name may contain anything.
pub(super) fn shown(name: &ToolName) -> String {
    shortened(name.as_str(), MAX_NAME_LENGTH).chars().flat_map(char::escape_debug).collect()
}
