//! The arguments of a call in words.

use std::path::Path;

use serde_json::Value;
use windlass::{CommandLine, Effects, Input, ToolCall, counted, shortened};

use crate::render::visible::{path_text, visible_command};

/// Maximum number of characters that are looked at: the line is cut to the screen anyway.
const MAX_GIST_CHARS: usize = 400;

/// Maximum number of paths that are named.
const MAX_PATHS: usize = 3;

/// Returns the arguments of a call in words, on one line, escaped.
pub fn call_gist(call: &ToolCall, effects: &Effects, cwd: &Path) -> String {
    let gist = match (&effects.command, &effects.typed) {
        (Some(command), _) => first_line(&shell_script(command)),
        (None, Some(typed)) => format!("{} to {}", first_line(&typed.text), first_line(&typed.to)),
        (None, None) => match &call.input {
            Input::Json(json) | Input::Search(json) => {
                let arguments = serde_json::from_str(json).unwrap_or(Value::Null);
                known_gist(call.name.as_str(), &arguments, cwd)
                    .or_else(|| paths_gist(effects, cwd))
                    .unwrap_or_else(|| pairs(&arguments))
            }
            Input::Text(text) => paths_gist(effects, cwd).unwrap_or_else(|| first_line(text)),
        },
    };
    visible_command(&shortened(&gist, MAX_GIST_CHARS)).into_owned()
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

/// Returns a path relative to the working directory, if it is below it, escaped.
pub fn shown_path(path: &Path, cwd: &Path) -> String {
    visible_command(&relative_path(path, cwd)).into_owned()
}

/// Returns a path relative to the working directory, if it is below it, as text.
pub fn relative_path(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => path_text(below),
        Err(_) => path_text(path),
    }
}

/// Describes the arguments of a built-in tool.
fn known_gist(tool: &str, arguments: &Value, cwd: &Path) -> Option<String> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let path = |key: &str| text(key).map(|path| shown_path(Path::new(path), cwd));
    match tool {
        "read_file" => Some(format!("{}{}", path("file_path")?, line_range(arguments))),
        "list_dir" => path("dir_path"),
        "grep_files" => {
            let place = path("path").map(|path| format!(" in {path}")).unwrap_or_default();
            let include = text("include").map(|include| format!(" ({include})")).unwrap_or_default();
            Some(format!("\"{}\"{place}{include}", text("pattern")?))
        }
        "edit_file" | "write_file" | "view_image" => path("path"),
        "web_search" => text("query").map(str::to_owned),
        "update_plan" => {
            let steps = arguments.get("plan")?.as_array()?.len();
            Some(counted(steps as u64, "step"))
        }
        _ => None,
    }
}

/// Returns `, lines 10 to 49` or `, from line 10`.
fn line_range(arguments: &Value) -> String {
    let number = |key: &str| arguments.get(key).and_then(Value::as_u64).filter(|number| *number > 0);
    match (number("offset"), number("limit")) {
        (None, None) => String::new(),
        (Some(first), None) => format!(", from line {first}"),
        (first, Some(count)) => {
            let first = first.unwrap_or(1);
            format!(", lines {first} to {}", first.saturating_add(count - 1))
        }
    }
}

fn paths_gist(effects: &Effects, cwd: &Path) -> Option<String> {
    let paths = &effects.writes;
    let named: Vec<_> = paths.iter().take(MAX_PATHS).map(|path| shown_path(path, cwd)).collect();
    let more = paths.len().saturating_sub(MAX_PATHS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

/// Returns `name: value, name: value` of any arguments.
fn pairs(arguments: &Value) -> String {
    let Some(object) = arguments.as_object() else { return String::new() };
    let pair = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {}", first_line(text)),
        Value::Array(values) => format!("{name}: {}", counted(values.len() as u64, "value")),
        Value::Object(fields) => format!("{name}: {}", counted(fields.len() as u64, "field")),
        other => format!("{name}: {other}"),
    };
    object.iter().map(pair).collect::<Vec<_>>().join(", ")
}

/// Returns the first line that is not empty, and how many follow it.
fn first_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = shortened(lines.next().unwrap_or_default().trim(), MAX_GIST_CHARS);
    match lines.count() {
        0 => first,
        more => format!("{first} (+{})", counted(more as u64, "line")),
    }
}
