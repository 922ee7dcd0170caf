//! `grep_files`: finds files that match a pattern, without an external program.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Content, Cx, Effects, Meta, Output, Tool, ToolError,
    files::{FileError, Found, FoundFile, Search, Wanted},
    insight::{Detail, Hits, Insight, SearchInsight},
    meta::{AliasMeaning, Category, Example, ParameterAlias},
    report::{SearchMatch, SearchReport, ToolReport},
    tool::ErrorKind,
    verdict::{Criteria, Gives},
    wording::counted,
};

use crate::{file_error, list_dir::in_one_line};

/// Number of results if the call has no limit, and the maximum.
const DEFAULT_LIMIT: usize = 100;
const MAX_RESULTS: usize = 2000;

/// Minimum number of rows that get a summary.
const MIN_SUMMARIZED_ROWS: usize = 20;

/// Maximum time of a search.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Maximum number of directories in a summary.
const MAX_TOP_DIRECTORIES: usize = 5;

/// Maximum number of lines around a match.
const MAX_CONTEXT: usize = 50;

/// Find files whose contents match a regular expression; returns their paths, the one that changed
/// last first.
///
/// Ignore files (`.gitignore`, `.ignore`) are honoured, binary files are passed over. With
/// `output_mode` you get the matching lines or their number instead. Use it rather than `grep` or
/// `rg` in a shell. Do not use it to find files by name alone: use list_dir.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GrepFilesArgs {
    /// The regular expression (Rust syntax: no look-around, no backreferences).
    pattern: String,
    /// A glob that file paths must match, such as `*.rs` or `*.{ts,tsx}`.
    include: Option<String>,
    /// The file or directory to search. Default: the workspace.
    path: Option<PathBuf>,
    /// How many files, or lines in `content` mode, at most. Default: 100; at most 2000.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// `files_with_matches` (default), `content` for lines with their numbers, `count` for the
    /// number of lines per file.
    output_mode: Option<GrepOutputMode>,
    /// In `content` mode: how many lines to show before and after each match.
    context: Option<usize>,
    /// In `content` mode: how many lines to show before each match.
    before_context: Option<usize>,
    /// In `content` mode: how many lines to show after each match.
    after_context: Option<usize>,
    /// A type of files, such as `rust`, `py` or `js`.
    r#type: Option<String>,
    /// Whether capital and small letters are the same. Default: false.
    case_insensitive: Option<bool>,
    /// Whether the pattern may match across lines. Default: false.
    multiline: Option<bool>,
    /// Whether files whose names begin with a dot are searched, too. Default: false.
    hidden: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum GrepOutputMode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

pub(crate) struct GrepFiles;

impl Tool for GrepFiles {
    const NAME: &'static str = "grep_files";
    type Args = GrepFilesArgs;

    fn effects(&self, args: &GrepFilesArgs) -> Effects {
        Effects::read(args.path.clone().unwrap_or_else(|| ".".into()))
    }

    async fn call(&self, args: &GrepFilesArgs, cx: &Cx) -> Result<Output, ToolError> {
        let search = args.search()?;
        let found = tokio::time::timeout(TIME_LIMIT, cx.host.files().search(&search, &cx.cancel)).await;
        let found = found.map_err(|_| {
            ToolError::new(
                ErrorKind::TimedOut,
                "the search timed out after 30 seconds; narrow it with `path`, `include` or `type`",
            )
        })?;
        let found = found.map_err(|error| match error {
            FileError::Pattern(problem) => ToolError::bad_input(problem),
            error => file_error::failed(&format!("unable to access `{}`", search.path.display()), error),
        })?;
        let mode = args.output_mode.unwrap_or_default();
        let report = SearchReport {
            denied: found.denied,
            files: found.files.len() as u64,
            matches: mode.matches(&found),
            more: found.more,
        };
        let data = Some(ToolReport::Search(report));
        let content = vec![Content::Text(mode.show(&found))];
        Ok(Output { content, data, insight: Some(mode.insight(&found)), ..Output::default() })
    }

