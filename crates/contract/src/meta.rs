//! Facts about a tool other than its schema.

use serde::{Deserialize, Serialize};

use crate::verdict::Criteria;

/// Description of a tool by its author, for lists, ranking and scheduling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// Its section in a list.
    pub category: Category,
    /// Calls that show its use.
    pub examples: Vec<Example>,
    /// Requests that people make when they want this tool, in any language. The search for tools
    /// uses them; models do not see them.
    pub requests: Vec<String>,
    /// Preconditions, in words.
    pub constraints: Vec<String>,
    /// Possible changes, in words for a person. The declared effects of a call decide, not these.
    pub side_effects: Vec<String>,
    /// Description of the result, in words.
    pub returns: String,
    /// True if calls may overlap with others that share none of the files they change.
    pub parallel: bool,
    /// Other names of the tool. Models can call them, but they are never advertised.
    pub aliases: Vec<&'static str>,
    /// Other names of its parameters, as other agents' tools and earlier versions call them. They
    /// are never advertised.
    pub parameter_aliases: Vec<ParameterAlias>,
    /// Format of its result for the model.
    pub format: Format,
    /// Criteria by which its calls are judged.
    pub criteria: Criteria,
}

impl Default for Meta {
    fn default() -> Self {
        Self {
            category: Category::Other,
            examples: Vec::new(),
            requests: Vec::new(),
            constraints: Vec::new(),
            side_effects: Vec::new(),
            returns: String::new(),
            parallel: true,
            aliases: Vec::new(),
            parameter_aliases: Vec::new(),
            format: Format::Plain,
            criteria: Criteria::default(),
        }
    }
}

/// Another name for a parameter, which the schema does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ParameterAlias {
    /// The other name.
    pub name: &'static str,
    /// Its meaning.
    pub means: AliasMeaning,
}

/// Meaning of a parameter alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AliasMeaning {
    /// This parameter, with the same value.
    Parameter(&'static str),
    /// `true` means this value of this parameter; `false` means that it is omitted.
    Switch(&'static str, &'static str),
    /// This value requests what the tool always does. Any other value is an error.
    AlwaysSo(bool),
    /// A remark for a person. It does not change the call.
    Remark,
}

impl ParameterAlias {
    /// Builds aliases of one parameter.
    pub fn of(parameter: &'static str, names: &[&'static str]) -> Vec<Self> {
        names.iter().map(|name| Self { name, means: AliasMeaning::Parameter(parameter) }).collect()
    }
}

/// A call that shows a tool's use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// The request, in words.
    pub request: &'static str,
    /// The input that fulfils it.
    pub input: &'static str,
}

/// Subject of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Runs programs.
    Execution,
    /// Reads and changes files.
    Files,
    /// Looks up information on the network.
    Web,
    /// Manages the agent's own state.
    Planning,
    /// Exists for tests.
    Testing,
    /// Anything else.
    Other,
}

impl Category {
    /// Returns its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Execution => "Execution",
            Self::Files => "Files",
            Self::Web => "Web",
            Self::Planning => "Planning",
            Self::Testing => "Testing",
            Self::Other => "Other",
        }
    }
}

/// Format of a result for the model. Models of this family know all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// The content itself.
    #[default]
    Plain,
    /// `{"output":"…","metadata":{"exit_code":0,"duration_seconds":0.1}}`
    Structured,
    /// `Exit code: 0`, `Wall time: 0.1 seconds`, `Output:`, then the output.
    Freeform,
    /// `Chunk ID: 3fa9c1`, `Wall time: 0.1234 seconds`, `Process running with session ID 12345`,
    /// `Output:`, then the output.
    Session,
    /// Test results instead of the full output. The tool's data, if any, is the
    /// [`TestReport`](crate::insight::TestReport) that the runner wrote into files.
    Tests,
}
