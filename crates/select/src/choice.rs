//! Chooses tools: ranks relevant candidates by six visible score parts, without those that the
//! request rules out.
//!
//! `docs/decisions/0011-relevance-leads.md` explains why the parts are multiplied and not summed.

mod fit;
mod parts;

use serde::Serialize;

pub use fit::{FitEstimate, MODEL};
pub use parts::{ScorePart, ScoreParts};

use crate::{
    Index, RequestConstraint, RequestIntent, ToolChanges, ToolHit, ToolId, ToolOperation, ToolRequest, Usage,
    index::IndexEntry,
};

/// Minimum number of candidates that are scored, even if fewer are requested.
const MIN_CANDIDATES: usize = 50;

/// Facts that are known besides the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChoiceContext<'a> {
    /// Results of earlier calls.
    pub usage: Option<&'a Usage>,
    /// The preceding text or output, parsed like a request.
    pub context: Option<&'a ToolRequest>,
}

/// The tools chosen for a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolChoice {
    /// The intent of the request.
    pub intent: RequestIntent,
    /// Tools, the best first.
    pub candidates: Vec<ToolCandidate>,
    /// Tools the request rules out, as relevant as the candidates.
    pub ruled_out: Vec<RuledOut>,
    /// An estimate whether any tool fits at all.
    pub fit: FitEstimate,
}

/// A tool with its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCandidate {
    /// The tool in the index.
    #[serde(skip)]
    pub id: ToolId,
    /// Its name.
    pub name: String,
    /// The server it comes from; empty for a built-in tool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The combined score, from 0 to 1.
    pub score: f32,
    /// The parts of the score.
    pub parts: ScoreParts,
}

/// A tool that may not be used for a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuledOut {
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// Chooses among all tools of an index.
pub fn choose(
    index: &Index,
    request: &ToolRequest,
    situation: ChoiceContext<'_>,
    limit: usize,
) -> ToolChoice {
    let all: Vec<_> = index.ids().collect();
    choose_among(index, request, situation, &all, limit)
}

/// Chooses among some tools of an index.
pub fn choose_among(
    index: &Index,
    request: &ToolRequest,
    situation: ChoiceContext<'_>,
    among: &[ToolId],
    limit: usize,
) -> ToolChoice {
    let intent = request.intent().clone();
    let hits = index.search_among(request, among, limit.max(MIN_CANDIDATES));
    let mut ruled_out = Vec::new();
    let kept: Vec<_> = hits
        .into_iter()
        .filter_map(|hit| index.entry(hit.id).map(|entry| (hit, entry)))
        .filter(|(_, entry)| match objection(entry, &intent) {
            Some(why) => {
                ruled_out.push(RuledOut { name: entry.name.to_string(), why });
                false
            }
            None => true,
        })
        .collect();
    let fit = FitEstimate::new(index, request, kept.first());
    let mut candidates = rank(index, request, situation, &kept);
    candidates.truncate(limit);
    ruled_out.truncate(limit);
    ToolChoice { intent, candidates, ruled_out, fit }
}

fn rank(
    index: &Index,
    request: &ToolRequest,
    situation: ChoiceContext<'_>,
    kept: &[(ToolHit, &IndexEntry)],
) -> Vec<ToolCandidate> {
    let best = kept.iter().map(|(hit, _)| hit.score).fold(f32::MIN_POSITIVE, f32::max);
    let scoring = parts::ScoringContext::new(index, request, situation);
    let mut candidates: Vec<_> = kept
        .iter()
        .map(|(hit, entry)| {
            let parts = scoring.parts(*hit, entry, best);
            ToolCandidate {
                id: hit.id,
                name: entry.name.to_string(),
                server: entry.server.to_string(),
                score: parts.combined(),
                parts,
            }
        })
        .collect();
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    candidates
}

/// Returns the reason why a request rules a tool out, if it does.
fn objection(entry: &IndexEntry, intent: &RequestIntent) -> Option<String> {
    let says = |words: &str| Some(format!("the request says {words}"));
    let changes = match entry.changes {
        ToolChanges::Something => true,
        ToolChanges::Nothing => false,
        // Without a declared effect the name decides.
        ToolChanges::Unsaid => entry.operation.changes(),
    };
    let runs = entry.operation == ToolOperation::Execute || entry.is_execution();
    if intent.unwanted.iter().any(|word| entry.has_name(word)) {
        return says("not to use it");
    }
    let edits = entry.changes == ToolChanges::Something
        && matches!(entry.operation, ToolOperation::Write | ToolOperation::Edit | ToolOperation::Delete);
    if matches!(intent.operation, ToolOperation::Read | ToolOperation::Search) && edits {
        return says("to look at something, which it does not do");
    }
    let only_looks = entry.changes == ToolChanges::Nothing
        && matches!(entry.operation, ToolOperation::Read | ToolOperation::Search);
    if matches!(intent.operation, ToolOperation::Edit | ToolOperation::Delete) && only_looks {
        return says("to change something, which it does not do");
    }
    if changes && intent.demands(RequestConstraint::ChangeNothing) {
        return says("that nothing may change");
    }
    if runs && intent.demands(RequestConstraint::RunNothing) {
        return says("that nothing may be run");
    }
    let deletes =
        matches!(entry.operation, ToolOperation::Delete | ToolOperation::Execute | ToolOperation::Other)
            || runs;
    if intent.deletes_whole && !deletes {
        return says("to delete something, which it does not do");
    }
    if entry.is_online() && intent.demands(RequestConstraint::StayOffline) {
        return says("to stay offline");
    }
    None
}

#[cfg(test)]
mod tests;
