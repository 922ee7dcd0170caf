//! `read_file`: returns numbered lines of a file, or the block around a line.

use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Content, Cx, Effects, Meta, Output, Tool, ToolError,
    files::{FileError, OpenFile, Seen},
    insight::Insight,
    meta::{Category, Example, ParameterAlias},
    verdict::{Criteria, Gives},
};

use windlass_shape::{File, Text};

use crate::{file_error, picture, read_output::HIDDEN_KEY};
use indentation::IndentationBlock;
use lines::FileLines;

mod decode;
mod indentation;
pub(crate) mod lines;
mod magic;

/// Number of lines if the call has no limit.
const DEFAULT_LINES: usize = 2000;

/// Maximum number of lines, more than any model gets.
const MAX_LINES: usize = 20_000;

/// Maximum length of a shown line.
const MAX_LINE_BYTES: usize = 500;

/// Number of bytes read to detect the kind of a file. A shorter file is read as a whole.
const HEAD_BYTES: usize = 256 * 1024;

/// Maximum size of a file that is read as a whole to count its lines and outline it.
const MAX_OUTLINED_BYTES: usize = 256 * 1024;

/// Read a file; returns its lines with their numbers, as `L1: text`.
///
/// Give `offset` and `limit` for a part of a large file. In mode `indentation` you get the block of
/// code around a line instead, found by how far lines are indented. Images are shown to you. For
/// other binary files you are told what they are. Do not use it to search: use grep_files.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadFileArgs {
    /// The file, as an absolute path.
    file_path: PathBuf,
    /// The number of the first line. Default: 1.
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// How many lines at most. Default: 2000.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// `slice` (default) for lines in a row, `indentation` for the block around a line.
    mode: Option<ReadFileMode>,
    /// For mode `indentation`.
    indentation: Option<IndentationArgs>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReadFileMode {
    #[default]
    Slice,
    Indentation,
}

/// How far a block goes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct IndentationArgs {
    /// The line to start from. Default: `offset`.
    #[schemars(range(min = 1))]
    anchor_line: Option<usize>,
    /// How many levels of indentation to climb; 0 means all. Default: 0.
    max_levels: Option<usize>,
    /// Whether blocks beside it on the same level are included. Default: false.
    include_siblings: Option<bool>,
    /// Whether comments right above it are included. Default: true.
    include_header: Option<bool>,
    /// How many lines at most. Default: `limit`.
    #[schemars(range(min = 1))]
    max_lines: Option<usize>,
}

pub(crate) struct ReadFile {
    /// True if the model can be shown images.
    pub(crate) shows_images: bool,
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    type Args = ReadFileArgs;

    fn effects(&self, args: &ReadFileArgs) -> Effects {
        Effects::read(&args.file_path)
    }

    async fn call(&self, args: &ReadFileArgs, cx: &Cx) -> Result<Output, ToolError> {
        let wanted = args.wanted()?;
        let failed = |error| file_error::failed("failed to read file", error);
        let file = cx.host.files().open(&args.file_path).await.map_err(failed)?;
        let head = file.read_at(0, HEAD_BYTES).await.map_err(failed)?;
        if picture::is_image(&head) {
            return self.show(&*file).await;
        }
        if let Some(refusal) = magic::refusal(&head, &*file) {
            return Err(ToolError::failed(refusal));
        }
        let mut lines = FileLines::new(&*file, head, &cx.cancel);
        let taken = wanted.take(&mut lines).await.map_err(failed)?;
        let taken = taken.map_err(ToolError::failed)?;
        cx.host.files().show(Seen { path: file.real_path(), stamp: file.stamp(), bytes: lines.whole() });
        let insight = Some(insight(&*file, &lines).await);
        Ok(Output { insight, ..Output::from(taken) })
    }

