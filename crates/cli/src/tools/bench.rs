//! `windlass tools bench`: measures how well tools are chosen, on sets of requests with known
//! answers.
//!
//! A set `S` is `S.tools.jsonl` with `S.queries.jsonl`, and tasks with candidates of their own,
//! `S_TASK.jsonl`. Answers are predictions for the scorer of the sets; the expected results are not
//! used here.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json};
use windlass::{
    counted,
    host::OutputFile,
    select::{
        Card, ChoiceContext, Index, ToolRequest,
        args::{CalendarDate, InferenceContext, infer},
        choose,
    },
};

use crate::{problem::CliProblem, screen::visible_path, user_tools::rows as read};

/// Maximum number of tools of a ranking that are written.
const MAX_RANKED: usize = 20;

/// A line of `S.tools.jsonl`.
#[derive(Deserialize)]
struct ToolRow {
    #[serde(flatten)]
    card: Card,
    /// The name that tasks use for it.
    def: Option<String>,
    /// Requests are answered from it.
    pool: Option<bool>,
}

/// A line of `S.queries.jsonl` or `S_TASK.jsonl`.
#[derive(Deserialize)]
struct BenchCase {
    id: Value,
    query: String,
    #[serde(default)]
    tools: Vec<String>,
    /// The tools to fill in the arguments of; the task does not ask for a choice.
    #[serde(default)]
    gold: Vec<String>,
    /// Further facts, such as the date.
    #[serde(default)]
    context: String,
}

/// Runs every set of a directory. The report lists durations of requests.
pub(super) fn run(from: &Path, to: &Path) -> Result<String, CliProblem> {
    fs::create_dir_all(to).map_err(|error| CliProblem::file("cannot make", to, &error))?;
    let mut report = String::new();
    for set in sets(from)? {
        let rows: Vec<ToolRow> = read(&from.join(format!("{set}.tools.jsonl")))?;
        report.push_str(&retrieve(&set, &rows, from, to)?);
        let by_definition: HashMap<_, _> =
            rows.iter().filter_map(|row| Some((row.def.as_deref()?, &row.card))).collect();
        for task in ["select", "irrel"] {
            let name = format!("{set}_{task}");
            let path = from.join(format!("{name}.jsonl"));
            if path.exists() {
                report.push_str(&among(&name, &read(&path)?, &by_definition, to)?);
            }
        }
        for task in ["args", "params"] {
            let name = format!("{set}_{task}");
            let path = from.join(format!("{name}.jsonl"));
            if path.exists() {
                report.push_str(&fill(&name, &read(&path)?, &by_definition, to)?);
            }
        }
    }
    Ok(report)
}

/// Returns the sets of a directory, in order.
fn sets(from: &Path) -> Result<Vec<String>, CliProblem> {
    let entries = fs::read_dir(from).map_err(|error| CliProblem::file("cannot list", from, &error))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut sets: Vec<_> =
        names.filter_map(|name| Some(name.strip_suffix(".queries.jsonl")?.to_owned())).collect();
    sets.sort();
    if sets.is_empty() {
        return Err(CliProblem::usage(format!(
            "`{}` holds no set: no file ends in `.queries.jsonl`",
            visible_path(from)
        )));
    }
    Ok(sets)
}

/// Answers every request of a set from all its tools.
fn retrieve(set: &str, rows: &[ToolRow], from: &Path, to: &Path) -> Result<String, CliProblem> {
    let start = Instant::now();
    let mut index = Index::new();
    for row in rows.iter().filter(|row| row.pool != Some(false)) {
        index.add(&row.card);
    }
    let built = start.elapsed();
    let mut out = PredictionFile::create(to, set)?;
    for case in read::<BenchCase>(&from.join(format!("{set}.queries.jsonl")))? {
        let start = Instant::now();
        let hits = index.search(&ToolRequest::new(&case.query), MAX_RANKED);
        out.took.push(start.elapsed());
        let ranked: Vec<_> = hits.iter().filter_map(|hit| index.name(hit.id)).collect();
        out.write(&json!({"id": case.id, "ranked": ranked}));
    }
    out.finish(&format!("{set}: {} in {} ms", counted(index.len(), "tool"), built.as_millis()))
}

