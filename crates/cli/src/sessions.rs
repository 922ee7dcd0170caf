//! `windlass sessions`: lists sessions and their disk usage, and removes old ones.

use std::{collections::BTreeMap, path::Path, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass::{
    Body, Content, Role, counted,
    record::{
        self, DiskUsage, KeepLimit, LoadedSession, RetentionLimits, SessionEntry, SessionError,
        SessionSummary, StoredUnit,
    },
};

use crate::{
    args::{CollectOptions, CommonOptions, SessionsCommand},
    calls::{self, one_line, when},
    exit::ProgramExit,
    output::print,
    problem::{CliProblem, chain},
    screen::{visible, visible_path},
    setup::ProgramSetup,
    table::TextTable,
};

/// Maximum number of largest sessions that `du` lists.
const MAX_LARGEST: usize = 10;

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &SessionsCommand) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    match args {
        SessionsCommand::List { limit, json } => list(&setup, *limit, *json),
        SessionsCommand::Show { id, json } => show(&setup, id, *json),
        SessionsCommand::Du { json } => usage(&setup, *json),
        SessionsCommand::Gc(collect) => collect_garbage(&setup, collect),
    }
}

/// Returns the sessions of the current directory, newest first, each with a line for a person.
pub(crate) fn resumable(
    setup: &ProgramSetup,
    limit: usize,
) -> Result<Vec<(SessionEntry, String)>, CliProblem> {
    let entries = record::list(&setup.home).map_err(|error| failed(&error))?;
    let here = entries.into_iter().filter(|entry| entry.cwd == setup.cwd).take(limit);
    let secrets = setup.secrets();
    let described = here.map(|entry| {
        // A session that cannot be read is listed, and the error appears when it is chosen.
        let asked = record::load(&entry.path).ok().and_then(|session| prompts(&session).next());
        let asked = secrets.clean(&asked.unwrap_or_default()).into_owned();
        let line = format!("{}  {}  {}", when(entry.started), entry.id, one_line(&asked));
        (entry, line)
    });
    Ok(described.collect())
}

fn failed(error: &SessionError) -> CliProblem {
    CliProblem::failed(chain(error))
}

fn list(setup: &ProgramSetup, limit: usize, json: bool) -> Result<ProgramExit, CliProblem> {
    let mut entries = record::list(&setup.home).map_err(|error| failed(&error))?;
    entries.truncate(limit);
    let found: Result<Vec<_>, _> =
        entries.into_iter().map(|entry| record::summarize(&entry.path).map(|found| (entry, found))).collect();
    let found = found.map_err(|error| failed(&error))?;
    if json {
        let lines = found.iter().map(|(entry, summary)| format!("{}\n", summary_as_json(entry, summary)));
        return print(&lines.collect::<String>());
    }
    if found.is_empty() {
        crate::note("there are no sessions yet");
        return Ok(ProgramExit::Done);
    }
    let rows = found.iter().map(|(entry, summary)| {
        let directory = visible_path(&entry.cwd);
        let (turns, size) = (summary.turns.to_string(), size(summary.bytes));
        [entry.id.to_string(), when(entry.started), turns, size, directory]
    });
    let titles = ["SESSION", "TIME", "TURNS", "SIZE", "DIRECTORY"];
    print(&TextTable { titles, expendable: &["SIZE", "TURNS", "TIME"], rows: rows.collect() }.text())
}

fn summary_as_json(entry: &SessionEntry, summary: &SessionSummary) -> Value {
    json!({
        "id": entry.id,
        "started": entry.started.to_string(),
        "changed": summary.changed.to_string(),
        "cwd": entry.cwd,
        "turns": summary.turns,
        "calls": summary.calls,
        "records": summary.records,
        "bytes": summary.bytes,
        "file": entry.path,
    })
}

/// The details of one session.
struct SessionDetails {
    entry: SessionEntry,
    session: LoadedSession,
    summary: SessionSummary,
    /// Bytes with outputs and edits.
    total: u64,
    /// The prompts of the user, without secrets.
    asked: Vec<String>,
    problems: Vec<String>,
}

fn show(setup: &ProgramSetup, id: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let entry = one(setup, id)?;
    let session = record::load(&entry.path).map_err(|error| failed(&error))?;
    let summary = record::summarize(&entry.path).map_err(|error| failed(&error))?;
    let usage = DiskUsage::measure(&setup.home).map_err(|error| failed(&error))?;
    let total = usage.sessions.iter().find(|(id, _)| id == entry.id.as_str()).map_or(0, |(_, bytes)| *bytes);
    let secrets = setup.secrets();
    let asked = prompts(&session).map(|text| secrets.clean(&text).into_owned()).collect();
    let problems = session.repaired.iter().map(ToString::to_string).collect();
    let details = SessionDetails { entry, session, summary, total, asked, problems };
    print(&if json { format!("{:#}\n", details.as_json()) } else { details.as_text() })
}

