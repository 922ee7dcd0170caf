//! A call and its end in words, for the lines that a person reads.

use std::{fmt, path::Path, time::Duration};

use serde_json::Value;

use super::{counted, shortened};
use crate::{
    Effects, Input, Outcome, ToolCall,
    effects::{CommandLine, Typed},
    host::Exit,
    outcome::{Facts, Status},
};

/// Maximum number of characters of an argument of a tool that is not known here.
const MAX_ARGUMENT_CHARS: usize = 120;

/// Maximum number of paths that are named.
const MAX_PATHS: usize = 3;

/// A call in words: `read` and `src/main.rs lines 1-40`. The texts are not escaped for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallWords {
    /// The verb: `read`, `run`, or the name of a tool that is not known here.
    pub action: String,
    /// The object of it. A command is whole, with all its lines.
    pub object: String,
}

impl CallWords {
    /// Describes a call. `show_path` formats a path as the reader knows it.
    pub fn new(call: &ToolCall, effects: &Effects, show_path: &dyn Fn(&Path) -> String) -> Self {
        let words = |action: &str, object: String| Self { action: action.to_owned(), object };
        if let Some(command) = &effects.command {
            return words("run", shell_script(command));
        }
        if let Some(typed) = &effects.typed {
            return words("type", typed_words(typed));
        }
        let arguments = match &call.input {
            Input::Json(text) | Input::Search(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            Input::Text(_) => Value::Null,
        };
        let arguments = ToolArguments { value: &arguments, show_path };
        if let Some(remote) = &effects.remote {
            return words(&format!("{}.{}", remote.server, remote.tool), arguments.pairs());
        }
        if let Some((action, object)) = arguments.of_known_tool(call.name.as_str()) {
            return words(action, object);
        }
        let written = written_paths(effects, show_path);
        match (call.name.as_str(), written, &call.input) {
            ("apply_patch" | "applypatch" | "patch", Some(paths), _) => words("edit", paths),
            (name, Some(paths), _) => words(name, paths),
            (name, None, Input::Text(text)) => words(name, first_line(text)),
            (name, None, Input::Json(_) | Input::Search(_)) => words(name, arguments.pairs()),
        }
    }

    /// Returns the words on one line, with the number of lines that are left out.
    pub fn one_line(&self) -> String {
        join(&self.action, &first_line(&self.object))
    }
}

impl fmt::Display for CallWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.action, &self.object))
    }
}

fn join(action: &str, object: &str) -> String {
    if object.is_empty() { action.to_owned() } else { format!("{action} {object}") }
}

/// Returns the script that a shell of the system is given, or the whole command if it is another
/// program.
pub fn shell_script(command: &CommandLine) -> String {
    split_shell(command).map_or_else(|| command.display(), |(_, script)| script.to_owned())
}

/// Returns the words that start a shell of the system, such as `bash -lc`, and its script. Returns
/// `None` for another program.
pub fn split_shell(command: &CommandLine) -> Option<(String, &str)> {
    const FOLDERS: [&str; 4] = ["", "/bin/", "/usr/bin/", "/usr/local/bin/"];
    const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "dash", "ksh"];
    let is_shell = |program: &str| {
        FOLDERS.iter().any(|folder| program.strip_prefix(folder).is_some_and(|name| SHELLS.contains(&name)))
    };
    match command.argv.as_slice() {
        [program, option, script] if is_shell(program) && matches!(option.as_str(), "-c" | "-lc") => {
            Some((format!("{program} {option}"), script))
        }
        _ => None,
    }
}

/// Returns the end of a call in a word or two.
pub fn outcome_words(outcome: &Outcome) -> String {
    let session = match &outcome.facts {
        Facts::Session(session) if session.report.exit.is_none() => Some(session.report.waits_for_input),
        Facts::Session(_) | Facts::Command(_) | Facts::Remote(_) | Facts::None => None,
    };
    let word = match (outcome.status, session) {
        (Status::Success | Status::Error, Some(true)) => "waits for input",
        (Status::Success | Status::Error, Some(false)) => "still running",
        (Status::Timeout, _) => "timed out",
        (Status::Rejected, _) if outcome.receipt.refusal.is_some() => "refused",
        (Status::Rejected, _) => "stopped",
        (Status::PermissionDenied, _) => "blocked",
        (Status::NotFound, _) => "not found",
        (Status::Success | Status::Error, None) => match outcome.facts.exit().map(Exit::code) {
            Some(code) if code != 0 => return format!("exit {code}"),
            _ if outcome.verdict.success => "done",
            _ => "failed",
        },
    };
    word.to_owned()
}

/// Writes a duration as a person says it: `0.4 s`, `12 s`, `3 min 05 s`, `1 h 02 min`.
pub fn duration_in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{seconds}.{} s", duration.subsec_millis() / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Returns the first line that is not empty, and how many follow it.
pub fn first_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim().to_owned();
    match lines.count() {
        0 => first,
        more => format!("{first} (+{})", counted(more as u64, "line")),
    }
}

