//! The six parts of a score, their weights, and how they become one number.

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
    /// How well the tool's words and meaning fit the request's.
    Meaning,
    /// How much of what it must be told the request tells.
    Parameters,
    /// How often it succeeded.
    Success,
    /// How lately it was used.
    Recent,
    /// How much it wants to be told; less is better.
    Complexity,
    /// How well it fits what went before.
    Context,
}

impl ScorePart {
    /// Every part with its weight, in order. This is the one place for them.
    pub const WEIGHTS: [(Self, f32); 6] = [
        (Self::Meaning, 30.0),
        (Self::Parameters, 25.0),
        (Self::Success, 20.0),
        (Self::Recent, 15.0),
        (Self::Complexity, -10.0),
        (Self::Context, 10.0),
    ];

    /// Its name.
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

/// What a tool gets in each part, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreParts([f32; 6]);

impl ScoreParts {
    /// Every part with what the tool gets in it, in the order of the weights.
    pub fn iter(&self) -> impl Iterator<Item = (ScorePart, f32)> {
        ScorePart::WEIGHTS.iter().map(|(part, _)| *part).zip(self.0)
    }

    /// All parts as one number, from 0 to 1: relevance leads, and the others move it by three tenths at most.
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

/// What the parts of every candidate are judged by.
pub(super) struct ScoringContext<'a> {
    index: &'a Index,
    situation: ChoiceContext<'a>,
    values: RequestValues,
    terms: Vec<Term>,
}

/// How far the parts beside meaning can move a score.
const MAX_REST_SHARE: f32 = 0.3;

/// What is given where nothing is known.
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
            // Where even the best is found by little, a little less is no great difference.
            (1.0 - (best - hit.score) / best.max(1.0)).clamp(0.0, 1.0),
            self.filled_share(entry).unwrap_or(UNKNOWN_VALUE),
            record.success(),
            record.recent(),
            ((required + 0.3 * optional) / 10.0).min(1.0),
            context.map_or(UNKNOWN_VALUE, |context| self.index.cosine_to(hit.id, &context).clamp(0.0, 1.0)),
        ])
    }

    /// How much of what a tool must be told is in the request; nothing if it need not be told anything.
    pub(super) fn filled_share(&self, entry: &IndexEntry) -> Option<f32> {
        let filled: Vec<_> = entry.required().map(|parameter| self.evidence(parameter)).collect();
        (!filled.is_empty()).then(|| filled.iter().sum::<f32>() / to_f32(filled.len()))
    }

    /// Whether the request has a value for a parameter.
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