    fn meta(&self) -> Meta {
        Meta {
            category: Category::Files,
            examples: vec![
                Example {
                    request: "which Rust files define a trait",
                    input: r#"{"pattern":"^pub trait ","include":"*.rs"}"#,
                },
                Example {
                    request: "show where TODO is written, with two lines around it",
                    input: r#"{"pattern":"TODO","output_mode":"content","context":2}"#,
                },
            ],
            requests: [
                "search for a word in all files",
                "search for \"some text\" in a directory",
                "where is this class defined",
                "who calls this function",
                "find all TODO comments",
                "which files contain the string localhost",
                "look for a pattern in the code",
                "list the places that use this constant",
                "搜索这个词",
                "在所有文件里查找 error",
                "这个函数在哪里定义",
                "谁调用了这个函数",
                "哪些文件包含 localhost",
                "找出所有 TODO 注释",
            ]
            .map(str::to_owned)
            .into(),
            constraints: vec![
                "a search takes at most 30 seconds".to_owned(),
                "what the sandbox hides from commands is not searched".to_owned(),
            ],
            aliases: vec![
                "Grep",
                "grep",
                "search_code",
                "search_file_content",
                "search_files",
                "grep_search",
            ],
            parameter_aliases: parameter_aliases(),
            returns: "one path per line, or lines as `path:number:text`, or `path:count`".to_owned(),
            criteria: Criteria::new(Gives::Text, Duration::from_secs(10)),
            ..Meta::default()
        }
    }
}

/// Returns the parameter names that searches of other agents use.
fn parameter_aliases() -> Vec<ParameterAlias> {
    let mut aliases = vec![ParameterAlias { name: "-n", means: AliasMeaning::AlwaysSo(true) }];
    for (parameter, names) in [
        ("pattern", &["query", "regex", "search_term"][..]),
        ("include", &["glob", "include_pattern", "file_pattern"]),
        ("path", &["directory", "dir", "dir_path", "search_path"]),
        ("limit", &["head_limit", "max_results"]),
        ("case_insensitive", &["-i", "ignore_case"]),
        ("context", &["-C"]),
        ("before_context", &["-B"]),
        ("after_context", &["-A"]),
    ] {
        aliases.extend(ParameterAlias::of(parameter, names));
    }
    aliases
}

