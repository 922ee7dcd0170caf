//! Walks a directory: never through links, never into hidden directories.
//!
//! The walker goes by names, so a directory that is replaced by a link during the walk may reveal
//! hidden names. No file is opened that way.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ignore::{WalkBuilder, overrides::Override};

use crate::{
    ignore_rules::{IgnoreMatch, IgnoreRules},
    resolve::{PathResolver, is_process},
};

/// Pseudo file systems, which hold no real files; some of them are endless.
const PSEUDO_FILE_SYSTEMS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The files that a walk skips.
#[derive(Debug, Clone)]
pub(super) struct WalkFilter {
    /// Apply ignore files, and skip `.git`.
    pub(super) ignores: bool,
    /// Skip names that start with a dot.
    pub(super) dot_names: bool,
    /// Globs, which override ignore files.
    pub(super) globs: Override,
}

/// Starts a walk at a real directory or file. The counter is the number of entries skipped because
/// they may not be read.
pub(super) fn walk(
    resolver: &PathResolver,
    real: &Path,
    filter: WalkFilter,
) -> (WalkBuilder, Arc<AtomicU64>) {
    let mut builder = WalkBuilder::new(real);
    // Ignore files are read by [`IgnoreRules`]: the walker would open them by path, and they could
    // be FIFOs.
    builder.standard_filters(false).follow_links(false).overrides(filter.globs.clone());
    let hidden = resolver.hidden_below(real);
    let denied = Arc::new(AtomicU64::new(0));
    let (count, top, rules) = (Arc::clone(&denied), real.to_owned(), IgnoreRules::default());
    builder.filter_entry(move |entry| {
        let path = entry.path();
        if hidden.iter().any(|hidden| hidden == path) || is_process(path) {
            count.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        path == top
            || !PSEUDO_FILE_SYSTEMS.iter().any(|place| path == Path::new(place))
                && !filter.excludes(&rules, path, is_directory)
    });
    (builder, denied)
}

impl WalkFilter {
    fn excludes(&self, rules: &IgnoreRules, path: &Path, is_directory: bool) -> bool {
        if self.globs.matched(path, is_directory).is_whitelist() {
            return false;
        }
        if self.ignores && path.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        let found = if self.ignores { rules.matched(path, is_directory) } else { IgnoreMatch::None };
        let is_dot_name = || path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        match found {
            IgnoreMatch::Ignored => true,
            IgnoreMatch::Included => false,
            IgnoreMatch::None => self.dot_names && is_dot_name(),
        }
    }
}

/// Returns a path below `real` with that prefix replaced by `name`.
pub(super) fn replace_prefix(path: &Path, real: &Path, name: &Path) -> PathBuf {
    match path.strip_prefix(real) {
        Ok(rest) if rest.as_os_str().is_empty() => name.to_owned(),
        Ok(rest) => name.join(rest),
        Err(_) => path.to_owned(),
    }
}
