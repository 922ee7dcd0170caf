//! Searches files for a pattern, with the libraries and the thread count of ripgrep.

use std::{
    cmp::Reverse,
    fs::File,
    io::{self, Read},
    path::Path,
    sync::{Mutex, PoisonError, atomic::Ordering},
    thread,
};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::{
    DirEntry, WalkBuilder, WalkState,
    overrides::{Override, OverrideBuilder},
    types::TypesBuilder,
};
use tokio_util::sync::CancellationToken;
use windlass_contract::files::{FileError, Found, FoundFile, Search, Wanted};

use crate::{
    handle,
    resolve::{OpenedEntry, PathResolver},
    walk::{WalkFilter, replace_prefix, walk},
};
use sink::MatchCollector;

mod sink;

/// Maximum number of threads, the same as in ripgrep.
const MAX_THREADS: usize = 12;

/// Maximum length of a line, and for multi-line patterns of a file, that is searched.
const MAX_HEAP_BYTES: usize = 256 * 1024 * 1024;

/// Searches a directory or a file.
pub(super) fn search(
    resolver: &PathResolver,
    search: &Search,
    stop: &CancellationToken,
) -> Result<Found, FileError> {
    let matcher = matcher(search)?;
    let top = resolver.open_either(&search.path)?;
    let globs = globs(search, &top, resolver)?;
    let filter = WalkFilter { ignores: true, dot_names: !search.hidden, globs };
    let (mut walker, denied) = walk(resolver, &top.real, filter);
    narrow_to_type(&mut walker, search)?;
    let results = Mutex::new(SearchResults::new(search));
    let shared = SharedSearch { search, matcher: &matcher, top: &top, stop, results: &results };
    walker.threads(threads());
    walker.build_parallel().run(|| {
        let mut searcher = shared.searcher();
        Box::new(move |entry| shared.visit(&mut searcher, entry))
    });
    if stop.is_cancelled() {
        return Err(FileError::Cancelled);
    }
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.trim();
    let SearchResults { files, more, total, .. } = results;
    Ok(Found { files, more, total, denied: denied.load(Ordering::Relaxed) })
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

fn matcher(search: &Search) -> Result<RegexMatcher, FileError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).case_insensitive(search.case_insensitive);
    if !search.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&search.pattern).map_err(|error| {
        // Parse it again for the position: the builder has wrapped the pattern.
        let parsed = regex_syntax::Parser::new().parse(&search.pattern);
        FileError::Pattern(explain(
            &parsed.err().map_or_else(|| error.to_string(), |error| error.to_string()),
        ))
    })
}

/// Adds a hint to the error of a pattern.
fn explain(error: &str) -> String {
    let hint = if error.contains("\\n") && error.contains("not allowed") {
        "to match across lines, set `multiline`"
    } else if error.contains("look-around") || error.contains("backreferences") {
        "look-around and backreferences do not exist here; search for less and filter what is found"
    } else {
        "to search for the text itself, put a backslash before each of . * + ? ( ) [ ] { } ^ $ |"
    };
    format!("{error}\n({hint})")
}

/// Builds the globs of a search. A glob with a slash is relative to the working directory if that
/// contains the searched path, and to the searched path otherwise.
fn globs(search: &Search, top: &OpenedEntry, resolver: &PathResolver) -> Result<Override, FileError> {
    let cwd = resolver.real_cwd().filter(|cwd| top.real.starts_with(cwd));
    let mut globs = OverrideBuilder::new(cwd.as_deref().unwrap_or(&top.real));
    for glob in &search.globs {
        globs.add(glob).map_err(|error| FileError::Pattern(format!("the glob `{glob}`: {error}")))?;
    }
    globs.build().map_err(|error| FileError::Pattern(error.to_string()))
}

