//! What is in a directory.

use ignore::overrides::Override;
use tokio_util::sync::CancellationToken;
use windlass_contract::files::{Entry, FileError, FileKind, Ignored, Listed, Listing};

use crate::{
    resolve::{Resolver, kind_of},
    walk::{WalkFilter, walk},
};

/// Lists a directory, and those in it as deep as is wanted.
pub(super) fn list(
    resolver: &Resolver,
    listing: &Listing,
    stop: &CancellationToken,
) -> Result<Listed, FileError> {
    let top = resolver.open_directory(&listing.path)?;
    let keeps_ignored = listing.ignored == Ignored::Shown;
    let filter = WalkFilter { ignores: !keeps_ignored, dot_names: false, globs: Override::empty() };
    let (mut walker, _) = walk(resolver, &top.real, filter);
    walker.max_depth(Some(listing.depth));
    let mut listed = Listed { path: top.name, ..Listed::default() };
    for entry in walker.build() {
        if stop.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        // What cannot be looked into was told by its own entry already.
        let Ok(entry) = entry else { continue };
        let Ok(path) = entry.path().strip_prefix(&top.real) else { continue };
        if entry.depth() == 0 {
            continue;
        }
        if listed.entries.len() == listing.limit {
            listed.more = true;
            break;
        }
        let kind = entry.file_type().map_or(FileKind::Other, kind_of);
        listed.entries.push(Entry { path: path.to_owned(), kind });
    }
    Ok(listed)
}
