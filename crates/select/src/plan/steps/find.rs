//! Finds files: by name, by kind, by size and by age.

use globset::{Glob, GlobMatcher};
use windlass_contract::wording::shell_quote;

use super::with_rows;
use crate::plan::{
    goal::{DEFAULT_RANKED_FILES, FileRanking, RankOrder},
    parsed_request::SearchScope,
    phrases::AnswerPhrase,
    results::ResultRows,
    run::{PlanResult, PlanRun},
};

/// Generated directories that are skipped for sizes and ages. The answer says so.
const GENERATED_DIRECTORIES: [&str; 8] =
    [".git", "target", "node_modules", ".venv", "__pycache__", "dist", ".tox", ".cache"];

impl PlanRun<'_> {
    pub(super) fn find_files(&self, scope: &SearchScope, name: Option<&str>) -> PlanResult<String> {
        let files = self.files_in(scope)?;
        let wanted = name.map(str::to_lowercase);
        let fits = |path: &&String| {
            wanted.as_ref().is_none_or(|wanted| path.to_lowercase().contains(wanted.as_str()))
        };
        let mut found: Vec<_> = files.rows.iter().filter(fits).cloned().collect();
        if let Some(name) = name
            && !found.iter().any(|path| path == name)
            && self.is_ignored(name)?
        {
            found.push(name.to_owned());
        }
        let note = self.ignored_note(scope)?;
        let heading = match found.len() {
            // A glob or a name with an extension is unambiguous; a word may have meant something
            // else.
            0 if name.is_some_and(|name| !self.is_text(name)) => {
                return Err(self.decline(AnswerPhrase::NoFile, &[name.unwrap_or_default()]));
            }
            0 if !self.is_certain(scope) => return Err(self.decline(AnswerPhrase::NoFilesFound, &[])),
            0 => self.say(AnswerPhrase::NoFilesFound, &[]),
            number => self.say(AnswerPhrase::FilesFound, &[&self.count_text(&number, files.more)]),
        };
        self.remember_all(found.iter().map(String::as_str));
        let cut = files.more.then(|| self.say(AnswerPhrase::Cut, &[]));
        Ok(with_rows(heading, cut.into_iter().chain(found).chain(note)))
    }

    /// Returns the files of a scope, as paths relative to the working directory.
    pub(super) fn files_in(&self, scope: &SearchScope) -> PlanResult<ResultRows<String>> {
        let glob = scope.glob.as_deref();
        // An invalid glob matches nothing.
        let matcher = glob.and_then(compile);
        // A part of the path, if several directories are meant.
        let (mut place, mut part) = (None, None);
        match &scope.place {
            Some(name) if self.is_repeated_directory(name)? => {
                part = Some(format!("/{}/", name.trim_matches('/')))
            }
            Some(name) => place = Some(self.place(name)?),
            None => place = glob.and_then(directory).map(str::to_owned),
        }
        let listing = self.list_whole_tree(place.as_deref().unwrap_or("."))?;
        let whole = |path: &str| match &place {
            Some(place) => format!("{}/{path}", place.trim_end_matches('/')),
            None => path.to_owned(),
        };
        let fits = |path: &str, whole: &str| {
            let fits_glob = |glob: &GlobMatcher| matches(glob, path) || matches(glob, whole);
            (glob.is_none() || matcher.as_ref().is_some_and(fits_glob))
                && part.as_ref().is_none_or(|part| format!("/{path}").contains(part))
        };
        let rows = listing.files.iter().map(|path| (*path, whole(path)));
        let rows = rows.filter(|(path, whole)| fits(path, whole)).map(|(_, whole)| whole).collect();
        Ok(ResultRows { rows, more: listing.more })
    }

    pub(super) fn list(&self, directory: Option<&str>) -> PlanResult<String> {
        let place = directory.map(|name| self.place(name)).transpose()?;
        let place = place.as_deref().unwrap_or(".");
        let listing = self.list_entries(place)?;
        let directories = listing.directories.iter().filter(|name| **name != ".git");
        let directories = directories.map(|name| format!("{name}/"));
        let names = directories.chain(listing.files.iter().map(|name| (*name).to_owned()));
        let rows: Vec<_> = names
            .map(|name| {
                let whole = if place == "." {
                    name.clone()
                } else {
                    format!("{}/{name}", place.trim_end_matches('/'))
                };
                self.remember(&whole, None);
                format!("  {name}")
            })
            .collect();
        Ok(with_rows(
            self.say(AnswerPhrase::Entries, &[place, &self.count_text(&rows.len(), listing.more)]),
            rows,
        ))
    }

    pub(super) fn rank(&self, rank: &FileRanking) -> PlanResult<String> {
        let (key, title) = match rank.order {
            RankOrder::Largest => ("-k1,1nr", AnswerPhrase::Largest),
            RankOrder::Smallest => ("-k1,1n", AnswerPhrase::Smallest),
            RankOrder::Newest => ("-k2,2nr", AnswerPhrase::Newest),
            RankOrder::Oldest => ("-k2,2n", AnswerPhrase::Oldest),
        };
        let place = rank.scope.place.as_deref().map(|name| self.place(name)).transpose()?;
        let place = place.unwrap_or_default();
        let place = shell_quote(&if place.starts_with('/') { place } else { format!("./{place}") });
        let made = GENERATED_DIRECTORIES.map(|name| format!("-name {name}")).join(" -o ");
        let named = rank.scope.glob.as_ref().map(|glob| format!(" -name {}", shell_quote(glob)));
        let limit = rank.limit.as_ref().map(|limit| format!(" {limit}"));
        let tests = named.into_iter().chain(limit).collect::<String>();
        let line = format!(
            r"find {place} -type d \( {made} \) -prune -o -type f{tests} -printf '%s %T@ %TY-%Tm-%Td %TH:%TM %p\n' | sort {key} | head -n {}",
            // One more row shows that there are more files.
            rank.count + 1
        );
        let (_, printed) = self.command(&line, &[0])?;
        let mut found: Vec<_> = printed.lines().filter_map(row).collect();
        let next = found.get(rank.count).cloned();
        found.truncate(rank.count);
        let note = self.say(AnswerPhrase::NotLookedInto, &[&self.language.list(&GENERATED_DIRECTORIES)]);
        let Some((first, ..)) = found.first() else {
            return Ok(format!("{}\n{note}", self.say(AnswerPhrase::NoFilesFound, &[])));
        };
        self.remember_all(found.iter().map(|(path, ..)| *path));
        let rows =
            found.iter().map(|(path, bytes, changed)| format!("  {path}  {}  {changed}", size(*bytes)));
        let mut answer = with_rows(self.say(AnswerPhrase::Ranked, &[&self.say(title, &[])]), rows);
        let is_by_size = matches!(rank.order, RankOrder::Largest | RankOrder::Smallest);
        let last_bytes = found.last().map(|(_, bytes, _)| *bytes);
        match next {
            Some((_, bytes, _)) if is_by_size && Some(bytes) == last_bytes => {
                answer = format!("{answer}\n{}", self.say(AnswerPhrase::OthersAlike, &[]));
            }
            Some(_) if rank.count == DEFAULT_RANKED_FILES => {
                answer =
                    format!("{answer}\n{}", self.say(AnswerPhrase::FirstOnly, &[&rank.count.to_string()]));
            }
            _ => {}
        }
        answer = format!("{answer}\n{note}");
        match rank.then {
            Some(part) => Ok(format!("{answer}\n\n{}", self.show(first, part)?)),
            None => Ok(answer),
        }
    }
}

