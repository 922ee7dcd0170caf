//! Estimates whether any tool fits at all, with a small model over features of the best candidate.
//!
//! The model is a logistic regression. `xtask/fit.py` fits the coefficients on the dev part of four
//! public sets: BFCL live and not live, ACEBench English and Chinese. Each set and each answer has
//! the same weight, so that one half means that a tool fits as often as not. No feature depends on
//! the number of other tools.

use serde::Serialize;

use super::parts::ScoringContext;
use crate::{
    ChoiceContext, Index, ToolHit, ToolRequest,
    index::{IndexEntry, ParameterKind},
    numbers::to_f32,
};

/// The features of the model with their coefficients.
pub const MODEL: [(&str, f32); 13] = [
    ("always", -2.109),
    ("share of the request's words that the tool has", -0.483),
    ("share of the name's words that the request has", 0.88),
    ("nearness in meaning", 1.49),
    ("share of required parameters that can be filled", 2.076),
    ("required parameters, in fives", -1.903),
    ("share of required parameters that are named", -0.351),
    ("length of the request, logarithm", -1.562),
    ("the request is Chinese", -1.15),
    ("share of the tool's words that the request has", 2.185),
    ("numbers that the tool does not take", 1.196),
    ("the kind of work agrees", 0.162),
    ("what the words count, logarithm", 3.782),
];

/// Minimum likelihood at which a tool is said to fit. It is below one half, because hiding the
/// right tool is worse than offering a wrong one. On the same data it keeps 90 to 98 % of the
/// requests that a tool fits, and recognises 74 to 100 % of those that none fits.
const MIN_LIKELIHOOD: f32 = 0.3;

/// Coefficient of the likeness to an earlier request. The tools of the sets have no examples, so it
/// was chosen and not fitted: a request in the same words as before always fits.
const LIKENESS_WEIGHT: f32 = 8.0;

/// Value of a share if the tool has no parameters.
const NO_PARAMETERS: f32 = 0.5;

/// The likelihood that some tool fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitEstimate {
    /// From 0 to 1.
    pub likelihood: f32,
    #[serde(skip)]
    features: [f32; MODEL.len()],
}

impl FitEstimate {
    /// Estimates the fit of the best candidate. Nothing fits if there is no candidate, or if the
    /// request has no words.
    pub(super) fn new(index: &Index, request: &ToolRequest, best: Option<&(ToolHit, &IndexEntry)>) -> Self {
        let best = best.filter(|(hit, _)| request.word_count() > 0 || hit.likeness > 0.0);
        let Some((hit, entry)) = best else { return Self { likelihood: 0.0, features: [0.0; MODEL.len()] } };
        let features = features(index, request, *hit, entry);
        let sum: f32 = features.iter().zip(MODEL).map(|(feature, (_, weight))| feature * weight).sum();
        Self { likelihood: 1.0 / (1.0 + (-sum - LIKENESS_WEIGHT * hit.likeness).exp()), features }
    }

    /// Returns true if some tool probably fits.
    pub fn is_likely(&self) -> bool {
        self.likelihood >= MIN_LIKELIHOOD
    }

    /// Returns the features, in the order of [`MODEL`].
    pub fn features(&self) -> &[f32] {
        &self.features
    }
}

fn features(index: &Index, request: &ToolRequest, hit: ToolHit, entry: &IndexEntry) -> [f32; MODEL.len()] {
    let scoring = ScoringContext::new(index, request, ChoiceContext::default());
    let (covered, words) = request.coverage(index.lexicon(), &entry.terms);
    let takes_numbers =
        entry.parameters.iter().any(|each| matches!(each.kind, ParameterKind::Number | ParameterKind::Other));
    let is = |there: bool| if there { 1.0 } else { 0.0 };
    [
        1.0,
        covered,
        share(entry.name_terms.iter().map(|term| scoring.mentions(&[*term]))),
        hit.meaning,
        scoring.filled_share(entry).unwrap_or(NO_PARAMETERS),
        to_f32(entry.required().count()) / 5.0,
        share(entry.required().map(|parameter| scoring.mentions(&parameter.terms))),
        to_f32(words).ln_1p(),
        is(request.is_chinese()),
        share(entry.terms.iter().map(|term| scoring.mentions(&[*term]))),
        is(request.values().numbers > 0 && !takes_numbers),
        request.intent().operation.agreement(entry.operation),
        index.word_score(request, hit.id).ln_1p(),
    ]
}

fn share(each: impl Iterator<Item = bool>) -> f32 {
    let (has, all) = each.fold((0, 0), |(has, all), there| (has + usize::from(there), all + 1));
    if all == 0 { NO_PARAMETERS } else { to_f32(has) / to_f32(all) }
}
