//! Sets the value of a key, if exactly one line assigns it and the old value has the same type.

use serde_json::json;

use super::{escape_regex, search::MAX_MATCHES, with_rows};
use crate::plan::{
    phrases::AnswerPhrase,
    results::matched_lines,
    run::{NextAction, PlanResult, PlanRun},
};

impl PlanRun<'_> {
    pub(super) fn set_value(&self, file: Option<&str>, key: &str, value: &str) -> PlanResult<String> {
        let file = file.map(|name| self.exact_file(name)).transpose()?;
        let found = self.lines_naming(file.as_deref(), key)?;
        let assigning: Vec<_> = found.iter().filter(|(.., text)| assigned(text, key).is_some()).collect();
        let [(path, line, text)] = assigning[..] else {
            let places = assigning.iter().map(|(path, line, text)| format!("{path}:{line}: {}", text.trim()));
            let phrase =
                if assigning.is_empty() { AnswerPhrase::NoValue } else { AnswerPhrase::SeveralValues };
            return Err(NextAction::Decline(with_rows(self.say(phrase, &[key]), places)));
        };
        let Some(after) = assigned(text, key).and_then(|old| with_value(text, old, value)) else {
            let answer = self.say(AnswerPhrase::OtherValue, &[key, value]);
            return Err(NextAction::Decline(format!("{answer}\n{path}:{line}: {}", text.trim())));
        };
        self.remember(path, Some(*line));
        let change = difference(path, *line, text, &after);
        self.announce(change.clone());
        let output =
            self.call("edit_file", &json!({"path": path, "old_string": text, "new_string": after}))?;
        let answer = self.confirm(output, "Edited ", AnswerPhrase::ValueSet, &[key, value])?;
        Ok(with_rows(answer, [change]))
    }

    /// Returns the lines that contain a name as a whole word, with their files.
    fn lines_naming(&self, file: Option<&str>, key: &str) -> PlanResult<Vec<(String, u64, String)>> {
        let pattern = format!(r"\b{}\b", escape_regex(key));
        let mut arguments =
            json!({"pattern": pattern, "output_mode": "content", "limit": MAX_MATCHES, "hidden": true});
        if let Some(file) = file {
            arguments["path"] = file.into();
        }
        let output = self.call("grep_files", &arguments)?;
        let found = matched_lines(output).ok_or_else(|| self.failed(output))?;
        if found.more {
            return Err(self.decline(AnswerPhrase::SeveralValues, &[key]));
        }
        let rows = found
            .rows
            .iter()
            .map(|hit| (self.relative_path(hit.path).to_owned(), hit.line, hit.text.to_owned()));
        Ok(rows.collect())
    }

    /// Returns the lines of a file that match a pattern.
    pub(super) fn lines_with(&self, file: &str, pattern: &str) -> PlanResult<Vec<(u64, String)>> {
        let arguments =
            json!({"pattern": pattern, "path": file, "output_mode": "content", "limit": MAX_MATCHES});
        let output = self.call("grep_files", &arguments)?;
        let found = matched_lines(output).ok_or_else(|| self.failed(output))?;
        Ok(found.rows.iter().map(|hit| (hit.line, hit.text.to_owned())).collect())
    }
}

/// Formats a changed line as a diff.
pub(super) fn difference(file: &str, line: u64, before: &str, after: &str) -> String {
    format!("{file}:{line}\n- {}\n+ {}", before.trim(), after.trim())
}

/// Signs at which a comment begins.
const COMMENTS: [&str; 5] = ["#", "//", "--", "/*", "*"];

/// Returns the position of the value, if a line assigns the key. Any form of assignment counts, so
/// that a value is set only if there is no doubt about the line.
fn assigned(line: &str, key: &str) -> Option<usize> {
    if COMMENTS.iter().any(|mark| line.trim_start().starts_with(mark)) {
        return None;
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(key).find_map(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + key.len()..]);
        if before.ends_with(is_word) || after.starts_with(is_word) || before.ends_with(['.', '$', '-']) {
            return None;
        }
        let rest = after.trim_start_matches(['"', '\'']).trim_start();
        // A type may come between: `const PORT: u16 = 80`.
        let typed = rest.strip_prefix(':').and_then(|rest| rest.split_once('=')).map(|(_, value)| value);
        let typed = typed.filter(|value| {
            !value.starts_with(['=', '>']) && rest.find('=') < rest.find(['"', '\'']).or(Some(usize::MAX))
        });
        let plain = || rest.strip_prefix(":=").or_else(|| rest.strip_prefix(['=', ':']));
        let value = typed.or_else(plain).filter(|value| !value.starts_with(['=', '>', ':']))?;
        // An empty text after a colon starts a block: `if total >= MAX_ITEMS:`.
        if value.trim().is_empty() {
            return None;
        }
        Some(line.len() - value.trim_start().len())
    })
}

