//! The checks of `windlass doctor`. Each one that does not succeed says how to fix it.

use std::{
    env,
    io::{self, IsTerminal},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::{fs::statvfs, termios::tcgetwinsize};
use serde_json::{Value, json};
use windlass::{
    Mechanism, counted,
    host::Diagnosis,
    model::Provider,
    record::{CallIndexError, Calls},
};

use crate::{
    args::CommonOptions,
    colour, config,
    credentials::StoredKeys,
    hooks,
    models::listing,
    problem::{CliProblem, chain},
    screen::{visible, visible_path},
    setup::{self, ProgramSetup, shell_program},
    spelling::did_you_mean,
};

const MEGABYTE: u64 = 1024 * 1024;

/// With less space, sessions and undo records may be lost.
const MIN_DISK_MEGABYTES: u64 = 100;
/// With less space, a person should know.
const LOW_DISK_MEGABYTES: u64 = 1024;

/// Narrower terminals cut tables.
const MIN_COLUMNS: u16 = 60;

/// The column at which the finding of a check begins.
pub(super) const DETAIL_COLUMN: usize = 19;

/// The result of one check.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DoctorCheck {
    name: &'static str,
    pub(super) status: CheckStatus,
    /// The finding, in one line or several.
    detail: String,
    fix: Option<String>,
}

/// The status of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckStatus {
    Ok,
    /// Something works less well than it could.
    Warning,
    /// Something does not work.
    Failed,
}

impl CheckStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl DoctorCheck {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Ok, detail: detail.into(), fix: None }
    }

    fn warning(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Warning, detail: detail.into(), fix: Some(fix.into()) }
    }

    fn failed(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Failed, detail: detail.into(), fix: Some(fix.into()) }
    }

    pub(super) fn as_json(&self) -> Value {
        let Self { name, status, detail, fix } = self;
        json!({"name": name, "status": status.name(), "detail": detail, "fix": fix})
    }
}

/// Formats the checks, one line each and another for a fix.
pub(super) fn as_text(checks: &[DoctorCheck]) -> String {
    let line = |DoctorCheck { name, status, detail, fix }: &DoctorCheck| {
        let indent = " ".repeat(DETAIL_COLUMN);
        let detail = detail.replace('\n', &format!("\n{indent}"));
        let fix = fix.as_ref().map(|fix| format!("{indent}fix: {fix}\n")).unwrap_or_default();
        format!("{:<8} {name:<9} {detail}\n{fix}", status.name())
    };
    checks.iter().map(line).collect::<String>() + "\n"
}

/// Runs all checks. Only with `network` a request is sent.
pub(super) fn run(common: &CommonOptions, network: bool, diagnosis: &Diagnosis) -> Vec<DoctorCheck> {
    let mut checks = vec![sandbox(diagnosis), configuration(common)];
    if let Ok(home) = setup::home() {
        checks.push(keys(&home));
        checks.push(model(common, network).unwrap_or_else(|| {
            let fix = "correct the configuration first, as above";
            DoctorCheck::warning("model", "not checked, because the configuration is wrong", fix)
        }));
        checks.extend([index(&home), disk(&home)]);
    }
    checks.extend(hook_check(common));
    checks.extend([shell(), git(), terminal()]);
    checks
}

fn sandbox(diagnosis: &Diagnosis) -> DoctorCheck {
    const NAME: &str = "sandbox";
    let remedy = || {
        let remedy = diagnosis.missing.as_ref().and_then(|missing| missing.remedy.as_deref());
        visible(remedy.unwrap_or("none known; see docs/sandbox.md"))
    };
    match diagnosis.rung {
        None => DoctorCheck::failed(NAME, "commands cannot be confined, so they are refused", remedy()),
        Some(rung) if diagnosis.missing.is_some() => {
            DoctorCheck::warning(NAME, format!("{}, without namespaces", rung.name()), remedy())
        }
        Some(rung) => DoctorCheck::ok(NAME, Mechanism::name(rung)),
    }
}

