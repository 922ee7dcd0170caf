//! `list_dir`: lists a directory and its subdirectories.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    files::{Entry, FileKind, Ignored, Listed, Listing},
    meta::{Category, Example, ParameterAlias},
    verdict::{Criteria, Gives},
};

use crate::file_error;

const DEFAULT_LIMIT: usize = 25;
const DEFAULT_DEPTH: usize = 2;

/// Maximum number of entries read; sorting needs them all.
const MAX_ENTRIES: usize = 100_000;

/// Maximum depth of a listing.
const MAX_DEPTH: usize = 100;

/// Maximum length of a shown name.
const MAX_NAME_BYTES: usize = 500;

/// List what is in a directory; returns one name per line, indented by depth: `/` marks
/// directories, `@` links.
///
/// Links are not followed. Give `offset` and `limit` to see a long listing part by part. Do not use
/// it to search for something inside files: use grep_files.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListDirArgs {
    /// The directory, as an absolute path.
    dir_path: PathBuf,
    /// The number of the first entry. Default: 1.
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// How many entries at most. Default: 25.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// How many levels of directories to go into. Default: 2.
    #[schemars(range(min = 1))]
    depth: Option<usize>,
    /// Whether to leave out what ignore files (`.gitignore`) leave out, and `.git` itself. Default:
    /// false.
    skip_ignored: Option<bool>,
    /// Whether to return paths from the directory on instead of indented names. Default: false.
    flat: Option<bool>,
}

pub(crate) struct ListDir;

impl Tool for ListDir {
    const NAME: &'static str = "list_dir";
    type Args = ListDirArgs;

    fn effects(&self, args: &ListDirArgs) -> Effects {
        Effects::read(&args.dir_path)
    }

    async fn call(&self, args: &ListDirArgs, cx: &Cx) -> Result<Output, ToolError> {
        let (offset, limit) = (args.offset.unwrap_or(1), args.limit.unwrap_or(DEFAULT_LIMIT));
        let depth = args.depth.unwrap_or(DEFAULT_DEPTH);
        let bad = |text: &str| Err(ToolError::bad_input(text));
        match (offset, limit, depth) {
            (0, ..) => return bad("offset must be a 1-indexed entry number"),
            (_, 0, _) => return bad("limit must be greater than zero"),
            (.., 0) => return bad("depth must be greater than zero"),
            _ => {}
        }
        let ignored = if args.skip_ignored.unwrap_or(false) { Ignored::Hidden } else { Ignored::Shown };
        let listing =
            Listing { path: args.dir_path.clone(), depth: depth.min(MAX_DEPTH), ignored, limit: MAX_ENTRIES };
        let listed = cx.host.files().list(&listing, &cx.cancel).await;
        let listed = listed.map_err(|error| file_error::failed("failed to read directory", error))?;
        let row = if args.flat.unwrap_or(false) { flat_row } else { row };
        page(listed, offset, limit, row).map(Output::from).map_err(ToolError::failed)
    }

    fn meta(&self) -> Meta {
        Meta {
            category: Category::Files,
            examples: vec![Example {
                request: "see how a project is laid out",
                input: r#"{"dir_path":"/w","depth":3,"limit":200,"skip_ignored":true}"#,
            }],
            requests: [
                "list the files of this directory",
                "what is in this folder",
                "which files are there",
                "show the folder structure",
                "ls docs/",
                "what does the project consist of",
                "how are the sources organised",
                "列出目录",
                "列出当前目录的文件",
                "目录里有什么",
                "这个文件夹有哪些文件和子目录",
                "项目结构是怎样的",
                "显示目录树",
            ]
            .map(str::to_owned)
            .into(),
            constraints: vec!["what the sandbox hides from commands is not listed".to_owned()],
            aliases: vec!["LS", "ls", "list", "list_directory", "list_files"],
            parameter_aliases: [
                ParameterAlias::of("dir_path", &["path", "directory", "dir", "relative_workspace_path"]),
                ParameterAlias::of("skip_ignored", &["respect_git_ignore"]),
            ]
            .concat(),
            returns: "names, indented by depth".to_owned(),
            criteria: Criteria::new(Gives::Text, Duration::from_secs(5)),
            ..Meta::default()
        }
    }
}

