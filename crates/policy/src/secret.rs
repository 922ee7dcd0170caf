//! Places where secrets are kept. Reading them is never safe, whatever reads them.

mod names;
mod patterns;
mod wildcard;

use std::sync::LazyLock;

use windlass_contract::secret_paths::{SecretKind, SecretPath, home_secrets, system_secrets};

use names::{
    COPIES, DEVICES, EXTENSIONS, FILES, FRAGMENTS, HARMLESS, HIDDEN, NAMED, OTHERS, PROC, TOOLS, WIDE,
};
use patterns::Patterns;
use wildcard::Name;

use crate::path::Places;

/// Returns why reading a file or directory without a command may show a secret: the same paths that a command is asked
/// about. `path` is absolute or relative to where the user works.
pub fn read_shows_secret(path: &std::path::Path, workspace: &std::path::Path) -> Option<String> {
    let places = Places::starting(Some(workspace)).with_workspace(workspace);
    in_contents(&path.to_string_lossy(), false, &places)
}

/// Returns why looking through everything below a path, without a command, may show a secret.
pub fn search_shows_secret(path: &std::path::Path, workspace: &std::path::Path) -> Option<String> {
    in_everything_below(&path.to_string_lossy(), &Places::starting(Some(workspace)))
}

/// Why reading a file by this name may show a secret: it is kept there, or the file is among a user's settings, where
/// every program has its own way of keeping one. `glob`: the name is a wildcard.
pub(crate) fn in_contents(text: &str, glob: bool, places: &Places) -> Option<String> {
    find(text, places, |path| is_setting(path, places.workspace()) || is_kept_in(path, glob))
}

/// Why a file by this name is known for holding secrets. `glob`: the name is a wildcard.
pub(crate) fn kept_in(text: &str, glob: bool, places: &Places) -> Option<String> {
    find(text, places, |path| is_kept_in(path, glob))
}

/// Why listing a directory of this name may show where secrets are.
pub(crate) fn in_names(text: &str, places: &Places) -> Option<String> {
    let secret = places.resolve(text).any(|path| {
        let mut path = Path::new(&path);
        // All hidden names are no search for any of them.
        path.names.pop_if(|last| last.is(".*"));
        path.is_in_directory()
    });
    secret.then(|| format!("`{text}` is a place for secrets"))
}

/// Why reading everything below a directory may show a secret.
pub(crate) fn in_everything_below(text: &str, places: &Places) -> Option<String> {
    let secret = places.resolve(text).any(|path| {
        let path = Path::new(&path);
        path.is_wide() || path.is_in_directory()
    });
    secret.then(|| format!("there may be secrets somewhere below `{text}`"))
}

fn find(text: &str, places: &Places, is_secret: impl Fn(&str) -> bool) -> Option<String> {
    let found = candidates(text).find(|path| places.resolve(path).any(|path| is_secret(&path)));
    found.map(|path| format!("`{path}` may hold secrets"))
}

fn is_kept_in(path: &str, glob: bool) -> bool {
    // A copy of a file holds what the file does.
    if let Some(original) = COPIES.iter().find_map(|mark| path.strip_suffix(mark))
        && is_kept_in(original, glob)
    {
        return true;
    }
    if below_a_home(path).is_some_and(is_in_the_table) {
        return true;
    }
    let path = Path::new(path);
    path.is_special()
        || path.is_in_directory()
        || path.is_file()
        || (glob && path.takes_all_of_a_wide_directory())
}

/// A path, and what may be one inside the word: `HEAD:.env`, `--include=.env`.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    std::iter::once(text).chain(text.split([':', '=', ',']).filter(move |part| part.len() < text.len()))
}