impl SessionDetails {
    fn as_json(&self) -> Value {
        let context = self.session.context.as_ref();
        let mut shown = summary_as_json(&self.entry, &self.summary);
        shown["version"] = json!(self.session.meta.version);
        shown["provider"] = json!(context.map(|context| &context.provider));
        shown["model"] = json!(context.map(|context| &context.model));
        shown["total_bytes"] = json!(self.total);
        shown["asked"] = json!(self.asked);
        shown["problems"] = json!(self.problems);
        shown
    }

    fn as_text(&self) -> String {
        let Self { entry, session, summary, total, asked, problems } = self;
        let model = session.context.as_ref().map_or("none yet".to_owned(), |context| {
            format!("{} ({})", visible(&context.model), visible(&context.provider))
        });
        let rows = [
            ("session", entry.id.to_string()),
            ("started", format!("{:.0}", entry.started)),
            ("changed", format!("{:.0}", summary.changed)),
            ("directory", visible_path(&entry.cwd)),
            ("model", model),
            ("turns", summary.turns.to_string()),
            ("calls", summary.calls.to_string()),
            ("size", format!("{}, {} with outputs and edits", size(summary.bytes), size(*total))),
            ("file", visible_path(&entry.path)),
        ];
        let problems = problems.iter().map(|problem| ("problem", problem.clone()));
        let asked = asked.iter().map(|text| ("asked", one_line(text)));
        let rows = rows.into_iter().chain(problems).chain(asked);
        rows.map(|(name, value)| format!("{name:<11}{value}\n")).collect()
    }
}

/// Returns the user's messages, except those that the program adds in their name.
fn prompts(session: &LoadedSession) -> impl Iterator<Item = String> {
    session
        .history
        .iter()
        .filter_map(|item| match &item.body {
            Body::Message { role: Role::User, content } => Some(Content::join(content)),
            _ => None,
        })
        .filter(|text| !text.starts_with("<environment_context>"))
}

/// Finds the one session that an id stands for.
fn one(setup: &ProgramSetup, id: &str) -> Result<SessionEntry, CliProblem> {
    let mut found = record::find_by_prefix(&setup.home, id).map_err(|error| failed(&error))?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(CliProblem::usage(format!("there is no session `{id}`; see `windlass sessions list`"))),
        _ => {
            let lines: String =
                found.iter().map(|entry| format!("\n  {}  {}", entry.id, visible_path(&entry.cwd))).collect();
            Err(CliProblem::usage(format!("`{id}` is ambiguous; choose one of these sessions:{lines}")))
        }
    }
}

fn usage(setup: &ProgramSetup, json: bool) -> Result<ProgramExit, CliProblem> {
    let usage = DiskUsage::measure(&setup.home).map_err(|error| failed(&error))?;
    let largest = usage.sessions.iter().take(MAX_LARGEST);
    if json {
        let kinds: BTreeMap<_, _> = usage
            .kinds
            .iter()
            .map(|kind| (kind.name, json!({"count": kind.count, "bytes": kind.bytes})))
            .collect();
        let largest: Vec<_> = largest.map(|(id, bytes)| json!({"session": id, "bytes": bytes})).collect();
        let shown = json!({"kinds": kinds, "bytes": usage.total_bytes(), "largest": largest});
        return print(&format!("{shown:#}\n"));
    }
    let kinds =
        usage.kinds.iter().map(|kind| [kind.name.to_owned(), kind.count.to_string(), size(kind.bytes)]);
    let total = [["total".to_owned(), String::new(), size(usage.total_bytes())]];
    let titles = ["KIND", "COUNT", "SIZE"];
    let mut text = TextTable { titles, expendable: &[], rows: kinds.chain(total).collect() }.text();
    let rows: Vec<_> = largest.map(|(id, bytes)| [visible(id), size(*bytes)]).collect();
    if !rows.is_empty() {
        text.push_str(&format!(
            "\n{}",
            TextTable { titles: ["LARGEST", "SIZE"], expendable: &[], rows }.text()
        ));
    }
    print(&text)
}

