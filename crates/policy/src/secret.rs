//! Paths that may hold secrets. Reading them is never safe, with any program.

mod names;
mod patterns;
mod wildcard;

use std::sync::LazyLock;

use windlass_contract::secret_paths::{SecretKind, SecretPath, home_secrets, system_secrets};

use names::{
    COPIES, DEVICES, EXTENSIONS, FILES, FRAGMENTS, HARMLESS, HIDDEN, NAMED, OTHERS, PROC, TOOLS, WIDE,
};
use patterns::PathPatterns;
use wildcard::PathComponent;

use crate::path::WorkingDirectories;

/// Returns why reading a file or directory without a command may show a secret. The same paths
/// apply as for commands. `path` is absolute, or relative to the directory that the user works in.
pub fn read_shows_secret(path: &std::path::Path, workspace: &std::path::Path) -> Option<String> {
    let places = WorkingDirectories::starting(Some(workspace)).with_workspace(workspace);
    in_contents(&path.to_string_lossy(), false, &places)
}

/// Returns why searching everything below a path, without a command, may show a secret.
pub fn search_shows_secret(path: &std::path::Path, workspace: &std::path::Path) -> Option<String> {
    in_everything_below(&path.to_string_lossy(), &WorkingDirectories::starting(Some(workspace)))
}

/// Returns why reading a file by this name may show a secret. Either it is known for secrets, or it
/// is among a user's settings, where each program stores secrets in its own way. `glob`: the name
/// is a wildcard.
pub(crate) fn in_contents(text: &str, glob: bool, places: &WorkingDirectories) -> Option<String> {
    find(text, places, |path| is_setting(path, places.workspace()) || is_kept_in(path, glob))
}

/// Returns why a file by this name is known for holding secrets. `glob`: the name is a wildcard.
pub(crate) fn kept_in(text: &str, glob: bool, places: &WorkingDirectories) -> Option<String> {
    find(text, places, |path| is_kept_in(path, glob))
}

/// Returns why listing a directory of this name may show where secrets are.
pub(crate) fn in_names(text: &str, places: &WorkingDirectories) -> Option<String> {
    let secret = places.resolve(text).any(|path| {
        let mut path = ResolvedPath::new(&path);
        // A wildcard for all hidden names does not search for a certain one.
        path.names.pop_if(|last| last.is(".*"));
        path.is_in_directory()
    });
    secret.then(|| format!("`{text}` is a place for secrets"))
}

/// Returns why reading everything below a directory may show a secret.
pub(crate) fn in_everything_below(text: &str, places: &WorkingDirectories) -> Option<String> {
    let secret = places.resolve(text).any(|path| {
        let path = ResolvedPath::new(&path);
        path.is_wide() || path.is_in_directory()
    });
    secret.then(|| format!("there may be secrets somewhere below `{text}`"))
}

fn find(text: &str, places: &WorkingDirectories, is_secret: impl Fn(&str) -> bool) -> Option<String> {
    let found = candidates(text).find(|path| places.resolve(path).any(|path| is_secret(&path)));
    found.map(|path| format!("`{path}` may hold secrets"))
}

fn is_kept_in(path: &str, glob: bool) -> bool {
    // A copy of a file has the same contents.
    if let Some(original) = COPIES.iter().find_map(|mark| path.strip_suffix(mark))
        && is_kept_in(original, glob)
    {
        return true;
    }
    if below_a_home(path).is_some_and(is_in_the_table) {
        return true;
    }
    let path = ResolvedPath::new(path);
    path.is_special()
        || path.is_in_directory()
        || path.is_file()
        || (glob && path.takes_all_of_a_wide_directory())
}

/// Returns a word, and the parts of it that may be paths: `HEAD:.env`, `--include=.env`.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    std::iter::once(text).chain(text.split([':', '=', ',']).filter(move |part| part.len() < text.len()))
}

/// Returns true if a path is hidden in a home directory, and neither in the workspace nor among
/// development tools and their sources.
fn is_setting(path: &str, workspace: &str) -> bool {
    let Some(hidden) = hidden_in_a_home(path) else { return false };
    // If the workspace is a home directory, or the settings of all programs, they are still
    // settings.
    let works_there = hidden_in_a_home(workspace).is_some_and(|name| name != ".config");
    let is_own = works_there && is_below(path, workspace);
    !is_own && !TOOLS.iter().any(|tool| is_below(hidden, tool))
}

/// Returns a hidden path in a home directory, relative to that.
fn hidden_in_a_home(path: &str) -> Option<&str> {
    below_a_home(path).filter(|rest| rest.starts_with('.'))
}

/// Returns a path in a home directory, relative to that.
fn below_a_home(path: &str) -> Option<&str> {
    let below = |home: &str| path.strip_prefix(home);
    let someones = || ["/home/", "/var/home/", "/Users/"].into_iter().find_map(below)?.split_once('/');
    ["~/", "/root/"].into_iter().find_map(below).or_else(|| someones().map(|(_, rest)| rest))
}

