//! Resolves names in a request to existing files and directories.

use serde_json::json;

use super::{
    phrases::AnswerPhrase,
    results::{self, ListedEntries},
    run::{NextAction, PlanResult, PlanRun},
    tokens::is_bare_name,
};
use crate::text::distance;

/// Maximum number of entries that are listed to resolve a name, and to answer about all files; and
/// the depth.
const MAX_ENTRIES: usize = 20_000;
const MAX_ALL_ENTRIES: usize = 100_000;
const MAX_DEPTH: usize = 50;

/// Maximum number of similar names that are suggested.
const MAX_SUGGESTIONS: usize = 8;

/// The files or directories that a name may stand for.
pub(super) enum NameLookup<'a> {
    One(&'a str),
    Several(Vec<&'a str>),
    /// No match; these are similar.
    None(Vec<&'a str>),
}

impl NameLookup<'_> {
    /// Prefers the file in the top directory, for names that occur in any directory: *the README*
    /// is that of the project.
    pub(super) fn prefer_top_level(self, name: &str) -> Self {
        match self {
            Self::Several(paths) if is_bare_name(name) => {
                let mut top = paths.iter().filter(|path| !path.contains('/'));
                match (top.next(), top.next()) {
                    (Some(path), None) => Self::One(path),
                    _ => Self::Several(paths),
                }
            }
            found => found,
        }
    }
}

impl PlanRun<'_> {
    /// Lists everything below a directory, without ignored files.
    pub(super) fn list_tree(&self, directory: &str) -> PlanResult<ListedEntries<'_>> {
        self.parse_listing(directory, MAX_DEPTH, MAX_ENTRIES)
    }

    /// Lists the entries of a directory, including ignored ones.
    pub(super) fn list_entries(&self, directory: &str) -> PlanResult<ListedEntries<'_>> {
        let output = self.list_every_entry(directory, 1)?;
        results::listing(output).ok_or_else(|| self.failed(output))
    }

    /// Lists everything below a directory, without ignored files; `None` if it is a file.
    pub(super) fn list_directory(&self, place: &str) -> PlanResult<Option<ListedEntries<'_>>> {
        let top = self.list_tree(".")?;
        if top.files.contains(&place) {
            return Ok(None);
        }
        Ok(results::listing(self.list_dir(place, MAX_DEPTH, MAX_ENTRIES)?))
    }

    fn list_every_entry(&self, directory: &str, depth: usize) -> PlanResult<&str> {
        let arguments = json!({"dir_path": directory, "depth": depth, "limit": MAX_ENTRIES, "flat": true});
        self.call("list_dir", &arguments)
    }

    /// Lists everything below a directory, including ignored files.
    pub(super) fn list_with_ignored(&self, directory: &str) -> PlanResult<ListedEntries<'_>> {
        let output = self.list_every_entry(directory, MAX_DEPTH)?;
        results::listing(output).ok_or_else(|| self.failed(output))
    }

    /// Lists everything below a directory, with the higher limit for answers about all files.
    pub(super) fn list_whole_tree(&self, directory: &str) -> PlanResult<ListedEntries<'_>> {
        let listing = self.list_tree(directory)?;
        if listing.more { self.parse_listing(directory, MAX_DEPTH, MAX_ALL_ENTRIES) } else { Ok(listing) }
    }

    fn parse_listing(&self, directory: &str, depth: usize, limit: usize) -> PlanResult<ListedEntries<'_>> {
        let output = self.list_dir(directory, depth, limit)?;
        results::listing(output).ok_or_else(|| self.failed(output))
    }

    fn list_dir(&self, directory: &str, depth: usize, limit: usize) -> PlanResult<&str> {
        let arguments = json!({"dir_path": directory, "depth": depth, "limit": limit, "skip_ignored": true, "flat": true});
        self.call("list_dir", &arguments)
    }

    /// Resolves the name of a file.
    pub(super) fn look_up(&self, name: &str) -> PlanResult<NameLookup<'_>> {
        Ok(find(name, &self.list_tree(".")?.files))
    }

    /// Returns the only file that a name stands for.
    pub(super) fn file(&self, name: &str) -> PlanResult<String> {
        if self.is_path(name)? {
            return Ok(name.to_owned());
        }
        match self.look_up(name)? {
            NameLookup::None(_) if self.is_ignored(name)? => Ok(name.to_owned()),
            found => self.require_one(name, found, AnswerPhrase::NoFile),
        }
    }

    /// Returns the only directory or file that a name stands for.
    pub(super) fn place(&self, name: &str) -> PlanResult<String> {
        let outside = name.starts_with('/') || name == ".." || name.starts_with("../");
        if outside || self.is_path(name)? {
            return Ok(name.to_owned());
        }
        let listing = self.list_tree(".")?;
        let found = match find(name, &listing.directories) {
            NameLookup::None(directories) => match find(name, &listing.files) {
                NameLookup::None(files) => NameLookup::None(directories.into_iter().chain(files).collect()),
                file => file.prefer_top_level(name),
            },
            directory => directory,
        };
        match found {
            NameLookup::None(_) if self.is_ignored(name)? => Ok(name.to_owned()),
            found => self.require_one(name, found, AnswerPhrase::NoPlace),
        }
    }

    /// Returns true if a name is the path of an entry that a truncated listing may lack. In this
    /// case its directory is listed.
    pub(super) fn is_path(&self, name: &str) -> PlanResult<bool> {
        if !self.list_tree(".")?.more {
            return Ok(false);
        }
        let path = name.trim_end_matches('/');
        let (directory, last) = path.rsplit_once('/').unwrap_or((".", path));
        let listing = results::listing(self.list_dir(directory, 1, MAX_ENTRIES)?).unwrap_or_default();
        Ok(listing.files.contains(&last) || listing.directories.contains(&last))
    }

    /// Returns true if a name is the path of an ignored entry.
    pub(super) fn is_ignored(&self, name: &str) -> PlanResult<bool> {
        let path = name.trim_start_matches("./").trim_end_matches('/');
        let (directory, last) = path.rsplit_once('/').unwrap_or((".", path));
        let listing = results::listing(self.list_every_entry(directory, 1)?).unwrap_or_default();
        Ok(last != ".git" && (listing.files.contains(&last) || listing.directories.contains(&last)))
    }

    /// Returns true if several directories have exactly this name, so that all are meant: `src` in
    /// a workspace of packages.
    pub(super) fn is_repeated_directory(&self, name: &str) -> PlanResult<bool> {
        let found = find(name, &self.list_tree(".")?.directories);
        let plain = !name.contains(['*', '?', '[', ']', '{', '}', '!', '\\']);
        Ok(
            matches!(found, NameLookup::Several(paths) if plain && paths.iter().all(|path| ends_in(path, name))),
        )
    }

    /// Returns the only match, or declines with an explanation.
    pub(super) fn require_one(
        &self,
        name: &str,
        found: NameLookup<'_>,
        none: AnswerPhrase,
    ) -> PlanResult<String> {
        match found {
            NameLookup::One(path) => Ok(path.to_owned()),
            NameLookup::Several(paths) => Err(self.decline_ambiguous(name, &paths)),
            NameLookup::None(near) => Err(NextAction::Decline(self.missing_phrase(none, name, &near))),
        }
    }

    /// Declines a name that must be an exact path. Similar paths are suggested but never taken.
    pub(super) fn decline_inexact(
        &self,
        name: &str,
        found: NameLookup<'_>,
        none: AnswerPhrase,
    ) -> NextAction {
        let mut near = match found {
            NameLookup::One(path) => vec![path],
            NameLookup::Several(paths) | NameLookup::None(paths) => paths,
        };
        near.truncate(MAX_SUGGESTIONS);
        let answer = self.missing_phrase(none, name, &near);
        NextAction::Decline(if near.is_empty() {
            answer
        } else {
            format!("{answer} {}", self.say(AnswerPhrase::WithPath, &[]))
        })
    }

    fn decline_ambiguous(&self, name: &str, paths: &[&str]) -> NextAction {
        self.remember_all(paths.iter().take(MAX_SUGGESTIONS).copied());
        let shown = paths.iter().take(MAX_SUGGESTIONS).map(|path| format!("\n  {path}"));
        NextAction::Decline(self.say(AnswerPhrase::SeveralFiles, &[name]) + &shown.collect::<String>())
    }

    fn missing_phrase(&self, phrase: AnswerPhrase, name: &str, near: &[&str]) -> String {
        let mut answer = self.say(phrase, &[name]);
        if self.list_tree(".").is_ok_and(|listing| listing.more) {
            answer = format!("{answer} {}", self.say(AnswerPhrase::Cut, &[]));
        }
        if near.is_empty() {
            return answer;
        }
        format!("{answer} {}", self.say(AnswerPhrase::DidYouMean, &[&self.language.list(near)]))
    }
}