/// Whether a path is hidden in a home directory, and neither in the workspace nor where the tools of programmers and their
/// sources are.
fn is_setting(path: &str, workspace: &str) -> bool {
    let Some(hidden) = hidden_in_a_home(path) else { return false };
    // In a workspace that is a home directory, or the settings of all programs, they are still settings.
    let works_there = hidden_in_a_home(workspace).is_some_and(|name| name != ".config");
    let is_own = works_there && is_below(path, workspace);
    !is_own && !TOOLS.iter().any(|tool| is_below(hidden, tool))
}

/// A hidden path in a home directory, without that.
fn hidden_in_a_home(path: &str) -> Option<&str> {
    below_a_home(path).filter(|rest| rest.starts_with('.'))
}

/// A path in a home directory, without that.
fn below_a_home(path: &str) -> Option<&str> {
    let below = |home: &str| path.strip_prefix(home);
    let someones = || ["/home/", "/var/home/", "/Users/"].into_iter().find_map(below)?.split_once('/');
    ["~/", "/root/"].into_iter().find_map(below).or_else(|| someones().map(|(_, rest)| rest))
}

/// Whether a path below a home directory is one of the table, or inside one.
fn is_in_the_table(rest: &str) -> bool {
    static TABLE: LazyLock<Patterns> =
        LazyLock::new(|| Patterns::new(home_secrets().map(|secret| secret.path)));
    TABLE.fit_the_start_of(&names(rest).map(Name::new).collect::<Vec<_>>())
}

/// The paths of the table that tell in any directory.
fn telling(kind: SecretKind) -> impl Iterator<Item = &'static str> {
    paths(home_secrets().filter(|secret| secret.is_telling), kind)
}

/// The paths of the table that belong to the system, also below another directory: a mount, or a copy.
fn of_the_system(kind: SecretKind) -> impl Iterator<Item = &'static str> {
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

/// A path that was resolved, by its names.
struct Path<'a> {
    rooted: bool,
    names: Vec<Name<'a>>,
}

impl<'a> Path<'a> {
    fn new(path: &'a str) -> Self {
        Self { rooted: path.starts_with('/'), names: names(path).map(Name::new).collect() }
    }

    fn is_in_directory(&self) -> bool {
        static HIDDEN_ONES: LazyLock<Patterns> =
            LazyLock::new(|| Patterns::new(telling(SecretKind::Directory).chain(HIDDEN.iter().copied())));
        static OTHER_ONES: LazyLock<Patterns> = LazyLock::new(|| {
            Patterns::new(of_the_system(SecretKind::Directory).chain(OTHERS.iter().copied()))
        });
        let named = (1..=self.names.len()).map(|end| &self.names[..end]);
        let mut named = named.filter(|names| names.last().is_some_and(|last| !last.is_wild()));
        HIDDEN_ONES.fit_a_part_of(&self.names) || named.any(|names| OTHER_ONES.fit_the_end_of(names))
    }

    fn is_file(&self) -> bool {
        static FILE_PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
            let table = telling(SecretKind::File).chain(of_the_system(SecretKind::File));
            Patterns::new(table.chain(FILES.iter().copied()))
        });
        static NAME_PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(NAMED.iter().copied()));
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

    /// Processes and devices.
    fn is_special(&self) -> bool {
        let is_one_of = |name: &Name<'_>, known: &[&str]| known.iter().any(|each| name.is(each));
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

    /// `~/*`, `/etc/*`: as good as reading everything there.
    fn takes_all_of_a_wide_directory(&self) -> bool {
        let all = self.names.iter().position(|name| name.is("*") || name.is("**"));
        all.is_some_and(|at| is_wide(self.rooted, &self.names[..at]))
    }

    fn is_wide(&self) -> bool {
        is_wide(self.rooted, &self.names)
    }
}

/// Whether a directory is so high up that anyone's secrets may be below it.
fn is_wide(rooted: bool, names: &[Name<'_>]) -> bool {
    static WIDE_PATTERNS: LazyLock<Vec<Vec<&str>>> =
        LazyLock::new(|| WIDE.iter().map(|pattern| pattern.split('/').collect()).collect());
    let root = rooted.then(|| Name::new(""));
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