fn typed_words(typed: &Typed) -> String {
    format!("\"{}\" into {}", typed.text.escape_debug(), first_line(&typed.to))
}

fn written_paths(effects: &Effects, show_path: &dyn Fn(&Path) -> String) -> Option<String> {
    let paths = &effects.writes;
    let named: Vec<_> = paths.iter().take(MAX_PATHS).map(|path| show_path(path)).collect();
    let more = paths.len().saturating_sub(MAX_PATHS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

/// The arguments of a call.
struct ToolArguments<'a> {
    value: &'a Value,
    show_path: &'a dyn Fn(&Path) -> String,
}

impl ToolArguments<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key).and_then(Value::as_str)
    }

    /// Returns the first argument of these names, as a path.
    fn path(&self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| self.text(key)).map(|path| (self.show_path)(Path::new(path)))
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.value.get(key).and_then(Value::as_u64).filter(|number| *number > 0)
    }

    /// Describes a call of a built-in tool, by its name or by one of its aliases.
    fn of_known_tool(&self, tool: &str) -> Option<(&'static str, String)> {
        match tool {
            "read_file" | "Read" | "read" => {
                let path = self.path(&["file_path", "path"])?;
                Some(("read", format!("{path}{}", self.line_range())))
            }
            "list_dir" | "LS" | "ls" | "list" | "list_directory" | "list_files" => {
                Some(("list", self.path(&["dir_path", "path"])?))
            }
            "grep_files"
            | "Grep"
            | "grep"
            | "search_code"
            | "search_file_content"
            | "search_files"
            | "grep_search" => Some(("search", self.search()?)),
            "edit_file" | "Edit" | "edit" | "replace" | "str_replace" => {
                Some(("edit", self.path(&["path", "file_path"])?))
            }
            "write_file" | "Write" | "write" | "create_file" => {
                Some(("write", self.path(&["path", "file_path"])?))
            }
            "view_image" => Some(("view", self.path(&["path"])?)),
            "read_output" => Some(self.stored_output()?),
            "run_tests" => Some(("run", self.tests())),
            "shell_command" | "Bash" | "bash" | "run_shell_command" | "run_terminal_cmd"
            | "execute_command" | "execute_bash" | "developer__shell" | "shell" | "container.exec"
            | "local_shell" | "exec_command" => Some(("run", self.command()?)),
            "write_stdin" => {
                let session = self.number("session_id")?;
                let is_waiting = self.text("chars").is_none_or(str::is_empty);
                is_waiting.then(|| ("wait", format!("for session {session}")))
            }
            "tool_search" => Some(("search", format!("tools for \"{}\"", self.text("query")?))),
            "web_search" => Some(("search", format!("the web for \"{}\"", self.text("query")?))),
            "update_plan" => {
                let steps = self.value.get("plan")?.as_array()?.len();
                Some(("plan", counted(steps as u64, "step")))
            }
            "request_user_input" => Some(("ask", self.questions()?)),
            _ => None,
        }
    }

    /// Returns the questions to the person.
    fn questions(&self) -> Option<String> {
        let questions = self.value.get("questions")?.as_array()?.iter();
        let texts = questions.filter_map(|question| question.get("question")?.as_str());
        let texts: Vec<_> = texts.map(first_line).collect();
        (!texts.is_empty()).then(|| shortened(&texts.join(" / "), MAX_ARGUMENT_CHARS))
    }

    /// Returns the command of a call that never got as far as its effects.
    fn command(&self) -> Option<String> {
        let value = ["command", "cmd"].iter().find_map(|key| self.value.get(key))?;
        if let Some(script) = value.as_str() {
            return Some(script.to_owned());
        }
        let argv = value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
        Some(shell_script(&CommandLine { argv: argv.collect::<Option<_>>()?, cwd: None }))
    }

    /// Returns ` lines 10-49`, ` from line 10` or nothing.
    fn line_range(&self) -> String {
        match (self.number("offset"), self.number("limit")) {
            (None, None) => String::new(),
            (Some(first), None) => format!(" from line {first}"),
            (first, Some(count)) => {
                let first = first.unwrap_or(1);
                format!(" lines {first}-{}", first.saturating_add(count - 1))
            }
        }
    }

    fn search(&self) -> Option<String> {
        let place = self.path(&["path"]).map(|path| format!(" in {path}")).unwrap_or_default();
        let include = self.text("include").map(|include| format!(" ({include})")).unwrap_or_default();
        Some(format!("for \"{}\"{place}{include}", self.text("pattern")?))
    }

    fn stored_output(&self) -> Option<(&'static str, String)> {
        let id = self.number("id")?;
        Some(match self.text("pattern") {
            Some(pattern) => ("search", format!("output {id} for \"{pattern}\"")),
            None => ("read", format!("output {id}{}", self.line_range())),
        })
    }

    fn tests(&self) -> String {
        let place = self.path(&["path"]).map(|path| format!(" in {path}")).unwrap_or_default();
        let filter = self.text("filter").map(|filter| format!(" that match {filter}")).unwrap_or_default();
        format!("tests{filter}{place}")
    }

    /// Returns `name: value, name: value` of any arguments.
    fn pairs(&self) -> String {
        let Some(object) = self.value.as_object() else { return String::new() };
        let pair = |(name, value): (&String, &Value)| match value {
            Value::String(text) => format!("{name}: {}", shortened(&first_line(text), MAX_ARGUMENT_CHARS)),
            Value::Array(values) => format!("{name}: {}", counted(values.len() as u64, "value")),
            Value::Object(fields) => format!("{name}: {}", counted(fields.len() as u64, "field")),
            other => format!("{name}: {other}"),
        };
        object.iter().map(pair).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(name: &str, arguments: &Value, effects: &Effects) -> CallWords {
        let call = ToolCall { id: "c".into(), name: name.into(), input: Input::Json(arguments.to_string()) };
        CallWords::new(&call, effects, &|path| path.strip_prefix("/w").unwrap_or(path).display().to_string())
    }

    #[test]
    fn a_built_in_tool_is_a_verb_and_its_object() {
        let cases = [
            ("read_file", json!({"file_path": "/w/a.rs"}), "read a.rs"),
            ("Read", json!({"path": "/w/a.rs", "offset": 1, "limit": 40}), "read a.rs lines 1-40"),
            ("read_file", json!({"file_path": "/etc/hosts", "offset": 7}), "read /etc/hosts from line 7"),
            ("list_dir", json!({"dir_path": "/w/src"}), "list src"),
            (
                "grep_files",
                json!({"pattern": "fn x", "path": "/w/src", "include": "*.rs"}),
                "search for \"fn x\" in src (*.rs)",
            ),
            ("read_output", json!({"id": 3, "offset": 10, "limit": 5}), "read output 3 lines 10-14"),
            ("read_output", json!({"id": 3, "pattern": "err"}), "search output 3 for \"err\""),
            ("write_stdin", json!({"session_id": 2}), "wait for session 2"),
            (
                "run_tests",
                json!({"filter": "net", "path": "/w/crates"}),
                "run tests that match net in crates",
            ),
            ("update_plan", json!({"plan": [{}, {}]}), "plan 2 steps"),
            (
                "request_user_input",
                json!({"questions": [{"question": "Which one?"}, {"question": "When?"}]}),
                "ask Which one? / When?",
            ),
            ("view_image", json!({"path": "/w/a.png"}), "view a.png"),
            // Refused before its effects were known.
            ("shell_command", json!({"command": "rm -rf /"}), "run rm -rf /"),
            ("exec_command", json!({"cmd": "make one"}), "run make one"),
            ("shell", json!({"command": ["bash", "-lc", "ls"]}), "run ls"),
            ("shell", json!({"command": [1]}), "shell command: 1 value"),
            (
                "deploy",
                json!({"to": "staging\nnow", "files": [1], "dry": true}),
                "deploy dry: true, files: 1 value, to: staging (+1 line)",
            ),
            ("noop", json!({}), "noop"),
        ];
        for (name, arguments, expected) in cases {
            assert_eq!(words(name, &arguments, &Effects::none()).to_string(), expected);
        }
    }

    #[test]
    fn a_command_is_its_script_and_whole() {
        let run = |argv: &[&str]| {
            let argv = argv.iter().map(|word| (*word).to_owned()).collect();
            words("shell", &json!({}), &Effects::command(CommandLine { argv, cwd: None }))
        };
        let script = run(&["/bin/bash", "-lc", "cargo test\nls"]);
        assert_eq!(script.to_string(), "run cargo test\nls");
        assert_eq!(script.one_line(), "run cargo test (+1 line)");
        assert_eq!(run(&["git", "commit", "-m", "a b"]).to_string(), "run git commit -m 'a b'");
        // Another program may be called like a shell.
        assert_eq!(run(&["./bash", "-c", "ls"]).to_string(), "run ./bash -c ls");
    }

    #[test]
    fn a_patch_names_its_files_and_typed_text_its_program() {
        let writes = ["a", "b", "c", "d"].map(|name| Path::new("/w").join(name)).to_vec();
        let effects = Effects { writes, ..Effects::none() };
        assert_eq!(words("apply_patch", &json!({}), &effects).to_string(), "edit a, b, c and 1 more");
        let typed = Effects::typed(Typed { to: "python3".to_owned(), text: "1+1\n".to_owned() });
        assert_eq!(words("write_stdin", &json!({}), &typed).to_string(), "type \"1+1\\n\" into python3");
    }

    #[test]
    fn durations_are_as_exact_as_they_are_short() {
        let shown = [400, 12_000, 185_000, 3_720_000].map(Duration::from_millis).map(duration_in_words);
        assert_eq!(shown, ["0.4 s", "12 s", "3 min 05 s", "1 h 02 min"]);
    }
}