/// Skips files of other types than the requested one.
fn narrow_to_type(walker: &mut WalkBuilder, search: &Search) -> Result<(), FileError> {
    if let Some(name) = &search.file_type {
        let mut types = TypesBuilder::new();
        types.add_defaults().select(name);
        let types = types.build().map_err(|_| {
            FileError::Pattern(format!(
                "there is no file type `{name}`; use a name such as `rust`, `py`, `js`, `ts`, `go`, `java`, `c`, \
                 `cpp`, `md`, `json`, `yaml`, `toml`, or a glob instead"
            ))
        })?;
        walker.types(types);
    }
    Ok(())
}

/// Data that all search threads share.
#[derive(Clone, Copy)]
struct SharedSearch<'a> {
    search: &'a Search,
    matcher: &'a RegexMatcher,
    top: &'a OpenedEntry,
    stop: &'a CancellationToken,
    results: &'a Mutex<SearchResults>,
}

impl SharedSearch<'_> {
    fn searcher(&self) -> Searcher {
        let (before, after) = match self.search.wanted {
            Wanted::Lines { before, after } => (before, after),
            Wanted::Names | Wanted::Counts => (0, 0),
        };
        SearcherBuilder::new()
            .line_number(matches!(self.search.wanted, Wanted::Lines { .. }))
            .multi_line(self.search.multiline)
            .before_context(before)
            .after_context(after)
            .heap_limit(Some(MAX_HEAP_BYTES))
            .binary_detection(BinaryDetection::quit(0))
            .build()
    }

    fn visit(self, searcher: &mut Searcher, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.stop.is_cancelled() {
            return WalkState::Quit;
        }
        // A file that cannot be read is skipped, as by other search tools.
        if let Ok(entry) = entry
            && entry.file_type().is_some_and(|kind| kind.is_file())
            && let Ok(Some((found, is_cut))) = self.search_file(searcher, entry.path())
        {
            self.results.lock().unwrap_or_else(PoisonError::into_inner).add(found, is_cut);
        }
        WalkState::Continue
    }

    fn search_file(self, searcher: &mut Searcher, path: &Path) -> io::Result<Option<(FoundFile, bool)>> {
        let file = File::from(handle::open_read(path)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let mut collector = MatchCollector::new(self.search.wanted, self.search.limit);
        searcher.search_reader(self.matcher, CancellableFile { file, stop: self.stop }, &mut collector)?;
        let Some((count, lines, is_cut)) = collector.found() else { return Ok(None) };
        let path = replace_prefix(path, &self.top.real, &self.top.name);
        Ok(Some((FoundFile { path, modified: metadata.modified()?, count, lines }, is_cut)))
    }
}

/// A reader that reports the end of its file once the search is cancelled.
struct CancellableFile<'a> {
    file: File,
    stop: &'a CancellationToken,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Ok(0);
        }
        self.file.read(buffer)
    }
}

/// The files found so far, trimmed to a small multiple of the limit.
struct SearchResults {
    files: Vec<FoundFile>,
    /// Sum of the weights of `files`, compared with the limit.
    weight: usize,
    limit: usize,
    more: bool,
    total: (u64, u64),
}

impl SearchResults {
    fn new(search: &Search) -> Self {
        Self { files: Vec::new(), weight: 0, limit: search.limit, more: false, total: (0, 0) }
    }

    fn add(&mut self, file: FoundFile, is_cut: bool) {
        self.more |= is_cut;
        self.weight += weight(&file);
        self.total = (self.total.0 + 1, self.total.1.saturating_add(file.count));
        self.files.push(file);
        if self.weight > self.limit.saturating_mul(4).saturating_add(1000) {
            self.trim();
        }
    }

    /// Keeps the newest files, up to the limit.
    fn trim(&mut self) {
        self.files.sort_by(|a, b| (Reverse(a.modified), &a.path).cmp(&(Reverse(b.modified), &b.path)));
        let mut left = self.limit;
        let fits = self.files.iter().take_while(|file| {
            let enough = left > 0;
            left = left.saturating_sub(weight(file));
            enough
        });
        let kept = fits.count();
        self.more |= kept < self.files.len();
        self.files.truncate(kept);
        self.weight = self.files.iter().map(weight).sum();
    }
}

fn weight(file: &FoundFile) -> usize {
    file.lines.len().max(1)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;
