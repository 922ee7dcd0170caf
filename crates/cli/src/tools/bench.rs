//! `windlass tools bench`: how well tools are chosen, measured on sets of requests with known answers.
//!
//! A set `S` is `S.tools.jsonl` with `S.queries.jsonl`, and tasks on candidates of their own, `S_TASK.jsonl`. Answers are
//! predictions for the sets' own scorer; nothing here knows what is right.

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

use crate::{brought::rows as read, problem::Problem, screen::visible_path};

/// How many tools of a ranking are written down.
const RANKED: usize = 20;

/// A line of `S.tools.jsonl`.
#[derive(Deserialize)]
struct Row {
    #[serde(flatten)]
    card: Card,
    /// What tasks name it by.
    def: Option<String>,
    /// Whether requests are answered from it.
    pool: Option<bool>,
}

/// A line of `S.queries.jsonl` or `S_TASK.jsonl`.
#[derive(Deserialize)]
struct Case {
    id: Value,
    query: String,
    #[serde(default)]
    tools: Vec<String>,
    /// The tools to fill in the arguments of; the task does not ask which.
    #[serde(default)]
    gold: Vec<String>,
    /// What else is known, such as the date.
    #[serde(default)]
    context: String,
}

/// Runs every set of a directory. The report is how long requests took.
pub(super) fn run(from: &Path, to: &Path) -> Result<String, Problem> {
    fs::create_dir_all(to).map_err(|error| Problem::file("cannot make", to, &error))?;
    let mut report = String::new();
    for set in sets(from)? {
        let rows: Vec<Row> = read(&from.join(format!("{set}.tools.jsonl")))?;
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

/// The sets of a directory, in order.
fn sets(from: &Path) -> Result<Vec<String>, Problem> {
    let entries = fs::read_dir(from).map_err(|error| Problem::file("cannot list", from, &error))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut sets: Vec<_> =
        names.filter_map(|name| Some(name.strip_suffix(".queries.jsonl")?.to_owned())).collect();
    sets.sort();
    if sets.is_empty() {
        return Err(Problem::usage(format!(
            "`{}` holds no set: no file ends in `.queries.jsonl`",
            visible_path(from)
        )));
    }
    Ok(sets)
}

/// Every request of a set, answered from all its tools.
fn retrieve(set: &str, rows: &[Row], from: &Path, to: &Path) -> Result<String, Problem> {
    let start = Instant::now();
    let mut index = Index::new();
    for row in rows.iter().filter(|row| row.pool != Some(false)) {
        index.add(&row.card);
    }
    let built = start.elapsed();
    let mut out = Predictions::create(to, set)?;
    for case in read::<Case>(&from.join(format!("{set}.queries.jsonl")))? {
        let start = Instant::now();
        let hits = index.search(&ToolRequest::new(&case.query), RANKED);
        out.took.push(start.elapsed());
        let ranked: Vec<_> = hits.iter().filter_map(|hit| index.name(hit.id)).collect();
        out.write(&json!({"id": case.id, "ranked": ranked}));
    }
    out.finish(&format!("{set}: {} in {} ms", counted(index.len(), "tool"), built.as_millis()))
}

impl Case {
    /// The tools it may be answered with, and an index of them alone.
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

/// Every case of a task, answered from its own candidates.
fn among(
    name: &str,
    cases: &[Case],
    by_definition: &HashMap<&str, &Card>,
    to: &Path,
) -> Result<String, Problem> {
    let mut out = Predictions::create(to, name)?;
    for case in cases {
        let (_, index) = case.candidates(by_definition);
        let start = Instant::now();
        let choice = choose(&index, &ToolRequest::new(&case.query), ChoiceContext::default(), RANKED);
        out.took.push(start.elapsed());
        let ranked: Vec<_> = choice.candidates.iter().map(|candidate| &candidate.name).collect();
        let (score, features) = (choice.fit.likelihood, choice.fit.features());
        out.write(&json!({"id": case.id, "ranked": ranked, "score": score, "features": features}));
    }
    out.finish(name)
}

/// Every case of a task about arguments: those of the tool it names, or of the one that is chosen.
fn fill(
    name: &str,
    cases: &[Case],
    by_definition: &HashMap<&str, &Card>,
    to: &Path,
) -> Result<String, Problem> {
    let mut out = Predictions::create(to, name)?;
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

/// A file of predictions, and how long each took.
struct Predictions {
    path: PathBuf,
    file: OutputFile,
    lines: String,
    took: Vec<Duration>,
}

impl Predictions {
    fn create(to: &Path, name: &str) -> Result<Self, Problem> {
        let path = to.join(format!("{name}.pred.jsonl"));
        let file = OutputFile::new(&path, &[to.to_owned()]);
        let file = file.map_err(|error| Problem::file("cannot write", &path, &error))?;
        Ok(Self { path, file, lines: String::new(), took: Vec::new() })
    }

    fn write(&mut self, prediction: &Value) {
        self.lines.push_str(&format!("{prediction}\n"));
    }

    fn finish(mut self, what: &str) -> Result<String, Problem> {
        let written = self.file.write(self.lines.as_bytes(), 0o666);
        written.map_err(|error| Problem::file("cannot write", &self.path, &error))?;
        self.took.sort();
        let at = |share: usize| self.took.get(self.took.len() * share / 100).map_or(0, Duration::as_micros);
        let (count, middle, late, last) = (self.took.len(), at(50), at(95), at(99));
        let count = counted(count, "request");
        Ok(format!("{what}: {count}, p50 {middle} µs, p95 {late} µs, p99 {last} µs\n"))
    }
}