/// Returns totals and limits for `windlass doctor`.
pub(crate) fn kept(home: &Path, limits: &RetentionLimits) -> Option<String> {
    let usage = DiskUsage::measure(home).ok()?;
    let of = |name: &str| {
        let bytes = usage.kinds.iter().find(|kind| kind.name == name).map_or(0, |kind| kind.bytes);
        size(bytes)
    };
    Some(format!(
        "\nkept in `{}` (`retention` in the configuration; `windlass sessions du`):\n  \
         sessions: {}, no limit\n  calls outside of sessions: {}, no limit\n  \
         outputs: {}, {}\n  edits: {}, {}\n  cache: {}\n",
        visible_path(home),
        of("sessions"),
        of("calls"),
        of("outputs"),
        limit(&limits.outputs),
        of("edits"),
        limit(&limits.edits),
        of("cache"),
    ))
}

fn limit(limit: &KeepLimit) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let bytes = limit.max_bytes.map(size);
    let days = limit.max_age.map(|age| counted(age.as_secs() / DAY, "day"));
    match (bytes, days) {
        (None, None) => "no limit".to_owned(),
        (bytes, days) => {
            format!("at most {}", bytes.into_iter().chain(days).collect::<Vec<_>>().join(" and "))
        }
    }
}

fn collect_garbage(setup: &ProgramSetup, args: &CollectOptions) -> Result<ProgramExit, CliProblem> {
    let mut limits = RetentionLimits::from(setup.retention());
    if let Some(age) = age(args.older_than.as_deref())? {
        (limits.outputs.max_age, limits.edits.max_age) = (Some(age), Some(age));
        limits.sessions.max_age = args.sessions.then_some(age);
    }
    let removed = if !setup.home.is_dir() {
        Ok(Vec::new())
    } else if args.dry_run {
        limits.preview(&setup.home)
    } else {
        limits.enforce(&setup.home, &|| true)
    };
    let removed = removed.map_err(|error| match error {
        SessionError::Busy { .. } => {
            CliProblem::failed("another process is removing old data; try again later")
        }
        error => failed(&error),
    })?;
    print(&if args.json {
        removed_as_json(&removed, args.dry_run)
    } else {
        removed_as_text(&removed, args.dry_run)
    })
}

/// Parses `--older-than`.
fn age(text: Option<&str>) -> Result<Option<Duration>, CliProblem> {
    let Some(text) = text else { return Ok(None) };
    let wrong = || {
        CliProblem::usage(format!(
            "`--older-than {text}` is not a time in the past; use a duration (`12h`, `30d`, `2w`) or a date"
        ))
    };
    let then = calls::parse_time(text, Timestamp::now()).ok_or_else(wrong)?;
    Timestamp::now().duration_since(then).try_into().map(Some).map_err(|_| wrong())
}

fn removed_as_json(removed: &[StoredUnit], dry_run: bool) -> String {
    let units: Vec<_> = removed
        .iter()
        .map(|unit| {
            json!({
                "kind": unit.kind.name(),
                "session": unit.session,
                "path": unit.path,
                "bytes": unit.bytes,
            })
        })
        .collect();
    let shown = json!({"dry_run": dry_run, "removed": units, "bytes": bytes(removed)});
    format!("{shown:#}\n")
}

fn removed_as_text(removed: &[StoredUnit], dry_run: bool) -> String {
    let lines = removed.iter().map(|unit| {
        let path = visible_path(&unit.path);
        format!("{}  {}  {path}\n", unit.kind.name(), size(unit.bytes))
    });
    let verb = if dry_run { "would be freed" } else { "freed" };
    let total = format!("{} removed, {} {verb}\n", removed.len(), size(bytes(removed)));
    lines.chain([if dry_run { total.replace(" removed", " would be removed") } else { total }]).collect()
}

fn bytes(removed: &[StoredUnit]) -> u64 {
    removed.iter().map(|unit| unit.bytes).sum()
}

/// Formats a number of bytes in about three digits.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in UNITS {
        if bytes >= unit {
            let tenths = bytes.saturating_mul(10) / unit;
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_brief() {
        let shown = [0, 1023, 1024, 1536, 5 << 20, 2 << 30].map(size);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 MiB", "2.0 GiB"]);
    }

    #[test]
    fn limits_are_shown_and_so_is_that_there_are_none() {
        let day = Duration::from_hours(24);
        let both = KeepLimit { max_bytes: Some(1 << 30), max_age: Some(day * 30) };
        assert_eq!(limit(&both), "at most 1.0 GiB and 30 days");
        assert_eq!(limit(&KeepLimit { max_bytes: None, ..both }), "at most 30 days");
        assert_eq!(limit(&KeepLimit::default()), "no limit");
    }
}
