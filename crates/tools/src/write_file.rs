//! `write_file`: makes a file, or rewrites a whole one.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Action, Change, Cx, EditKind, Effects, Example, Expected, FileEdit, Meta, Output, Tool, ToolError,
};
use windlass_patch::Text;

use crate::change;

/// Make a file, or rewrite a whole one. Directories are made as needed.
///
/// To change a part of a file, use `edit_file`: it is shorter and cannot lose the rest. A file that exists keeps its
/// encoding, line endings and mode.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file, absolute or relative to the workspace.
    #[serde(alias = "file_path")]
    path: PathBuf,
    /// Everything the file is to hold.
    #[serde(alias = "text")]
    content: String,
}

pub(crate) struct WriteFile;

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    type Args = Args;

    fn effects(&self, args: &Args) -> Effects {
        Effects { reads: vec![args.path.clone()], ..Effects::write(&args.path) }
    }

    async fn call(&self, args: &Args, cx: &Cx) -> Result<Output, ToolError> {
        let Args { path, content } = args;
        let shown = path.display();
        let found = change::read(cx, path).await.map_err(change::unreachable_file)?;
        let refused =
            |problem: String| ToolError::failed(format!("`{shown}` cannot be rewritten: {problem}"));
        let (expected, kind, bytes, told) = match found {
            None => (Expected::Absent, EditKind::Add, content.clone().into_bytes(), "Made"),
            Some(found) => {
                let text = Text::decode(&found).map_err(|error| refused(error.to_string()))?;
                let bytes = text.encode(&with_endings(content, &text));
                let bytes = bytes.map_err(|error| refused(error.to_string()))?;
                (Expected::Content(found), EditKind::Update, bytes, "Rewrote")
            }
        };
        let (lines, size) = (content.lines().count(), bytes.len());
        let changes = vec![Change { path: path.clone(), expected, action: Action::Write(bytes) }];
        let files = vec![FileEdit { path: path.clone(), kind, move_path: None }];
        change::commit(cx, changes, files).await?;
        Ok(format!("{told} {shown}: {lines} lines, {size} bytes").into())
    }

    fn meta(&self) -> Meta {
        let input = r#"{"path":"notes/todo.md","content":"- water the plants\n"}"#;
        Meta {
            examples: vec![Example { request: "note that the plants need water", input }],
            ..change::meta()
        }
    }
}

/// The content with the line endings of the file it is for.
fn with_endings(content: &str, file: &Text<'_>) -> String {
    if file.ending() == "\r\n" && !content.contains('\r') {
        content.replace('\n', "\r\n")
    } else {
        content.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::erase;

    use super::*;
    use crate::fakes::Desk;

    async fn call(desk: &Desk, input: &str) -> Result<String, String> {
        let end = desk.call(erase(WriteFile), input).await;
        end.map(|output| windlass_contract::Content::join(&output.content)).map_err(|error| error.message)
    }

    #[tokio::test]
    async fn a_file_is_made_or_rewritten_as_it_was_written() {
        let desk = Desk::with_drawer(&[("b", "\u{feff}1\r\n2\r\n"), ("c", "\0")]);
        let write = |path: &str| format!(r#"{{"path":"{path}","content":"x\ny\n"}}"#);
        assert_eq!(call(&desk, &write("a")).await.as_deref(), Ok("Made a: 2 lines, 4 bytes"));
        assert_eq!(call(&desk, &write("b")).await.as_deref(), Ok("Rewrote b: 2 lines, 9 bytes"));
        assert_eq!(desk.file("a").as_deref(), Some("x\ny\n"));
        assert_eq!(desk.file("b").as_deref(), Some("\u{feff}x\r\ny\r\n"));
        assert_eq!(
            call(&desk, &write("c")).await.unwrap_err(),
            "`c` cannot be rewritten: it is a binary file"
        );
    }
}
