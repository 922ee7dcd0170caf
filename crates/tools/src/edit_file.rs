//! `edit_file`: replaces a piece of text in a file.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    edit::{Action, Change, Expected},
    event::{EditKind, FileEdit},
    meta::{Example, ParameterAlias},
    tool::ErrorKind,
};
use windlass_patch::{EditError, MatchPosition, ReplaceCount, Text, edit};

use crate::change;

/// Replace a piece of text in a file.
///
/// `old_string` must be what the file has, with its indentation and enough lines around it to be
/// the only place: if it is there more than once, nothing is changed and you are told where. Set
/// `replace_all` to replace every one. Read the file first, and leave out line numbers. To make a
/// new file or rewrite a whole one, use `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EditFileArgs {
    /// The file, absolute or relative to the workspace.
    path: PathBuf,
    /// The text to replace, exactly as it stands in the file.
    old_string: String,
    /// What to put in its place; empty to remove it.
    new_string: String,
    /// Whether to replace every occurrence. Default: false.
    replace_all: Option<bool>,
    /// How often the old text must be there, if not once. All of them are replaced.
    expected_replacements: Option<usize>,
}

pub(crate) struct EditFile;

impl Tool for EditFile {
    const NAME: &'static str = "edit_file";
    type Args = EditFileArgs;

    fn effects(&self, args: &EditFileArgs) -> Effects {
        Effects { reads: vec![args.path.clone()], ..Effects::write(&args.path) }
    }

    async fn call(&self, args: &EditFileArgs, cx: &Cx) -> Result<Output, ToolError> {
        let path = &args.path;
        let shown = path.display();
        let found = change::read(cx, path).await.map_err(change::unreachable_file)?;
        let found = found.ok_or_else(|| {
            let text = format!("`{shown}` does not exist; check the path, or make it with write_file");
            ToolError::new(ErrorKind::NotFound, text)
        })?;
        let text = Text::decode(&found.bytes)
            .map_err(|error| ToolError::failed(format!("`{shown}` cannot be edited: {error}")))?;
        let count = match (args.replace_all, args.expected_replacements) {
            (_, Some(count)) => ReplaceCount::Exactly(count),
            (Some(true), None) => ReplaceCount::All,
            (Some(false) | None, None) => ReplaceCount::Exactly(1),
        };
        let applied =
            edit(&text, &args.old_string, &args.new_string, count).map_err(|error| match error {
                EditError::Miss(miss) => ToolError::failed(miss.describe(&shown.to_string())),
                error => ToolError::failed(format!("`{shown}`: {error}")),
            })?;
        let name = shown.to_string();
        // An exact match proves that the model knows the place.
        let is_exact = applied.matches.iter().all(|found| found.pass.ignoring().is_none());
        if !is_exact && let Some(refusal) = found.refusal(cx, &name) {
            return Err(ToolError::failed(refusal));
        }
        let (told, news) = (describe_matches(&applied.matches, &name), found.news(&name));
        let expected = Expected::Content(Arc::clone(&found.bytes));
        let changes = vec![Change { path: path.clone(), expected, action: Action::Write(applied.bytes) }];
        let files = vec![FileEdit { path: path.clone(), kind: EditKind::Update, move_path: None }];
        let notes = change::commit(cx, changes, files).await?;
        let texts = [told].into_iter().chain(news.map(|news| format!("Note: {news}"))).chain(notes);
        Ok(texts.collect::<Vec<_>>().join("\n").into())
    }

    fn meta(&self) -> Meta {
        let input = r#"{"path":"src/main.rs","old_string":"let limit = 10;","new_string":"let limit = 20;"}"#;
        let requests = [
            "replace the word old with new in a file",
            "fix the typo in line 12 of main.c",
            "set the version to 2.0 in setup.py",
            "use a different name for this variable everywhere in the file",
            "delete these lines from the file",
            "delete line 12 of main.c",
            "insert an import at the top of app.ts",
            "把文件里的 foo 替换成 bar",
            "将版本号改为 2.0",
            "修改这一行",
            "给变量改名",
            "删掉文件里的这几行",
            "删除 main.c 的第12行",
        ]
        .map(str::to_owned)
        .into();
        let examples = vec![Example { request: "raise the limit to 20", input }];
        let mut parameter_aliases =
            ParameterAlias::of("path", &["file_path", "file", "filename", "absolute_path"]);
        parameter_aliases.extend(ParameterAlias::of("old_string", &["old_text", "old_str"]));
        parameter_aliases.extend(ParameterAlias::of("new_string", &["new_text", "new_str"]));
        let aliases = vec!["Edit", "edit", "replace", "str_replace"];
        Meta { examples, requests, aliases, parameter_aliases, ..change::meta() }
    }
}