/// Finds a name: as a whole path, as the end of a path, without its extension, and in another case.
pub(super) fn find<'a>(name: &str, paths: &[&'a str]) -> NameLookup<'a> {
    let name = name.trim_start_matches("./").trim_end_matches('/');
    if let Some(path) = paths.iter().find(|path| **path == name) {
        return NameLookup::One(path);
    }
    if let Some(ending) = name.strip_prefix('*') {
        let fitting: Vec<_> = paths.iter().copied().filter(|path| path.ends_with(ending)).collect();
        return if let [one] = fitting[..] { NameLookup::One(one) } else { NameLookup::Several(fitting) };
    }
    let passes: [&dyn Fn(&str) -> bool; 4] = [
        &|path| ends_in(path, name),
        &|path| stem(path) == name || ends_in(path, name) || path == name,
        &|path| ends_in(&path.to_lowercase(), &name.to_lowercase()) || stem(path).eq_ignore_ascii_case(name),
        // In Chinese there may be no space before a name.
        &|path| !path.is_ascii() && name.ends_with(last(path)),
    ];
    for pass in passes {
        let fitting: Vec<_> = paths.iter().copied().filter(|path| pass(path)).collect();
        match fitting.as_slice() {
            [] => {}
            [one] => return NameLookup::One(one),
            _ => return NameLookup::Several(fitting),
        }
    }
    NameLookup::None(near(name, paths))
}

