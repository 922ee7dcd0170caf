//! `write_file`: makes a file, or rewrites a whole one.

use std::{path::PathBuf, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    edit::{Action, Change, Expected},
    event::{EditKind, FileEdit},
    meta::{Example, ParameterAlias},
    wording::counted,
};
use windlass_patch::Text;

use crate::change;

/// Make a file, or rewrite a whole one. Directories are made as needed.
///
/// To change a part of a file, use `edit_file`: it is shorter and cannot lose the rest. A file that
/// exists keeps its encoding, line endings and mode.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WriteFileArgs {
    /// The file, absolute or relative to the workspace.
    path: PathBuf,
    /// Everything the file is to hold.
    content: String,
}

pub(crate) struct WriteFile;

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    type Args = WriteFileArgs;

    fn effects(&self, args: &WriteFileArgs) -> Effects {
        Effects { reads: vec![args.path.clone()], ..Effects::write(&args.path) }
    }

    async fn call(&self, args: &WriteFileArgs, cx: &Cx) -> Result<Output, ToolError> {
        let WriteFileArgs { path, content } = args;
        let shown = path.display();
        let found = change::read(cx, path).await.map_err(change::unreachable_file)?;
        let refused =
            |problem: String| ToolError::failed(format!("`{shown}` cannot be rewritten: {problem}"));
        let (expected, kind, bytes, told, lost) = match found {
            None => (Expected::Absent, EditKind::Add, content.clone().into_bytes(), "Made", None),
            Some(found) => {
                let text = Text::decode(&found.bytes).map_err(|error| refused(error.to_string()))?;
                let bytes = text.encode(&with_endings(content, &text));
                let bytes = bytes.map_err(|error| refused(error.to_string()))?;
                if let Some(refusal) = found.refusal(cx, &shown.to_string()) {
                    return Err(ToolError::failed(refusal));
                }
                let lost = (!found.is_known() && !found.bytes.is_empty()).then(|| lost(&text));
                (Expected::Content(Arc::clone(&found.bytes)), EditKind::Update, bytes, "Rewrote", lost)
            }
        };
        let (lines, size) = (counted(content.lines().count(), "line"), counted(bytes.len(), "byte"));
        let lost = lost.unwrap_or_default();
        let changes = vec![Change { path: path.clone(), expected, action: Action::Write(bytes) }];
        let files = vec![FileEdit { path: path.clone(), kind, move_path: None }];
        let notes = change::commit(cx, changes, files).await?;
        let told = format!("{told} {shown}: {lines}, {size}{lost}");
        Ok([told].into_iter().chain(notes).collect::<Vec<_>>().join("\n").into())
    }

    fn meta(&self) -> Meta {
        let input = r#"{"path":"notes/todo.md","content":"- water the plants\n"}"#;
        Meta {
            aliases: vec!["Write", "write", "create_file"],
            parameter_aliases: [
                ParameterAlias::of("path", &["file_path", "file", "filename", "absolute_path"]),
                ParameterAlias::of("content", &["text", "contents", "file_text"]),
            ]
            .concat(),
            examples: vec![Example { request: "note that the plants need water", input }],
            requests: [
                "create a file with this text",
                "write a script that prints hello",
                "save the answer as a file",
                "make an empty file called done",
                "overwrite the whole file with this",
                "put a summary into summary.txt",
                "创建一个文件，内容如下",
                "新建 main.py",
                "把这些写到文件里",
                "保存到文件",
                "生成一个配置文件",
            ]
            .map(str::to_owned)
            .into(),
            ..change::meta()
        }
    }
}

/// Returns a note on the lines lost by overwriting a file. The host cannot tell if the model has
/// read it.
fn lost(file: &Text<'_>) -> String {
    format!(" (it had {}; `windlass undo` brings them back)", counted(file.content().lines().count(), "line"))
}

/// Converts the content to the line endings of the existing file.
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
    use crate::fakes::ToolHarness;

    async fn call(desk: &ToolHarness, input: &str) -> Result<String, String> {
        let end = desk.call(erase(WriteFile), input).await;
        end.map(|output| windlass_contract::Content::join(&output.content)).map_err(|error| error.message)
    }

    #[tokio::test]
    async fn a_file_is_made_or_rewritten_as_it_was_written() {
        let desk = ToolHarness::with_drawer(&[("b", "\u{feff}1\r\n2\r\n"), ("c", "\0")]);
        let write = |path: &str| format!(r#"{{"path":"{path}","content":"x\ny\n"}}"#);
        assert_eq!(call(&desk, &write("a")).await.as_deref(), Ok("Made a: 2 lines, 4 bytes"));
        assert_eq!(
            call(&desk, &write("b")).await.as_deref(),
            Ok("Rewrote b: 2 lines, 9 bytes (it had 2 lines; `windlass undo` brings them back)")
        );
        assert_eq!(desk.file("a").as_deref(), Some("x\ny\n"));
        assert_eq!(desk.file("b").as_deref(), Some("\u{feff}x\r\ny\r\n"));
        assert_eq!(
            call(&desk, &write("c")).await.unwrap_err(),
            "`c` cannot be rewritten: it is a binary file"
        );
    }

    #[tokio::test]
    async fn what_someone_else_has_written_is_not_overwritten_before_the_model_knows() {
        let desk = ToolHarness::with_drawer(&[]);
        let write = r#"{"path":"a","content":"mine\n"}"#;
        call(&desk, write).await.unwrap();
        // The model knows what it has written itself.
        assert_eq!(call(&desk, write).await.as_deref(), Ok("Rewrote a: 1 line, 5 bytes"));
        desk.overwrite("a", "theirs\n");
        let error = call(&desk, write).await.unwrap_err();
        assert!(error.starts_with("a has changed since you last read or wrote it"), "{error}");
        assert!(
            error.contains("-mine\n+theirs\n") && error.ends_with("Read a again, then decide"),
            "{error}"
        );
        assert_eq!(desk.file("a").as_deref(), Some("theirs\n"));
        // The refusal showed it the change, so it now overwrites knowingly.
        call(&desk, write).await.unwrap();
        assert_eq!(desk.file("a").as_deref(), Some("mine\n"));
    }
}
