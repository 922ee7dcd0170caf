//! The six parts of a score, their weights, and their combination.

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    ChoiceContext, Index, ToolHit, ToolRequest,
    index::{IndexEntry, IndexedParameter, ParameterKind},
    lexicon::Term,
    numbers::to_f32,
    request::RequestValues,
    vectors,
};

/// A part of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScorePart {
    /// The match between the words and meaning of the tool and those of the request.
    Meaning,
    /// The share of required parameters that the request fills.
    Parameters,
    /// The success rate of earlier calls.
    Success,
    /// The time since the last use; more recent is better.
    Recent,
    /// The number of parameters; fewer is better.
    Complexity,
    /// The match with the preceding context.
    Context,
}

impl ScorePart {
    /// All parts with their weights, in order. The weights are defined only here.
    pub const WEIGHTS: [(Self, f32); 6] = [
        (Self::Meaning, 30.0),
        (Self::Parameters, 25.0),
        (Self::Success, 20.0),
        (Self::Recent, 15.0),
        (Self::Complexity, -10.0),
        (Self::Context, 10.0),
    ];

    /// Returns the name of the part.
    pub fn name(self) -> &'static str {
        match self {
            Self::Meaning => "meaning",
            Self::Parameters => "parameters",
            Self::Success => "success",
            Self::Recent => "recent",
            Self::Complexity => "complexity",
            Self::Context => "context",
        }
    }
}

/// The values of a tool for all parts, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreParts([f32; 6]);

impl ScoreParts {
    /// Returns all parts with their values, in the order of the weights.
    pub fn iter(&self) -> impl Iterator<Item = (ScorePart, f32)> {
        ScorePart::WEIGHTS.iter().map(|(part, _)| *part).zip(self.0)
    }

    /// Combines all parts to one number from 0 to 1. Relevance leads; the others change it by at
    /// most three tenths.
    pub(super) fn combined(&self) -> f32 {
        let [meaning, rest @ ..] = self.0;
        let [_, weights @ ..] = ScorePart::WEIGHTS;
        let mut sum = 0.0;
        let mut most = 0.0;
        for ((_, weight), value) in weights.into_iter().zip(rest) {
            sum += if weight < 0.0 { -weight * (1.0 - value) } else { weight * value };
            most += weight.abs();
        }
        meaning * meaning * (1.0 - MAX_REST_SHARE + MAX_REST_SHARE * sum / most)
    }
}

impl Serialize for ScoreParts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (part, value) in self.iter() {
            map.serialize_entry(part.name(), &value)?;
        }
        map.end()
    }
}

/// The data that the parts of all candidates are computed from.
pub(super) struct ScoringContext<'a> {
    index: &'a Index,
    situation: ChoiceContext<'a>,
    values: RequestValues,
    terms: Vec<Term>,
}

/// Maximum share of a score that the parts besides meaning can change.
const MAX_REST_SHARE: f32 = 0.3;

/// Value of a part that is not known.
const UNKNOWN_VALUE: f32 = 0.5;

impl<'a> ScoringContext<'a> {
    pub(super) fn new(index: &'a Index, request: &'a ToolRequest, situation: ChoiceContext<'a>) -> Self {
        let terms = request.terms(index.lexicon()).into_iter().map(|(term, _)| term).collect();
        Self { index, situation, values: request.values(), terms }
    }

    pub(super) fn parts(&self, hit: ToolHit, entry: &IndexEntry, best: f32) -> ScoreParts {
        let record = self.situation.usage.map(|usage| usage.record(&entry.key())).unwrap_or_default();
        let context = self.situation.context.and_then(|context| vectors::pack(context.meaning()));
        let required = to_f32(entry.required().count());
        let optional = to_f32(entry.parameters.len()) - required;
        ScoreParts([
            // If even the best score is low, a slightly lower one makes no great difference.
            (1.0 - (best - hit.score) / best.max(1.0)).clamp(0.0, 1.0),
            self.filled_share(entry).unwrap_or(UNKNOWN_VALUE),
            record.success(),
            record.recent(),
            ((required + 0.3 * optional) / 10.0).min(1.0),
            context.map_or(UNKNOWN_VALUE, |context| self.index.cosine_to(hit.id, &context).clamp(0.0, 1.0)),
        ])
    }

    /// Returns the share of required parameters that the request fills; `None` if none is required.
    pub(super) fn filled_share(&self, entry: &IndexEntry) -> Option<f32> {
        let filled: Vec<_> = entry.required().map(|parameter| self.evidence(parameter)).collect();
        (!filled.is_empty()).then(|| filled.iter().sum::<f32>() / to_f32(filled.len()))
    }

    /// Returns the evidence that the request has a value for a parameter, from 0 to 1.
    fn evidence(&self, parameter: &IndexedParameter) -> f32 {
        let named = self.mentions(&parameter.terms);
        let has = |there: bool| if there { 1.0 } else { 0.0 };
        match parameter.kind {
            ParameterKind::Choice if self.mentions(&parameter.values) => 1.0,
            ParameterKind::Choice => 0.2 + 0.3 * has(named),
            ParameterKind::Number => has(self.values.numbers > 0),
            ParameterKind::Text if self.values.names > 0 => 1.0,
            ParameterKind::Text => 0.3 + 0.4 * has(named),
            ParameterKind::Flag => 0.7,
            ParameterKind::Other => 0.4 + 0.3 * has(self.values.numbers + self.values.names > 0),
        }
    }

    pub(super) fn mentions(&self, terms: &[Term]) -> bool {
        terms.iter().any(|term| self.terms.binary_search(term).is_ok())
    }
}
