//! Paths with wildcards, looked for in a directory: one look at each directory on the way, and none
//! at one that has not changed.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::stat_cache::StatCache;

/// Maximum number of entries; for larger directories, single lookups are cheaper than a listing.
const MAX_ENTRIES: usize = 4096;

/// Paths by their names. The first node is where they begin.
pub(super) struct PathTree {
    nodes: Vec<PathNode>,
    seen: StatCache<Arc<NodeMatches>>,
}

/// The names that may follow in a directory, in lower case.
#[derive(Debug, Default)]
struct PathNode {
    named: HashMap<String, usize>,
    wild: Vec<(String, usize)>,
    /// True if a path ends here.
    is_end: bool,
}

/// The entries of a directory that fit a node, with the node that each leads to.
#[derive(Debug)]
struct NodeMatches {
    node: usize,
    entries: Vec<(OsString, usize)>,
}

impl PathTree {
    pub(super) fn new(paths: impl Iterator<Item = &'static str>) -> Self {
        let mut nodes = vec![PathNode::default()];
        for path in paths {
            let end =
                path.to_ascii_lowercase().split('/').fold(0, |at, name| next_node(&mut nodes, at, name));
            nodes[end].is_end = true;
        }
        Self { nodes, seen: StatCache::new() }
    }

    /// Finds those of the paths that exist below a directory, or may exist where it cannot be
    /// listed.
    pub(super) fn find_below(&self, directory: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut to_see = vec![(directory.to_owned(), 0)];
        while let Some((directory, node)) = to_see.pop() {
            for (name, next) in &self.matches(&directory, node).entries {
                let path = directory.join(name);
                if self.nodes[*next].is_end {
                    found.push(path);
                } else {
                    to_see.push((path, *next));
                }
            }
        }
        found
    }

    fn matches(&self, directory: &Path, node: usize) -> Arc<NodeMatches> {
        let matches = self.seen.get_or_read(directory, || Arc::new(self.list(directory, node)));
        // Two home directories, one inside the other, can come by the same directory.
        if matches.node == node { matches } else { Arc::new(self.list(directory, node)) }
    }

    fn list(&self, directory: &Path, node: usize) -> NodeMatches {
        let PathNode { named, wild, .. } = &self.nodes[node];
        let all_named = || named.iter().map(|(name, next)| (OsString::from(name), *next));
        let names = match entry_names(directory) {
            Ok(names) => names,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return NodeMatches { node, entries: Vec::new() };
            }
            Err(_) => return NodeMatches { node, entries: all_named().collect() },
        };
        let mut entries = Vec::new();
        let mut is_sure = names.len() < MAX_ENTRIES;
        for name in names {
            let Some(lower) = name.to_str().filter(|name| name.is_ascii()).map(str::to_ascii_lowercase)
            else {
                // A file system without case may take it for one of ours. In a home directory those
                // begin with a dot.
                is_sure &= node == 0 && !name.as_encoded_bytes().starts_with(b".");
                continue;
            };
            entries.extend(named.get(&lower).map(|next| (name.clone(), *next)));
            let fitting = wild.iter().filter(|(pattern, _)| fits(&lower, pattern));
            entries.extend(fitting.map(|(_, next)| (name.clone(), *next)));
        }
        if !is_sure {
            entries.extend(all_named());
        }
        NodeMatches { node, entries }
    }
}

fn next_node(nodes: &mut Vec<PathNode>, at: usize, name: &str) -> usize {
    let is_wild = name.contains('*');
    let known = if is_wild {
        nodes[at].wild.iter().find(|(pattern, _)| pattern == name).map(|(_, next)| *next)
    } else {
        nodes[at].named.get(name).copied()
    };
    known.unwrap_or_else(|| {
        let next = nodes.len();
        nodes.push(PathNode::default());
        if is_wild {
            nodes[at].wild.push((name.to_owned(), next));
        } else {
            nodes[at].named.insert(name.to_owned(), next);
        }
        next
    })
}

/// The names of a directory's entries, up to the limit.
fn entry_names(directory: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(directory)?.take(MAX_ENTRIES).map(|entry| Ok(entry?.file_name())).collect()
}

/// Returns whether a name fits a pattern, in which `*` stands for any text.
fn fits(name: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<_> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    OsStr::new(left).len() >= end.len() && left.ends_with(end)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]
mod tests {
    use super::*;

    fn found(place: &Path, paths: &'static [&'static str]) -> Vec<PathBuf> {
        let mut found = PathTree::new(paths.iter().copied()).find_below(place);
        for path in &mut found {
            *path = path.strip_prefix(place).unwrap().to_owned();
        }
        found.sort();
        found
    }

    #[test]
    fn paths_are_found_by_name_and_by_wildcard_in_any_case() {
        let place = tempfile::tempdir().unwrap();
        for path in [".config/Brave", ".m2", "a/b1/c", "a/b2/c"] {
            fs::create_dir_all(place.path().join(path)).unwrap();
        }
        fs::write(place.path().join(".m2/settings-work.xml"), "").unwrap();
        fs::write(place.path().join(".x_history"), "").unwrap();
        let paths =
            &[".config/brave", ".m2/settings*.xml", "a/b*/c", ".*_history", ".gone/x", ".x_history/y"];
        let expected = [".config/Brave", ".m2/settings-work.xml", ".x_history", "a/b1/c", "a/b2/c"];
        assert_eq!(found(place.path(), paths), expected.map(PathBuf::from));
        assert_eq!(found(&place.path().join("gone"), paths), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_made_later_is_found_then() {
        let place = tempfile::tempdir().unwrap();
        let tree = PathTree::new([".ssh"].into_iter());
        assert_eq!(tree.find_below(place.path()), Vec::<PathBuf>::new());
        fs::create_dir(place.path().join(".ssh")).unwrap();
        assert_eq!(tree.find_below(place.path()), [place.path().join(".ssh")]);
    }

    #[test]
    fn a_name_that_a_file_system_may_take_for_another_makes_every_name_likely() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("Vidéos")).unwrap();
        assert_eq!(found(place.path(), &[".ssh"]), Vec::<PathBuf>::new());
        fs::create_dir(place.path().join(".\u{17f}sh")).unwrap();
        assert_eq!(found(place.path(), &[".ssh"]), [PathBuf::from(".ssh")]);
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (name, pattern, expected) in [
            ("settings.xml", "settings*.xml", true),
            ("settings.xm", "settings*.xml", false),
            ("ssh_host_rsa_key", "ssh_host_*_key", true),
            ("ssh_host_rsa_key.pub", "ssh_host_*_key", false),
            ("ab", "a*ab", false),
            ("mcp-oauth-tokens-v2.json", "mcp-*-tokens*.json", true),
            ("abc", "*", true),
        ] {
            assert_eq!(fits(name, pattern), expected, "{name} {pattern}");
        }
    }
}