/// Returns the line with another value. The old value must be a plain one of the same type,
/// followed only by the end of the statement or a comment.
fn with_value(line: &str, at: usize, value: &str) -> Option<String> {
    let (before, rest) = line.split_at(at);
    let quote = rest.chars().next().filter(|c| ['"', '\''].contains(c));
    let (old, tail) = match quote {
        Some(quote) => rest[1..].split_once(quote)?,
        None => rest.split_at(rest.find([' ', '\t', ',', ';', '\r']).unwrap_or(rest.len())),
    };
    let end = tail.trim_start().trim_start_matches([';', ',']).trim();
    let is_end = end.is_empty() || COMMENTS.iter().any(|mark| end.starts_with(mark));
    let is_bool = |text: &str| ["true", "false"].contains(&text.to_lowercase().as_str());
    let is_number = |text: &str| text.parse::<f64>().is_ok() && text.contains(|c: char| c.is_ascii_digit());
    let is_plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "_-./:@".contains(c));
    let new = match quote {
        Some(quote) if !old.contains('\\') && !value.contains([quote, '\\', '\n']) => {
            format!("{quote}{value}{quote}")
        }
        // Some languages capitalise booleans.
        None if is_bool(old) && is_bool(value) => {
            let lower = value.to_lowercase();
            if old.starts_with(char::is_uppercase) {
                lower.replacen('t', "T", 1).replacen('f', "F", 1)
            } else {
                lower
            }
        }
        None if is_number(old) && is_number(value) => value.to_owned(),
        // A bare word is a string only in a settings file, where nothing declares or ends it.
        None if is_setting(before, tail)
            && ![old, value].iter().any(|text| is_bool(text) || is_number(text)) =>
        {
            (is_plain(old) && is_plain(value) && !old.is_empty()).then(|| value.to_owned())?
        }
        Some(_) | None => return None,
    };
    is_end.then(|| format!("{before}{new}{tail}"))
}

/// Returns true if a line is `key: value` and not a statement of a program.
fn is_setting(before: &str, tail: &str) -> bool {
    let name = before.trim().trim_end_matches([':', '=']).trim();
    !name.contains(char::is_whitespace) && before.trim_end().ends_with(':') && !tail.contains([';', ','])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_changed_and_never_its_key() {
        for (line, key, value, expected) in [
            ("debug: false", "debug", "true", Some("debug: true")),
            ("  timeout: 30  # seconds", "timeout", "60", Some("  timeout: 60  # seconds")),
            ("DEBUG = False", "DEBUG", "true", Some("DEBUG = True")),
            ("const PORT = process.env.PORT || 3000;", "PORT", "9000", None),
            ("const PORT: u16 = 80;", "PORT", "9000", Some("const PORT: u16 = 9000;")),
            ("  \"version\": \"0.3.1\",", "version", "0.3.2", Some("  \"version\": \"0.3.2\",")),
            ("host: localhost", "host", "db.internal", Some("host: db.internal")),
            ("port = 80", "port", "many", None),
            ("debug: false", "debug", "5", None),
            ("x = y;", "x", "z", None),
            ("a = b + 1", "a", "2", None),
            ("a = 1 + 1", "a", "2", None),
            ("f(a=1)", "a", "2", None),
            ("url = \"http://a\"", "url", "http://b", Some("url = \"http://b\"")),
            ("name = 'it\\'s'", "name", "x", None),
        ] {
            let after = assigned(line, key).and_then(|at| with_value(line, at, value));
            assert_eq!(after.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn what_only_mentions_a_name_assigns_nothing() {
        for line in [
            "# debug: false",
            "if debug == true {",
            "xdebug = 1",
            "print(debug)",
            "debug_level = 1",
            "x.debug = 1",
            "a::debug::b",
        ] {
            assert_eq!(assigned(line, "debug"), None, "{line}");
        }
    }
}