impl BenchCase {
    /// Returns the candidate tools of a case, and an index of them alone.
    fn candidates<'a>(&self, by_definition: &HashMap<&str, &'a Card>) -> (Vec<&'a Card>, Index) {
        let cards = self.tools.iter().filter_map(|definition| by_definition.get(definition.as_str()));
        let cards: Vec<_> = cards.copied().collect();
        let mut index = Index::new();
        for card in &cards {
            index.add(card);
        }
        (cards, index)
    }
}

/// Answers every case of a task from its own candidates.
fn among(
    name: &str,
    cases: &[BenchCase],
    by_definition: &HashMap<&str, &Card>,
    to: &Path,
) -> Result<String, CliProblem> {
    let mut out = PredictionFile::create(to, name)?;
    for case in cases {
        let (_, index) = case.candidates(by_definition);
        let start = Instant::now();
        let choice = choose(&index, &ToolRequest::new(&case.query), ChoiceContext::default(), MAX_RANKED);
        out.took.push(start.elapsed());
        let ranked: Vec<_> = choice.candidates.iter().map(|candidate| &candidate.name).collect();
        let (score, features) = (choice.fit.likelihood, choice.fit.features());
        out.write(&json!({"id": case.id, "ranked": ranked, "score": score, "features": features}));
    }
    out.finish(name)
}

/// Fills in the arguments for every case of a task: of the tool it names, or of the one that is
/// chosen.
fn fill(
    name: &str,
    cases: &[BenchCase],
    by_definition: &HashMap<&str, &Card>,
    to: &Path,
) -> Result<String, CliProblem> {
    let mut out = PredictionFile::create(to, name)?;
    for case in cases {
        let (candidates, index) = case.candidates(by_definition);
        let hits = index.search(&ToolRequest::new(&case.query), 1);
        let chosen = hits.first().and_then(|hit| index.name(hit.id));
        let named = candidates.iter().find(|card| case.gold.contains(&card.name));
        let card = named.or_else(|| candidates.iter().find(|card| chosen == Some(card.name.as_str())));
        let Some(card) = card else { continue };
        let context =
            InferenceContext { today: CalendarDate::first_in(&case.context), ..InferenceContext::default() };
        let start = Instant::now();
        let inferred = infer(&case.query, &card.parameters, &context);
        out.took.push(start.elapsed());
        let (args, missing, invalid) = (inferred.args, inferred.missing, inferred.invalid);
        out.write(&json!({"id": case.id, "args": args, "missing": missing, "invalid": invalid}));
    }
    out.finish(name)
}

/// A file of predictions, with the duration of each.
struct PredictionFile {
    path: PathBuf,
    file: OutputFile,
    lines: String,
    took: Vec<Duration>,
}

impl PredictionFile {
    fn create(to: &Path, name: &str) -> Result<Self, CliProblem> {
        let path = to.join(format!("{name}.pred.jsonl"));
        let file = OutputFile::new(&path, &[to.to_owned()]);
        let file = file.map_err(|error| CliProblem::file("cannot write", &path, &error))?;
        Ok(Self { path, file, lines: String::new(), took: Vec::new() })
    }

    fn write(&mut self, prediction: &Value) {
        self.lines.push_str(&format!("{prediction}\n"));
    }

    fn finish(mut self, what: &str) -> Result<String, CliProblem> {
        let written = self.file.write(self.lines.as_bytes(), 0o666);
        written.map_err(|error| CliProblem::file("cannot write", &self.path, &error))?;
        self.took.sort();
        let at = |share: usize| self.took.get(self.took.len() * share / 100).map_or(0, Duration::as_micros);
        let (count, middle, late, last) = (self.took.len(), at(50), at(95), at(99));
        let count = counted(count, "request");
        Ok(format!("{what}: {count}, p50 {middle} µs, p95 {late} µs, p99 {last} µs\n"))
    }
}
