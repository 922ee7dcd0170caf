//! Tests of searching and listing, in real directories.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use windlass_contract::files::{Entry, FileKind, FoundLine, Ignored, Listing};

use super::*;
use crate::{file_rules::FixedFileRules, list::list};

struct SearchFixture {
    directory: tempfile::TempDir,
    age: u64,
}

impl SearchFixture {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), age: 0 }
    }

    fn top(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    /// Writes a file that is older than those before.
    fn file(&mut self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.top().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        self.age += 10;
        let changed = SystemTime::now() - Duration::from_secs(self.age);
        File::options().write(true).open(path).unwrap().set_modified(changed).unwrap();
    }

    /// Returns a resolver with rules that hide `.ssh`.
    fn resolver(&self) -> PathResolver {
        let rules = FixedFileRules { hidden: vec![self.top().join(".ssh")], ..FixedFileRules::default() };
        PathResolver::new(self.top(), Some(Arc::new(rules)))
    }

    fn found(&self, search: &Search) -> Result<Found, FileError> {
        super::search(&self.resolver(), search, &CancellationToken::new())
    }

    /// Returns the names of the files that were found.
    fn names(&self, search: &Search) -> Vec<String> {
        let found = self.found(search).unwrap();
        let name = |file: &FoundFile| file.path.strip_prefix(self.top()).unwrap().display().to_string();
        found.files.iter().map(name).collect()
    }

    fn listed(&self, path: &str, depth: usize, ignored: Ignored) -> Vec<(String, FileKind)> {
        let listing = Listing { path: path.into(), depth, ignored, limit: 100 };
        let listed = list(&self.resolver(), &listing, &CancellationToken::new()).unwrap();
        let row = |Entry { path, kind }: &Entry| (path.display().to_string(), *kind);
        let mut rows: Vec<_> = listed.entries.iter().map(row).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows
    }
}

fn search(pattern: &str) -> Search {
    Search { pattern: pattern.into(), limit: 100, ..Search::default() }
}

#[test]
fn the_file_that_changed_last_comes_first_and_the_limit_keeps_it() {
    let mut scene = SearchFixture::new();
    for name in ["c", "a", "b"] {
        scene.file(name, "needle");
    }
    assert_eq!(scene.names(&search("needle")), ["c", "a", "b"]);
    let two = scene.found(&Search { limit: 2, ..search("needle") }).unwrap();
    assert_eq!(two.total.0, 3);
    assert_eq!((two.files.len(), two.more), (2, true));
    assert!(!scene.found(&Search { limit: 3, ..search("needle") }).unwrap().more);
    assert_eq!(scene.names(&search("nothing")), Vec::<String>::new());
}

#[test]
fn secrets_links_binaries_and_what_is_ignored_are_passed_over() {
    let mut scene = SearchFixture::new();
    scene.file(".git/HEAD", "needle");
    scene.file(".gitignore", "ignored\n");
    scene.file(".ssh/id_rsa", "needle");
    scene.file("binary", b"\0needle");
    scene.file("ignored", "needle");
    scene.file(".dotfile", "needle");
    scene.file("seen/file", "needle");
    symlink(".ssh/id_rsa", scene.top().join("link")).unwrap();
    symlink(".ssh", scene.top().join("seen/folder")).unwrap();
    assert_eq!(scene.names(&search("needle")), ["seen/file"]);
    let all = Search { hidden: true, ..search("needle") };
    assert_eq!(scene.names(&all), [".dotfile", "seen/file"]);
    let repository = Search { path: ".git".into(), ..search("needle") };
    assert_eq!(scene.names(&repository), [".git/HEAD"]);
    assert_eq!(scene.found(&all).unwrap().denied, 1);
    let secret = Search { path: ".ssh".into(), ..search("needle") };
    assert!(matches!(scene.found(&secret), Err(FileError::Denied(_))));
    let one = Search { path: "seen/file".into(), ..search("needle") };
    assert_eq!(scene.names(&one), ["seen/file"]);
}

#[test]
fn globs_and_types_narrow_the_search() {
    let mut scene = SearchFixture::new();
    for name in ["src/a.rs", "src/b.py", "docs/a.rs", "top.rs"] {
        scene.file(name, "needle");
    }
    let with = |globs: &[&str]| {
        scene.names(&Search { globs: globs.iter().map(ToString::to_string).collect(), ..search("needle") })
    };
    assert_eq!(with(&["*.rs"]), ["src/a.rs", "docs/a.rs", "top.rs"]);
    assert_eq!(with(&["src/*.{rs,py}"]), ["src/a.rs", "src/b.py"]);
    assert_eq!(with(&["!*.rs"]), ["src/b.py"]);
    let python = Search { file_type: Some("py".into()), ..search("needle") };
    assert_eq!(scene.names(&python), ["src/b.py"]);
    let below = Search { path: "src".into(), globs: vec!["src/*.rs".into()], ..search("needle") };
    assert_eq!(scene.names(&below), ["src/a.rs"]);
    let unknown = Search { file_type: Some("klingon".into()), ..search("needle") };
    assert!(scene.found(&unknown).unwrap_err().to_string().starts_with("there is no file type `klingon`"));
    let broken = Search { globs: vec!["{a".into()], ..search("needle") };
    assert!(scene.found(&broken).unwrap_err().to_string().starts_with("the glob `{a`"));
}

