//! `windlass tools search` and `windlass tools select`: find tools that fit a request.

use std::path::Path;

use serde_json::json;
use windlass::{
    Category, Registered, Registry,
    select::{
        Card, ChoiceContext, Index, ScorePart, ToolCandidate, ToolChoice, ToolHit, ToolId, ToolRequest,
        Usage,
        args::{InferenceContext, InferredArguments, infer},
        choose, choose_among,
    },
};

use super::pretty;
use crate::{
    args::ToolQuery,
    exit::ProgramExit,
    problem::CliProblem,
    screen::visible,
    table::{LastColumn, TextTable},
    user_tools,
};

/// The tools to choose from, with their descriptions.
pub(super) struct SelectableTools {
    index: Index,
    /// Indexed as in the index.
    cards: Vec<Card>,
    /// Results of earlier calls.
    usage: Usage,
}

impl SelectableTools {
    /// Returns every tool that can be called here, except variants of offered ones, which match the
    /// same words.
    pub(super) fn here(registry: &Registry) -> Self {
        let tools = registry.tools();
        let is_form_of = |tool: &Registered, other: &Registered| {
            other.is_advertised() && other.meta.requests == tool.meta.requests
        };
        let is_of_use = |tool: &&Registered| {
            let is_form = !tool.meta.requests.is_empty() && tools.iter().any(|other| is_form_of(tool, other));
            tool.is_advertised() || !is_form && tool.meta.category != Category::Testing
        };
        let cards = tools.iter().filter(is_of_use).map(|tool| Card::from_spec(&tool.spec, &tool.meta));
        Self::new(cards.collect(), None)
    }

    /// Returns the tools of an external list.
    pub(super) fn listed(path: &Path, home: &Path) -> Result<Self, CliProblem> {
        Ok(Self::new(user_tools::cards(path)?, Some(home)))
    }

    fn new(cards: Vec<Card>, home: Option<&Path>) -> Self {
        Self { index: windlass::index(&cards, home), cards, usage: Usage::default() }
    }

    /// Adds the results of earlier calls to the ranking.
    pub(super) fn with_usage(mut self, usage: Usage) -> Self {
        self.index.remember(&usage);
        Self { usage, ..self }
    }

    fn situation(&self) -> ChoiceContext<'_> {
        ChoiceContext { usage: Some(&self.usage), ..ChoiceContext::default() }
    }

    fn card(&self, id: ToolId) -> Option<&Card> {
        self.cards.get(id.place())
    }

    fn about(&self, id: ToolId) -> &str {
        self.card(id).map_or("", |card| first_line(&card.description))
    }

    /// Returns the tools that fit best, one line each.
    pub(super) fn search(&self, args: &ToolQuery) -> (String, ProgramExit) {
        let request = ToolRequest::new(&args.request);
        let mut hits = self.index.search(&request, args.limit);
        hits.retain(ToolHit::is_related);
        let exit = if hits.is_empty() { ProgramExit::Failed } else { ProgramExit::Done };
        let among: Vec<_> = hits.iter().map(|hit| hit.id).collect();
        let ranked = choose_among(&self.index, &request, self.situation(), &among, args.limit).candidates;
        let hit = |each: &ToolCandidate| hits.iter().find(|hit| hit.id == each.id);
        let found = ranked.iter().filter_map(|each| Some((each, hit(each)?)));
        if args.json {
            let rows = found.map(|(each, hit)| {
                json!({"name": each.name, "score": each.score, "relevance": hit.score, "words": hit.words, "meaning": hit.meaning, "likeness": hit.likeness, "description": self.about(hit.id)})
            });
            return (pretty(&rows.collect()), exit);
        }
        let row = |each: &ToolCandidate| {
            [format!("{:.2}", each.score), visible(&each.name), visible(self.about(each.id))]
        };
        let rows: Vec<_> = found.map(|(each, _)| row(each)).collect();
        if rows.is_empty() {
            return ("no tool fits\n".to_owned(), exit);
        }
        (TextTable { titles: [""; 3], expendable: &[], last: LastColumn::Wrapped, rows }.text(), exit)
    }

    /// Returns the tool to use, or that there is none; and why, if requested.
    pub(super) fn select(&self, args: &ToolQuery, explain: bool) -> (String, ProgramExit) {
        let choice = choose(&self.index, &ToolRequest::new(&args.request), self.situation(), args.limit);
        let exit = if choice.fit.is_likely() { ProgramExit::Done } else { ProgramExit::Failed };
        let best = choice.candidates.first().filter(|_| choice.fit.is_likely());
        let card = best.and_then(|best| self.card(best.id));
        let inferred = card.map(|card| infer(&args.request, &card.parameters, &InferenceContext::default()));
        let shown = match (args.json, explain) {
            (true, _) => {
                let mut shown = json!(choice);
                if let Some(inferred) = inferred {
                    shown["arguments"] = json!(inferred.args);
                    shown["missing"] = json!(inferred.missing);
                    shown["invalid"] = json!(inferred.invalid);
                }
                pretty(&shown)
            }
            (false, true) => {
                let arguments = inferred.map_or_else(String::new, |inferred| arguments(&inferred));
                let choice = on_screen(choice);
                format!("{}\n{}{arguments}", answer(&choice), reasons(&choice))
            }
            (false, false) => answer(&on_screen(choice)),
        };
        (shown, exit)
    }
}