    fn meta(&self) -> Meta {
        Meta {
            category: Category::Files,
            examples: vec![
                Example { request: "read a file", input: r#"{"file_path":"/w/src/main.rs"}"# },
                Example {
                    request: "read the function around line 120",
                    input: r#"{"file_path":"/w/src/main.rs","mode":"indentation","indentation":{"anchor_line":120,"max_levels":1}}"#,
                },
            ],
            requests: [
                "show me the file Makefile",
                "what is in main.go",
                "read the first 50 lines of the log",
                "show the last 20 lines of main.c",
                "display the source code of app.py",
                "see the content of .gitignore",
                "look at the definition near line 300",
                "cat /etc/hosts",
                "open notes.txt",
                "显示文件 README.md 的内容",
                "读取 config.json",
                "看一下这个文件",
                "文件里写了什么",
                "查看 app.py 的前 20 行",
                "打开这个源文件",
            ]
            .map(str::to_owned)
            .into(),
            constraints: vec![
                "lines are cut after 500 bytes".to_owned(),
                "what the sandbox hides from commands cannot be read".to_owned(),
            ],
            aliases: vec!["Read", "read"],
            parameter_aliases: [
                ParameterAlias::of(
                    "file_path",
                    &["path", "file", "file_name", "absolute_path", "target_file", "filename"],
                ),
                ParameterAlias::of("offset", &["start_line"]),
            ]
            .concat(),
            returns: "lines with their numbers, or an image".to_owned(),
            criteria: Criteria::new(Gives::TextOrImage, Duration::from_secs(2)),
            ..Meta::default()
        }
    }
}

/// Returns the insight of the file. Reads a text of ordinary length as a whole, even if only some
/// lines were requested.
async fn insight(file: &dyn OpenFile, lines: &FileLines<'_>) -> Insight {
    let (bytes, encoding) = (file.size_bytes(), lines.encoding());
    let length = usize::try_from(bytes).ok().filter(|length| *length <= MAX_OUTLINED_BYTES);
    let read = match (lines.whole(), length) {
        (None, Some(length)) => file.read_at(0, length).await.ok(),
        (Some(_), _) | (None, None) => None,
    };
    let decoded =
        lines.whole().or(read.as_deref()).and_then(|bytes| windlass_patch::Text::decode(bytes).ok());
    let text = decoded.as_ref().map_or(Text::Beginning(""), |text| Text::Whole(text.content()));
    File { path: file.path(), bytes, encoding: encoding.name(), text }.insight()
}

impl ReadFile {
    async fn show(&self, file: &dyn OpenFile) -> Result<Output, ToolError> {
        let picture = picture::load(file).await?;
        if !self.shows_images {
            let text = format!("{} (you cannot be shown images)", picture.describe(file));
            return Ok(text.into());
        }
        let content = vec![Content::Text(picture.describe(file)), Content::Image(picture.url)];
        Ok(Output { content, ..Output::default() })
    }
}

impl ReadFileArgs {
    /// Checks the arguments and returns the requested range.
    fn wanted(&self) -> Result<ReadRange, ToolError> {
        let (offset, limit) = (self.offset.unwrap_or(1), self.limit.unwrap_or(DEFAULT_LINES));
        let bad = |text: &str| Err(ToolError::bad_input(text));
        if offset == 0 {
            return bad("offset must be a 1-indexed line number");
        }
        if limit == 0 {
            return bad("limit must be greater than zero");
        }
        let limit = limit.min(MAX_LINES);
        if self.mode.unwrap_or_default() == ReadFileMode::Slice {
            return Ok(ReadRange::Slice { offset, limit });
        }
        let default = IndentationArgs::default();
        let options = self.indentation.as_ref().unwrap_or(&default);
        let (anchor, most) = (options.anchor_line.unwrap_or(offset), options.max_lines.unwrap_or(limit));
        if anchor == 0 {
            return bad("anchor_line must be a 1-indexed line number");
        }
        if most == 0 {
            return bad("max_lines must be greater than zero");
        }
        Ok(ReadRange::Block {
            anchor,
            block: IndentationBlock {
                max_levels: options.max_levels.unwrap_or(0),
                include_siblings: options.include_siblings.unwrap_or(false),
                include_header: options.include_header.unwrap_or(true),
                budget: limit.min(most),
            },
        })
    }
}

/// The requested lines of a file.
enum ReadRange {
    Slice { offset: usize, limit: usize },
    Block { anchor: usize, block: IndentationBlock },
}

impl ReadRange {
    /// Returns the lines for the model, or the reason why there are none.
    async fn take(&self, lines: &mut FileLines<'_>) -> Result<Result<String, &'static str>, FileError> {
        let (first, count) = match self {
            Self::Slice { offset, limit } => (*offset, *limit),
            Self::Block { anchor, block } => {
                let first = anchor.saturating_sub(block.budget).max(1);
                (first, anchor - first + block.budget)
            }
        };
        let mut keys = lines.go_to(first).await?;
        let mut raw = lines.take(count).await?;
        // Hide a key that begins before these lines. One that begins in them is redacted like any
        // output.
        for line in &mut raw {
            if !keys.take(line) {
                break;
            }
            *line = HIDDEN_KEY.as_bytes().to_vec();
        }
        let (texts, encoding) = decode::decode(lines.encoding(), &raw, first == 1);
        let (from, to) = match self {
            Self::Slice { .. } if texts.is_empty() => return Ok(Err("offset exceeds file length")),
            Self::Slice { .. } => (0, texts.len()),
            Self::Block { anchor, .. } if anchor - first >= texts.len() => {
                return Ok(Err("anchor_line exceeds file length"));
            }
            Self::Block { anchor, block } => block.find(&texts, anchor - first),
        };
        let mut shown = String::new();
        for (at, text) in texts[from..to].iter().enumerate() {
            shown.push_str(&format!("L{}: ", first + from + at));
            shown.push_str(cut(text));
            shown.push('\n');
        }
        match encoding {
            Some(name) => shown.push_str(&format!("(decoded from {name})")),
            None => drop(shown.pop()),
        }
        Ok(Ok(shown))
    }
}

/// Cuts a line to its maximum length.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_LINE_BYTES)]
}

#[cfg(test)]
mod tests;