#[test]
fn lines_come_with_numbers_and_their_neighbours() {
    let mut scene = SearchFixture::new();
    scene.file("a", format!("one\ntwo\r\nThree\nfour\nfive {}\n", "é".repeat(400)));
    let line = |number, fits, text: &str| FoundLine { number, fits, text: text.into() };
    let wanted = Wanted::Lines { before: 1, after: 0 };
    let found = scene.found(&Search { wanted, ..search("Three") }).unwrap();
    assert_eq!(found.files[0].lines, [line(2, false, "two"), line(3, true, "Three")]);
    let wanted = Wanted::Lines { before: 0, after: 0 };
    let found = scene.found(&Search { wanted, case_insensitive: true, ..search("^t") }).unwrap();
    assert_eq!(found.files[0].lines, [line(2, true, "two"), line(3, true, "Three")]);
    let found = scene.found(&Search { wanted, ..search("five") }).unwrap();
    assert_eq!(found.files[0].lines, [line(5, true, &format!("five {}", "é".repeat(247)))]);
    let found = scene.found(&Search { wanted, multiline: true, ..search(r"one\ntwo") }).unwrap();
    assert_eq!(found.files[0].lines, [line(1, true, "one"), line(2, true, "two")]);
    let found = scene.found(&Search { wanted: Wanted::Counts, ..search("o") }).unwrap();
    assert_eq!(found.files[0].count, 3);
}

#[test]
fn a_limit_on_lines_bounds_all_files_together() {
    let mut scene = SearchFixture::new();
    for name in ["a", "b", "c"] {
        scene.file(name, "x\n".repeat(50));
    }
    let wanted = Wanted::Lines { before: 0, after: 0 };
    let found = scene.found(&Search { wanted, limit: 60, ..search("x") }).unwrap();
    let lines: Vec<_> = found.files.iter().map(|file| file.lines.len()).collect();
    assert_eq!((lines, found.more), (vec![50, 50], true));
}

#[test]
fn text_with_a_byte_order_mark_is_searched_like_any_other() {
    let mut scene = SearchFixture::new();
    let utf16: Vec<u8> = "\u{feff}a needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    scene.file("wide", utf16);
    assert_eq!(scene.names(&search("needle")), ["wide"]);
}

#[test]
fn a_bad_pattern_gets_its_place_and_a_hint() {
    let scene = SearchFixture::new();
    let problem = |pattern: &str| scene.found(&search(pattern)).unwrap_err().to_string();
    let brackets = problem("foo(bar");
    assert!(brackets.contains("    foo(bar\n       ^\n"), "{brackets}");
    assert!(brackets.contains("put a backslash before each of"), "{brackets}");
    assert!(problem(r"a\nb").ends_with("set `multiline`)"), "{}", problem(r"a\nb"));
    assert!(problem("(?=a)").ends_with("filter what is found)"), "{}", problem("(?=a)"));
}

#[test]
fn nobody_searches_on_when_nobody_waits() {
    let mut scene = SearchFixture::new();
    scene.file("a", "needle");
    let stop = CancellationToken::new();
    stop.cancel();
    let result = super::search(&scene.resolver(), &search("needle"), &stop);
    assert!(matches!(result, Err(FileError::Cancelled)));
    let listing = Listing { path: ".".into(), depth: 1, ignored: Ignored::Shown, limit: 9 };
    assert!(matches!(list(&scene.resolver(), &listing, &stop), Err(FileError::Cancelled)));
}

#[test]
fn a_listing_tells_links_and_follows_none() {
    let mut scene = SearchFixture::new();
    scene.file(".ssh/id_rsa", "x");
    scene.file(".gitignore", "built\n");
    scene.file(".git/HEAD", "x");
    scene.file("built/out", "x");
    scene.file("a/b/c", "x");
    symlink(".ssh", scene.top().join("link")).unwrap();
    let names = |rows: Vec<(String, FileKind)>| rows.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(
        names(scene.listed(".", 2, Ignored::Shown)),
        [".git", ".git/HEAD", ".gitignore", "a", "a/b", "built", "built/out", "link"]
    );
    assert_eq!(
        scene.listed(".", 1, Ignored::Hidden),
        [
            (".gitignore".to_owned(), FileKind::File),
            ("a".to_owned(), FileKind::Directory),
            ("link".to_owned(), FileKind::Link)
        ]
    );
    let denied = Listing { path: "link".into(), depth: 1, ignored: Ignored::Shown, limit: 9 };
    let denied = list(&scene.resolver(), &denied, &CancellationToken::new());
    assert!(matches!(denied, Err(FileError::Denied(_))));
    let file = Listing { path: "a/b/c".into(), depth: 1, ignored: Ignored::Shown, limit: 9 };
    let file = list(&scene.resolver(), &file, &CancellationToken::new());
    assert!(matches!(file, Err(FileError::NotADirectory { .. })));
}

#[test]
fn a_listing_stops_at_its_limit() {
    let mut scene = SearchFixture::new();
    for name in ["a", "b", "c"] {
        scene.file(name, "x");
    }
    let listing = |limit| Listing { path: ".".into(), depth: 1, ignored: Ignored::Shown, limit };
    let listed = |limit| list(&scene.resolver(), &listing(limit), &CancellationToken::new()).unwrap();
    assert_eq!((listed(2).entries.len(), listed(2).more), (2, true));
    assert_eq!((listed(3).entries.len(), listed(3).more), (3, false));
}