/// Checks that the program of each hook exists. Without hooks there is nothing to check.
fn hook_check(common: &CommonOptions) -> Option<DoctorCheck> {
    const NAME: &str = "hooks";
    let setup = ProgramSetup::for_tools(common).ok()?;
    let (count, missing) = match hooks::check(&setup) {
        Ok((0, _)) => return None,
        Ok(checked) => checked,
        Err(problem) => return Some(DoctorCheck::failed(NAME, problem.message, "windlass config edit")),
    };
    Some(if missing.is_empty() {
        let count = counted(count as u64, "hook");
        DoctorCheck::ok(NAME, format!("{count}; `windlass hooks test` runs them once"))
    } else {
        let fix = "install the programs, or correct the hooks: windlass config edit";
        DoctorCheck::failed(NAME, visible(&missing.join("; ")), fix)
    })
}

fn configuration(common: &CommonOptions) -> DoctorCheck {
    const NAME: &str = "config";
    match ProgramSetup::for_tools(common) {
        Ok(setup) => {
            let path = config::file(&setup.home);
            let state = if path.exists() { "" } else { " (does not exist; the defaults apply)" };
            DoctorCheck::ok(NAME, format!("{}{state}", visible_path(&path)))
        }
        Err(problem) => {
            let is_valid_without =
                ProgramSetup::for_tools(&CommonOptions { config: Vec::new(), ..common.clone() }).is_ok();
            let fix = if is_valid_without {
                "correct the option `-c`, or leave it out"
            } else {
                "windlass config edit"
            };
            DoctorCheck::failed(NAME, problem.message, fix)
        }
    }
}

fn keys(home: &Path) -> DoctorCheck {
    const NAME: &str = "keys";
    let path = visible_path(&crate::credentials::file(home));
    match StoredKeys::load(home) {
        Ok(keys) => {
            let ids: Vec<_> = keys.ids().map(visible).collect();
            let kept = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            DoctorCheck::ok(NAME, format!("kept by login: {kept}"))
        }
        Err(problem) => {
            let fix = format!("chmod 600 {path}, or remove the file and run `windlass login PROVIDER`");
            DoctorCheck::failed(NAME, problem.message, fix)
        }
    }
}

/// Checks the model of a session without options. Returns `None` if the configuration is wrong,
/// which another check reports.
fn model(common: &CommonOptions, network: bool) -> Option<DoctorCheck> {
    const NAME: &str = "model";
    let setup = ProgramSetup::for_default_session(common).ok()?;
    if !setup.has_model() {
        let detail = "the offline rules answer; `windlass init` chooses a model";
        return Some(DoctorCheck::ok(NAME, detail));
    }
    let id = setup.provider_id();
    let provider = setup.config().model_providers.get(id)?;
    let Some(model) = setup.model_name() else {
        let fix = format!("windlass models list -p {id}, then windlass config set model NAME");
        return Some(DoctorCheck::failed(NAME, format!("no model of {id} is chosen"), fix));
    };
    let model = visible(&model);
    if let Some(variable) = missing_key(&setup, id, provider) {
        let detail = format!("{model} of {id}: no API key ({variable} is not set)");
        return Some(DoctorCheck::failed(NAME, detail, format!("windlass login {id}")));
    }
    if !network || provider.base_url.is_none() {
        let hint = if network { "" } else { " (--network tests the connection)" };
        return Some(DoctorCheck::ok(NAME, format!("{model} of {id}{hint}")));
    }
    Some(connection(&setup, id, provider, &model))
}

fn missing_key<'a>(setup: &ProgramSetup, id: &str, provider: &'a Provider) -> Option<&'a str> {
    let variable = provider.key_variable()?;
    let has_token = provider.experimental_bearer_token.is_some();
    let stored = setup.stored_key(id, provider).ok().flatten();
    (setup::key(variable).is_none() && stored.is_none() && !has_token).then_some(variable)
}