/// Describes the replacements: their lines, and how exact each match was.
fn describe_matches(matches: &[MatchPosition], path: &str) -> String {
    /// Maximum number of listed places.
    const MAX_LISTED: usize = 20;
    let lines =
        matches.iter().take(MAX_LISTED).map(|found| found.line.to_string()).collect::<Vec<_>>().join(", ");
    let more = if matches.len() > MAX_LISTED { ", …" } else { "" };
    let ignoring = matches.iter().find_map(|found| found.pass.ignoring());
    let ignoring = ignoring.map(|what| format!("; matched ignoring {what}")).unwrap_or_default();
    match matches.len() {
        1 => format!("Edited {path} at line {lines}{ignoring}"),
        count => format!("Edited {path} in {count} places, at lines {lines}{more}{ignoring}"),
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::erase;

    use super::*;
    use crate::fakes::ToolHarness;

    async fn call(desk: &ToolHarness, input: &str) -> Result<String, String> {
        let end = desk.call(erase(EditFile), input).await;
        end.map(|output| windlass_contract::Content::join(&output.content)).map_err(|error| error.message)
    }

    #[tokio::test]
    async fn a_text_that_is_there_once_is_replaced() {
        let desk = ToolHarness::with_drawer(&[("a", "one\r\ntwo\r\n")]);
        let said = call(&desk, r#"{"path":"a","old_string":"two","new_string":"2"}"#).await;
        assert_eq!(said.as_deref(), Ok("Edited a at line 2"));
        assert_eq!(desk.file("a").as_deref(), Some("one\r\n2\r\n"));
    }

    #[tokio::test]
    async fn several_need_a_word() {
        let desk = ToolHarness::with_drawer(&[("a", "x\nx\n")]);
        let error = call(&desk, r#"{"path":"a","old_string":"x","new_string":"y"}"#).await.unwrap_err();
        assert!(
            error.starts_with("`a`: the text to replace is there 2 times (lines 1, 2), not 1"),
            "{error}"
        );
        let all = r#"{"path":"a","old_string":"x","new_string":"y","replace_all":true}"#;
        assert_eq!(call(&desk, all).await.as_deref(), Ok("Edited a in 2 places, at lines 1, 2"));
        let three = r#"{"path":"a","old_string":"y","new_string":"z","expected_replacements":3}"#;
        assert!(call(&desk, three).await.is_err());
        assert_eq!(desk.file("a").as_deref(), Some("y\ny\n"));
    }

    #[tokio::test]
    async fn a_miss_shows_what_is_there_instead() {
        let desk = ToolHarness::with_drawer(&[("a", "\tlet x = 1;\n")]);
        let error =
            call(&desk, r#"{"path":"a","old_string":"let x = 2;","new_string":"y"}"#).await.unwrap_err();
        assert!(error.contains("Nearest is line 1"), "{error}");
    }

    #[tokio::test]
    async fn what_is_missing_or_binary_is_told() {
        let desk = ToolHarness::with_drawer(&[("b", "\0\u{1}")]);
        let edit = |path: &str| format!(r#"{{"path":"{path}","old_string":"x","new_string":"y"}}"#);
        assert!(call(&desk, &edit("no")).await.unwrap_err().starts_with("`no` does not exist"));
        assert_eq!(call(&desk, &edit("b")).await.unwrap_err(), "`b` cannot be edited: it is a binary file");
    }

    #[tokio::test]
    async fn in_a_file_that_changed_only_what_is_there_to_the_letter_is_replaced() {
        let desk = ToolHarness::with_drawer(&[("a", "\tone\ntwo\n")]);
        call(&desk, r#"{"path":"a","old_string":"two","new_string":"2"}"#).await.unwrap();
        desk.overwrite("a", "\tone\n2\nthree\n");
        let fuzzy = r#"{"path":"a","old_string":"    one","new_string":"    1"}"#;
        let error = call(&desk, fuzzy).await.unwrap_err();
        assert!(error.contains("+three") && error.contains("Nothing was changed"), "{error}");
        desk.overwrite("a", "\tone\n2\n");
        let said = call(&desk, r#"{"path":"a","old_string":"one","new_string":"1"}"#).await.unwrap();
        assert!(said.starts_with("Edited a at line 1\nNote: a has changed since"), "{said}");
        assert_eq!(desk.file("a").as_deref(), Some("\t1\n2\n"));
    }
}
