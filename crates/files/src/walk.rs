//! Walking through a directory as its user sees it: never through links, never into what is hidden.
//!
//! The walker goes by names, so a directory that is exchanged for a link under its feet may show the names of what is
//! hidden; no file is ever opened that way.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ignore::WalkBuilder;

use crate::resolve::{Resolver, is_process};

/// File systems that are no files: some of them never end.
const NO_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A walk from a real directory or file on. What is passed over because it is hidden is counted.
pub(super) fn walk(resolver: &Resolver, real: &Path) -> (WalkBuilder, Arc<AtomicU64>) {
    let mut builder = WalkBuilder::new(real);
    // The user's own ignore file would be looked for in this process's environment.
    builder.git_global(false).follow_links(false);
    let hidden = resolver.hidden_below(real);
    let above_no_files = NO_FILES.iter().any(|place| Path::new(place).starts_with(real));
    let denied = Arc::new(AtomicU64::new(0));
    if !hidden.is_empty() || above_no_files {
        let (count, top) = (Arc::clone(&denied), real.to_owned());
        builder.filter_entry(move |entry| {
            let path = entry.path();
            if hidden.iter().any(|hidden| hidden == path) || is_process(path) {
                count.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            path == top || !NO_FILES.iter().any(|place| path == Path::new(place))
        });
    }
    (builder, denied)
}

/// A path below `real` as it looks from `name`.
pub(super) fn renamed(path: &Path, real: &Path, name: &Path) -> PathBuf {
    match path.strip_prefix(real) {
        Ok(rest) if rest.as_os_str().is_empty() => name.to_owned(),
        Ok(rest) => name.join(rest),
        Err(_) => path.to_owned(),
    }
}
