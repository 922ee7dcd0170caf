//! `windlass audit`: verifies a session file, or makes a bug report from it.

use std::{
    fs::File,
    io::{BufRead, BufReader, ErrorKind},
    path::Path,
};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass::{
    ThreadId,
    clean::Secrets,
    counted,
    record::{self, Calls, ChainHead, LineHash},
};

use crate::{
    args::{AuditCommand, CommonOptions},
    config::{self, ConfigFormat},
    doctor,
    exit::ProgramExit,
    ids,
    output::{print, print_text},
    problem::{CliProblem, chain},
    screen::visible,
    setup::ProgramSetup,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &AuditCommand) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    match args {
        AuditCommand::Verify { session, head, json } => verify(&setup, session, head.as_deref(), *json),
        AuditCommand::Export { session, output, .. } => export(&setup, session, output.as_deref()),
    }
}

/// The hash chain of a session file, compared with the recorded head.
struct AuditFinding {
    audit: record::ChainAudit,
    remembered: Result<Option<ChainHead>, String>,
    /// Mismatches, one line each.
    problems: Vec<String>,
}

fn verify(
    setup: &ProgramSetup,
    session: &str,
    head: Option<&str>,
    json: bool,
) -> Result<ProgramExit, CliProblem> {
    let head = head.map(|text| {
        LineHash::parse(text)
            .ok_or_else(|| CliProblem::usage(format!("`--head {text}`: a hash has 64 hexadecimal digits")))
    });
    let (id, path) = ids::file(setup, session)?;
    let found = examined(setup, &id, &path, head.transpose()?)?;
    if json {
        print(&format!("{:#}\n", as_json(&found)))?;
    } else {
        print_text(&as_text(&found))?;
    }
    Ok(if found.problems.is_empty() { ProgramExit::Done } else { ProgramExit::Failed })
}

fn examined(
    setup: &ProgramSetup,
    session: &ThreadId,
    path: &Path,
    head: Option<LineHash>,
) -> Result<AuditFinding, CliProblem> {
    // This comes before anything else reads the file: an updated index would know the current end.
    let remembered = remembered(setup, session);
    let known = remembered.as_ref().ok().copied().flatten();
    let failed = |error: &record::SessionError| CliProblem::failed(chain(error));
    let audit = record::verify(path, known.map(|head| head.link)).map_err(|error| failed(&error))?;
    let mut problems: Vec<_> = audit.broken.iter().map(ToString::to_string).collect();
    if let Some(known) = known.filter(|_| !audit.passed) {
        let (lines, there) = (known.lines, audit.head.lines);
        problems.push(if there < lines {
            format!("lines are missing at the end: expected {lines}, found {there}")
        } else {
            format!("line {lines} differs from the one that the index of calls has recorded")
        });
    }
    if let Some(head) = head {
        let passed = record::verify(path, Some(head)).map_err(|error| failed(&error))?.passed;
        problems.extend((!passed).then(|| format!("no line of the file has the hash {head}")));
    }
    Ok(AuditFinding { audit, remembered, problems })
}

/// Returns the end of the file that the index recorded, or why it is not available.
fn remembered(setup: &ProgramSetup, session: &ThreadId) -> Result<Option<ChainHead>, String> {
    if !Calls::index_path(&setup.home).exists() {
        return Ok(None);
    }
    let calls = Calls::open(&setup.home, setup.keep()).map_err(|error| error.to_string())?;
    calls.head(session.as_str()).map_err(|error| error.to_string())
}

fn as_text(found: &AuditFinding) -> String {
    let AuditFinding { audit, remembered, problems } = found;
    let mut text: String = problems.iter().map(|problem| format!("{}\n", visible(problem))).collect();
    if problems.is_empty() {
        text.push_str(&format!(
            "{} verified; nothing was changed, removed, added or moved\n",
            counted(audit.head.lines, "line")
        ));
    }
    if audit.unchained > 0 {
        text.push_str(&format!(
            "lines 1 to {} cannot be verified: an earlier version wrote them without hashes\n",
            audit.unchained
        ));
    }
    if audit.torn {
        text.push_str("the last line is incomplete, as after a crash; resuming the session removes it\n");
    }
    match remembered {
        Ok(Some(head)) => text.push_str(&format!("the index of calls has recorded the file up to line {}\n", head.lines)),
        Ok(None) => text.push_str(
            "the end of the file is not on record: lines may be missing there (`windlass stats` records it from now on)\n",
        ),
        Err(problem) => text.push_str(&format!("lines may be missing at the end: {}\n", visible(problem))),
    }
    text.push_str(&format!("head {}\n", audit.head.link));
    text
}

