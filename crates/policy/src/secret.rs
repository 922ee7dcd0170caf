//! Places where secrets are kept. Reading them is never safe, whatever reads them.

mod names;
mod wildcard;

use names::{DEVICES, DIRECTORIES, EXTENSIONS, FILES, FRAGMENTS, HARMLESS, NAMED, PROC, WIDE};
use wildcard::{is_wild, overlap};

use crate::path::Places;

/// Why reading a file by this name may show a secret. `glob`: the name is a wildcard.
pub(crate) fn in_contents(text: &str, glob: bool, places: &Places) -> Option<String> {
    let found = candidates(text).find(|path| {
        places.resolve(path).any(|path| {
            let parts = parts(&path);
            is_special(&path, &parts)
                || in_directory(&parts)
                || is_file(&parts)
                || (glob && takes_all_of_a_wide_directory(&path))
        })
    });
    found.map(|path| format!("`{path}` may hold secrets"))
}

/// Why listing a directory of this name may show where secrets are.
pub(crate) fn in_names(text: &str, places: &Places) -> Option<String> {
    let secret = places.resolve(text).any(|path| in_directory(&parts(&path)));
    secret.then(|| format!("`{text}` is a place for secrets"))
}

/// Why reading everything below a directory may show a secret.
pub(crate) fn in_everything_below(text: &str, places: &Places) -> Option<String> {
    let secret = places.resolve(text).any(|path| is_wide(&path) || in_directory(&parts(&path)));
    secret.then(|| format!("there may be secrets somewhere below `{text}`"))
}

/// A path, and what may be one inside the word: `HEAD:.env`, `--include=.env`.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    std::iter::once(text).chain(text.split([':', '=', ',']).filter(move |part| part.len() < text.len()))
}

/// The names of a path, in lower case: some systems do not tell the cases apart.
fn parts(path: &str) -> Vec<String> {
    path.split('/').filter(|part| !part.is_empty()).map(str::to_lowercase).collect()
}

fn in_directory(parts: &[String]) -> bool {
    DIRECTORIES.iter().any(|pattern| {
        let length = pattern.split('/').count();
        parts.windows(length).any(|window| all_overlap(window, pattern))
    })
}

fn is_file(parts: &[String]) -> bool {
    let Some(name) = parts.last() else { return false };
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let is = |known: &[&str]| extension.is_some_and(|own| known.iter().any(|each| overlap(own, each)));
    if HARMLESS.iter().any(|harmless| Some(*harmless) == extension) {
        return false;
    }
    let named = if is_wild(name) {
        FRAGMENTS.iter().any(|fragment| name.contains(fragment))
    } else {
        NAMED.iter().any(|pattern| overlap(name, pattern))
    };
    named || is(EXTENSIONS) || FILES.iter().any(|pattern| at_the_end(parts, pattern))
}

fn at_the_end(parts: &[String], pattern: &str) -> bool {
    let length = pattern.split('/').count();
    parts.len() >= length && all_overlap(&parts[parts.len() - length..], pattern)
}

fn all_overlap(parts: &[String], pattern: &str) -> bool {
    parts.iter().zip(pattern.split('/')).all(|(part, pattern)| overlap(part, pattern))
}

/// Processes and devices.
fn is_special(path: &str, parts: &[String]) -> bool {
    let names: Vec<_> = parts.iter().map(String::as_str).collect();
    match names[..] {
        ["proc", ref rest @ ..] if path.starts_with('/') => {
            !rest.first().is_some_and(|name| PROC.contains(name))
        }
        ["dev", ref rest @ ..] if path.starts_with('/') => {
            !matches!(rest, [device] if DEVICES.contains(device))
        }
        _ => false,
    }
}

/// `~/*`, `/etc/*`: as good as reading everything there.
fn takes_all_of_a_wide_directory(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    let Some(at) = parts.iter().position(|part| matches!(*part, "*" | "**")) else { return false };
    let directory = parts[..at].join("/");
    is_wide(if directory.is_empty() && path.starts_with('/') { "/" } else { &directory })
}

/// Whether a directory is so high up that anyone's secrets may be below it.
fn is_wide(path: &str) -> bool {
    let path = path.to_lowercase();
    let named = WIDE.iter().any(|wide| {
        wide.split('/').count() == path.split('/').count()
            && wide.split('/').zip(path.split('/')).all(|(wide, part)| wide == "*" || overlap(part, wide))
    });
    named || path.split('/').next_back() == Some("..")
}

#[cfg(test)]
mod tests;