/// Parses a row of `find`: path, size in bytes and modification time.
fn row(row: &str) -> Option<(&str, u64, String)> {
    let mut parts = row.splitn(5, ' ');
    let bytes = parts.next()?.parse().ok()?;
    let (_, day, time, path) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some((path.trim_start_matches("./"), bytes, format!("{day} {time}")))
}

/// Formats a size.
fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, (bytes % unit).saturating_mul(10) / unit);
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", tenths(1024)),
        _ => format!("{} MB", tenths(1_048_576)),
    }
}

/// Returns the directory at the beginning of a glob: `src` of `src/*.rs`. In a large project only
/// this directory is listed.
fn directory(glob: &str) -> Option<&str> {
    let fixed = &glob[..glob.find(['*', '?'])?];
    fixed.rsplit_once('/').map(|(directory, _)| directory).filter(|directory| !directory.is_empty())
}

/// Compiles a glob. `*` also matches `/`.
fn compile(glob: &str) -> Option<GlobMatcher> {
    Some(Glob::new(glob).ok()?.compile_matcher())
}

/// Returns true if a path matches a glob. A glob without `/` is matched with the last component.
fn matches(glob: &GlobMatcher, path: &str) -> bool {
    let whole = glob.glob().glob().contains('/');
    glob.is_match(if whole { path } else { path.rsplit('/').next().unwrap_or(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_fit_names_and_paths() {
        for (glob, path, fits) in [
            ("*.rs", "src/a.rs", true),
            ("*.rs", "src/a.rst", false),
            ("test_*.py", "tests/test_a.py", true),
            ("src/*/x?.rs", "src/a/x1.rs", true),
            ("**/*.md", "a/b/c.md", true),
            ("**/*.md", "c.md", true),
            ("src/*.rs", "src/a/b.rs", true),
            ("a*b*c", "a1b2b3c", true),
        ] {
            assert_eq!(matches(&compile(glob).unwrap(), path), fits, "{glob} {path}");
        }
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([size(5), size(1536), size(3 << 20)], ["5 B", "1.5 KB", "3.0 MB"]);
    }
}