/// Asks the server for its models.
fn connection(setup: &ProgramSetup, id: &str, provider: &Provider, model: &str) -> DoctorCheck {
    const NAME: &str = "model";
    match listing::ask(setup, id, provider) {
        Err(CliProblem { message, .. }) => DoctorCheck::failed(NAME, message, "see the message"),
        Ok(Err(error)) => {
            let fix = format!(
                "start the server or correct `model_providers.{id}` (windlass config edit), or windlass login {id}"
            );
            DoctorCheck::failed(NAME, visible(&listing::explained(id, &error)), fix)
        }
        Ok(Ok(models)) if models.iter().any(|each| is_same_model(each, model)) => {
            DoctorCheck::ok(NAME, format!("{model} of {id}; the server answers and has it"))
        }
        Ok(Ok(models)) => {
            let near = did_you_mean(model, models.iter().map(String::as_str));
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            let detail = format!("{id} answers, but does not list the model {model}{near}");
            DoctorCheck::warning(NAME, detail, format!("windlass models list -p {id}"))
        }
    }
}

/// Compares names as Ollama does: without a tag means `latest`. Gemini lists `models/NAME`.
fn is_same_model(listed: &str, model: &str) -> bool {
    let listed = listed.strip_prefix("models/").unwrap_or(listed);
    listed == model || listed.strip_suffix(":latest") == Some(model)
}

fn index(home: &Path) -> DoctorCheck {
    const NAME: &str = "index";
    match Calls::check(home) {
        Ok(()) => DoctorCheck::ok(NAME, "the index of calls has no fault"),
        Err(error @ CallIndexError::Damaged { .. }) => {
            DoctorCheck::failed(NAME, chain(&error), "windlass stats --rebuild")
        }
        Err(error) => DoctorCheck::warning(NAME, chain(&error), "end other sessions, or move the file away"),
    }
}

fn disk(home: &Path) -> DoctorCheck {
    // The directory may not exist yet.
    let existing = home.ancestors().find(|path| path.exists()).unwrap_or(home);
    let free = statvfs(existing).map(|about| about.f_bavail.saturating_mul(about.f_frsize) / MEGABYTE);
    match free {
        Ok(free) => disk_space(free, &visible_path(home)),
        Err(error) => DoctorCheck::warning("disk", format!("{}: {error}", visible_path(home)), "none known"),
    }
}

fn disk_space(free_megabytes: u64, home: &str) -> DoctorCheck {
    let detail = format!("{free_megabytes} MB free for {home}");
    let fix = "windlass sessions gc, or set WINDLASS_HOME to a directory with more space";
    match free_megabytes {
        ..MIN_DISK_MEGABYTES => DoctorCheck::failed("disk", detail, fix),
        MIN_DISK_MEGABYTES..LOW_DISK_MEGABYTES => DoctorCheck::warning("disk", detail, fix),
        _ => DoctorCheck::ok("disk", detail),
    }
}

fn shell() -> DoctorCheck {
    let path = shell_program();
    let is_executable = path.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0);
    let shown = visible_path(&path);
    if !is_executable {
        return DoctorCheck::failed("shell", format!("{shown} cannot be run"), "install bash, or set SHELL");
    }
    let own = env::var_os("SHELL").map(PathBuf::from).filter(|own| *own != path);
    let other = own.map(|own| format!(" (commands need a POSIX shell; yours is {})", visible_path(&own)));
    DoctorCheck::ok("shell", format!("{shown}{}", other.unwrap_or_default()))
}

fn git() -> DoctorCheck {
    const NAME: &str = "git";
    let fix = "install git: branches, diffs and ignored files need it";
    let output = Command::new("git").arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            DoctorCheck::ok(NAME, visible(String::from_utf8_lossy(&output.stdout).trim()))
        }
        Ok(output) => DoctorCheck::warning(NAME, format!("git failed: {}", output.status), fix),
        Err(error) => DoctorCheck::warning(NAME, format!("git cannot be run: {error}"), fix),
    }
}