fn as_json(found: &AuditFinding) -> Value {
    let AuditFinding { audit, remembered, problems } = found;
    json!({
        "ok": problems.is_empty(),
        "problems": problems,
        "lines": audit.head.lines,
        "bytes": audit.head.bytes,
        "head": audit.head.link.to_string(),
        "first_bad_line": audit.broken.map(|broken| broken.line),
        "unchained_lines": audit.unchained,
        "torn": audit.torn,
        "known_lines": remembered.as_ref().ok().copied().flatten().map(|head| head.lines),
    })
}

fn export(setup: &ProgramSetup, session: &str, output: Option<&Path>) -> Result<ProgramExit, CliProblem> {
    let (id, path) = ids::file(setup, session)?;
    let found = examined(setup, &id, &path, None)?;
    let secrets = setup.secrets();
    let lines = lines(&path, &secrets).map_err(|error| CliProblem::file("cannot read", &path, &error))?;
    let config = config::show(&setup.loaded, ConfigFormat::Json);
    let report = json!({
        "note": "Made by `windlass audit export --redacted`. Secrets are replaced by labels, and the home directory by `~`; \
                 the hashes are those of the original lines. Read it before you send it.",
        "windlass": env!("CARGO_PKG_VERSION"),
        "system": {"os": std::env::consts::OS, "arch": std::env::consts::ARCH},
        "made": format!("{:.0}", Timestamp::now()),
        "audit": as_json(&found),
        "doctor": doctor::report(),
        "config": serde_json::from_str::<Value>(&config).unwrap_or_default(),
        "session": lines,
    });
    let report = format!("{:#}\n", without_home(cleaned(report, &secrets)));
    let Some(file) = output else { return print(&report) };
    let written = setup.output_file(file).and_then(|made| {
        if !made.is_new() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        made.write(report.as_bytes(), 0o600)
    });
    written.map_err(|error| CliProblem::file("cannot write the report to", file, &error))?;
    Ok(ProgramExit::Done)
}

/// Returns the lines of a session file. A malformed line is kept as text.
fn lines(path: &Path, secrets: &Secrets) -> std::io::Result<Vec<Value>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        if file.read_until(b'\n', &mut line)? == 0 {
            return Ok(lines);
        }
        let text = String::from_utf8_lossy(&line);
        let value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
        lines.push(cleaned(value, secrets));
    }
}

/// Returns a value without secrets: found by their form, or by the name of their key.
pub(crate) fn cleaned(value: Value, secrets: &Secrets) -> Value {
    each_text(value, &|key, text| {
        let named = key.is_some_and(|key| Secrets::is_credential(key, &text));
        // Arguments of calls are JSON inside a text, and are cleaned as JSON: the names of keys
        // matter there, too.
        let inner = (!named && text.trim_start().starts_with(['{', '[']))
            .then(|| serde_json::from_str(&text).ok())
            .flatten();
        match inner {
            _ if named => "[REDACTED:by-name]".to_owned(),
            Some(inner @ (Value::Object(_) | Value::Array(_))) => {
                let clean = cleaned(inner, secrets).to_string();
                secrets.clean(&clean).into_owned()
            }
            _ => secrets.clean(&text).into_owned(),
        }
    })
}

/// Replaces the user's home directory in every text.
fn without_home(value: Value) -> Value {
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    match home {
        Some(home) => each_text(value, &|_, text| text.replace(&home, "~")),
        None => value,
    }
}

fn each_text(value: Value, change: &dyn Fn(Option<&str>, String) -> String) -> Value {
    fn go(key: Option<&str>, value: Value, change: &dyn Fn(Option<&str>, String) -> String) -> Value {
        match value {
            Value::String(text) => Value::String(change(key, text)),
            Value::Array(list) => list.into_iter().map(|each| go(key, each, change)).collect(),
            Value::Object(map) => {
                let entries = map.into_iter().map(|(name, each)| {
                    let each = go(Some(&name), each, change);
                    (change(None, name), each)
                });
                Value::Object(entries.collect::<Map<_, _>>())
            }
            other => other,
        }
    }
    go(None, value, change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_cleaned_by_value_by_form_and_by_name_also_inside_of_arguments() {
        let secrets = Secrets::knowing([("TOKEN".to_owned(), "kX9vQ2mT7pL4wZ8rB3".to_owned())]);
        let arguments = json!({"password": "hunter2hunter2", "path": "a.txt"}).to_string();
        let value = json!({
            "text": "say kX9vQ2mT7pL4wZ8rB3",
            "input": {"json": arguments},
            "list": ["AKIAIOSFODNN7EXAMPLE is a key"],
            "number": 5,
        });
        let text = cleaned(value, &secrets).to_string();
        for secret in ["kX9vQ2mT7", "hunter2"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("a.txt") && text.contains("\"number\":5"), "{text}");
    }
}
