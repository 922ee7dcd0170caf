//! Transcripts as Markdown and as HTML. Control characters are escaped, and nothing in a transcript
//! can end its block.

use windlass_tui::render::visible::visible_prose;

use super::transcript::{SessionTranscript, TranscriptCall, TranscriptPart};
use crate::screen::{visible, visible_path};

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}\
pre{overflow-x:auto;padding:.6em;background:#8881;border-radius:4px;font-size:14px;white-space:pre-wrap}\
.prompt{border-left:4px solid #48c;padding-left:1em}.answer{white-space:pre-wrap}details{margin:.6em 0}\
ins{background:#2a43;text-decoration:none}del{background:#d443;text-decoration:none}dt{float:left;width:7em;opacity:.7}";

/// Returns a transcript as Markdown.
pub(super) fn as_markdown(transcript: &SessionTranscript) -> String {
    let mut out = format!("# {}\n\n", heading(transcript));
    for (name, value) in facts(transcript) {
        out.push_str(&format!("- {name}: {value}\n"));
    }
    for part in &transcript.parts {
        out.push_str(&match part {
            TranscriptPart::Prompt(text) => format!("\n## Prompt\n\n{}\n", quoted(&prose(text))),
            TranscriptPart::Answer(text) => format!("\n## Answer\n\n{}\n", prose(text).trim_end()),
            TranscriptPart::Call(call) => call_as_markdown(call),
        });
    }
    out
}

fn call_as_markdown(call: &TranscriptCall) -> String {
    let tool = visible(&call.tool);
    let mut out = format!("\n### {tool}: {}\n\n{}\n", code(&visible(&call.gist)), visible(&call.result()));
    for (name, value) in call_facts(call) {
        out.push_str(&format!("\n- {name}: {value}"));
    }
    out.push('\n');
    for (name, language, text) in blocks(call) {
        out.push_str(&format!("\n{name}:\n\n{}", fenced(language, text)));
    }
    out
}

/// Returns a transcript as one HTML page.
pub(super) fn as_html(transcript: &SessionTranscript) -> String {
    let title = escaped(&heading(transcript));
    let facts: String = facts(transcript)
        .iter()
        .map(|(name, value)| format!("<li>{name}: {}</li>", escaped(value)))
        .collect();
    let parts: String = transcript
        .parts
        .iter()
        .map(|part| match part {
            TranscriptPart::Prompt(text) => {
                format!("<h2>Prompt</h2>\n<pre class=\"prompt\">{}</pre>\n", escaped(&prose(text)))
            }
            TranscriptPart::Answer(text) => {
                format!("<h2>Answer</h2>\n<div class=\"answer\">{}</div>\n", escaped(prose(text).trim_end()))
            }
            TranscriptPart::Call(call) => call_as_html(call),
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n<ul>{facts}</ul>\n{parts}</body></html>\n"
    )
}

fn call_as_html(call: &TranscriptCall) -> String {
    let facts: String =
        call_facts(call).iter().map(|(name, value)| format!("<li>{name}: {}</li>", escaped(value))).collect();
    let blocks: String = blocks(call)
        .into_iter()
        .map(|(name, language, text)| {
            let text = if language == "diff" { diff_as_html(text) } else { escaped(&prose(text)) };
            format!("<p>{name}</p><pre>{text}</pre>")
        })
        .collect();
    format!(
        "<details><summary><b>{}</b> <code>{}</code>: {}</summary>\n<ul>{facts}</ul>{blocks}</details>\n",
        escaped(&visible(&call.tool)),
        escaped(&visible(&call.gist)),
        escaped(&visible(&call.result()))
    )
}

fn diff_as_html(diff: &str) -> String {
    let line = |line: &str| {
        let text = escaped(&visible_prose(line));
        match line.as_bytes().first() {
            Some(b'+') => format!("<ins>{text}</ins>\n"),
            Some(b'-') => format!("<del>{text}</del>\n"),
            _ => format!("{text}\n"),
        }
    };
    diff.lines().map(line).collect()
}

fn heading(transcript: &SessionTranscript) -> String {
    if transcript.title.is_empty() {
        format!("Session {}", transcript.entry.id)
    } else {
        transcript.title.clone()
    }
}

fn facts(transcript: &SessionTranscript) -> Vec<(&'static str, String)> {
    let entry = &transcript.entry;
    let mut facts = vec![
        ("session", entry.id.to_string()),
        ("started", format!("{:.0}", entry.started)),
        ("directory", visible_path(&entry.cwd)),
    ];
    if !transcript.model.is_empty() {
        facts.push(("model", visible(&transcript.model)));
    }
    facts
}

fn call_facts(call: &TranscriptCall) -> Vec<(&'static str, String)> {
    let row = call.row.as_ref();
    let facts = [
        ("call", row.map(|row| row.handle.clone()).unwrap_or_default()),
        ("allowed because", call.decision.clone()),
        ("confined by", row.map(|row| row.held.clone()).unwrap_or_default()),
        ("verdict", call.reasons()),
    ];
    facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, visible(&value)))
        .collect()
}

/// Returns the texts of a call that are not empty, each with its name and language.
fn blocks(call: &TranscriptCall) -> Vec<(&'static str, &'static str, &str)> {
    let input = if call.input.trim() == call.gist.trim() { "" } else { call.input.as_str() };
    let language = if input.starts_with('{') { "json" } else { "" };
    let blocks = [
        ("Input", language, input),
        ("Output", "", call.output.as_str()),
        ("Diff", "diff", call.diff.as_str()),
    ];
    blocks.into_iter().filter(|(_, _, text)| !text.trim().is_empty()).collect()
}

/// Escapes what could rewrite a screen, line by line.
fn prose(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", visible_prose(line))).collect()
}

fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}\n")).collect::<String>().trim_end().to_owned()
}

/// Returns a text in a fence that is longer than any in it.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_ticks(text).max(2) + 1);
    let text = prose(text);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_ticks(text) + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}

fn longest_ticks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_the_block_it_is_in() {
        assert_eq!(fenced("", "a\n````\nb\n"), "`````\na\n````\nb\n`````\n");
        assert_eq!(fenced("diff", "+x"), "```diff\n+x\n```\n");
        assert_eq!(code("a `b`"), "`` a `b` ``");
        assert_eq!(escaped("<script>\"&"), "&lt;script&gt;&quot;&amp;");
        assert_eq!(quoted("a\n# b\n"), "> a\n> # b");
        assert!(prose("x\u{1b}[2K").contains("\\u{1b}"));
        assert_eq!(diff_as_html("-<a>\n+b\n c\n"), "<del>-&lt;a&gt;</del>\n<ins>+b</ins>\n c\n");
    }
}