impl GrepFilesArgs {
    fn search(&self) -> Result<Search, ToolError> {
        let pattern = self.pattern.trim().to_owned();
        if pattern.is_empty() {
            return Err(ToolError::bad_input("pattern must not be empty"));
        }
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        if limit == 0 {
            return Err(ToolError::bad_input("limit must be greater than zero"));
        }
        let around = |own: Option<usize>| own.or(self.context).unwrap_or(0).min(MAX_CONTEXT);
        let filled = |text: &Option<String>| {
            text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Ok(Search {
            pattern,
            path: self.path.clone().unwrap_or_else(|| ".".into()),
            globs: filled(&self.include).into_iter().collect(),
            file_type: filled(&self.r#type),
            case_insensitive: self.case_insensitive.unwrap_or(false),
            multiline: self.multiline.unwrap_or(false),
            hidden: self.hidden.unwrap_or(false),
            wanted: match self.output_mode.unwrap_or_default() {
                GrepOutputMode::FilesWithMatches => Wanted::Names,
                GrepOutputMode::Content => {
                    Wanted::Lines { before: around(self.before_context), after: around(self.after_context) }
                }
                GrepOutputMode::Count => Wanted::Counts,
            },
            limit: limit.min(MAX_RESULTS),
        })
    }
}

impl GrepOutputMode {
    /// Returns the results, one per row.
    fn matches(self, found: &Found) -> Vec<SearchMatch> {
        let each = |file: &FoundFile| {
            // JSON has no bytes: a name that is not UTF-8 gets replacement characters.
            let path = file.path.to_string_lossy().into_owned();
            match self {
                Self::FilesWithMatches => vec![SearchMatch::File { path }],
                Self::Count => vec![SearchMatch::Count { count: file.count, path }],
                Self::Content => {
                    let fitting = file.lines.iter().filter(|line| line.fits);
                    fitting
                        .map(|line| SearchMatch::Line {
                            line: line.number,
                            path: path.clone(),
                            text: line.text.clone(),
                        })
                        .collect()
                }
            }
        };
        found.files.iter().flat_map(each).collect()
    }

    /// Returns the number of results and the directories with most of them.
    fn insight(self, found: &Found) -> Insight {
        let mut directories: HashMap<&Path, u64> = HashMap::new();
        for directory in found.files.iter().filter_map(|file| file.path.parent()) {
            *directories.entry(directory).or_default() += 1;
        }
        let mut directories: Vec<_> =
            directories.into_iter().map(|(path, files)| Hits { path: path.to_owned(), files }).collect();
        directories.sort_by(|one, two| two.files.cmp(&one.files).then_with(|| one.path.cmp(&two.path)));
        directories.truncate(MAX_TOP_DIRECTORIES);
        let files = found.files.len() as u64;
        let has_hits = self != Self::FilesWithMatches;
        let hits: Option<u64> = has_hits.then(|| found.files.iter().map(|file| file.count).sum());
        let more = if found.more { "more than " } else { "" };
        let lines = hits.map(|hits| format!(", {}", counted(hits, "line"))).unwrap_or_default();
        let summary = format!("{more}{}{lines}", counted(files, "file"));
        Insight {
            summary,
            detail: Detail::Search(SearchInsight { files, hits, more: found.more, directories }),
        }
    }

    fn show(self, found: &Found) -> String {
        if found.files.is_empty() {
            return "No matches found.".to_owned();
        }
        let mut rows: Vec<_> = match self {
            Self::FilesWithMatches => {
                return found.files.iter().map(name).collect::<Vec<_>>().join("\n");
            }
            Self::Count => found.files.iter().map(|file| format!("{}:{}", name(file), file.count)).collect(),
            Self::Content => found.files.iter().flat_map(lines).collect(),
        };
        if found.more {
            rows.push("(there are more; narrow the search or raise `limit`)".to_owned());
        }
        if self == Self::Count && (found.more || found.files.len() > MIN_SUMMARIZED_ROWS) {
            let (files, lines) = found.total;
            let (files, lines) = (counted(files, "file"), counted(lines, "line"));
            rows.push(format!("(in all: {files}, {lines})"));
        }
        rows.join("\n")
    }
}

fn name(file: &FoundFile) -> String {
    in_one_line(&file.path)
}

/// Formats lines as grep does: `:` around the number of a match, `-` around that of a context line.
fn lines(file: &FoundFile) -> Vec<String> {
    let mut rows = Vec::new();
    let mut last = None;
    for line in &file.lines {
        if last.is_some_and(|last| line.number > last + 1) && file.lines.iter().any(|line| !line.fits) {
            rows.push("--".to_owned());
        }
        last = Some(line.number);
        let mark = if line.fits { ':' } else { '-' };
        rows.push(format!("{}{mark}{}{mark}{}", name(file), line.number, line.text));
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt, sync::Arc, time::SystemTime};

    use serde_json::json;
    use windlass_contract::{erase, files::FoundLine, tool::ErrorKind};

    use super::*;
    use crate::fakes::{FixedFiles, ToolHarness};

    fn found(lines: &[(u64, bool, &str)]) -> Found {
        let file = FoundFile {
            path: "/w/a".into(),
            modified: SystemTime::UNIX_EPOCH,
            count: 2,
            lines: lines
                .iter()
                .map(|(number, fits, text)| FoundLine { number: *number, fits: *fits, text: (*text).into() })
                .collect(),
        };
        Found {
            files: vec![FoundFile { path: "/w/b".into(), ..file.clone() }, file],
            more: false,
            total: (2, 4),
            denied: 3,
        }
    }

    async fn call(found: Found, input: &str) -> Result<Output, ToolError> {
        let desk = ToolHarness::with_files(FixedFiles { found, ..FixedFiles::default() });
        desk.call(erase(GrepFiles), input).await
    }

    async fn text(found: Found, input: &str) -> String {
        Content::join(&call(found, input).await.unwrap().content)
    }

    #[tokio::test]
    async fn each_mode_has_its_form() {
        let lines = [(1, false, "x"), (2, true, "needle"), (9, true, "needles")];
        assert_eq!(text(found(&[]), r#"{"pattern":"n"}"#).await, "/w/b\n/w/a");
        assert_eq!(text(found(&[]), r#"{"pattern":"n","output_mode":"count"}"#).await, "/w/b:2\n/w/a:2");
        let more = Found { more: true, files: found(&lines).files.split_off(1), ..Found::default() };
        assert_eq!(
            text(more, r#"{"pattern":"n","output_mode":"content"}"#).await,
            "/w/a-1-x\n/w/a:2:needle\n--\n/w/a:9:needles\n(there are more; narrow the search or raise `limit`)"
        );
        assert_eq!(text(Found::default(), r#"{"pattern":"n"}"#).await, "No matches found.");
        let data = call(found(&[]), r#"{"pattern":"n"}"#).await.unwrap().data;
        assert_eq!(
            json!(data),
            json!({
                "matches": [{"path": "/w/b"}, {"path": "/w/a"}], "files": 2, "more": false, "denied": 3,
            })
        );
        let more = Found { files: found(&lines).files.split_off(1), ..Found::default() };
        let data = call(more, r#"{"pattern":"n","output_mode":"content"}"#).await.unwrap().data.unwrap();
        let rows = [(2, "needle"), (9, "needles")]
            .map(|(line, text)| json!({"path": "/w/a", "line": line, "text": text}));
        assert_eq!(json!(data)["matches"], json!(rows));
    }

    #[tokio::test]
    async fn a_name_that_is_not_utf_8_is_found_too() {
        let name = OsStr::from_bytes(b"/w/\xff.txt");
        let file = FoundFile { path: name.into(), ..found(&[]).files.remove(0) };
        let found = Found { files: vec![file], ..Found::default() };
        let data = call(found, r#"{"pattern":"n"}"#).await.unwrap().data;
        assert_eq!(json!(data)["matches"], json!([{"path": "/w/\u{fffd}.txt"}]));
    }

    #[tokio::test]
    async fn many_counts_are_told_in_all_as_well() {
        let file = found(&[]).files.remove(0);
        let sum = "(in all: 30 files, 90 lines)";
        for (files, more, end) in [
            (5, true, format!("raise `limit`)\n{sum}")),
            (MIN_SUMMARIZED_ROWS, true, format!("raise `limit`)\n{sum}")),
            (MIN_SUMMARIZED_ROWS + 1, false, format!("\n{sum}")),
            (MIN_SUMMARIZED_ROWS, false, format!(":{}", file.count)),
        ] {
            let found = Found { more, total: (30, 90), files: vec![file.clone(); files], denied: 0 };
            let told = text(found, r#"{"pattern":"n","output_mode":"count"}"#).await;
            assert!(told.ends_with(&end), "{files} {more}: {told}");
        }
    }

    #[tokio::test]
    async fn how_much_was_found_and_where_is_told_as_data() {
        let insight =
            call(found(&[]), r#"{"pattern":"n","output_mode":"count"}"#).await.unwrap().insight.unwrap();
        let directories = vec![Hits { path: "/w".into(), files: 2 }];
        let search = SearchInsight { files: 2, hits: Some(4), more: false, directories };
        assert_eq!(insight, Insight { summary: "2 files, 4 lines".into(), detail: Detail::Search(search) });
        let names = call(found(&[]), r#"{"pattern":"n"}"#).await.unwrap().insight.unwrap();
        assert_eq!(names.summary, "2 files");
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_told_in_known_words() {
        let problem = async |input: &str| call(Found::default(), input).await.unwrap_err().message;
        assert_eq!(problem(r#"{"pattern":"  "}"#).await, "pattern must not be empty");
        assert_eq!(problem(r#"{"pattern":"x","limit":0}"#).await, "limit must be greater than zero");
        let desk = ToolHarness::with_files(FixedFiles::refusing(|| FileError::Pattern("bad".into())));
        let error = desk.call(erase(GrepFiles), r#"{"pattern":"x"}"#).await.unwrap_err();
        assert_eq!((error.kind, error.message), (ErrorKind::BadInput, "bad".to_owned()));
        let desk =
            ToolHarness::with_files(FixedFiles::refusing(|| FileError::NotFound { path: "/w/x".into() }));
        let error = desk.call(erase(GrepFiles), r#"{"pattern":"x","path":"x"}"#).await.unwrap_err();
        assert_eq!(error.message, "unable to access `x`: `/w/x` does not exist");
    }

    #[tokio::test]
    async fn parameters_are_passed_on_within_bounds() {
        let shelf = Arc::new(FixedFiles::default());
        let desk = ToolHarness::with_files(Arc::clone(&shelf));
        let input = r#"{"pattern":" a b ","include":"*.rs","path":"src","limit":9999,"output_mode":"content","context":1,"after_context":500,"type":"rust","case_insensitive":true,"multiline":true,"hidden":true}"#;
        desk.call(erase(GrepFiles), input).await.unwrap();
        let asked = shelf.searches.lock().unwrap().clone();
        assert_eq!(
            asked,
            [Search {
                pattern: "a b".into(),
                path: "src".into(),
                globs: vec!["*.rs".into()],
                file_type: Some("rust".into()),
                case_insensitive: true,
                multiline: true,
                hidden: true,
                wanted: Wanted::Lines { before: 1, after: 50 },
                limit: 2000,
            }]
        );
    }
}
