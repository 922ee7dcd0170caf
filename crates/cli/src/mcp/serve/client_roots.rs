//! The roots of a client, as far as they narrow what it may reach.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::screen::visible_path;

/// Returns the directories that a client narrows its calls to. `None` if it narrows nothing:
/// because it has no roots, none of them is in the ceiling, or one of them contains the ceiling.
pub(crate) fn narrowed(named: Option<&[PathBuf]>, ceiling: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let ceiling: Vec<_> = ceiling.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    let mut inside = Vec::new();
    for root in named? {
        let Ok(root) = fs::canonicalize(root) else {
            ignore(root, "does not exist");
            continue;
        };
        if ceiling.iter().any(|place| place.starts_with(&root)) {
            return None;
        }
        if !root.is_dir() || !ceiling.iter().any(|place| root.starts_with(place)) {
            ignore(&root, "is outside of the directory served");
            continue;
        }
        if !inside.contains(&root) {
            inside.push(root);
        }
    }
    (!inside.is_empty()).then_some(inside)
}

fn ignore(root: &Path, reason: &str) {
    crate::note(&format!("the root `{}` of a client {reason}; it is ignored", visible_path(root)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_narrow_and_never_widen() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let (ceiling, inner, other) = (home.join("c"), home.join("c/inner"), home.join("other"));
        for directory in [&inner, &other] {
            fs::create_dir_all(directory).unwrap();
        }
        std::os::unix::fs::symlink(&other, ceiling.join("link")).unwrap();
        let narrow = |roots: &[PathBuf]| narrowed(Some(roots), std::slice::from_ref(&ceiling));
        assert_eq!(narrowed(None, std::slice::from_ref(&ceiling)), None);
        assert_eq!(narrow(&[inner.clone(), inner.clone()]), Some(vec![inner.clone()]));
        assert_eq!(narrow(&[other.clone(), inner.clone()]), Some(vec![inner.clone()]));
        for outside in [other, home.clone(), ceiling.clone(), ceiling.join("link"), ceiling.join("none")] {
            assert_eq!(narrow(&[outside]), None);
        }
    }
}
