//! `windlass doctor`: checks the setup, and reports what this machine can enforce.

mod checks;

use std::{collections::BTreeMap, path::Path};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass::{
    host::{Diagnosis, Machine},
    record::{DiskUsage, SnapshotStore},
};

use crate::{
    args::{CommonOptions, DoctorOptions},
    config::{CommandLimits, RetentionSettings},
    exit::ProgramExit,
    output::print,
    problem::CliProblem,
    screen::visible,
    sessions,
    setup::ProgramSetup,
    wrap,
};

use checks::{CheckStatus, DoctorCheck};

const MEGABYTE: u64 = 1024 * 1024;

/// Runs the command. It fails if a check fails, as when commands cannot be confined at all.
pub(crate) fn run(common: &CommonOptions, options: &DoctorOptions) -> Result<ProgramExit, CliProblem> {
    let diagnosis = Machine::for_one_command(BTreeMap::new()).diagnose();
    // One of the checks reports a broken configuration.
    let setup = ProgramSetup::for_tools(common).ok();
    let left_out = setup.as_ref().map(ProgramSetup::left_out).unwrap_or_default();
    let undo = setup.as_ref().map(undo_state);
    let limits = setup.as_ref().map(ProgramSetup::command_limits).unwrap_or_default();
    let checks = checks::run(common, options.network, &diagnosis);
    let retention = setup.as_ref().map(|setup| (setup.home.clone(), setup.retention()));
    let shown = if options.json {
        let mut shown = as_json(&diagnosis, &limits);
        shown["checks"] = checks.iter().map(DoctorCheck::as_json).collect();
        shown["variables_left_out"] = left_out.into_iter().collect();
        shown["retention"] = retention.map(|(home, limits)| kept_as_json(&home, limits)).into();
        shown["undo"] = undo.unwrap_or_default();
        format!("{shown:#}\n")
    } else {
        let kept = retention.and_then(|(home, limits)| sessions::kept(&home, &limits.into()));
        let kept = kept.unwrap_or_default() + &undo_as_text(undo.as_ref());
        let text = as_text(&diagnosis) + &limits_as_text(&limits) + &kept + &variables(&left_out);
        wrapped(&checks::as_text(&checks), checks::DETAIL_COLUMN) + &wrapped(&text, 4)
    };
    print(&shown)?;
    let has_failed = checks.iter().any(|check| check.status == CheckStatus::Failed);
    Ok(if has_failed { ProgramExit::Failed } else { ProgramExit::Done })
}

/// Wraps lines for a terminal. Lines that continue another begin at this column.
fn wrapped(text: &str, column: usize) -> String {
    let Some(columns) = wrap::stdout_columns() else { return text.to_owned() };
    let wrap = |line| wrap::wrap_line(line, columns, &" ".repeat(column));
    text.lines().flat_map(wrap).map(|line| line + "\n").collect()
}

/// Returns the report as part of a larger one.
pub(crate) fn report() -> Value {
    value(&Machine::for_one_command(BTreeMap::new()).diagnose())
}

/// Describes the record of changes by commands in this directory.
fn undo_state(setup: &ProgramSetup) -> Value {
    let config = setup.undo_of_commands();
    let state = SnapshotStore::state(&setup.home, &setup.cwd).ok().flatten();
    let scanned = state.as_ref().and_then(|state| state.scanned);
    json!({
        "commands": config.commands,
        "max_files": config.max_files,
        "max_file_megabytes": config.max_file_megabytes,
        "max_total_megabytes": config.max_total_megabytes,
        "store": state.as_ref().map(|state| &state.directory),
        "contents": state.as_ref().map(|state| state.contents),
        "bytes": state.as_ref().map(|state| state.bytes),
        "scanned": scanned.and_then(|time| Timestamp::try_from(time).ok()).map(|time| format!("{time:.0}")),
    })
}

fn undo_as_text(undo: Option<&Value>) -> String {
    let Some(undo) = undo else { return String::new() };
    let state = if undo["commands"] == false {
        "no (`undo.commands` is false)".to_owned()
    } else if let (Some(contents), Some(bytes)) = (undo["contents"].as_u64(), undo["bytes"].as_u64()) {
        let scanned = undo["scanned"].as_str().unwrap_or("never");
        format!("yes; {contents} file contents, {} MB, last scan {scanned}", bytes.div_ceil(MEGABYTE))
    } else {
        "yes; nothing is kept of this directory yet".to_owned()
    };
    format!("\nundo of changes by commands (`undo` in the configuration): {state}\n")
}

