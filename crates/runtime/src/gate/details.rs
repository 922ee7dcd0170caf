//! Collects the content of a call for its question: a person approves no unseen text.

use std::{io::ErrorKind, path::Path};

use serde_json::{Map, Value};
use windlass_contract::{Effects, Input, ToolCall, approval::QuestionDetails};
use windlass_shape::Secrets;

use super::CommandJudgement;

/// The reason for a question, and what is known about the call.
#[derive(Debug, Default)]
pub(super) struct QuestionGrounds {
    pub(super) reason: String,
    pub(super) unclear: Vec<String>,
    pub(super) details: QuestionDetails,
}

impl QuestionGrounds {
    /// Adds the arguments of a call without a program, and the files that it would create.
    pub(super) fn with_call(
        mut self,
        call: &ToolCall,
        effects: &Effects,
        cwd: &Path,
        secrets: &Secrets,
    ) -> Self {
        if !effects.has_program() {
            self.details.change = proposed_change(call, effects, secrets);
            let is_new = |path: &&std::path::PathBuf| {
                let found = cwd.join(path).symlink_metadata();
                found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
            };
            self.details.creates = effects.writes.iter().filter(is_new).cloned().collect();
        }
        self
    }
}

impl CommandJudgement {
    /// Returns what the text of the command shows: its dangerous part, and files it changes.
    pub(super) fn details(&self) -> QuestionDetails {
        QuestionDetails {
            cause: self.judgement.cause().map(|part| part.argv.clone()).unwrap_or_default(),
            writes: self.judgement.written_files(),
            deletes: self.judgement.deleted_files(),
            ..QuestionDetails::default()
        }
    }
}

/// Returns all arguments of a call as text. Nothing is left out, except paths that are shown as the
/// files to be written. Secrets are redacted here already: a sign before each line would hide a key
/// of many lines from the redaction.
fn proposed_change(call: &ToolCall, effects: &Effects, secrets: &Secrets) -> String {
    let clean = |text: &str| secrets.clean_text(text.to_owned()).into_inner();
    let fields = match &call.input {
        Input::Json(json) | Input::Search(json) => serde_json::from_str::<Map<String, Value>>(json).ok(),
        Input::Text(_) => None,
    };
    let Some(fields) = fields else { return without_last_break(&clean(call.input.as_str())).to_owned() };
    let mut fields: Vec<_> =
        fields.iter().map(|(name, value)| (ChangeSign::from_name(name), name, value)).collect();
    fields.sort_by_key(|(sign, ..)| *sign);
    let mut lines = Vec::new();
    for (sign, name, value) in fields {
        match (sign, value) {
            (_, Value::Null) => {}
            (ChangeSign::Removed | ChangeSign::Added, Value::String(text)) if text.is_empty() => {}
            (ChangeSign::Removed, Value::String(text)) => lines.extend(signed('-', &clean(text))),
            (ChangeSign::Added, Value::String(text)) => lines.extend(signed('+', &clean(text))),
            (_, Value::String(text)) if effects.writes.iter().any(|path| path == Path::new(text)) => {}
            (_, Value::String(text)) if text.trim_start().starts_with("*** Begin Patch") => {
                lines.push(without_last_break(&clean(text)).to_owned());
            }
            (_, Value::String(text)) if text.contains('\n') => {
                lines.push(format!("{}:", clean(name)));
                lines.extend(signed(' ', &clean(text)));
            }
            (_, Value::String(text)) => lines.push(clean(&format!("{name}: {text}"))),
            (_, other) => lines.push(clean(&format!("{name}: {other}"))),
        }
    }
    lines.join("\n")
}

/// The effect of an argument on a file, in the order in which it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeSign {
    Unchanged,
    Removed,
    Added,
}

impl ChangeSign {
    /// Returns the effect of an argument of `edit_file` or `write_file`, by its name.
    fn from_name(name: &str) -> Self {
        match name {
            "old_string" => Self::Removed,
            "new_string" | "content" => Self::Added,
            _ => Self::Unchanged,
        }
    }
}

fn signed(sign: char, text: &str) -> Vec<String> {
    without_last_break(text).split('\n').map(|line| format!("{sign}{line}")).collect()
}

fn without_last_break(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(input: Input) -> String {
        let call = ToolCall { id: "c".into(), name: "t".into(), input };
        proposed_change(&call, &Effects::write("/etc/x"), &Secrets::default())
    }

    fn change_of(fields: &Value) -> String {
        change(Input::Json(fields.to_string()))
    }

    #[test]
    fn an_edit_shows_the_text_that_goes_and_the_text_that_comes() {
        let edit = json!({
            "path": "/etc/x", "new_string": "c\r\n", "old_string": "a\nb", "replace_all": true, "count": null,
        });
        assert_eq!(change_of(&edit), "replace_all: true\n-a\n-b\n+c\r");
        assert_eq!(change_of(&json!({ "path": "/etc/x", "content": "one\n\ntwo\n" })), "+one\n+\n+two");
    }

    #[test]
    fn a_patch_is_shown_as_written_and_no_other_argument_is_left_out() {
        let patch = "*** Begin Patch\n*** Add File: /etc/x\n+evil\n*** End Patch";
        assert_eq!(change(Input::Text(format!("{patch}\n"))), patch);
        assert_eq!(change_of(&json!({ "input": patch })), patch);
        let other = json!({ "list": ["a"], "path": "/etc/y", "text": "a\nb" });
        assert_eq!(change_of(&other), "list: [\"a\"]\npath: /etc/y\ntext:\n a\n b");
        assert_eq!(change(Input::Json("{not json".into())), "{not json");
    }

    #[test]
    fn a_secret_of_many_lines_is_not_shown() {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(4);
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        let shown = change_of(&json!({ "path": "/etc/x", "content": format!("{begin}\n{body}{end}\n") }));
        assert!(!shown.contains("MIIEvQ") && shown.contains("+[REDACTED"), "{shown}");
        let lines: String = body.lines().map(|line| format!("+{line}\n")).collect();
        let patch = format!("*** Begin Patch\n*** Add File: k\n+{begin}\n{lines}+{end}\n*** End Patch\n");
        let shown = change(Input::Text(patch));
        assert!(!shown.contains("MIIEvQ") && shown.contains("REDACTED"), "{shown}");
    }
}