/// One page of a listing.
fn page(
    mut listed: Listed,
    offset: usize,
    limit: usize,
    row: fn(&Entry) -> String,
) -> Result<String, &'static str> {
    let mut rows = vec![format!("Absolute path: {}", listed.path.display())];
    let all = listed.entries.len();
    if all > 0 && offset > all {
        return Err("offset exceeds directory entry count");
    }
    // Sort by the bytes of the whole path, as models of this family expect. Children do not always
    // follow their parent.
    listed.entries.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    let shown = listed.entries.iter().skip(offset - 1).take(limit);
    rows.extend(shown.map(row));
    let count = rows.len() - 1;
    if offset - 1 + count < all {
        rows.push(format!("More than {count} entries found"));
    }
    if listed.more {
        rows.push(format!("(only {all} entries were looked at; list a directory further inside)"));
    }
    Ok(rows.join("\n"))
}

fn row(entry: &Entry) -> String {
    let name = in_one_line(entry.path.file_name().map_or(&*entry.path, Path::new));
    let shown = &name[..name.floor_char_boundary(MAX_NAME_BYTES)];
    let depth = entry.path.components().count().saturating_sub(1);
    format!("{}{}{}", "  ".repeat(depth), shown, mark(entry.kind))
}

fn flat_row(entry: &Entry) -> String {
    format!("{}{}", in_one_line(&entry.path), mark(entry.kind))
}

/// Formats a path on one line. Escapes its line breaks as `\n`, so that it cannot look like two
/// paths.
pub(crate) fn in_one_line(path: &Path) -> String {
    path.display().to_string().replace('\n', "\\n").replace('\r', "\\r")
}

fn mark(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "",
        FileKind::Directory => "/",
        FileKind::Link => "@",
        FileKind::Fifo | FileKind::Socket | FileKind::Device | FileKind::Other => "?",
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Content, erase, files::FileError};

    use super::*;
    use crate::fakes::{FixedFiles, ToolHarness};

    fn listed(more: bool) -> Listed {
        let entry = |(path, kind): (&str, FileKind)| Entry { path: path.into(), kind };
        let entries = [
            ("a/b", FileKind::File),
            ("a.txt", FileKind::File),
            ("pipe", FileKind::Fifo),
            ("link", FileKind::Link),
            ("a", FileKind::Directory),
        ];
        Listed { path: "/w".into(), entries: entries.map(entry).to_vec(), more }
    }

    async fn call(listed: Listed, input: &str) -> Result<String, String> {
        let desk = ToolHarness::with_files(FixedFiles { listed, ..FixedFiles::default() });
        let output = desk.call(erase(ListDir), input).await;
        output.map(|output| Content::join(&output.content)).map_err(|error| error.message)
    }

    #[tokio::test]
    async fn entries_are_sorted_by_path_and_marked_by_kind() {
        let all = "Absolute path: /w\na/\na.txt\n  b\nlink@\npipe?";
        assert_eq!(call(listed(false), r#"{"dir_path":"/w"}"#).await.unwrap(), all);
        assert_eq!(
            call(listed(true), r#"{"dir_path":"/w","offset":2,"limit":2}"#).await.unwrap(),
            "Absolute path: /w\na.txt\n  b\nMore than 2 entries found\n(only 5 entries were looked at; list a directory \
             further inside)"
        );
        let flat = "Absolute path: /w\na/\na.txt\na/b\nlink@\npipe?";
        assert_eq!(call(listed(false), r#"{"dir_path":"/w","flat":true}"#).await.unwrap(), flat);
        assert_eq!(call(Listed::default(), r#"{"dir_path":"/w"}"#).await.unwrap(), "Absolute path: ");
    }

    #[tokio::test]
    async fn a_name_with_a_line_break_is_one_name() {
        let entries = vec![Entry { path: "d/a\nsafe.txt".into(), kind: FileKind::File }];
        for input in [r#"{"dir_path":"/w"}"#, r#"{"dir_path":"/w","flat":true}"#] {
            let text = call(Listed { entries: entries.clone(), ..listed(false) }, input).await.unwrap();
            assert!(text.ends_with(r"a\nsafe.txt"), "{text}");
        }
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_told_in_known_words() {
        for (input, problem) in [
            (r#"{"dir_path":"/w","offset":0}"#, "offset must be a 1-indexed entry number"),
            (r#"{"dir_path":"/w","limit":0}"#, "limit must be greater than zero"),
            (r#"{"dir_path":"/w","depth":0}"#, "depth must be greater than zero"),
            (r#"{"dir_path":"/w","offset":6}"#, "offset exceeds directory entry count"),
        ] {
            assert_eq!(call(listed(false), input).await.unwrap_err(), problem);
        }
        let desk = ToolHarness::with_files(FixedFiles::refusing(|| FileError::NotADirectory {
            path: "/w/x".into(),
        }));
        let error = desk.call(erase(ListDir), r#"{"dir_path":"x"}"#).await.unwrap_err();
        assert_eq!(error.message, "failed to read directory: `/w/x` is not a directory");
    }
}
