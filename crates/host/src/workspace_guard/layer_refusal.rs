//! The paths that a layer may not change, and the settings of git that are not on it.

use std::path::{Path, PathBuf};

use windlass_sandbox::ProtectedPaths;

use super::{
    CommandGuard,
    protected_names::{in_root, protected_ancestor, starts_with_ignoring_case},
    protected_paths::entry_in_home,
};

const PROTECTED: &str = "this name is protected: other programs execute or trust it";

/// Returns the reason why a layer may not change a path below a root of a command. Rules that
/// depend on more than the path, as in a git directory, are checked after it was applied.
pub(crate) fn layer_refusal(command: &CommandGuard, number: usize, relative: &Path) -> Option<String> {
    let path = command.roots.get(number)?.path.join(relative);
    let ProtectedPaths { read_only, unmounted, git_configs, absent, links, homes, .. } = &*command.protected;
    let is_inside = |above: &PathBuf| path.starts_with(above);
    let is_protected = protected_ancestor(relative).is_some()
        || in_root().any(|name| starts_with_ignoring_case(relative, name))
        || entry_in_home(homes, &path).is_some()
        || read_only.iter().chain(unmounted).chain(git_configs).chain(absent).any(is_inside)
        || links.iter().any(|(link, _)| *link == path);
    is_protected.then(|| PROTECTED.to_owned())
}

/// Lists the files of git's settings of which a command has changed its copy.
pub(crate) fn private_changes(command: &CommandGuard) -> Vec<PathBuf> {
    let changed = command.private_configs.iter().filter(|config| config.is_changed());
    changed.map(|config| config.path.clone()).collect()
}
