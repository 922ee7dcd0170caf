//! Lists the entries of a directory.

use ignore::overrides::Override;
use tokio_util::sync::CancellationToken;
use windlass_contract::files::{Entry, FileError, FileKind, Ignored, Listed, Listing};

use crate::{
    resolve::{PathResolver, file_kind},
    walk::{WalkFilter, walk},
};

/// Lists a directory and its subdirectories, up to the requested depth.
pub(super) fn list(
    resolver: &PathResolver,
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
        // A directory that cannot be read is in the list already, as an entry.
        let Ok(entry) = entry else { continue };
        let Ok(path) = entry.path().strip_prefix(&top.real) else { continue };
        if entry.depth() == 0 {
            continue;
        }
        if listed.entries.len() == listing.limit {
            listed.more = true;
            break;
        }
        let kind = entry.file_type().map_or(FileKind::Other, file_kind);
        listed.entries.push(Entry { path: path.to_owned(), kind });
    }
    Ok(listed)
}