fn terminal() -> DoctorCheck {
    let size = tcgetwinsize(io::stdout()).ok().map(|size| (size.ws_col, size.ws_row));
    let facts = TerminalFacts {
        is_terminal: io::stdin().is_terminal() && io::stdout().is_terminal(),
        size: size.filter(|(columns, rows)| *columns > 0 && *rows > 0),
        kind: env::var("TERM").unwrap_or_default(),
        colours: env::var("COLORTERM").unwrap_or_default(),
        wants_colour: colour::is_wanted(&io::stdout()),
    };
    facts.check()
}

/// Facts about the terminal.
struct TerminalFacts {
    is_terminal: bool,
    /// Columns and rows.
    size: Option<(u16, u16)>,
    kind: String,
    colours: String,
    wants_colour: bool,
}

impl TerminalFacts {
    fn check(&self) -> DoctorCheck {
        const NAME: &str = "terminal";
        if !self.is_terminal {
            return DoctorCheck::ok(NAME, "none; `windlass exec` and `call` work, sessions need one");
        }
        let kind = visible(&self.kind);
        let colours = match (self.wants_colour, self.colours.as_str()) {
            (false, _) => "no colours",
            (true, "truecolor" | "24bit") => "true colour",
            (true, _) if self.kind.contains("256color") => "256 colours",
            (true, _) => "16 colours",
        };
        let Some((columns, rows)) = self.size else {
            let fix = "stty columns 80 rows 24";
            return DoctorCheck::warning(NAME, format!("TERM={kind}, its size is unknown"), fix);
        };
        let detail = format!("TERM={kind}, {columns}x{rows}, {colours}");
        match self.kind.as_str() {
            "" => DoctorCheck::warning(NAME, detail, "export TERM=xterm-256color"),
            "dumb" => DoctorCheck::warning(NAME, detail, "use another terminal for sessions"),
            _ if columns < MIN_COLUMNS => {
                DoctorCheck::warning(NAME, detail, format!("make it at least {MIN_COLUMNS} columns wide"))
            }
            _ => DoctorCheck::ok(NAME, detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_stands_with_its_fix() {
        let checks = [DoctorCheck::ok("git", "git 2"), DoctorCheck::failed("config", "one\ntwo", "do this")];
        assert_eq!(
            as_text(&checks),
            "ok       git       git 2\nfailed   config    one\n                   two\n                   fix: do this\n\n"
        );
        let json = json!({"name": "config", "status": "failed", "detail": "one\ntwo", "fix": "do this"});
        assert_eq!(checks[1].as_json(), json);
    }

    #[test]
    fn little_space_is_a_problem() {
        let status = |megabytes| disk_space(megabytes, "/h").status;
        assert_eq!(
            [99, 100, 1023, 1024].map(status),
            [CheckStatus::Failed, CheckStatus::Warning, CheckStatus::Warning, CheckStatus::Ok]
        );
    }

    #[test]
    fn a_terminal_is_described_and_an_unusable_one_is_not_fine() {
        let terminal = |kind: &str, columns| TerminalFacts {
            is_terminal: true,
            size: Some((columns, 24)),
            kind: kind.to_owned(),
            colours: String::new(),
            wants_colour: true,
        };
        assert_eq!(
            terminal("xterm-256color", 80).check(),
            DoctorCheck::ok("terminal", "TERM=xterm-256color, 80x24, 256 colours")
        );
        for (kind, columns) in [("", 80), ("dumb", 80), ("xterm", 59)] {
            assert_eq!(terminal(kind, columns).check().status, CheckStatus::Warning, "{kind} {columns}");
        }
        let unknown = TerminalFacts { size: None, ..terminal("xterm", 80) };
        assert_eq!(unknown.check().status, CheckStatus::Warning);
    }

    #[test]
    fn a_model_is_known_without_its_tag_or_folder() {
        assert!(is_same_model("qwen3:latest", "qwen3") && is_same_model("models/gemini-x", "gemini-x"));
        assert!(!is_same_model("qwen3:8b", "qwen3"));
    }
}
