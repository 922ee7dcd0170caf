//! Facts about a tool beside its schema.

use serde::{Deserialize, Serialize};

use crate::verdict::Criteria;

/// What a tool says about itself, for lists, ranking and scheduling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// Where it belongs in a list.
    pub category: Category,
    /// Calls that show its use.
    pub examples: Vec<Example>,
    /// What people say when they want it, in any language. It is found by them; models are not told.
    pub requests: Vec<String>,
    /// What must hold for it to work, in words.
    pub constraints: Vec<String>,
    /// What it may change, in words for a person; the effects of a call are what counts.
    pub side_effects: Vec<String>,
    /// What it gives back, in words.
    pub returns: String,
    /// Whether calls that change nothing may overlap with others.
    pub parallel: bool,
    /// Other names it answers to. They are callable, never advertised.
    pub aliases: Vec<&'static str>,
    /// Other names its parameters answer to, as other agents' tools and earlier versions call them. Never advertised.
    pub parameter_aliases: Vec<ParameterAlias>,
    /// How its result is written for the model.
    pub format: Format,
    /// What its calls are judged by.
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

/// A parameter under a name the schema does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ParameterAlias {
    /// The other name.
    pub name: &'static str,
    /// What it stands for.
    pub means: AliasMeaning,
}

/// What a parameter of another name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AliasMeaning {
    /// This parameter, with the same value.
    Parameter(&'static str),
    /// `true` is this value of this parameter; `false` is the same as nothing.
    Switch(&'static str, &'static str),
    /// This value asks for what the tool does in any case. No other can be taken.
    AlwaysSo(bool),
    /// Words for a person, which change nothing about the call.
    Remark,
}

impl ParameterAlias {
    /// Other names of one parameter.
    pub fn of(parameter: &'static str, names: &[&'static str]) -> Vec<Self> {
        names.iter().map(|name| Self { name, means: AliasMeaning::Parameter(parameter) }).collect()
    }
}

/// A call that shows a tool's use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// What is wanted, in words.
    pub request: &'static str,
    /// The input that does it.
    pub input: &'static str,
}

/// What a tool is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Runs programs.
    Execution,
    /// Reads and changes files.
    Files,
    /// Looks things up outside.
    Web,
    /// Keeps the agent's own house.
    Planning,
    /// Exists for tests.
    Testing,
    /// Anything else.
    Other,
}

impl Category {
    /// Its heading.
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

/// How a result is written for the model. Models of this family know them all.
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
    /// `Chunk ID: 3fa9c1`, `Wall time: 0.1234 seconds`, `Process running with session ID 12345`, `Output:`, then the
    /// output.
    Session,
    /// What became of tests, in place of all that was printed about them. The tool's data, if there is any, is the
    /// [`TestReport`](crate::insight::TestReport) that the runner wrote into files.
    Tests,
}
