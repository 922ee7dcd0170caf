//! `windlass sessions du` and `windlass sessions gc`: disk usage, and the removal of old data.

use std::{collections::BTreeMap, path::Path, time::Duration};

use jiff::Timestamp;
use serde_json::json;
use windlass::{
    counted,
    record::{DiskUsage, KeepLimit, RetentionLimits, SessionError, StoredUnit},
};

use super::failed;
use crate::{
    args::CollectOptions,
    calls,
    exit::ProgramExit,
    ids,
    output::{print, print_text},
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
};

/// Maximum number of largest sessions that `du` lists.
const MAX_LARGEST: usize = 10;

pub(super) fn usage(setup: &ProgramSetup, json: bool) -> Result<ProgramExit, CliProblem> {
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
    let last = LastColumn::Wrapped;
    let mut text = TextTable { titles, expendable: &[], last, rows: kinds.chain(total).collect() }.text();
    let all = || usage.sessions.iter().map(|(id, _)| id.as_str());
    let rows: Vec<_> = largest.map(|(id, bytes)| [visible(&ids::shown(id, all())), size(*bytes)]).collect();
    if !rows.is_empty() {
        let titles = ["LARGEST", "SIZE"];
        text.push_str(&format!("\n{}", TextTable { titles, expendable: &[], last, rows }.text()));
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

pub(super) fn collect_garbage(
    setup: &ProgramSetup,
    args: &CollectOptions,
) -> Result<ProgramExit, CliProblem> {
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
    if args.json {
        return print(&removed_as_json(&removed, args.dry_run));
    }
    print_text(&removed_as_text(&removed, args.dry_run))
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
pub(super) fn size(bytes: u64) -> String {
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