/// Returns true if a path below a home directory is in the table, or inside an entry.
fn is_in_the_table(rest: &str) -> bool {
    static TABLE: LazyLock<PathPatterns> =
        LazyLock::new(|| PathPatterns::new(home_secrets().map(|secret| secret.path)));
    TABLE.fit_the_start_of(&names(rest).map(PathComponent::new).collect::<Vec<_>>())
}

/// Returns the paths of the table that indicate a secret in any directory.
fn telling_paths(kind: SecretKind) -> impl Iterator<Item = &'static str> {
    paths(home_secrets().filter(|secret| secret.is_telling), kind)
}

/// Returns the paths of the table that belong to the system, also below another directory: a mount,
/// or a copy.
fn system_paths(kind: SecretKind) -> impl Iterator<Item = &'static str> {
    paths(system_secrets(), kind)
}

fn paths(
    table: impl Iterator<Item = &'static SecretPath>,
    kind: SecretKind,
) -> impl Iterator<Item = &'static str> {
    table.filter(move |secret| secret.kind == kind).map(|secret| secret.path)
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

/// A normalized path, as its components.
struct ResolvedPath<'a> {
    rooted: bool,
    names: Vec<PathComponent<'a>>,
}

impl<'a> ResolvedPath<'a> {
    fn new(path: &'a str) -> Self {
        Self { rooted: path.starts_with('/'), names: names(path).map(PathComponent::new).collect() }
    }

    fn is_in_directory(&self) -> bool {
        static HIDDEN_ONES: LazyLock<PathPatterns> = LazyLock::new(|| {
            PathPatterns::new(telling_paths(SecretKind::Directory).chain(HIDDEN.iter().copied()))
        });
        static OTHER_ONES: LazyLock<PathPatterns> = LazyLock::new(|| {
            PathPatterns::new(system_paths(SecretKind::Directory).chain(OTHERS.iter().copied()))
        });
        let named = (1..=self.names.len()).map(|end| &self.names[..end]);
        let mut named = named.filter(|names| names.last().is_some_and(|last| !last.is_wild()));
        HIDDEN_ONES.fit_a_part_of(&self.names) || named.any(|names| OTHER_ONES.fit_the_end_of(names))
    }

    fn is_file(&self) -> bool {
        static FILE_PATTERNS: LazyLock<PathPatterns> = LazyLock::new(|| {
            let table = telling_paths(SecretKind::File).chain(system_paths(SecretKind::File));
            PathPatterns::new(table.chain(FILES.iter().copied()))
        });
        static NAME_PATTERNS: LazyLock<PathPatterns> =
            LazyLock::new(|| PathPatterns::new(NAMED.iter().copied()));
        let Some(name) = self.names.last() else { return false };
        let extension = name.extension();
        if extension.as_ref().is_some_and(|own| !own.is_wild() && HARMLESS.contains(&own.text())) {
            return false;
        }
        let named = if name.is_wild() {
            FRAGMENTS.iter().any(|fragment| name.text().contains(fragment))
        } else {
            NAME_PATTERNS.fit_the_end_of(&self.names)
        };
        named
            || extension.is_some_and(|own| EXTENSIONS.iter().any(|each| own.fits(each)))
            || FILE_PATTERNS.fit_the_end_of(&self.names)
    }

    /// Returns true for files of processes and for devices.
    fn is_special(&self) -> bool {
        let is_one_of = |name: &PathComponent<'_>, known: &[&str]| known.iter().any(|each| name.is(each));
        match &self.names[..] {
            [first, rest @ ..] if self.rooted && first.fits("proc") => {
                !rest.first().is_some_and(|name| is_one_of(name, PROC))
            }
            [first, rest @ ..] if self.rooted && first.fits("dev") => {
                !matches!(rest, [device] if is_one_of(device, DEVICES))
            }
            _ => false,
        }
    }

    /// Returns true for `~/*` and `/etc/*`, which read everything there.
    fn takes_all_of_a_wide_directory(&self) -> bool {
        let all = self.names.iter().position(|name| name.is("*") || name.is("**"));
        all.is_some_and(|at| is_wide(self.rooted, &self.names[..at]))
    }

    fn is_wide(&self) -> bool {
        is_wide(self.rooted, &self.names)
    }
}

/// Returns true if a directory is so high up that secrets of any user may be below it.
fn is_wide(rooted: bool, names: &[PathComponent<'_>]) -> bool {
    static WIDE_PATTERNS: LazyLock<Vec<Vec<&str>>> =
        LazyLock::new(|| WIDE.iter().map(|pattern| pattern.split('/').collect()).collect());
    let root = rooted.then(|| PathComponent::new(""));
    let own: Vec<_> = root.iter().chain(names).collect();
    let climbs = names.last().is_some_and(|last| last.is(".."));
    climbs
        || (rooted && names.is_empty())
        || WIDE_PATTERNS.iter().any(|pattern| {
            pattern.len() == own.len()
                && own.iter().zip(pattern).all(|(name, pattern)| *pattern == "*" || name.fits(pattern))
        })
}

#[cfg(test)]
mod tests;
