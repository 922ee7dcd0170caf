//! The data that an index keeps about a tool: only as much as ranking needs.

use serde_json::Value;
use windlass_contract::meta::Category;

use super::fields::MAX_EXAMPLES;
use crate::{
    Card, ToolChanges, ToolOperation,
    intent::operation_of_name,
    lexicon::{Term, TermLexicon},
    similarity::RequestSignature,
    text,
};

/// Maximum number of parameters of a tool, and of enum values of a parameter, that are kept.
const MAX_ITEMS: usize = 32;

/// Maximum length of an example that is compared with a request.
pub(crate) const MAX_EXAMPLE_BYTES: usize = 256;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexEntry {
    pub(crate) name: Box<str>,
    pub(crate) server: Box<str>,
    pub(crate) changes: ToolChanges,
    /// The operation that its name suggests.
    pub(crate) operation: ToolOperation,
    pub(super) about: RestrictedCategory,
    /// A hash of the card.
    pub(crate) digest: u64,
    /// All its terms, in order.
    pub(crate) terms: Box<[Term]>,
    /// The terms of its name.
    pub(crate) name_terms: Box<[Term]>,
    pub(crate) parameters: Box<[IndexedParameter]>,
    /// Requests that it answers, from its author.
    pub(crate) examples: Box<[RequestSignature]>,
    /// Requests that it answered, with their weights.
    pub(crate) uses: Vec<(RequestSignature, f32)>,
}

/// Categories of built-in tools that a request can rule out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestrictedCategory {
    Execution,
    Web,
    Other,
}

impl RestrictedCategory {
    fn from_title(category: &str) -> Self {
        if category == Category::Execution.title() {
            Self::Execution
        } else if category == Category::Web.title() {
            Self::Web
        } else {
            Self::Other
        }
    }
}

/// A parameter, reduced to the data that choosing needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexedParameter {
    pub(crate) required: bool,
    pub(crate) kind: ParameterKind,
    pub(crate) terms: Box<[Term]>,
    /// The terms of its enum values.
    pub(crate) values: Box<[Term]>,
}

/// The type of value that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Text,
    Number,
    Flag,
    Choice,
    Other,
}

impl IndexEntry {
    pub(crate) fn new(card: &Card, terms: Box<[Term]>, lexicon: &mut TermLexicon) -> Self {
        Self {
            name: card.name.as_str().into(),
            server: card.server.as_str().into(),
            changes: card.changes,
            operation: operation_of_name(&card.name),
            about: RestrictedCategory::from_title(&card.category),
            digest: card.digest(),
            terms,
            name_terms: terms_of(&card.name, lexicon),
            parameters: parameters(&card.parameters, lexicon),
            examples: card
                .examples
                .iter()
                .take(MAX_EXAMPLES)
                .map(|example| RequestSignature::new(text::cut(example, MAX_EXAMPLE_BYTES)))
                .collect(),
            uses: Vec::new(),
        }
    }

    /// Returns the signatures of all requests that it answers or answered.
    pub(super) fn signatures(&self) -> impl Iterator<Item = &RequestSignature> {
        self.examples.iter().chain(self.uses.iter().map(|(signature, _)| signature))
    }

    /// Encodes its enumerations as bytes.
    pub(super) fn flags(&self) -> [u8; 3] {
        let at = |place: Option<usize>| place.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX);
        [
            at(CHANGES.iter().position(|each| *each == self.changes)),
            at(OPERATIONS.iter().position(|each| *each == self.operation)),
            at(ABOUT.iter().position(|each| *each == self.about)),
        ]
    }

    /// Creates an entry without terms and parameters.
    pub(super) fn from_flags(name: &str, server: &str, flags: [u8; 3], digest: u64) -> Option<Self> {
        let [changes, operation, about] = flags;
        Some(Self {
            name: name.into(),
            server: server.into(),
            changes: *CHANGES.get(usize::from(changes))?,
            operation: *OPERATIONS.get(usize::from(operation))?,
            about: *ABOUT.get(usize::from(about))?,
            digest,
            terms: Box::default(),
            name_terms: Box::default(),
            parameters: Box::default(),
            examples: Box::default(),
            uses: Vec::new(),
        })
    }

    pub(crate) fn required(&self) -> impl Iterator<Item = &IndexedParameter> {
        self.parameters.iter().filter(|parameter| parameter.required)
    }

    /// Returns true if a word is its name, in any notation.
    pub(crate) fn has_name(&self, word: &str) -> bool {
        text::plain(word) == text::plain(&self.name)
    }

    /// Returns true if it starts programs.
    pub(crate) fn is_execution(&self) -> bool {
        self.about == RestrictedCategory::Execution
    }

    /// Returns true if it uses the network.
    pub(crate) fn is_online(&self) -> bool {
        self.about == RestrictedCategory::Web
    }

    pub(crate) fn key(&self) -> String {
        Card::join_key(&self.server, &self.name)
    }
}

impl IndexedParameter {
    pub(super) fn flags(&self) -> [u8; 2] {
        let kind = KINDS.iter().position(|each| *each == self.kind).and_then(|at| u8::try_from(at).ok());
        [u8::from(self.required), kind.unwrap_or(u8::MAX)]
    }

    pub(super) fn from_flags(flags: [u8; 2], terms: Box<[Term]>, values: Box<[Term]>) -> Option<Self> {
        let [required, kind] = flags;
        Some(Self { required: required == 1, kind: *KINDS.get(usize::from(kind))?, terms, values })
    }
}

/// Enumerations by their numbers in a saved index. New values are added at the end.
const KINDS: [ParameterKind; 5] = [
    ParameterKind::Text,
    ParameterKind::Number,
    ParameterKind::Flag,
    ParameterKind::Choice,
    ParameterKind::Other,
];
const ABOUT: [RestrictedCategory; 3] =
    [RestrictedCategory::Execution, RestrictedCategory::Web, RestrictedCategory::Other];
const CHANGES: [ToolChanges; 3] = [ToolChanges::Nothing, ToolChanges::Something, ToolChanges::Unsaid];
const OPERATIONS: [ToolOperation; 8] = [
    ToolOperation::Read,
    ToolOperation::Search,
    ToolOperation::Write,
    ToolOperation::Edit,
    ToolOperation::Delete,
    ToolOperation::Execute,
    ToolOperation::Test,
    ToolOperation::Other,
];

fn parameters(schema: &Value, lexicon: &mut TermLexicon) -> Box<[IndexedParameter]> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|each| each == name));
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let parameter = |(name, property): (&String, &Value)| {
        let values: String = property
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .take(MAX_ITEMS)
            .filter_map(Value::as_str)
            .flat_map(|value| [value, " "])
            .collect();
        IndexedParameter {
            required: is_required(name),
            kind: kind(property),
            terms: terms_of(name, lexicon),
            values: terms_of(&values, lexicon),
        }
    };
    properties.take(MAX_ITEMS).map(parameter).collect()
}

fn kind(property: &Value) -> ParameterKind {
    if property.get("enum").is_some_and(Value::is_array) {
        return ParameterKind::Choice;
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string") => ParameterKind::Text,
        Some("number" | "integer") => ParameterKind::Number,
        Some("boolean") => ParameterKind::Flag,
        _ => ParameterKind::Other,
    }
}

fn terms_of(text: &str, lexicon: &mut TermLexicon) -> Box<[Term]> {
    let mut terms = Vec::new();
    text::tokenize(text, |token| terms.extend(lexicon.learn(token).term));
    terms.into()
}