fn ends_in(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns the last component of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the last component of a path, without its extension.
fn stem(path: &str) -> &str {
    let last = last(path);
    last.rsplit_once('.').map_or(last, |(stem, _)| if stem.is_empty() { last } else { stem })
}

/// Returns the paths whose last component is most similar to that of a name, if any is similar.
fn near<'a>(name: &str, paths: &[&'a str]) -> Vec<&'a str> {
    let wanted = last(name).to_lowercase();
    let most = (wanted.chars().count() / 3).clamp(1, 3);
    let distances = paths.iter().map(|path| (distance(&last(path).to_lowercase(), &wanted), *path));
    let mut near: Vec<_> = distances.filter(|(distance, _)| *distance <= most).collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 6] =
        ["src/main.rs", "config.toml", "lib/config.py", "README.md", "docs/说明.md", "a/main.rs"];

    fn found(name: &str) -> String {
        match find(name, &PATHS) {
            NameLookup::One(path) => path.to_owned(),
            NameLookup::Several(paths) => format!("several: {}", paths.join(" ")),
            NameLookup::None(near) => format!("near: {}", near.join(" ")),
        }
    }

    #[test]
    fn a_name_is_the_nearest_thing_that_is_there() {
        for (name, expected) in [
            ("src/main.rs", "src/main.rs"),
            ("main.rs", "several: src/main.rs a/main.rs"),
            ("config", "several: config.toml lib/config.py"),
            ("readme", "README.md"),
            ("打开说明.md", "docs/说明.md"),
            ("src/mian.rs", "near: a/main.rs src/main.rs"),
            ("nothing.at", "near: "),
        ] {
            assert_eq!(found(name), expected, "{name}");
        }
    }
}
