//! `windlass audit`: what a session file proves, and a report made from it.

use std::{
    fs::File,
    io::{BufRead, BufReader, ErrorKind},
    path::Path,
};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass::{
    clean::Secrets,
    record::{self, Calls, ChainHead, LineHash},
};

use crate::{
    args::{Audit, Common},
    config::{self, Format},
    doctor,
    exit::Exit,
    output::print,
    problem::{Problem, chain},
    screen::visible,
    setup::Setup,
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: &Audit) -> Result<Exit, Problem> {
    let setup = Setup::for_tools(common)?;
    match args {
        Audit::Verify { session, head, json } => verify(&setup, session, head.as_deref(), *json),
        Audit::Export { session, output, .. } => export(&setup, session, output.as_deref()),
    }
}

/// What a file says about itself, and what others remember of it.
struct Finding {
    audit: record::ChainAudit,
    remembered: Result<Option<ChainHead>, String>,
    /// What does not fit, one line each.
    problems: Vec<String>,
}

fn verify(setup: &Setup, session: &str, head: Option<&str>, json: bool) -> Result<Exit, Problem> {
    let head = head.map(|text| {
        LineHash::parse(text)
            .ok_or_else(|| Problem::usage(format!("`--head {text}`: a hash has 64 hexadecimal digits")))
    });
    let (_, path) =
        record::find(&setup.home, &session.into()).map_err(|error| Problem::usage(chain(&error)))?;
    let found = examined(setup, session, &path, head.transpose()?)?;
    print(&if json { format!("{:#}\n", as_json(&found)) } else { as_text(&found) })?;
    Ok(if found.problems.is_empty() { Exit::Done } else { Exit::Failed })
}

fn examined(setup: &Setup, session: &str, path: &Path, head: Option<LineHash>) -> Result<Finding, Problem> {
    // Looked up before anything else reads the file: an index brought up to date would know what is there now.
    let remembered = remembered(setup, session);
    let known = remembered.as_ref().ok().copied().flatten();
    let failed = |error: &record::SessionError| Problem::failed(chain(error));
    let audit = record::verify(path, known.map(|head| head.link)).map_err(|error| failed(&error))?;
    let mut problems: Vec<_> = audit.broken.iter().map(ToString::to_string).collect();
    if let Some(known) = known.filter(|_| !audit.passed) {
        let (lines, there) = (known.lines, audit.head.lines);
        problems.push(if there < lines {
            format!("lines are missing at the end: there were {lines}, and there are {there}")
        } else {
            format!("line {lines} is not the one that stood there when the index of calls last read the file")
        });
    }
    if let Some(head) = head {
        let passed = record::verify(path, Some(head)).map_err(|error| failed(&error))?.passed;
        problems.extend((!passed).then(|| format!("no line of the file has the hash {head}")));
    }
    Ok(Finding { audit, remembered, problems })
}

/// Where the file once ended, or why nobody can say.
fn remembered(setup: &Setup, session: &str) -> Result<Option<ChainHead>, String> {
    if !Calls::index_path(&setup.home).exists() {
        return Ok(None);
    }
    let calls = Calls::open(&setup.home, setup.keep()).map_err(|error| error.to_string())?;
    calls.head(&session.to_lowercase()).map_err(|error| error.to_string())
}

fn as_text(found: &Finding) -> String {
    let Finding { audit, remembered, problems } = found;
    let mut text: String = problems.iter().map(|problem| format!("{}\n", visible(problem))).collect();
    if problems.is_empty() {
        text.push_str(&format!(
            "{} lines follow from each other; none was changed, removed, added or moved\n",
            audit.head.lines
        ));
    }
    if audit.unchained > 0 {
        text.push_str(&format!(
            "lines 1 to {} name no line before them, as an earlier version wrote them: nothing is proved about those\n",
            audit.unchained
        ));
    }
    if audit.torn {
        text.push_str(
            "half a line stands at the end, as when the program was killed; resuming takes it away\n",
        );
    }
    match remembered {
        Ok(Some(head)) => text.push_str(&format!("the end is known up to line {}\n", head.lines)),
        Ok(None) => text.push_str(
            "nobody remembers where the file ended: lines may be missing there (`windlass stats` would remember from now on)\n",
        ),
        Err(problem) => text.push_str(&format!("lines may be missing at the end: {}\n", visible(problem))),
    }
    text.push_str(&format!("head {}\n", audit.head.link));
    text
}

fn as_json(found: &Finding) -> Value {
    let Finding { audit, remembered, problems } = found;
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

fn export(setup: &Setup, session: &str, output: Option<&Path>) -> Result<Exit, Problem> {
    let (_, path) =
        record::find(&setup.home, &session.into()).map_err(|error| Problem::usage(chain(&error)))?;
    let found = examined(setup, session, &path, None)?;
    let secrets = setup.secrets();
    let lines = lines(&path, &secrets).map_err(|error| Problem::file("cannot read", &path, &error))?;
    let config = config::show(&setup.loaded, Format::Json);
    let report = json!({
        "note": "Made by `windlass audit export --redacted`. Secrets are replaced by labels, and the home directory by `~`; \
                 the hashes are those of the lines as they were before. Look through it all the same before you send it.",
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
    written.map_err(|error| Problem::file("cannot write the report to", file, &error))?;
    Ok(Exit::Done)
}

/// The lines of a session file. One that makes no sense is kept as text.
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

/// Every text in a value without secrets: by itself, and where its key says that it is one.
pub(crate) fn cleaned(value: Value, secrets: &Secrets) -> Value {
    each_text(value, &|key, text| {
        let named = key.is_some_and(|key| Secrets::is_credential(key, &text));
        // Arguments of calls are JSON inside of a text, and are cleaned as such: a name there says as much.
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

/// Every text without the name of the user's home directory.
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