/// Lists the variables that commands do not get, grouped by the reason.
fn variables(left_out: &[(String, String)]) -> String {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, reason) in left_out {
        by_reason.entry(reason).or_default().push(visible(name));
    }
    let lines = by_reason.iter().map(|(reason, names)| format!("  {} ({reason})\n", names.join(", ")));
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\nvariables that are not passed to commands (`shell_environment_policy`):\n{lines}")
}

fn as_json(diagnosis: &Diagnosis, limits: &CommandLimits) -> Value {
    let mut shown = value(diagnosis);
    shown["limits"] = json!({"command": limits.defaults()});
    shown
}

/// Returns the limits of retention, and the current usage.
fn kept_as_json(home: &Path, limits: RetentionSettings) -> Value {
    let usage = DiskUsage::measure(home).unwrap_or_default();
    let bytes: BTreeMap<_, _> = usage.kinds.iter().map(|kind| (kind.name, kind.bytes)).collect();
    json!({"limits": limits, "bytes": bytes})
}

/// Formats the limits of each command.
fn limits_as_text(limits: &CommandLimits) -> String {
    let defaults = limits.defaults();
    let number = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
    let memory = defaults.memory_bytes.map_or("no limit".to_owned(), |bytes| {
        format!("{} MB, {} % of this machine's", bytes / MEGABYTE, limits.memory_percent)
    });
    format!(
        "\nlimits of each command, unless --limit sets another (`limits` in the configuration):\n  \
         processes and threads: {}\n  memory: {memory}\n  open files: {}\n",
        number(defaults.processes),
        number(defaults.open_files),
    )
}

fn value(diagnosis: &Diagnosis) -> Value {
    let layers: BTreeMap<_, _> = diagnosis.layers.iter().cloned().collect();
    let missing = diagnosis.missing.as_ref();
    json!({
        "rung": diagnosis.rung,
        "landlock": diagnosis.landlock,
        "layers": layers,
        "missing": missing.map(|missing| json!({"reason": missing.reason, "remedy": missing.remedy})),
        "not_covered": diagnosis.not_covered,
    })
}

fn as_text(diagnosis: &Diagnosis) -> String {
    let rung = diagnosis.rung.map_or("nothing: commands are refused", windlass::Mechanism::name);
    let mut text = format!("commands are confined by: {rung}\n");
    if let Some(missing) = &diagnosis.missing {
        text.push_str(&format!("\nno namespaces: {}\n", visible(&missing.reason)));
        let remedy = missing.remedy.as_deref().unwrap_or("none known; the reason is a message of the system");
        text.push_str(&format!("remedy: {}\n", visible(remedy)));
    }
    if !diagnosis.layers.is_empty() {
        text.push_str("\nlayers of the sandbox:\n");
        for (name, what) in &diagnosis.layers {
            text.push_str(&format!("  {name}: {}\n", visible(what)));
        }
    }
    text.push_str("\nnot covered:\n");
    diagnosis.not_covered.iter().for_each(|line| text.push_str(&format!("  {}\n", visible(line))));
    text
}

#[cfg(test)]
mod tests {
    use windlass::host::Missing;

    use super::*;

    #[test]
    fn variables_that_are_left_out_are_told_with_the_reason() {
        let pair = |name: &str, reason: &str| (name.to_owned(), reason.to_owned());
        let left_out = [pair("A", "r"), pair("B", "s"), pair("C", "r")];
        assert_eq!(
            variables(&left_out),
            "\nvariables that are not passed to commands (`shell_environment_policy`):\n  A, C (r)\n  B (s)\n"
        );
        assert_eq!(variables(&[]), "");
    }

    #[test]
    fn limits_are_shown_and_so_is_that_there_are_none() {
        let none = CommandLimits { processes: 0, memory_percent: 0, open_files: 0 };
        let shown = limits_as_text(&CommandLimits { processes: 7, ..none });
        assert_eq!(
            shown,
            "\nlimits of each command, unless --limit sets another (`limits` in the configuration):\n  \
             processes and threads: 7\n  memory: no limit\n  open files: no limit\n"
        );
    }

    #[test]
    fn a_missing_rung_is_told_with_what_helps() {
        let diagnosis = Diagnosis {
            rung: None,
            landlock: 0,
            missing: Some(Missing {
                reason: "making namespaces: no".to_owned(),
                remedy: Some("do this".to_owned()),
            }),
            layers: Vec::new(),
            not_covered: vec!["everything".to_owned()],
        };
        assert_eq!(
            as_text(&diagnosis),
            "commands are confined by: nothing: commands are refused\n\nno namespaces: making namespaces: no\n\
             remedy: do this\n\nnot covered:\n  everything\n"
        );
    }
}
