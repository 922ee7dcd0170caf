//! Describes the layout of a project: languages, sizes, directories, entry points, tests.

use std::collections::BTreeMap;

use crate::plan::{
    parsed_request::SearchScope,
    phrases::AnswerPhrase,
    results::ListedEntries,
    run::{PlanResult, PlanRun},
    words,
};

/// Maximum number of rows of each section, and of names in a row.
const MAX_ROWS: usize = 12;
const MAX_NAMES: usize = 6;

/// Names of files with the entry point of a program.
const ENTRIES: [&str; 14] = [
    "main.rs",
    "main.py",
    "__main__.py",
    "app.py",
    "manage.py",
    "main.go",
    "index.js",
    "index.ts",
    "server.js",
    "main.c",
    "main.cpp",
    "Main.java",
    "main.ts",
    "cli.py",
];

/// Names of files that describe the build of a project.
const MANIFESTS: [&str; 12] = [
    "Cargo.toml",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "package.json",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "CMakeLists.txt",
    "Makefile",
    "Gemfile",
    "Dockerfile",
];

impl PlanRun<'_> {
    pub(super) fn layout(&self) -> PlanResult<String> {
        let listing = self.list_tree(".")?;
        let counted = self.count_matches(&SearchScope::default(), "^")?;
        let files = self.count_text(&listing.files.len(), listing.more);
        let lines = self.count_text(&counted.lines, counted.more);
        let mut answer = vec![self.say(AnswerPhrase::Project, &[&files, &lines])];
        answer.extend((listing.more || counted.cut).then(|| self.say(AnswerPhrase::Cut, &[])));
        answer.extend(self.languages(&counted.rows));
        answer.extend(self.directories(&listing));
        let named = |names: &[&str]| pick(&listing, |path| names.contains(&last(path)));
        for (phrase, found) in [
            (AnswerPhrase::Manifests, named(&MANIFESTS)),
            (AnswerPhrase::EntryPoints, named(&ENTRIES)),
            (AnswerPhrase::Tests, tests(&listing)),
        ] {
            answer.extend((!found.is_empty()).then(|| self.say(phrase, &[&self.language.list(&found)])));
        }
        Ok(answer.join("\n"))
    }

    fn languages(&self, lines: &[(&str, u64)]) -> Vec<String> {
        let mut languages: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let other = self.say(AnswerPhrase::OtherFiles, &[]);
        for (path, count) in lines {
            let extension = last(path).rsplit_once('.').map(|(_, extension)| extension);
            let language = extension.and_then(words::language).unwrap_or(&other);
            let (files, all) = languages.entry(language).or_default();
            (*files, *all) = (*files + 1, all.saturating_add(*count));
        }
        let mut rows: Vec<_> = languages.into_iter().collect();
        rows.sort_by_key(|(_, (_, lines))| std::cmp::Reverse(*lines));
        let rows = rows.into_iter().take(MAX_ROWS).map(|(name, (files, lines))| {
            format!(
                "  {}",
                self.say(AnswerPhrase::LanguageRow, &[name, &files.to_string(), &lines.to_string()])
            )
        });
        [self.say(AnswerPhrase::Languages, &[])].into_iter().chain(rows).collect()
    }

    fn directories(&self, listing: &ListedEntries<'_>) -> Vec<String> {
        let top = listing.directories.iter().filter(|path| !path.contains('/'));
        let rows: Vec<_> = top
            .map(|directory| {
                let inside =
                    |path: &&&str| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
                let files = listing.files.iter().filter(inside).count().to_string();
                format!("  {}", self.say(AnswerPhrase::DirectoryRow, &[directory, &files]))
            })
            .take(MAX_ROWS)
            .collect();
        if rows.is_empty() {
            rows
        } else {
            [self.say(AnswerPhrase::Directories, &[])].into_iter().chain(rows).collect()
        }
    }
}

fn tests<'a>(listing: &ListedEntries<'a>) -> Vec<&'a str> {
    let directories =
        listing.directories.iter().copied().filter(|path| ["tests", "test", "spec"].contains(&last(path)));
    let is_test = |path: &str| {
        let name = last(path);
        name.starts_with("test_")
            || name.contains("_test.")
            || name.contains(".test.")
            || name.contains(".spec.")
    };
    directories.chain(pick(listing, is_test)).take(MAX_NAMES).collect()
}

/// Returns the matching files, those nearest to the top first.
fn pick<'a>(listing: &ListedEntries<'a>, fits: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let mut found: Vec<_> = listing.files.iter().copied().filter(|path| fits(path)).collect();
    found.sort_by_key(|path| path.matches('/').count());
    found.truncate(MAX_NAMES);
    found
}

/// Returns the last component of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