/// Escapes names, from any source, so that they cannot rewrite the screen or continue on another
/// line.
fn on_screen(mut choice: ToolChoice) -> ToolChoice {
    let candidates = choice.candidates.iter_mut().map(|each| &mut each.name);
    let ruled_out = choice.ruled_out.iter_mut().map(|each| &mut each.name);
    let targets = choice.intent.targets.iter_mut().map(|each| &mut each.text);
    for text in candidates.chain(ruled_out).chain(targets) {
        *text = visible(text);
    }
    choice
}

/// Columns of the table of scores: the tool, its score, and the parts of the score.
const SCORE_COLUMNS: usize = 2 + ScorePart::WEIGHTS.len();

fn answer(choice: &ToolChoice) -> String {
    let percent = choice.fit.likelihood * 100.0;
    match choice.candidates.first() {
        Some(best) if choice.fit.is_likely() => format!("{}\n", best.name),
        Some(best) => {
            format!("no tool fits ({percent:.0} % likely that one does); the nearest is {}\n", best.name)
        }
        None => "no tool fits\n".to_owned(),
    }
}

/// Describes the arguments of the tool that the request contains.
fn arguments(inferred: &InferredArguments) -> String {
    let line = |label: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!("{label:12} {}\n", visible(&names.join(", "))),
    };
    let (missing, invalid) = (line("missing", &inferred.missing), line("invalid", &inferred.invalid));
    format!("\narguments    {}\n{missing}{invalid}", visible(&json!(inferred.args).to_string()))
}

/// Describes the interpretation, the candidates with their scores, and the excluded tools.
fn reasons(choice: &ToolChoice) -> String {
    let intent = &choice.intent;
    let mut out = format!("operation    {}\n", word(&intent.operation));
    for target in &intent.targets {
        out.push_str(&format!("target       {} ({})\n", target.text, word(&target.kind)));
    }
    for constraint in &intent.constraints {
        out.push_str(&format!("constraint   {}\n", word(constraint)));
    }
    out.push_str(&format!("likelihood   {:.0} % that some tool fits\n\n", choice.fit.likelihood * 100.0));
    let row = |name: &str, score: String, parts: Vec<String>| {
        let mut row: [String; SCORE_COLUMNS] = Default::default();
        row.iter_mut()
            .zip([name.to_owned(), score].into_iter().chain(parts))
            .for_each(|(to, cell)| *to = cell);
        row
    };
    let weights = ScorePart::WEIGHTS.iter().map(|(_, weight)| weight.to_string()).collect();
    let mut rows = vec![row("weight", String::new(), weights)];
    rows.extend(choice.candidates.iter().map(|candidate| {
        let parts = candidate.parts.iter().map(|(_, value)| format!("{value:.2}")).collect();
        row(&candidate.name, format!("{:.2}", candidate.score), parts)
    }));
    let mut titles = ["tool", "score", "", "", "", "", "", ""];
    titles[2..].iter_mut().zip(ScorePart::WEIGHTS).for_each(|(title, (part, _))| *title = part.name());
    let expendable = &["complexity", "recent", "success", "parameters"];
    out.push_str(&TextTable { titles, expendable, last: LastColumn::Wrapped, rows }.text());
    let ruled_out =
        choice.ruled_out.iter().map(|tool| [tool.name.clone(), format!("ruled out: {}", tool.why)]);
    let rows: Vec<_> = ruled_out.collect();
    out.push_str(&TextTable { titles: [""; 2], expendable: &[], last: LastColumn::Wrapped, rows }.text());
    out
}

/// Returns one of our names, as in JSON.
fn word(value: &impl serde::Serialize) -> String {
    json!(value).as_str().unwrap_or_default().replace('_', " ")
}

fn first_line(description: &str) -> &str {
    let line = description.trim().lines().next().unwrap_or_default();
    line.split(". ").next().unwrap_or_default().trim_end_matches('.')
}
